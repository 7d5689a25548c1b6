# SPDX-License-Identifier: Apache-2.0
"""One run of one command: its output, its CPU time with all of its children, its time by the clock."""
import ctypes
import hashlib
import os
import select
import signal
import time

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
ENVIRONMENT = {
    **os.environ,
    "LC_ALL": "C",
    # Hashes are the same in each run.
    "PYTHONHASHSEED": "0",
    "PERL_HASH_SEED": "0",
    "PERL_PERTURB_KEYS": "0",
}


class Run:
    """What came of it. `error` is None, or says why its times mean nothing."""

    def __init__(self, cpu, wall, status, output, error):
        self.cpu, self.wall, self.status, self.output, self.error = cpu, wall, status, output, error

    def matches(self, other):
        return (self.status, self.output) == (other.status, other.output)


def adopt_orphans():
    """What a command leaves running becomes our child, so that its CPU time can be added."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def spawn(command, stdin, output, errors, environment):
    """In a group of its own, so that it can be ended whole. Output goes to memory: no disk in the times."""
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, stdin or "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_DUP2, errors, 2),
    ]
    return os.posix_spawn(command[0], command, {**ENVIRONMENT, **environment}, file_actions=actions, setpgroup=0)


def wait_orphans(group, deadline):
    """CPU seconds of what outlived the command; what is still there at the deadline is ended."""
    cpu = 0
    while True:
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return cpu
        cpu += usage.ru_utime + usage.ru_stime
        if pid == 0 and time.monotonic() > deadline:
            end_group(group)
            deadline += 5
        elif pid == 0:
            time.sleep(0.002)


def end_group(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def wait(pid, limit):
    """Seconds of CPU and clock, status as os.wait4 gives it, and whether the limit was reached."""
    start = time.monotonic()
    descriptor = os.pidfd_open(pid)
    is_late = True
    try:
        is_late = not select.select([descriptor], [], [], limit)[0]
    finally:  # an interrupt from the keyboard reaches us alone
        os.close(descriptor)
        if is_late:
            end_group(pid)
    _, status, usage = os.wait4(pid, 0)
    cpu = usage.ru_utime + usage.ru_stime + wait_orphans(pid, start + limit)
    return cpu, time.monotonic() - start, status, is_late


def contents(descriptor):
    with os.fdopen(descriptor, "rb") as file:
        file.seek(0)
        return file.read()


def last_line(text):
    lines = text.decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def status_error(status, is_late, limit, errors):
    if is_late:
        return "not done after %g s" % limit
    if status == 0:
        return None
    code = os.waitstatus_to_exitcode(status)
    return ("status %d" % code if code > 0 else "signal %d" % -code) + ": " + last_line(errors)


def run(command, stdin=None, limit=300, keeps_output=False, environment=()):
    """Runs the command; a Run whose output is a checksum, or the bytes themselves if they are to be kept."""
    output, errors = os.memfd_create("output"), os.memfd_create("errors")
    before = time.monotonic()
    try:
        pid = spawn(command, stdin, output, errors, dict(environment))
    except OSError as error:
        os.close(output)
        os.close(errors)
        return Run(0, 0, None, None, str(error))
    spawning = time.monotonic() - before
    cpu, wall, status, is_late = wait(pid, limit)
    text = contents(output)
    error = status_error(status, is_late, limit, contents(errors))
    return Run(cpu, wall + spawning, status, text if keeps_output else hashlib.sha256(text).hexdigest(), error)
