# SPDX-License-Identifier: Apache-2.0
"""What programs are run under: this project's commands and what others offer, each a few words before a command."""
import json
import os
import shutil
import subprocess

from . import measure


class Peer:
    """`words` go before the command; `package` is where Debian has it; a slow one gets smaller inputs."""

    def __init__(self, name, words, package=None, is_slow=False, version=("--version",), trace=None):
        self.name, self.words, self.package, self.is_slow, self.trace = name, words, package, is_slow, trace
        self.version_words = version

    def command(self, command):
        return [*self.words, *command]

    def missing(self):
        """None if it works here, else why it does not."""
        if not self.words[0] or not os.access(self.words[0], os.X_OK):
            return "not installed" + (" (Debian: %s)" % self.package if self.package else "")
        probe = measure.run(self.command([shutil.which("true") or "/bin/true"]), limit=60)
        return "does not work here: " + probe.error if probe.error else None

    def version(self):
        result = subprocess.run([self.words[0], *self.version_words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                text=True, check=False)
        return result.stdout.split("\n")[0].strip()


def find(name):
    return shutil.which(name) or ""


def peers(lbr, folder):
    """All that are known, in the order of the table's columns; traces are written to the folder."""
    trace = os.path.join(folder, "trace.lbr")
    return [
        Peer("run", [lbr, "run", "--"]),
        Peer("record", [lbr, "record", "-o", trace, "--"], trace=trace),
        Peer("valgrind", [find("valgrind"), "--tool=none", "-q"], "valgrind"),
        Peer("qemu", [find("qemu-x86_64")], "qemu-user"),
        Peer("drrun", [find("drrun"), "--"], version=("-version",)),
        Peer("callgrind", [find("valgrind"), "--tool=callgrind", "-q", "--callgrind-out-file=/dev/null"], "valgrind",
             is_slow=True),
    ]


def trace_read(lbr, path):
    """What lbr stat says of a trace, and how long it takes without symbols. A dictionary with "error" if it fails."""
    run = measure.run([lbr, "stat", "--no-symbols", "--json", path], keeps_output=True)
    if run.error:
        return {"error": "lbr stat: " + run.error}
    try:
        return trace_page(json.loads(run.output), run)
    except (ValueError, KeyError) as error:
        return {"error": "lbr stat --json is not as expected: %r" % error}


def trace_page(page, run):
    result = {
        "branches": page["branches"],
        "bytes": page["bytes"],
        "bits_per_branch": page["bits_per_branch"],
        "read_cpu": run.cpu,
        "read_wall": run.wall,
    }
    if not page["branches"]:
        result["error"] = "the trace is empty"
    elif not page["complete"] or page["gaps"]:
        result["error"] = "the trace is not complete"
    return result
