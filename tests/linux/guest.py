# SPDX-License-Identifier: Apache-2.0
"""A Linux guest in `lbr machine`, used over its serial line as by somebody who types."""
import select
import subprocess
import time

PROMPT = "guest# "
QUERY = "\x1b[6n"  # busybox asks where the cursor is; nobody answers


class Guest:
    def __init__(self, lbr, kernel, initrd, append="", options=(), patience=600):
        self.output = ""
        self.deadline = time.monotonic() + patience
        self.process = subprocess.Popen(
            [lbr, "machine", kernel, "--initrd", initrd, "--append", "console=ttyS0 " + append, "--ram", "256",
             "--serial", "stdio", "--screen", "none", *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def read_until(self, text):
        """What was said up to the text, which must come."""
        while text not in self.output:
            left = self.deadline - time.monotonic()
            ready = left > 0 and select.select([self.process.stdout], [], [], left)[0]
            data = self.process.stdout.read(65536) if ready else b""
            if not data:
                self.process.kill()
                raise SystemExit("FAIL: '%s' did not come; the guest said:\n%s" % (text, self.output))
            self.output += data.decode(errors="replace").replace("\r", "")
        said, _, self.output = self.output.partition(text)
        return said.replace(QUERY, "")

    def command(self, line):
        """Types a line and gives back what it said."""
        self.process.stdin.write(line.encode() + b"\n")
        return self.read_until(PROMPT).partition("\n")[2]

    def end(self):
        """The exit status of lbr, after poweroff."""
        self.process.stdin.write(b"poweroff -f\n")
        self.output += self.process.communicate(timeout=max(1, self.deadline - time.monotonic()))[0].decode()
        return self.process.returncode
