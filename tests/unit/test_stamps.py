#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_stamps.py LBR STAMPS TIMED STEP: are the times, system calls and signals in a trace right? TIMED (tests/process/timed.c) tells
when it slept and spun, by the system's clock, and how many calls and signals there were; STAMPS (tests/process/stamps.c) lists
what the trace has. STEP (tests/process/step_record.c) records in single steps."""
import os
import re
import subprocess
import sys
import tempfile
import time

from verdict import finish, verdict

LBR, STAMPS, TIMED, STEP = (os.path.realpath(path) for path in sys.argv[1:5])
SLACK = 100_000  # ns between the clock of the trace and the program's


class Stamp:
    def __init__(self, line):
        words = line.split(" ", 10)
        self.stream, self.number, self.time, self.cpu, self.used = map(int, words[:5])
        self.type, self.code, self.result, self.value = words[5], int(words[6]), int(words[7]), int(words[8])
        self.name, self.path = words[9], words[10]


def stamps_of(trace):
    run = subprocess.run([STAMPS, trace], stdout=subprocess.PIPE, text=True, check=False)
    verdict("stamps: times never go back, and stamps are between the right branches: " + trace, run.returncode == 0,
            run.stdout[-300:])
    return [Stamp(line) for line in run.stdout.split("\n") if line and not line.startswith("wrong")]


def record(how, times, environment=None, options=()):
    trace = how + ".lbr"
    run = subprocess.run([LBR, "record", "-q", "-o", trace, *options, TIMED, how, str(times)], stdout=subprocess.PIPE, text=True,
                         check=False, env={**os.environ, **(environment or {})})
    return run.returncode, run.stdout, trace


def spans(output, word):
    return [tuple(map(int, pair)) for pair in re.findall(word + r" (\d+) (\d+)", output)]


def sleeps(stamps):
    """(begin, end) of the sleeps, those that a signal ended included."""
    found, begun = [], {}
    for stamp in stamps:
        if stamp.type == "call" and stamp.name in ("nanosleep", "clock_nanosleep"):
            begun[stamp.stream] = stamp
        elif stamp.type == "return" and stamp.stream in begun:
            found.append((begun.pop(stamp.stream), stamp))
    return found


def check_sleeps(name, output, stamps):
    """Each sleep of the program is a system call of the trace that lies within what the program measured around it, and fills
    it but for the time that the program itself took."""
    told, found = spans(output, "sleep"), sleeps(stamps)
    verdict(f"{name}: number of sleeps", len(told) == len(found) > 0, told, len(found))
    wrong = [(before, call.time, back.time, after) for (before, after), (call, back) in zip(sorted(told), found)
             if not before - SLACK <= call.time <= back.time <= after + SLACK]
    verdict(f"{name}: sleeps are where the program's clock saw them", not wrong, wrong[:3])
    short = [back.time - call.time for call, back in found if back.time - call.time < 3_000_000 - SLACK]
    verdict(f"{name}: sleeps take as long as was asked for", not short, short[:3])


def check_used(name, output, stamps):
    """Spinning is running, sleeping is not: CPU time grows by what the program spun, and hardly while it sleeps."""
    used = [(stamp.time, stamp.used) for stamp in stamps if stamp.used > 0 and stamp.stream == 0]
    spun = sum(after - before for before, after in spans(output, "spin"))
    verdict(f"{name}: CPU time never goes back", all(a[1] <= b[1] for a, b in zip(used, used[1:])), used)
    total = used[-1][1] - used[0][1] if used else 0
    passed = used[-1][0] - used[0][0] if used else 0
    slept = sum(after - before for before, after in spans(output, "sleep"))
    verdict(f"{name}: CPU time leaves the sleeps out", 0 < total <= passed - slept * 0.8, total, passed, slept, spun)


def test_clocks():
    for how, environment, options in (("plain", None, ()), ("no-tsc", None, ()), ("plain", {"LBR_SYSTEM_CLOCK": "1"}, ()),
                                      ("strict", None, ()), ("plain", None, ("--ring", "1M"))):
        name = how + (" by the system's clock" if environment else "") + (" small log" if options else "")
        status, output, trace = record(how, 5, environment, options)
        stamps = stamps_of(trace)
        verdict(f"{name}: status", status == 0, status)
        check_sleeps(name, output, stamps)
        check_used(name, output, stamps)
        first = [stamp for stamp in stamps if stamp.stream == 0]
        ends = [stamp.type for stamp in first if stamp.type in ("start", "end")]
        verdict(f"{name}: start and end", ends == (["start"] if how == "strict" else ["start", "end"]), ends)


def test_child():
    status, output, trace = record("child", 3)
    stamps = stamps_of(trace)
    verdict("child: status", status == 0, status)
    told, found = sorted(spans(output, "sleep")), sorted((call.time, back.time) for call, back in sleeps(stamps))
    inside = [any(before - SLACK <= begin and end <= after + SLACK for before, after in told) for begin, end in found]
    verdict("child: sleeps of both processes are where they saw them", len(told) == len(found) == 6 and all(inside), told, found)
    paths = [stamp.path for stamp in stamps if stamp.name == "execve"]
    verdict("child: the path of execve", paths == [TIMED[:255]], paths)


def test_signals():
    status, output, trace = record("signals", 10)
    stamps = stamps_of(trace)
    told = int(re.search(r"signals (\d+)", output).group(1))
    found = [stamp for stamp in stamps if stamp.type == "signal" and stamp.code == 14]
    verdict("signals: as many as the program counted", status == 0 and told == len(found) > 10, told, len(found))
    verdict("signals: the kernel has sent them", {stamp.result for stamp in found} == {128}, {stamp.result for stamp in found})


def test_threads():
    status, output, trace = record("threads", 20, {"LBR_CACHE_SIZE": "20000"})
    stamps = stamps_of(trace)
    told = int(re.search(r"calls (\d+)", output).group(1))
    calls = [stamp for stamp in stamps if stamp.type == "call" and stamp.name == "getppid"]
    verdict("threads: every call", status == 0 and len(calls) == told, status, told, len(calls))
    verdict("threads: of all threads", len({stamp.stream for stamp in calls}) == 4)
    returns = {stamp.result for before, stamp in zip(stamps, stamps[1:]) if before.name == "getppid" and stamp.type == "return"}
    verdict("threads: what getppid returned", len(returns) == 1 and 0 not in returns, returns)


def test_attach():
    program = subprocess.Popen([TIMED, "wait", "100"], stdout=subprocess.PIPE, text=True)
    while open(f"/proc/{program.pid}/syscall", encoding="utf-8").read().split()[0] not in ("35", "230"):
        time.sleep(0.01)
    run = subprocess.run([LBR, "record", "-q", "-o", "attach.lbr", "-p", str(program.pid), "--for", "1300ms"], check=False)
    output, _ = program.communicate()
    stamps = stamps_of("attach.lbr")
    told = spans(output, "sleep")
    found = [(call.time, back.time) for call, back in sleeps(stamps)][1:]  # the first began before
    inside = [any(before - SLACK <= begin and end <= after + SLACK for before, after in told) for begin, end in found]
    verdict("attach: sleeps are where the program saw them", run.returncode == 0 and len(found) > 5 and all(inside),
            run.returncode, len(found), told[:3], found[:3])
    ends = [stamp.type for stamp in stamps if stamp.type in ("start", "end")]
    verdict("attach: start and end", ends == ["start", "end"], ends)


def test_steps():
    """A program that is stepped by ptrace: each sleep is between two stamps, which are within what the program measured."""
    run = subprocess.run([STEP, "record", "--quiet", "-o", "step.lbr", "--", TIMED, "plain", "2"], stdout=subprocess.PIPE,
                         text=True, check=False)
    stamps = stamps_of("step.lbr")
    told = spans(run.stdout, "sleep")
    found = [any(before <= a.time and b.time <= after and b.time - a.time >= 3_000_000 - SLACK
                 for a, b in zip(stamps, stamps[1:])) for before, after in told]
    verdict("steps: sleeps are where the program saw them", run.returncode == 0 and len(told) == 2 and all(found), told, found)
    times = [float(time) for time in subprocess.run([LBR, "script", "-F", "time", "step.lbr"], stdout=subprocess.PIPE, text=True,
                                                    check=True).stdout.split()]
    passed = (stamps[-1].time - stamps[0].time) / 1e9
    verdict("steps: lbr script has the times", times == sorted(times) and times[-1] - times[0] > passed * 0.9,
            times[:2], times[-2:], passed)
    ends = [stamp.type for stamp in stamps if stamp.type in ("start", "end")]
    verdict("steps: start and end", ends == ["start", "end"], ends)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for test in (test_clocks, test_child, test_signals, test_threads, test_attach, test_steps):
        test()
finish()
