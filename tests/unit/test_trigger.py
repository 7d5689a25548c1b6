#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_trigger.py LBR SOURCES: lbr record --trigger and --trigger-slow. The programs (SOURCES/trigger) say themselves
which thread reaches the place, and when. What is recorded must be what a plain recording of the same run has."""
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

LBR, SOURCES = (os.path.realpath(path) for path in sys.argv[1:3])
PATIENCE = 120
RANDOM_PROGRAMS = range(1, 5)
failures = 0


def verdict(name, is_true, *what):
    global failures
    print("ok" if is_true else "FAIL", name, *([] if is_true else what), flush=True)
    failures += not is_true


def run(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, **options)


def record(options, *words):
    """Records into t.lbr, which is removed before."""
    if os.path.exists("t.lbr"):
        os.unlink("t.lbr")
    return run(LBR, "record", "-o", "t.lbr", *options, "--", *words)


def compile_all():
    source = os.path.join(SOURCES, "trigger")
    options = ["-std=c17", "-D_GNU_SOURCE", "-g", "-O1"]
    for name, place in ("libtrigger.so", "library_place"), ("plugin.so", "plugin_place"):
        subprocess.run(["gcc", *options, "-fPIC", "-shared", "-DNAME=" + place, "-o", name, source + "/library.c"],
                       check=True)
    subprocess.run(["gcc", *options, "-pthread", "-o", "program", source + "/program.c", "-L.", "-ltrigger",
                    "-Wl,-rpath," + os.getcwd()], check=True)


def branches(trace, *options):
    """Per thread of the trace: (from, to, kind)."""
    threads = {}
    for line in run(LBR, "script", "--no-symbols", *options, trace).stdout.splitlines():
        match = re.match(r"(\d+) \d+ (0x[0-9a-f]+) -> (0x[0-9a-f]+) (\w+)", line)
        if match:
            threads.setdefault(int(match[1]), []).append(match.groups()[1:])
    return threads


def symbol(name, file="program"):
    """The address without address randomisation of a function of the program."""
    for line in run("nm", file).stdout.splitlines():
        words = line.split()
        if words[-1] == name:
            return int(words[0], 16) + 0x555555554000
    raise KeyError(name)


def entered(trace):
    """Names of the functions that were called, in their order."""
    text = run(LBR, "script", trace).stdout
    return re.findall(r"-> 0x[0-9a-f]+ (\w+)\+0x0 call", text)


def meta(trace):
    """Process, thread, address and time of the hit, and the place."""
    match = re.search(r"^ *trigger +(\d+) (\d+) (0x[0-9a-f]+) (\d+) (.*)$", run(LBR, "stat", trace).stdout, re.M)
    return match and (int(match[1]), int(match[2]), int(match[3], 16), int(match[4]) / 1e9, match[5])


def is_readable(trace):
    return all(run(LBR, *words).returncode == 0 for words in (
        ["stat", trace], ["report", trace], ["calls", trace], ["script", "--tail", "3", trace],
        ["view", "-o", "view.html", trace]))


def test_places():
    """By each kind of name. The trace goes on to the end of the program, so it is that of a plain recording."""
    line = next(i for i, text in enumerate(open(os.path.join(SOURCES, "trigger/program.c")), 1)
                if "the line of the test by FILE:LINE" in text)
    run(LBR, "record", "-q", "-o", "plain.lbr", "./program", "plain", "1000")
    plain = branches("plain.lbr")
    verdict("a plain recording has branches", len(plain.get(0, [])) > 10000)
    for place in "rare", "main", "leaf", f"program.c:{line}", hex(symbol("rare")), "exit", "_dl_relocate_object":
        done = record(["--trigger", place, "--after", "60s"], "./program", "plain", "1000")
        verdict(f"{place}: status", done.returncode == 7, done)
        verdict(f"{place}: message", "program reached " in done.stderr and "t.lbr: " in done.stderr, done.stderr)
        verdict(f"{place}: the same branches", branches("t.lbr") == plain)
    verdict("by symbol and line", "program reached rare (program.c:" in record(
        ["--trigger", "rare"], "./program").stderr)
    verdict("the trace is read by other commands", is_readable("t.lbr"))


def test_modules():
    for mode, place, name in (["library"], "library_place", "library"), (["plugin", "./plugin.so"], "plugin_place",
                                                                        "dlopen"):
        done = record(["--trigger", place], "./program", *mode)
        verdict(f"{name}: reached", f"reached {place} (library.c:" in done.stderr, done.stderr)
        calls = entered("t.lbr")
        at = calls.index(place) if place in calls else None
        verdict(f"{name}: what was before and after", at and "compute" in calls[:at] and "compute" in calls[at:]
                and calls[at + 1] == "inside", calls[-10:])


def test_missing():
    for place, hint in ("always_inlined", "it may be inlined"), ("raer", "did you mean rare"), (
            "program.c:1", "code of this line"), ("library_plac", "library_place"):
        done = record(["--trigger", place], "./program")
        verdict(f"{place}: not found", done.returncode == 7 and hint in done.stderr and "no trace was written" in
                done.stderr, done.stderr)
        verdict(f"{place}: no trace", not [name for name in os.listdir() if name.startswith("t.lbr")])
    done = record(["--trigger", "library_place"], "./program", "plain")
    verdict("not reached", done.returncode == 7 and "library_place was not reached" in done.stderr, done.stderr)
    done = record(["--trigger", "rare", "--trigger-slow", "rare:1s"], "./program")
    verdict("two triggers", done.returncode == 2, done.stderr)
    verdict("--before without a trigger", record(["--before", "1s"], "./program").returncode == 2)


def test_threads():
    done = record(["--trigger", "rare", "--after", "60s"], "./program", "threads")
    number = int(re.search(r"thread (\d+)", done.stdout)[1])
    verdict("threads: which", f"in thread {number} after" in done.stderr, done.stderr)
    verdict("threads: all", "of 9 threads" in done.stderr, done.stderr)
    hit = meta("t.lbr")
    verdict("threads: noted in the trace", hit and hit[1] == number and hit[2] == symbol("rare") and hit[4] == "rare",
            hit)
    verdict("threads: one of them was there", entered("t.lbr").count("rare") == 1)
    done = record(["--trigger", "rare"], "./program", "fork")
    verdict("a child of fork", "reached rare" in done.stderr and entered("t.lbr").count("rare") == 1, done.stderr)
    done = record(["--trigger", "rare"], "./program", "exec")
    verdict("a program that is executed", "reached rare" in done.stderr, done.stderr)
    done = record(["--trigger", "rare", "--no-follow"], "./program", "fork")
    verdict("--no-follow", "rare was not reached" in done.stderr, done.stderr)


def test_hot():
    start = time.monotonic()
    done = record(["--trigger", "leaf", "--after", "1ms"], "./program", "hot", "10000000")
    verdict("hot: the first call", "reached leaf" in done.stderr and done.returncode == 7, done.stderr)
    verdict("hot: its time", time.monotonic() - start < 30, time.monotonic() - start)


def test_ring():
    """The ring has wrapped around many times: the end before the hit is that of a plain recording."""
    rare = hex(symbol("rare"))
    count = "400000"
    run(LBR, "record", "-q", "-o", "plain.lbr", "./program", "plain", count)
    done = record(["--trigger", "rare", "--ring", "256K"], "./program", "plain", count)
    full, ring = branches("plain.lbr")[0], branches("t.lbr")[0]
    places = [next((i for i, branch in enumerate(list) if branch[1] == rare), None) for list in (full, ring)]
    verdict("ring: reached", places[1] is not None, done.stderr)
    at, here = places
    verdict("ring: older branches are not there", here < at and 1000 < here, here, at)
    verdict("ring: the same before", full[at - here:at + 1] == ring[:here + 1])
    after = len(ring) - here
    verdict("ring: the same after", after > 1000 and full[at:at + after] == ring[here:], after)
    verdict("ring: a gap", "gap: " in run(LBR, "script", "t.lbr").stdout)


def test_slow():
    for what in "spin", "sleep", "deep":
        done = record(["--trigger-slow", "work:700ms", "--ring", "64M"], "./program", "slow", what)
        match = re.search(r"a call of work \(program.c:\d+\) took (\d+)\.\d ms", done.stderr)
        verdict(f"slow {what}: found", match and 1200 <= int(match[1]) < 10000, done.stderr)
        calls = entered("t.lbr")
        callee = " usleep+0x0 " if what == "sleep" else " compute+0x0 "
        verdict(f"slow {what}: the trace has its callees", callee in run(LBR, "script", "t.lbr").stdout)
        verdict(f"slow {what}: and calls before", calls.count("work") > 2000, calls.count("work"))
    done = record(["--trigger-slow", "work:700ms"], "./program", "slow", "jump")
    verdict("slow: calls that are left by longjmp", "no call of work took longer" in done.stderr, done.stderr)
    done = record(["--trigger-slow", "work"], "./program", "slow", "jump")
    verdict("slow: no time", done.returncode == 2, done.stderr)


def test_window():
    """Marks in the trace are in the time that was wanted, and all of those are in the trace. A loaded machine is late."""
    before, after, slack = 1.0, 0.5, 0.4
    done = record(["--trigger", "rare", "--before", "1s", "--after", "500ms"], "./program", "marks")
    times = {name: float(seconds) for name, seconds in re.findall(r"(\w+) (\d+\.\d+)", done.stdout)}
    reached = times.pop("rare")
    seen = {name for name in entered("t.lbr") if name.startswith("mark_")} | set(
        re.findall(r"-> 0x[0-9a-f]+ (mark_\d+)\+0x0", run(LBR, "script", "t.lbr").stdout))
    early = [name for name in seen if times[name] < reached - before - slack]
    late = [name for name in seen if times[name] > reached + after + slack]
    missing = [name for name, at in times.items() if reached - before < at < reached + after - 0.05
               and name not in seen]
    verdict("window: nothing before it", seen and not early, early)
    verdict("window: nothing after it", not late, late)
    verdict("window: all of it", not missing, missing)


class Server:
    def __init__(self, *words):
        self.process = subprocess.Popen(["./program", "server", *words], stdout=subprocess.PIPE, text=True)
        self.number = int(self.process.stdout.readline().split()[1])

    def is_traced(self):
        with open(f"/proc/{self.number}/maps") as file:
            return "lbr-" in file.read()

    def reach(self):
        self.process.send_signal(signal.SIGUSR1)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.communicate(timeout=PATIENCE)[0], self.process.returncode


def until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def attach(server, *options):
    if os.path.exists("t.lbr"):
        os.unlink("t.lbr")
    return subprocess.Popen([LBR, "record", "-o", "t.lbr", "-p", str(server.number), *options],
                            stderr=subprocess.PIPE, text=True)


def test_attach():
    for words, place in ([], "rare"), (["./plugin.so"], "compute"):
        server = Server(*words)
        lbr = attach(server, "--trigger", place)
        if place == "rare":
            until(server.is_traced)
            time.sleep(0.2)  # it computes meanwhile
            server.reach()
        error = lbr.communicate(timeout=PATIENCE)[1]
        verdict(f"-p {place}: reached", lbr.returncode == 0 and f"reached {place} (" in error and "of 3 threads" in
                error, error)
        verdict(f"-p {place}: the process is left", not server.is_traced())
        verdict(f"-p {place}: it runs on", server.end() == ("over\n", 7))
        verdict(f"-p {place}: the trace has it", place in entered("t.lbr"))
    server = Server("./plugin.so")
    lbr = attach(server, "--trigger", "plugin_place")
    error = lbr.communicate(timeout=PATIENCE)[1]
    verdict("-p: a name that is not there", lbr.returncode == 1 and "no file of the process" in error, error)
    lbr = attach(server, "--trigger", "rare", "--for", "500ms")
    error = lbr.communicate(timeout=PATIENCE)[1]
    verdict("-p --for: not reached", lbr.returncode == 1 and "rare was not reached; no trace" in error, error)
    lbr = attach(server, "--trigger", "rare")
    until(server.is_traced)
    time.sleep(0.2)
    lbr.send_signal(signal.SIGINT)
    error = lbr.communicate(timeout=PATIENCE)[1]
    verdict("-p: Ctrl-C", lbr.returncode == 1 and "rare was not reached" in error and not os.path.exists("t.lbr"), error)
    verdict("-p: left", not server.is_traced())
    lbr = attach(server, "--trigger", "rare")
    until(server.is_traced)
    verdict("-p: the process ends", server.end() == ("over\n", 7))
    error = lbr.communicate(timeout=PATIENCE)[1]
    verdict("-p: end before the hit", lbr.returncode == 1 and "rare was not reached" in error, error)


def test_attach_slow():
    server = Server()
    lbr = attach(server, "--trigger-slow", "compute:1h", "--for", "1s")
    error = lbr.communicate(timeout=PATIENCE)[1]
    verdict("-p slow: no call was", lbr.returncode == 1 and "no call of compute took longer" in error, error)
    lbr = attach(server, "--trigger-slow", "compute:1us")
    error = lbr.communicate(timeout=PATIENCE)[1]
    verdict("-p slow: some call was", lbr.returncode == 0 and "a call of compute (program.c:" in error, error)
    verdict("-p slow: it runs on", server.end() == ("over\n", 7))


def test_random():
    """Any address of any program: a trigger changes nothing in what is recorded. After its last system call nothing is
    reached."""
    for number in RANDOM_PROGRAMS:
        with open("random.S", "w") as file:
            subprocess.run([SOURCES + "/random-program", str(number)], stdout=file, check=True)
        subprocess.run(["gcc", "-nostdlib", "-static", "-Wl,--build-id=none", "-o", "random", "random.S"], check=True)
        plain = run(LBR, "record", "-q", "-o", "plain.lbr", "./random")
        want = branches("plain.lbr")
        chosen = random.Random(number)
        for target in chosen.sample(sorted({branch[1] for branch in want[0][:-1]}), 4):
            done = record(["--trigger", target, "--after", "60s"], "./random")
            verdict(f"random {number}, {target}", branches("t.lbr") == want and done.stdout == plain.stdout and
                    "reached" in done.stderr, done.stderr)
            done = record(["--trigger-slow", f"{target}:1h"], "./random")
            verdict(f"random {number}, {target}, timed", done.stdout == plain.stdout and
                    done.returncode == plain.returncode, done.stderr)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    compile_all()
    for test in (test_places, test_modules, test_missing, test_threads, test_hot, test_ring, test_slow, test_window,
                 test_attach, test_attach_slow, test_random):
        test()
    os.chdir("/")
sys.exit(failures != 0)
