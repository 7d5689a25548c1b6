#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_attach.py LBR ORACLE FOLDER [TEST]...: lbr attaches to processes that run, and leaves them. FOLDER has the programs of
tests/process/attach. Expected branches come from the oracle, and otherwise what the same process does without lbr.
ATTACH_TIMES: how often lbr attaches to one process (default: 20)."""
import os
import random
import signal
import subprocess
import sys
import time

import attach_rig as rig
from attach_rig import PATIENCE, Lbr, Program, is_recorded, remains, skip, status, totals, until, verdict

LBR, ORACLE, FOLDER = (os.path.realpath(path) for path in sys.argv[1:4])
TIMES = int(os.environ.get("ATTACH_TIMES", "20"))
STRESS, STEPS, TARGET = (os.path.join(FOLDER, name) for name in ("stress", "steps", "target"))
SCALE = 4  # 62 threads


def target(way):
    """A process that is in the call in which it waits."""
    program = Program(TARGET, way).ready()
    if way != "compute":
        until(lambda: rig.sleeps(program.pid))
    return program


def record(*processes, more=(), trace="t.lbr"):
    if os.path.exists(trace + ".incomplete"):  # of an lbr that was killed
        os.unlink(trace + ".incomplete")
    return Lbr(LBR, "record", "-o", trace, "-p", ",".join(str(process.pid) for process in processes), *more)


def is_left(process):
    """Is nothing of lbr in a process that is alive? Its threads leave one after the other; lbr waits for them."""
    return status(process) != {} and remains(process) == []


# ---- the same branches ----

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def test_oracle():
    """A short run: `lbr record` lists what the oracle does, from the start."""
    command = [STEPS, "40"]
    run = {"env": ENVIRONMENT, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL,
           "check": False, "preexec_fn": lambda: rig.LIBC.personality(rig.ADDR_NO_RANDOMIZE)}
    if subprocess.run([ORACLE, "-d", "list", *command], **run).returncode == 126:
        return skip("the list of the oracle", "no tracing here")
    subprocess.run([LBR, "record", "-q", "-o", "short.lbr", *command], **run)
    with open("list", "rb") as file:
        words = [line.split() for line in file if not line.startswith(b"#")]
    expected = b"".join(b"%s %s\n" % (line[1], line[2]) for line in words)
    found = rig.branches(LBR, "short.lbr")
    verdict("the list of the oracle", found == expected, found.count(b"\n"), expected.count(b"\n"))


def full_list(count):
    """All branches of a run, and its output."""
    done = subprocess.run([LBR, "record", "-q", "-o", "full.lbr", STEPS, count], env=ENVIRONMENT, stdout=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, check=True,
                          preexec_fn=lambda: rig.LIBC.personality(rig.ADDR_NO_RANDOMIZE))
    return b"\n" + rig.branches(LBR, "full.lbr"), done.stdout.decode().splitlines()


def attach_often(count, times):
    """Attaches to one run of steps. Yields the list of each recording."""
    program = Program(STEPS, count, environment=ENVIRONMENT, is_fixed=True)
    yield program
    for number in range(times):
        time.sleep(random.uniform(0.001, 0.06))  # any moment will do
        lbr = record(program, more=["--for", f"{random.randrange(30, 101)}ms"], trace=f"part{number}.lbr")
        lbr.wait()
        if lbr.status:
            verdict(f"recording {number} of a run", False, lbr.why())
            return
        yield b"\n" + rig.branches(LBR, f"part{number}.lbr")


def check_exact(name, count, times, full, output):
    position, wrong, sizes = 0, [], []
    recordings = attach_often(count, times)
    program = next(recordings)
    for part in recordings:
        at = full.find(part)
        sizes.append(part.count(b"\n") - 1)
        if at < position or sizes[-1] < 1000:
            wrong.append((len(sizes), at, position, sizes[-1]))
        position = max(at, position)
    result = program.end()
    verdict(f"{name}: each recording is a part of the full list, later than the one before", not wrong and len(sizes) == times,
            wrong, sizes)
    verdict(f"{name}: output and status", result == (output, "", 0), result)


def test_exact():
    count = "120000"
    full, output = full_list(count)
    for number in range(3):
        check_exact(f"steps, run {number + 1}", count, 1, full, output)
    check_exact("steps, attached 10 times", count, 10, full, output)


# ---- many threads ----


def memory(process):
    """Mappings that neither the stress program nor the kernel changes: code, memory files, and the recorder's addresses. A
    page of changed code is what a thread of the program maps at its start."""
    return {one for one in rig.maps(process) if "x" in one[2]} | set(rig.recorder_maps(process))


def links(process):
    return sorted(rig.descriptors(process).values())


def stress_attach(program, number):
    """One of the ways to attach and to leave. Returns what is wrong, or None."""
    length = f"{random.randrange(20, 151)}ms"
    way = number % 5
    if way == 0:
        lbr = record(program, more=["--for", length])
    elif way == 1:
        lbr = Lbr(LBR, "run", "-p", program.pid, "--snapshot", "--tail", "3")
    elif way == 2:
        lbr = record(program, more=["--limit", "256K", "--for", "5s"])
    else:
        lbr = record(program)
        lbr.attached(program.pid)
        time.sleep(random.uniform(0, 0.1))  # any moment will do
        os.kill(lbr.pid, signal.SIGINT if way == 3 else signal.SIGTERM)
    result = lbr.wait()
    if result not in (0, -signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGINT):
        return f"{' '.join(lbr.words[1:])}: {lbr.why()}"
    return None


def signal_changes(program, before):
    after = rig.signal_state(program.pid)
    return [(thread, *(f"{mask:x}" for mask in masks + before[thread])) for thread, masks in after.items()
            if masks != before.get(thread, masks)]


def stress_difference(program, before):
    after = memory(program.pid), links(program.pid)
    if after[0] != before[0]:
        return f"mappings: {after[0] ^ before[0]}"
    if after[1] != before[1]:
        return f"descriptors: {after[1]}, before {before[1]}"
    if not until(lambda: not signal_changes(program, before[2])):  # a thread may have to wait for a processor
        return f"signals of threads, now and before: {signal_changes(program, before[2])}"
    return remains(program.pid)


def check_stress(program, before):
    """Attaches and leaves until something is wrong. Returns what, or None."""
    for number in range(TIMES):
        wrong = stress_attach(program, number)
        if wrong or program.process.poll() is not None:
            return f"time {number + 1}: {wrong or 'the program has ended'}"
        wrong = stress_difference(program, before)
        if wrong:
            return f"after time {number + 1}, way {number % 5}: {wrong}"
        if number % 5 == 4 and program.ask("check\n") != "checked":
            return f"after time {number + 1}: no answer"
    return None


def test_stress():
    program = Program(STRESS, SCALE, 100000).ready()
    if not verdict("stress: rseq(2) before", program.ask("check\n") == "checked"):
        print(program.end())
        return
    before = memory(program.pid), links(program.pid), rig.signal_state(program.pid)
    wrong = check_stress(program, before)
    verdict(f"stress: {TIMES} times attached and left, nothing is left behind", not wrong, wrong)
    if program.process.poll() is None:
        os.kill(program.pid, signal.SIGTERM)
    lines, errors, result = program.end()
    verdict("stress: the program finds nothing wrong", result == 0 and lines[-1:] == ["fine"], result, errors)


# ---- what happens to a process while lbr attaches, records and leaves ----


def attach_for(program, *more, trace="t.lbr"):
    """Attaches for 100 ms. Returns whether all went well, and says why if not."""
    lbr = record(program, more=["--for", "100ms", *more], trace=trace)
    lbr.wait()
    if lbr.status or not is_left(program.pid):
        print(f"  {lbr.why()}, left: {remains(program.pid)}")
        return False
    return True


# The name, and what the call gives: (result, errno).
TIMED = {"futex": (-1, 110), "poll": (0, 0), "nanosleep": (0, 0), "epoll": (0, 0), "accept": (-1, 11), "receive": (-1, 11),
         "sigtimedwait": (-1, 11), "semtimedop": (-1, 11), "waitpid": (0, 0)}
LATE = 1250  # milliseconds; a call of 1000 that begins again when lbr attaches takes longer
# Of these, the kernel does not keep how long they have waited: lbr has to let them begin again.
RESTARTED = {"accept", "receive", "semtimedop", "sigtimedwait", "epoll"}


def timed_once(ways):
    """Of each way: (did lbr attach and leave before the call ended, result, errno, milliseconds)"""
    programs = {way: target(way) for way in ways}
    time.sleep(0.2)  # of the second that the calls take
    recordings = {way: record(program, more=["--for", "100ms"], trace=way + ".lbr") for way, program in programs.items()}
    found = {}
    for way, program in programs.items():
        is_fine = recordings[way].wait() == 0 and is_left(program.pid)
        result, error, passed = program.line().split()
        found[way] = is_fine, int(result), int(error), float(passed)
        program.end()
    return found


def is_late(way, found):
    return way not in RESTARTED and found[3] > LATE


def test_timed():
    """Calls that wait for a second. On a machine that is busy, lbr may come too late, or the process: one of some tries must
    not."""
    found, left = {}, list(TIMED)
    for _ in range(4):
        found.update(timed_once(left))
        left = [way for way in left if not found[way][0] or is_late(way, found[way])]
    for way, expected in TIMED.items():
        verdict(f"{way} goes on while lbr attaches and leaves", found[way][:3] == (True, *expected), found[way])
        verdict(f"{way} is not shorter than asked", found[way][3] >= 999.9, found[way])
        verdict(f"{way} is not longer than asked", not is_late(way, found[way]), found[way])


def test_blocked():
    """Calls that wait until a byte comes: while it is recorded, and after lbr has left."""
    for way, expected in (("read", "1 0"), ("poll-input", "1 0"), ("epoll-input", "1 0")):
        program = target(way)
        is_fine = attach_for(program) and attach_for(program)
        found = program.ask()
        verdict(f"{way} goes on after lbr has left", is_fine and found.startswith(expected), found)
        program.end()
        program = target(way)
        lbr = record(program)
        is_fine = lbr.attached(program.pid)
        found = program.ask()
        program.end()
        verdict(f"{way} goes on while it is recorded", is_fine and found.startswith(expected), found)
        verdict(f"{way}: lbr ends with the process", lbr.wait() == 0, lbr.why())


def signal_effect(program):
    """What a read(2) gives after SIGUSR1: EINTR, or the byte that comes then."""
    until(lambda: status(program.pid).get("ShdPnd", "").strip("0") == "")
    time.sleep(0.05)  # a call that is to fail does so now
    line = program.ask()
    program.end()
    return line.rpartition(" ")[0] if line else line


def test_pending():
    """A signal that comes while the process is stopped. Natively read(2) fails with EINTR, or goes on (SA_RESTART)."""
    for way, expected in (("interrupt", "-1 4"), ("restart", "1 0")):
        program = target(way)
        os.kill(program.pid, signal.SIGUSR1)
        natively = signal_effect(program)
        verdict(f"{way}: natively", natively == expected, natively)
        for name in ("before lbr attaches", "while it is recorded", "while it is stopped and recorded",
                     "while it is stopped, before lbr leaves", "after lbr has left"):
            found = pending_once(way, name)
            verdict(f"{way}: a signal {name}", found == expected, found)


def pending_once(way, name):
    program = target(way)
    if name == "after lbr has left":
        attach_for(program)
        os.kill(program.pid, signal.SIGUSR1)
        return signal_effect(program)
    if name == "while it is recorded":
        lbr = record(program)
        lbr.attached(program.pid)
        os.kill(program.pid, signal.SIGUSR1)
    else:
        os.kill(program.pid, signal.SIGSTOP)
        until(lambda: rig.state(program.pid) == "T")
        if name == "before lbr attaches":
            os.kill(program.pid, signal.SIGUSR1)
        lbr = record(program)
        lbr.attached(program.pid)
        if name != "before lbr attaches":
            os.kill(program.pid, signal.SIGUSR1)
        if name == "while it is stopped, before lbr leaves":
            lbr.interrupt()
        os.kill(program.pid, signal.SIGCONT)
    found = signal_effect(program)
    if lbr.status is None and lbr.wait() or lbr.status:
        print(f"  {lbr.why()}")
    return found


def test_suspend():
    """sigsuspend(2), whose mask holds for the time of the call."""
    for moment in ("never attached", "left", "recorded"):
        program = target("sigsuspend")
        is_fine = moment != "left" or attach_for(program)
        lbr = record(program) if moment == "recorded" else None
        if lbr:
            is_fine = lbr.attached(program.pid)
        os.kill(program.pid, signal.SIGUSR1)
        line = program.line()
        program.end()
        verdict(f"sigsuspend, {moment}: the signal ends it", is_fine and line.startswith("-1 4 "), is_fine, line)
        verdict(f"sigsuspend, {moment}: lbr ends with the process", not lbr or lbr.wait() == 0, lbr and lbr.why())


def test_signals_at_once():
    """A signal at about the moment at which lbr attaches or leaves."""
    for way, expected in (("interrupt", "-1 4"), ("restart", "1 0")):
        found = set()
        for number in range(12):
            program = target(way)
            lbr = record(program, more=["--for", "20ms"])
            time.sleep(0.004 * number)  # any moment will do
            os.kill(program.pid, signal.SIGUSR1)
            lbr.wait()
            found.add((lbr.status, tuple(remains(program.pid)) if way == "restart" else (), signal_effect(program)))
        verdict(f"{way}: a signal while lbr attaches or leaves", found <= {(0, (), expected), (125, (), expected)}, found)


def test_stopped():
    """A process that is stopped stays so, and goes on when it is told to."""
    program = target("answer")
    os.kill(program.pid, signal.SIGSTOP)
    until(lambda: rig.state(program.pid) == "T")
    is_fine = attach_for(program)
    verdict("a stopped process: is still stopped when lbr has left", is_fine and rig.state(program.pid) == "T",
            rig.state(program.pid))
    os.kill(program.pid, signal.SIGCONT)
    verdict("a stopped process: goes on", program.ask() == "answer 0")
    lbr = record(program)
    lbr.attached(program.pid)
    os.kill(program.pid, signal.SIGSTOP)
    until(lambda: rig.state(program.pid) == "T")
    lbr.interrupt()
    verdict("a process that is stopped while it is recorded: lbr leaves it", lbr.status == 0 and is_left(program.pid),
            lbr.why(), remains(program.pid))
    verdict("a process that is stopped while it is recorded: stays so", rig.state(program.pid) == "T", rig.state(program.pid))
    os.kill(program.pid, signal.SIGCONT)
    verdict("a process that is stopped while it is recorded: goes on", program.ask() == "answer 0")
    program.kill()


def test_list():
    one, two = target("compute"), target("answer")
    lbr = record(one, two)
    is_fine = lbr.attached(one.pid, two.pid) and two.ask() == "answer 0"
    lbr.interrupt()
    verdict("two processes: both are recorded", is_fine and lbr.status == 0 and totals(lbr.output)[2] == 2, lbr.why())
    verdict("two processes: both are left", is_left(one.pid) and is_left(two.pid), remains(one.pid), remains(two.pid))
    verdict("two processes: both go on", two.ask() == "answer 0" and one.process.poll() is None)
    one.kill()
    two.kill()


def test_top():
    """The program computes in one function, which the page must name."""
    program = target("compute")
    run = subprocess.run([LBR, "top", "-p", str(program.pid), "--count", "2", "--interval", "200ms", "--by", "function"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=False)
    pages = run.stdout.split("every branch counted: ")[1:]
    verdict("lbr top shows two pages", run.returncode == 0 and len(pages) == 2, run.stdout, run.stderr)
    verdict("lbr top names the program", all("[target]" in page for page in pages), run.stdout)
    verdict("lbr top leaves the process", is_left(program.pid) and program.process.poll() is None, remains(program.pid))
    program.kill()


def forks_check(name, more, count):
    """A server with children: one before lbr attaches, two while it records."""
    program = target("forks")
    children = [int(program.ask("f"))]
    lbr = record(program, more=more)
    lbr.attached(program.pid)
    children += [int(program.ask("f")), int(program.ask("f"))]
    time.sleep(0.05)  # something to record
    lbr.interrupt()
    verdict(f"{name}: processes in the trace", lbr.status == 0 and totals(lbr.output)[2] == count, lbr.why())
    left = {child: remains(child) for child in [program.pid, *children]}
    verdict(f"{name}: all are left", not any(left.values()), left)
    verdict(f"{name}: all go on", all(rig.state(child) == "S" for child in children))
    lines = [program.ask("e"), *program.end()[0]]
    verdict(f"{name}: SIGTERM ends the children", lines == [f"status {int(signal.SIGTERM)}"] * 3, lines)


def test_children():
    forks_check("children", [], 3)
    forks_check("children, --no-follow", ["--no-follow"], 1)


def test_ends():
    program = target("exit")
    lbr = record(program)
    lbr.attached(program.pid)
    program.write("x")
    result = program.end()
    verdict("a process that ends: its status", result[2] == 7, result)
    verdict("a process that ends: lbr ends, too, with status 0", lbr.wait() == 0, lbr.why())
    verdict("a process that ends: the trace", rig.branches(LBR, "t.lbr").count(b"\n") == totals(lbr.output)[0] > 100000, lbr.why())


def test_crash():
    program = target("crash")
    lbr = Lbr(LBR, "run", "-p", program.pid)
    lbr.attached(program.pid)
    program.write("x")
    result = program.end()
    verdict("a process that crashes: its status", result[2] == -signal.SIGSEGV, result)
    lbr.wait()
    words = ("Segmentation fault", "crash_here", "way_crash")
    verdict("a process that crashes: the report of lbr run -p", lbr.status is not None and all(word in lbr.output for word in words),
            lbr.why())


def test_report():
    program = target("answer")
    reports = "reports.txt"
    lbr = Lbr(LBR, "run", "-p", program.pid, "-o", reports)
    is_fine = lbr.attached(program.pid) and program.ask() == "answer 0"
    os.kill(lbr.pid, signal.SIGUSR2)
    came = until(lambda: os.path.exists(reports) and "branches of thread" in rig.read(reports))
    verdict("SIGUSR2 to lbr run -p: a report", is_fine and came, lbr.process.poll())
    verdict("SIGUSR2 to lbr run -p: the process goes on, recorded", program.ask() == "answer 0" and is_recorded(program.pid))
    lbr.interrupt()
    verdict("SIGINT to lbr run -p: the process is left", lbr.status == 0 and is_left(program.pid), lbr.why())
    verdict("SIGINT to lbr run -p: the process goes on", program.ask() == "answer 0")
    program.kill()


def test_exec():
    program = target("exec")
    lbr = record(program)
    lbr.attached(program.pid)
    program.write("x")
    verdict("a process that executes another program: that starts", program.line() == "ready")
    verdict("a process that executes another program: that runs", program.ask() == "answer 0")
    lbr.interrupt()
    verdict("a process that executes another program: lbr leaves it", lbr.status == 0 and is_left(program.pid), lbr.why(),
            remains(program.pid))
    verdict("a process that executes another program: that goes on", program.ask() == "answer 0")
    program.kill()


def test_vfork():
    """The parent is in the kernel until the child executes a program."""
    program = target("vfork")
    until(lambda: rig.state(program.pid) == "D" or rig.children(program.pid))
    lbr = record(program, more=["--for", "100ms"])
    time.sleep(0.5)  # lbr waits or gives up
    program.write("x")
    result = program.end()
    verdict("a process in vfork(2): it goes on", result == (["0"], "", 0), result)
    verdict("a process in vfork(2): lbr ends", lbr.wait() in (0, 125), lbr.why())


def test_leader():
    """The first thread has ended, others run."""
    program = Program(TARGET, "leader").ready()
    lbr = record(program)
    is_attached = lbr.attached(program.pid)
    verdict("the first thread has ended: the others run", program.ask() == "answer")
    if not is_attached:
        lbr.wait()
        verdict("the first thread has ended: lbr records the others, or says why not",
                lbr.status == 125 and "thread" in lbr.output, lbr.why())
    else:
        lbr.interrupt()
        verdict("the first thread has ended: lbr records the others", lbr.status == 0 and totals(lbr.output)[0] > 100000, lbr.why())
    verdict("the first thread has ended: the others go on", program.ask() == "answer")
    program.kill()


def test_early():
    """A signal that comes while lbr attaches: it leaves at once, or dies of it before it has begun."""
    for words in (["record", "-o", "early.lbr"], ["run"]):
        program, found = target("answer"), []
        for number in range(25):
            lbr = Lbr(LBR, *words, "-p", program.pid)
            time.sleep(0.002 * number)  # any moment will do
            os.kill(lbr.pid, signal.SIGINT)
            if not until(lambda: lbr.process.poll() is not None, 10):
                found.append((number, "lbr does not end"))
                os.kill(lbr.pid, signal.SIGINT)
            lbr.wait()
            if remains(program.pid) or program.ask() != "answer 0":
                found.append((number, remains(program.pid), lbr.why()))
            if os.path.exists("early.lbr.incomplete"):
                os.unlink("early.lbr.incomplete")
        verdict(f"lbr {words[0]} -p: SIGINT at the start", not found, found)
        program.kill()


def test_killed():
    """lbr is killed: nothing tidies up, but the process goes on, unrecorded."""
    for words in (["record", "-o", "t.lbr"], ["run"]):
        one, two = target("answer"), target("compute")
        lbr = Lbr(LBR, *words, "-p", f"{one.pid},{two.pid}")
        is_fine = lbr.attached(one.pid, two.pid) and one.ask() == "answer 0"
        lbr.interrupt(signal.SIGKILL)
        answers = [one.ask() for _ in range(20)]
        verdict(f"lbr {words[0]} is killed: a process goes on that waits", is_fine and answers == ["answer 0"] * 20, is_fine, answers)
        verdict(f"lbr {words[0]} is killed: a process goes on that computes", rig.runs(two.pid), rig.state(two.pid))
        verdict(f"lbr {words[0]} is killed: nobody traces them", status(one.pid)["TracerPid"] == status(two.pid)["TracerPid"] == "0")
        one.kill()
        two.kill()


# ---- refusals ----


def refused(name, words, *reasons, program=None, **more):
    """lbr must end with 125 or 2 and name the reason; the process must be as before."""
    before = (rig.state(program.pid), set(rig.maps(program.pid)), rig.descriptors(program.pid)) if program else None
    lbr = Lbr(*words, **more)
    lbr.wait()
    is_named = any(reason in lbr.output for reason in reasons)
    verdict(f"{name}: refused", lbr.status in (2, 125) and is_named, lbr.why())
    if program:
        after = rig.state(program.pid), set(rig.maps(program.pid)), rig.descriptors(program.pid)
        verdict(f"{name}: the process is as before", after == before, after[0], after[1] ^ before[1])


def both(name, number, *reasons, program=None, **more):
    refused(f"record -p, {name}", [LBR, "record", "-o", "no.lbr", "-p", number], *reasons, program=program, **more)
    refused(f"run -p, {name}", [LBR, "run", "-p", number], *reasons, program=program, **more)
    if not any(name.startswith("no.lbr") for name in os.listdir(".")):
        return
    verdict(f"record -p, {name}: no trace is left", False, os.listdir("."))
    for file in os.listdir("."):
        if file.startswith("no.lbr"):
            os.unlink(file)


def test_refused():
    both("no such process", 4194303, "does not exist")
    both("process 0", 0, "0")
    both("process -1", -1, "-1")
    program = target("thread")
    thread = program.line()
    both("a thread", thread, "is a thread of process", program=program)
    program.kill()
    program = target("zombie")
    child = program.line()
    both("a process that has ended", child, "ended")
    program.kill()
    program = target("gs")
    both("way gs", program.pid, "GS segment", program=program)
    verdict("way gs: it goes on", program.ask().startswith("1 0"))
    program.end()
    both("a thread of the kernel", 2, "kernel", "permission", "does not exist")


def test_refused_self():
    for words in ("record -o no.lbr", "run"):
        refused(f"lbr {words.split()[0]} attaches to itself", ["/bin/sh", "-c", f"exec {LBR} {words} -p $$"], "itself")


def test_refused_traced():
    """By this test."""
    program = target("read")
    PTRACE_SEIZE = 0x4206
    if rig.LIBC.ptrace(PTRACE_SEIZE, program.pid, None, None):
        return skip("a process that is traced", "no tracing here")
    both("a process that another one traces", program.pid, "traces it already", program=program)
    verdict("a process that another one traces: it goes on", program.ask().startswith("1 0"))
    program.kill()


def test_refused_twice():
    program = target("answer")
    lbr = record(program)
    lbr.attached(program.pid)
    both("a process that lbr records", program.pid, "records it already", "traces it already")
    verdict("a process that lbr records: it goes on", program.ask() == "answer 0")
    lbr.interrupt()
    verdict("a process that lbr records: the first lbr ends well", lbr.status == 0 and is_left(program.pid), lbr.why())
    program.kill()
    program = Program(LBR, "record", "-q", "-o", "own.lbr", TARGET, "answer").ready()
    child = rig.children(program.pid)[0]
    both("a process that lbr has started", child, "records it already", "traces it already")
    verdict("a process that lbr has started: it goes on", program.ask() == "answer 0")
    program.kill()


def test_refused_32():
    """pause(), for ever."""
    with open("small", "wb") as file:
        file.write(rig.elf32(bytes.fromhex("b81d000000cd80ebf7")))
    os.chmod("small", 0o755)
    try:
        program = Program("./small")
    except OSError as error:
        return skip("a 32-bit program", error)
    until(lambda: rig.state(program.pid) == "S" and any(line[3].endswith("/small") for line in rig.maps(program.pid)))
    both("a 32-bit program", program.pid, "32-bit", program=program)
    program.kill()


def test_refused_user():
    if os.geteuid():
        return skip("another user's process", "not root")
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    if subprocess.run([*nobody, LBR, "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
        return skip("another user's process", "nobody may not execute lbr")
    program = target("read")
    for words in (["record", "-o", "no.lbr"], ["run"]):
        refused(f"{words[0]} -p, another user's process", [*nobody, LBR, *words, "-p", program.pid], "permission", "only root",
                program=program)
    verdict("another user's process: it goes on", program.ask().startswith("1 0"))
    program.end()


def test_usage():
    program = target("read")
    number = program.pid
    for name, words, reason in (
            ("a program besides -p", ["record", "-p", number, "/bin/true"], "-p"),
            ("a program besides -p", ["run", "-p", number, "/bin/true"], "-p"),
            ("one process twice", ["record", "-p", f"{number},{number}"], str(number)),
            ("one process twice", ["record", "-p", number, "-p", number], str(number)),
            ("--for without -p", ["record", "--for", "1s", "/bin/true"], "-p"),
            ("another source", ["record", "--source", "block-step", "-p", number], "--source"),
            ("another source", ["run", "--source", "block-step", "-p", number], "--source"),
            ("no number", ["record", "-p", "none"], "none"),
            ("no number", ["record", "-p", ""], "-p"),
            ("half a number", ["record", "-p", f"{number}x"], f"{number}x"),
            ("half a list", ["record", "-p", f"{number},"], "-p"),
            ("a number that is too large", ["record", "-p", "99999999999999999999"], "99999999999999999999"),
            ("no time", ["record", "--for", "soon", "-p", number], "soon"),
            ("no time", ["record", "--for", "-1s", "-p", number], "-1s"),
            ("no time", ["record", "--for", "0", "-p", number], "0")):
        refused(f"{words[0]}, {name}, {' '.join(str(word) for word in words[1:])}".replace(str(number), "PID"), [LBR, *words], reason,
                program=program)
    verdict("after all that: it goes on", program.ask().startswith("1 0"))
    program.end()


if __name__ == "__main__":
    sys.exit(rig.run(globals(), sys.argv[4:]))
