# SPDX-License-Identifier: Apache-2.0
"""What programs are run under: this project's commands and what others offer, each a few words before a command."""
import json
import os
import shutil
import subprocess

from . import measure


TITLES = {"run": "lbr run", "record": "lbr record", "valgrind": "valgrind none", "qemu": "qemu-x86_64",
          "callgrind": "callgrind (small)"}


class Peer:
    """`words` go before the command; `package` is where Debian has it; a slow one gets smaller inputs. `cache` is the
    folder for what a run keeps for the next one: empty at the start of a first run, not of a second one."""

    def __init__(self, kind, words, package=None, is_slow=False, version=("--version",), trace=None, cache=None,
                 label="", is_second=False):
        self.kind, self.words, self.package, self.is_slow, self.trace = kind, words, package, is_slow, trace
        self.version_words, self.cache, self.label, self.is_second = version, cache, label, is_second
        self.name = kind + ("-2" if is_second else "") + ("@" + label if label else "")
        self.title = TITLES.get(kind, kind) + (", 2nd" if is_second else "") + (" " + label if label else "")

    def command(self, command):
        return [*self.words, *command]

    def environment(self):
        """For the next run, whose cache it makes ready."""
        if not self.cache:
            return {}
        if not self.is_second:
            shutil.rmtree(self.cache, ignore_errors=True)
        os.makedirs(self.cache, exist_ok=True)
        return {"XDG_CACHE_HOME": self.cache}

    def run(self, command, stdin=None, limit=300):
        return measure.run(self.command(command), stdin, limit, environment=self.environment())

    def clean(self):
        """Removes the trace."""
        for name in (self.trace, self.trace + ".incomplete") if self.trace else ():
            if os.path.exists(name):
                os.unlink(name)

    def missing(self):
        """None if it works here, else why it does not."""
        if not self.words[0] or not os.access(self.words[0], os.X_OK):
            return "not installed" + (" (Debian: %s)" % self.package if self.package else "")
        probe = self.run([shutil.which("true") or "/bin/true"], limit=60)
        return "does not work here: " + probe.error if probe.error else None

    def version(self):
        result = subprocess.run([self.words[0], *self.version_words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                text=True, check=False)
        return result.stdout.split("\n")[0].strip()


def find(name):
    return shutil.which(name) or ""


def labels(paths):
    """A name for each of several files: the first part of their paths that differs, or their numbers."""
    parts = [path.split(os.sep) for path in paths]
    while all(len(part) > 1 and part[0] == parts[0][0] for part in parts):
        parts = [part[1:] for part in parts]
    names = [part[0] for part in parts]
    return names if len(set(names)) == len(names) else [str(i + 1) for i in range(len(names))]


def peers_lbr(lbr, label, folder, runs):
    """The commands of one lbr, each run once or twice. Traces and caches are in the folder."""
    for kind in ("run", "record"):
        trace = os.path.join(folder, "trace.lbr") if kind == "record" else None
        words = [lbr, kind, *(["-o", trace] if trace else []), "--"]
        cache = os.path.join(folder, "cache-%s-%s" % (kind, label.replace(os.sep, "-")))
        for i in range(runs):
            yield Peer(kind, words, trace=trace, cache=cache, label=label, is_second=i > 0)


def peers(lbrs, folder, runs):
    """All that are known, in the order of the table's columns. `lbrs` is {label: path}; the label of a single one is
    empty."""
    return [
        *(peer for label, lbr in lbrs.items() for peer in peers_lbr(lbr, label, folder, runs)),
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
