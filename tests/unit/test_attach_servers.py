#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_attach_servers.py LBR FOLDER [NAME...]: lbr record -p and lbr run -p attach to servers that answer requests, and
leave them, again and again (ATTACH_TIMES times, default 15). FOLDER holds the sources of the servers that are compiled
here; NAME is one of redis, nginx, postgres, node, go, java. No request may fail and no answer may be wrong. A server must
be afterwards as it was before: its mappings, descriptors, signals and threads."""
import os
import re
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))

from compare import servers  # noqa: E402
from compare.servers import Failure, until  # noqa: E402

LBR = os.path.realpath(sys.argv[1])
TIMES = int(os.environ.get("ATTACH_TIMES", "15"))
MILLISECONDS = (20, 50, 200, 100)
IMAGE, PLACES_END = 0x7E7FF0000000, 0x7EC000000000  # src/process/attach.h
PATIENCE = servers.PATIENCE
failures = 0


def verdict(name, reasons):
    global failures
    print("FAIL %s: %s" % (name, "; ".join(reasons)) if reasons else "ok " + name, flush=True)
    failures += bool(reasons)


# ---- a process as /proc shows it ----


def maps_of(pid):
    """Rows of (start, end, rights, path)."""
    rows = re.findall(r"^(\w+)-(\w+) (\S+) \S+ \S+ \S+ *(.*)$", servers.words_of("/proc/%d/maps" % pid), re.M)
    return [(int(start, 16), int(end, 16), rights, path) for start, end, rights, path in rows]


def code_count(pid):
    """Counts the mappings of code that no file is behind."""
    return sum("x" in rights and not path for _, _, rights, path in maps_of(pid))


def descriptors_of(pid):
    links = {}
    try:
        for number in os.listdir("/proc/%d/fd" % pid):
            try:
                links[int(number)] = os.readlink("/proc/%d/fd/%s" % (pid, number))
            except OSError:
                pass
    except OSError:
        pass
    return links


def status_of(path):
    return dict(re.findall(r"^(\w+):\s*(.*)$", servers.words_of(path), re.M))


EVERY_SIGNAL = 0xfffffffffffbfeff  # blocked, for a moment, in a thread that begins


def signals_of(pid):
    """{thread: what it catches, ignores and blocks}."""
    threads = {}
    try:
        for thread in os.listdir("/proc/%d/task" % pid):
            status = status_of("/proc/%d/task/%s/status" % (pid, thread))
            if status:
                threads[thread] = tuple(status.get(name) for name in ("SigCgt", "SigIgn", "SigBlk"))
    except OSError:
        pass
    return threads


class Before:
    """A process before lbr has attached to it; complaints() tells what is different now."""

    def __init__(self, pid, server):
        self.pid, self.server = pid, server
        self.started = self.start_time()
        until(lambda: not any(int(signals[2], 16) == EVERY_SIGNAL for signals in signals_of(pid).values()), 10)  # new threads
        self.signals, self.code, self.descriptors = signals_of(pid), code_count(pid), descriptors_of(pid)

    def start_time(self):
        words = servers.words_of("/proc/%d/stat" % self.pid).rpartition(")")[2].split()
        return words[19] if len(words) > 19 else None

    def left_over(self):
        found = ["mapping %x-%x %s" % (start, end, path) for start, end, _, path in maps_of(self.pid)
                 if "memfd:lbr" in path or start < PLACES_END and end > IMAGE]
        found += ["descriptor %d %s" % (number, link) for number, link in descriptors_of(self.pid).items()
                  if "memfd:lbr" in link or number >= 900]
        if not self.server.is_compiler and code_count(self.pid) != self.code:
            found.append("%d mappings of code without a file, not %d" % (code_count(self.pid), self.code))
        return found

    def states(self):
        """Threads that are traced or stopped."""
        found = []
        for thread in signals_of(self.pid):
            status = status_of("/proc/%d/task/%s/status" % (self.pid, thread))
            if status and (status["TracerPid"] != "0" or status["State"][0] in "tT"):
                found.append("thread %s has tracer %s, state %s" % (thread, status["TracerPid"], status["State"]))
        return found

    def changed_signals(self):
        """A thread may block signals for a moment: only what stays is a difference."""
        now = signals_of(self.pid)
        return ["thread %s: signals %s, not %s" % (thread, now[thread], signals) for thread, signals in self.signals.items()
                if thread in now and now[thread] != signals]

    def complaints(self):
        if not servers.is_alive(self.pid) or self.start_time() != self.started:
            status = self.server.process.poll()
            return ["process %d is gone%s" % (self.pid, ", status %d" % status if status is not None else "")]
        found = self.left_over() + self.states()
        changed = self.changed_signals()
        if changed and not until(lambda: not self.changed_signals(), 10):
            found += self.changed_signals()
        return found

    def new_descriptors(self):
        """Descriptors that are there when no client is connected, as at the start."""
        return {number: link for number, link in descriptors_of(self.pid).items()
                if number not in self.descriptors and not link.startswith("/")}


# ---- attaching ----


def stack_of(pids):
    """Where the threads are, for a failure."""
    lines = []
    for pid in pids:
        for thread in signals_of(pid):
            path = "/proc/%d/task/%s/" % (pid, thread)
            status = status_of(path + "status")
            lines.append("thread %s %s tracer %s syscall %s" % (thread, status.get("State"), status.get("TracerPid"),
                                                                servers.words_of(path + "syscall").strip()))
    return lines


def lbr_run(words, pids):
    """Returns what is wrong, and what lbr has printed."""
    process = subprocess.Popen([LBR, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        text = process.communicate(timeout=PATIENCE)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        where = stack_of([process.pid, *pids])
        process.send_signal(signal.SIGINT)
        try:
            text = process.communicate(timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            text = process.communicate()[0]
        return ["lbr %s hangs: %s" % (" ".join(words), "; ".join(where))], text.decode(errors="replace")
    if process.returncode:
        return ["lbr %s: status %d" % (" ".join(words), process.returncode)], text
    return [], text


def record(folder, pids, number):
    trace = os.path.join(folder, "trace.lbr")
    words = ["record", "-p", ",".join(map(str, pids)), "-o", trace, "--for", "%dms" % MILLISECONDS[number % len(MILLISECONDS)],
             "--limit", "200M"]
    errors, text = lbr_run(words, pids)
    if errors:
        return errors, 0, text
    stat = servers.stat_read(LBR, trace)
    os.unlink(trace)
    if "error" in stat:
        return ["lbr stat: " + stat["error"]], 0, text
    # A thread whose log is full when lbr leaves does not wait: its branches of that moment are not recorded.
    gaps = sum(gap["gaps"] for gap in stat["gaps"])
    if gaps > len(stat["threads"]) or any(gap["lost"] for gap in stat["gaps"]):
        return ["the trace has gaps: %s" % stat["gaps"]], 0, text
    return [], stat["branches"], text


def snapshot(_, pids, number):
    errors, text = lbr_run(["run", "-p", ",".join(map(str, pids)), "--snapshot", "--tail", "4"], pids)
    return errors, len(re.findall(r"\b0x[0-9a-f]+|\+0x", text)), text


def attach_often(server, load, folder):
    """Returns what is wrong after the first attachment that went wrong."""
    targets = server.targets()
    before = {pid: Before(pid, server) for pid in set(sum(targets, []))}
    seen = {tuple(pids): 0 for pids in targets}
    for i in range(TIMES):
        pids = targets[i % len(targets)]
        way = (record, snapshot)[(i // len(targets) if len(targets) % 2 == 0 else i) % 2]
        where = "%s %d of %s" % (way.__name__, i + 1, ",".join(map(str, pids)))
        errors, branches, text = way(folder, pids, i)
        seen[tuple(pids)] += branches
        errors += [complaint for pid in pids for complaint in before[pid].complaints()]
        count = load.count()
        if not errors and not until(lambda: load.count() >= count + 5 or load.errors()):
            errors.append("the server answers no more: " + "; ".join(stack_of(pids)))
        errors += load.errors()
        if errors:
            return ["%s: %s" % (where, "; ".join(errors)), "lbr says: " + text[-800:], "the server says: " + server.tail()]
    # The master of nginx has nothing to do.
    return ["%s: no branches" % (pids,) for pids, branches in seen.items() if not branches and server.is_busy(pids)]


def server_test(server, folder):
    server.start(folder)
    idle = Before(server.pid, server)
    load = server.load()
    try:
        is_working = until(lambda: load.count() >= 5 or load.errors())
        errors = attach_often(server, load, folder) if is_working else ["the load does not begin"]
    finally:
        load_errors = load.end(server.errors_in)
    if not errors:
        errors = load_errors + server.check() + idle.complaints()
    if not errors and not until(lambda: not idle.new_descriptors(), 10):
        errors.append("new descriptors: %s" % idle.new_descriptors())
    if not errors:
        server.end()
    return errors


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    servers.SOURCES = os.path.realpath(sys.argv[2])
    servers.Go.words = ("spin",)
    servers.adopt_orphans()
    for kind in servers.SERVERS:
        server = kind()
        if sys.argv[3:] and server.name not in sys.argv[3:]:
            continue
        missing = server.missing()
        if missing:
            print("skip %s: %s" % (server.name, missing), flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="lbr-attach-") as folder:
            try:
                verdict(server.name, server_test(server, folder))
            except (Failure, subprocess.SubprocessError) as error:
                verdict(server.name, [str(error)])
            finally:
                servers.end_all()
    sys.exit(failures > 0)


main()
