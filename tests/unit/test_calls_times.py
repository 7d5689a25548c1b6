#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_calls_times.py LBR STAMP_TRACE DURATIONS: durations and system calls in lbr calls. STAMP_TRACE
(tests/process/stamp_trace.c) writes traces by hand, whose durations are known by arithmetic; DURATIONS
(tests/process/durations.c) is recorded, and measures itself how long its calls take."""
import json
import os
import re
import subprocess
import sys
import tempfile

from verdict import finish, verdict

LBR, STAMP_TRACE, DURATIONS = (os.path.realpath(path) for path in sys.argv[1:4])
SLACK = 100e-6  # seconds between the clock of the trace and the program's


def calls(*arguments):
    return subprocess.run([LBR, "calls", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def objects(*arguments):
    return [json.loads(line) for line in calls("--json", *arguments).stdout.splitlines()]


def write(name, text):
    subprocess.run([STAMP_TRACE, name], input=text, text=True, check=True)


# ---- by hand ----

# 0x1010 calls 0x2000, which calls 0x3000 twice and reads from 3 to 9 ms. The thread waits for 5 ms of that, since it has run for 4
# of the first 9 ms. The recorder stops it from 12 to 14 ms, in the second call of 0x3000. Branch 2, the first return, lies halfway
# between the stamps at 1 and 3 ms; there are stamps at all other calls and returns.
HAND = """stream hand
start 0 0 0
call 0 1010 2000
time 0 1000000 -1
call 0 2010 3000
ret 0 3010 2015
time 0 3000000 -1
syscall 0 2020 2022
enter 0 3000000 0 - 5 1 4096
return 0 9000000 4000000 100
jmp 0 2025 2028
time 0 10000000 -1
call 0 2030 3000
time 0 11000000 -1
jmp 0 3020 3030
time 0 12000000 -1
held 0 14000000 2000000
ret 0 3040 2035
time 0 15000000 -1
ret 0 2040 1015
time 0 16000000 -1
jmp 0 1020 1000
enter 0 17000000 231 - 0
end 0 18000000 11000000
"""
# Address, start, duration, waiting and own duration of each call, in milliseconds, in the order in which they end.
HAND_CALLS = [("0x3000", 1, 1, 0, 1), ("0x3000", 10, 2, 0, 2), ("0x2000", 0, 13, 5, 10), ("0x1010", 0, 16, 5, 3)]


def ms(seconds):
    return round(seconds * 1000, 6)


def shown(rows):
    """Calls and system calls in their order, in milliseconds."""
    return [(row["text"], ms(row["time"]), ms(row["duration"]), ms(row["waited"])) if row.get("type") == "syscall" else
            (row["address"], ms(row["time"]), ms(row["duration"]), ms(row["waited"]), ms(row["own_duration"])) for row in rows]


def test_hand():
    write("hand.lbr", HAND)
    rows = shown(objects("hand.lbr"))
    verdict("by hand: durations, waiting and own durations of calls", [row for row in rows if row[0].startswith("0x")] == HAND_CALLS,
            rows)
    verdict("by hand: system calls are where they were made", rows[1] == ("read(5, ptr, 4096) = 100", 3, 6, 5) and
            rows[4] == ("exit_group(0) = ?", 17, 1, 0), rows)
    plain = shown(objects("--no-syscalls", "hand.lbr"))
    verdict("by hand: --no-syscalls", plain == HAND_CALLS, plain)
    inside = shown(objects("--function", "0x2000", "--depth", "1", "hand.lbr"))
    verdict("by hand: a system call is one level", inside == [("0x2000", 0, 13, 5, 13)], inside)


def test_hand_summary():
    rows = objects("--summary", "hand.lbr")
    found = {row["address"]: row for row in rows if row["type"] == "function"}
    three = found["0x3000"]
    verdict("by hand: the sums of a function", (ms(three["duration"]), ms(three["own_duration"]), three["calls"]) == (3, 3, 2), three)
    longest = three["longest"]
    verdict("by hand: its longest call, and where that is", (ms(longest["duration"]), ms(longest["time"]), longest["thread"],
            longest["branch"]) == (2, 10, 0, 6), longest)
    text = calls("--summary", "--by", "time", "hand.lbr").stdout
    order = re.findall(r"(0x[123]0[01]0)", text[text.index("Functions"):text.index("Times")])
    verdict("by hand: --summary --by time is sorted by own time", order == ["0x2000", "0x3000", "0x1010"], text)
    line = [line.split() for line in text[text.index("Times"):].splitlines() if "0x3000" in line][0]
    verdict("by hand: the times of a function as text", line[:6] == ["3.00", "ms", "3.00", "ms", "2.00", "ms"] and
            line[6:9] == ["0.010000000", "0", "6"], text)


def test_hand_shapes():
    folded = dict(line.rsplit(" ", 1) for line in calls("--folded", "--by", "time", "hand.lbr").stdout.splitlines())
    running = dict(line.rsplit(" ", 1) for line in calls("--folded", "--by", "running", "hand.lbr").stdout.splitlines())
    verdict("by hand: --folded --by time", [int(count) for count in folded.values()] == [3000000, 10000000, 3000000], folded)
    verdict("by hand: --folded --by running", [int(count) for count in running.values()] == [3000000, 5000000, 3000000], running)
    callers = [(row["level"], ms(row["duration"]), ms(row["waited"])) for row in objects("--callers", "0x3000", "hand.lbr")]
    verdict("by hand: --callers has the times of the function", callers == [(0, 3, 0), (1, 3, 0), (2, 3, 0)], callers)
    text = calls("--by", "time", "hand.lbr").stdout
    verdict("by hand: the tree", re.search(r" 37\.5% +6\.00 ms   5\.00 ms      read\(5, ptr, 4096\) = 100\n", text) and
            re.search(r" 81\.2% +\d+   13\.0 ms   5\.00 ms    0x2000", text), text)
    text = calls("--all", "hand.lbr").stdout
    verdict("by hand: --all", re.search(r"\n {30} +6\.00 ms   5\.00 ms +read\(5, ptr, 4096\) = 100\n", text), text)


# Span, and what is open in it: calls and system calls with their parts of it. Of the 5 ms for which the read waited, as much lies
# in the span as fits.
SPANS = [
    ("4ms,7ms", [("read(5, ptr, 4096) = 100", 4, 3, 3), ("0x2000", 4, 3, 3, 3), ("0x1010", 4, 3, 3, 0)]),
    ("1.5ms,5ms", [("0x3000", 1.5, .5, 0, .5), ("read(5, ptr, 4096) = 100", 3, 2, 2), ("0x2000", 1.5, 3.5, 2, 3),
                   ("0x1010", 1.5, 3.5, 2, 0)]),
    ("10.5ms,", [("0x3000", 10.5, 1.5, 0, 1.5), ("0x2000", 10.5, 2.5, 0, 1), ("exit_group(0) = ?", 17, 1, 0),
                 ("0x1010", 10.5, 5.5, 0, 3)]),
    ("0,0.5ms", [("0x2000", 0, .5, 0, .5), ("0x1010", 0, .5, 0, 0)]),
]


def test_hand_spans():
    for span, wanted in SPANS:
        found = shown(objects("--time", span, "hand.lbr"))
        verdict(f"by hand: --time {span}", found == wanted, found, wanted)
    run = calls("--time", "20ms,30ms", "hand.lbr")
    verdict("by hand: --time after the end", run.returncode == 1 and not run.stdout and "span of time" in run.stderr, run)
    for bad in ("5", "2s,1s", ",", "x,y"):
        run = calls("--time", bad, "hand.lbr")
        verdict(f"by hand: --time {bad} makes no sense", run.returncode == 2 and not run.stdout, run)


def test_hand_between():
    """Branch 5 is that of the second call of 0x3000, at 10 ms."""
    for part, wanted in (("..4", ("0x1010", 0, 10, 5, 0)), ("5..", ("0x1010", 10, 6, 0, 3))):
        found = shown(objects("--between", part, "hand.lbr"))
        verdict(f"by hand: --between {part}", found[-1] == wanted, found)


def test_alike():
    """Equal system calls in a row are one line with what they share."""
    lines = ["stream alike", "start 0 0 0", "call 0 1010 2000"]
    for i, (number, path, arguments, result) in enumerate(
            [(0, "-", (5, 1, 4096), size) for size in (100, 200, 300)] + [(3, "-", (fd,), 0) for fd in (7, 8)] +
            [(257, path, (-100 % 2**64, 1, 0), 3) for path in ("/a", "/b")] + [(39, "-", (), 77)] * 2):
        lines += [f"syscall 0 2020 2022", f"enter 0 {1000 * i + 1000} {number} {path} " + " ".join(map(str, arguments)),
                  f"return 0 {1000 * i + 1500} -1 {result}", "jmp 0 2024 2020"]
    write("alike.lbr", "\n".join(lines + ["ret 0 2040 1015", "time 0 20000 -1", "jmp 0 1020 1000"]) + "\n")
    text = calls("alike.lbr").stdout
    found = re.findall(r"(\S+ \ws)  +(\w+\(.*)", text)
    verdict("system calls that are alike", found == [("1.50 us", "read(5, ptr, 4096) x 3"), ("1.00 us", "close(...) = 0 x 2"),
            ("1.00 us", "openat(AT_FDCWD, ...) = 3 x 2"), ("1.00 us", "getpid() = 77 x 2")], found, text)
    text = calls("--top", "3", "alike.lbr").stdout
    verdict("small calls keep their time", re.search(r" 4\.50 us      +\(9 small calls\)", text), text)


def test_without():
    """A trace without stamps has no times, and options that need them say so."""
    write("without.lbr", "".join(line + "\n" for line in HAND.splitlines() if line.split()[0] in ("stream", "call", "ret", "jmp")))
    text, rows = calls("without.lbr").stdout, objects("without.lbr")
    verdict("without times: no columns", "waited" not in text and "exact count" in text and "duration" not in rows[0], text)
    verdict("without times: the other columns", re.search(r"^ +instructions +share +branches  call$", text, re.M), text)
    for options in (["--by", "time"], ["--by", "running", "--summary"], ["--time", "1ms,2ms"], ["--time", ",2ms", "--all"],
                    ["--folded", "--by", "time"], ["--callers", "0x3000", "--by", "time"]):
        run = calls(*options, "without.lbr")
        verdict(f"without times: {' '.join(options)} says so", run.returncode == 1 and "no times; record it again" in run.stderr and
                not run.stdout, run)


# ---- a program that measures itself ----

def check_spans(word, told, rows):
    found = [row for row in rows if row.get("function") == word]
    wrong = [(least, row["duration"], most) for (least, most, _), row in zip(told, found)
             if not least - SLACK <= row["duration"] <= most + SLACK]
    verdict(f"{word}: each call takes as long as the program measured", len(found) == len(told) > 0 and not wrong, wrong, len(found))
    return found


def check_waiting(told, found, work):
    short = [(asked, row["waited"]) for (_, _, asked), row in zip(told["nap"], found) if row["waited"] < .9 * asked]
    verdict("nap: it waited as long as it slept", not short, short)
    slept, spun = (sum(asked for _, _, asked in told[word]) for word in ("nap", "spin"))
    verdict("work: it waited at least for the naps", work["waited"] > .9 * slept, work, slept)
    verdict("work: it ran at least for the CPU time that it used", work["duration"] - work["waited"] > spun - .001, work, spun)


def check_syscalls(told, rows):
    """Those of the program, not of its start: the sleeps, one in each nap, and getppid."""
    sleeps = [row for row in rows if row.get("name") in ("nanosleep", "clock_nanosleep")]
    short = [(asked, row["duration"]) for (_, _, asked), row in zip(told, sleeps) if row["duration"] < asked - SLACK]
    verdict("system calls: the sleeps", len(sleeps) == len(told) and not short, short, len(sleeps))
    parents = [row for row in rows if row.get("name") == "getppid"]
    verdict("system calls: every getppid, with what it returned", len(parents) == 8 * len(told) and
            {row["text"] for row in parents} == {f"getppid() = {parents[0]['result']}"}, len(parents), parents[:1])


def check_sums(rows):
    """The own durations add up to that of the outermost call, which folded stacks also do."""
    rows = [row for row in rows if "function" in row]
    whole, own = (sum(row[key] for row in rows if key == "own_duration" or row["level"] == 0) for key in ("duration", "own_duration"))
    verdict("own durations add up", abs(whole - own) < 1e-6, whole, own)
    folded = sum(int(line.rsplit(" ", 1)[1]) for line in calls("--folded", "--by", "time", "d.lbr").stdout.splitlines())
    verdict("--folded --by time adds up", abs(whole - folded / 1e9) < 1e-6, whole, folded)


def check_longest(found):
    """The place that the summary names is that of the longest call in the list."""
    row = [row for row in objects("--summary", "d.lbr") if row.get("function") == "nap"][0]
    longest, wanted = row["longest"], max(found, key=lambda nap: nap["duration"])
    verdict("--summary: the longest nap", all(longest[key] == wanted[key] for key in ("duration", "waited", "time", "branch", "thread")),
            longest, wanted)
    verdict("--summary: all naps", abs(row["duration"] - sum(nap["duration"] for nap in found)) < 1e-6, row)


def check_part(sleep):
    """A millisecond in the middle of a sleep of 32."""
    middle = sleep["time"] + .016
    inside = [row for row in objects("--function", "nap", "--time", f"{middle:.9f},{middle + .001:.9f}", "d.lbr")]
    naps = [row for row in inside if row.get("function") == "nap"]
    verdict("--time in the middle of a sleep", len(naps) == 1 and all(abs(row["duration"] - .001) < 1e-6 for row in inside) and
            abs(naps[0]["waited"] - .001) < SLACK and len([row for row in inside if "text" in row]) == 1, inside)


def test_durations():
    run = subprocess.run([LBR, "record", "-q", "-o", "d.lbr", DURATIONS, "5"], stdout=subprocess.PIPE, text=True, check=False)
    told = {word: [tuple(int(number) / 1e9 for number in line) for line in re.findall(word + r" (\d+) (\d+) (\d+)", run.stdout)]
            for word in ("nap", "spin")}
    rows = objects("d.lbr")
    verdict("the program was recorded", run.returncode == 0 and len(told["nap"]) == 5 and rows, run)
    naps = check_spans("nap", told["nap"], rows)
    check_spans("spin", told["spin"], rows)
    check_waiting(told, naps, [row for row in rows if row.get("function") == "work"][0])
    inside = objects("--function", "work", "d.lbr")
    check_syscalls(told["nap"], inside)
    check_part([row for row in inside if row.get("name") in ("nanosleep", "clock_nanosleep")][-1])
    check_sums(rows)
    check_longest(naps)
    tree = calls("--by", "time", "--function", "work", "d.lbr").stdout
    verdict("the tree names the sleeps", re.search(r"nanosleep\(", tree) and "nap" in tree and "getppid() = " in tree, tree[:2000])


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for test in (test_hand, test_hand_summary, test_hand_shapes, test_hand_spans, test_hand_between, test_alike, test_without, test_durations):
        test()
finish()
