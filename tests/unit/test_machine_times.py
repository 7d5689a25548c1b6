#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_machine_times.py LBR GUESTS: are the times in the trace of a machine those that the guest measures? times.bin
(tests/machine/times.S) reads its time-stamp counter, which counts nanoseconds, at five marks, between which it runs loops and
waits for its timer."""
import json
import os
import struct
import subprocess
import sys
import tempfile

from verdict import finish, verdict

LBR, GUESTS = (os.path.realpath(path) for path in sys.argv[1:3])
TICK = 1e9 / 1193182  # of the timer, in nanoseconds
SLACK = 10000  # between two stamps, times are interpolated


def machine(name, *options):
    run = subprocess.run([LBR, "machine", *options, "--screen", "none", "--trace", name], check=False, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT)
    verdict(f"{name}: the guest ends itself", run.returncode == 1, run.returncode, run.stdout[-300:])


def script(name, *options):
    return subprocess.run([LBR, "script", *options, name], stdout=subprocess.PIPE, text=True, check=True).stdout


def marks_of(name, thread=0):
    """Times of the jumps to the next instruction."""
    branches = [line.split() for line in script(name, "-F", "time,from,to,kind", "--thread", str(thread)).split("\n") if line]
    times = [float(words[0]) * 1e9 for words in branches]
    verdict(f"{name}: times never go back in {thread}", all(a <= b for a, b in zip(times, times[1:])))
    return [time for time, words in zip(times, branches)
            if words[-1] == "jmp" and int(words[2], 16) == int(words[1], 16) + 2]


def test_marks():
    for number in (1, 2):
        machine(f"{number}.lbr", "--flat", GUESTS + "/times.bin@0x7c00", "--serial", f"{number}.bin")
    measured = struct.unpack("<5Q", open("1.bin", "rb").read())
    marks = marks_of("1.lbr")
    verdict("all marks", len(marks) == 5, marks)
    wrong = [(mark - marks[0], own - measured[0]) for mark, own in zip(marks, measured)
             if abs(mark - marks[0] - (own - measured[0])) > SLACK]
    verdict("the marks are where the guest's counter saw them", not wrong, wrong)
    verdict("5966 ticks of the timer", abs(marks[2] - marks[1] - 5966 * TICK) < SLACK, marks, 5966 * TICK)
    verdict("3 times 1193 ticks of the timer", abs(marks[4] - marks[3] - 3 * 1193 * TICK) < SLACK, marks, 1193 * TICK)
    verdict("two runs have the same times", script("1.lbr", "-F", "time,cpu,from,to", "--events") ==
            script("2.lbr", "-F", "time,cpu,from,to", "--events"))


def test_readers():
    """A guest has times and no system calls of Linux."""
    run = subprocess.run([LBR, "diff", "--by", "time", "--json", "1.lbr", "2.lbr"], stdout=subprocess.PIPE, text=True, check=False)
    times = json.loads(run.stdout).get("times", {})
    verdict("diff --by time: functions, and no system calls", run.returncode == 0 and times.get("functions") and
            times.get("syscalls") == [], run.returncode, run.stdout)
    run = subprocess.run([LBR, "stat", "--syscalls", "1.lbr"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    verdict("stat --syscalls says so", run.returncode == 1 and not run.stdout and "no system calls" in run.stderr, run)


def test_processors():
    """Two processors that take turns: each has a stream with a start and an end, and its number; turns.bin
    (tests/machine/turns.S) has two readings of each."""
    machine("pair.lbr", "--flat", GUESTS + "/turns.bin@0x7c00", "--serial", "pair.bin", "--cpus", "2")
    measured = struct.unpack("<4Q", open("pair.bin", "rb").read())
    for number in (0, 1):
        marks, own = marks_of("pair.lbr", number), measured[2 * number:2 * number + 2]
        wrong = [(mark, time) for mark, time in zip(marks, own) if abs(mark - time) > SLACK]
        verdict(f"processor {number}: marks", len(marks) == 2 and not wrong, marks, own)
    events = [json.loads(line) for line in script("pair.lbr", "--events=only", "--json").split("\n") if line]
    ends = sorted((event["thread"], event["event"]) for event in events)
    verdict("start and end of both processors", ends == [(0, "end"), (0, "start"), (1, "end"), (1, "start")], ends)
    numbers = {line for line in script("pair.lbr", "-F", "cpu", "--thread", "0").split()}
    verdict("the processor's number", numbers == {"0"}, numbers)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    test_marks()
    test_readers()
    test_processors()
finish()
