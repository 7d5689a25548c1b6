#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_export_perfetto.py LBR MAKE: does `lbr export --to perfetto` tell what happened, and when? protoc decodes the files
(perfetto_read.py). Expected values are those of a program that measures its own sleeps and loops, and of traces that MAKE
(perfetto_trace.c) writes with known times. `--to chrome`, whose files other tests check, must tell the same of calls."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from perfetto_read import MONOTONIC, Trace
from verdict import finish, verdict

LBR, MAKE = (os.path.realpath(path) for path in sys.argv[1:3])
REALTIME = 1
SLACK = 100_000  # ns between the clock of a trace and the program's
BASE = 1_000_000_000  # CLOCK_MONOTONIC of the traces of MAKE

# Loops call nothing, so that there are few slices. burn() tells its times from outside.
PROGRAM = r"""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define ALONE __attribute__((noinline, noclone))
static volatile int ticks;
static volatile unsigned long sink;
ALONE static unsigned long long now(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000ull + (unsigned long long)time.tv_nsec;
}
ALONE static void nap(void) { nanosleep(&(struct timespec){0, 4000000}, 0); }
ALONE static void burn(void) { for (int i = 0; i < 3000000; i++) sink++; }
ALONE static void tick(int number) { ticks += number > 0; }
ALONE static void ask(void) { syscall(SYS_getppid); }
ALONE static void *thread(void *data) { for (int i = 0; i < 100; i++) ask(); nap(); return data; }
ALONE static void work(const char *who)
{
  for (int i = 0; i < 3; i++) {
    unsigned long long before = now(), between, after;
    nap();
    between = now();
    burn();
    after = now();
    printf("%s nap %llu %llu\n%s burn %llu %llu\n", who, before, between, who, between, after);
  }
  fflush(stdout);
}
int main(void)
{
  pthread_t threads[2];
  signal(SIGUSR1, tick);
  work("parent");
  for (int i = 0; i < 5; i++) raise(SIGUSR1);
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, thread, 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
  if (!fork()) { work("child"); _exit(0); }
  wait(0);
  printf("ticks %d\npid %d\n", ticks, getpid());
  return 0;
}
"""


def lbr(*arguments):
    return subprocess.run([LBR, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def export(trace, output, *options, form="perfetto"):
    run = lbr("export", "-q", "--to", form, "-o", output, *options, trace)
    assert run.returncode == 0, run.stderr
    return run.stderr


def read(trace, *options):
    export(trace, "out.pftrace", *options)
    return Trace("out.pftrace")


def slices(track, category, name=None):
    return [found for found in track.slices if found.category == category and name in (None, found.name)]


def spans(output, words):
    return [tuple(map(int, pair)) for pair in re.findall(words + r" (\d+) (\d+)", output)]


# ---- a program that knows what it did ----

def check_naps(who, output, trace, track):
    """A nap of the program is a system call within what the program measured around it, and waiting fills most of it."""
    told = spans(output, who + " nap")
    calls = [call for call in slices(track, "syscall") if call.name in ("nanosleep", "clock_nanosleep")]
    inside = [before - SLACK <= call.begin and call.end <= after + SLACK for (before, after), call in zip(told, calls)]
    verdict(f"{who}: sleeps are system calls in their places", len(told) == len(calls) == 3 and all(inside), told,
            [(call.begin, call.end) for call in calls])
    verdict(f"{who}: sleeps take as long as was asked for", all(call.end - call.begin >= 4_000_000 - SLACK for call in calls))
    verdict(f"{who}: sleeps are inside the calls that made them",
            all({"main", "work", "nap"} <= set(call.names()) for call in calls), [call.names() for call in calls])
    verdict(f"{who}: sleeps have their text, result and duration",
            all(call.notes["call"].startswith(call.name + "(") and call.notes["call"].endswith(" = 0") and call.notes["result"] == 0
                and call.notes["duration_ns"] == call.end - call.begin for call in calls), [call.notes for call in calls])
    waits = [wait for wait in trace.child(track, "waiting").slices if wait.name in ("nanosleep", "clock_nanosleep")]
    within = [call.begin <= wait.begin <= wait.end == call.end and wait.end - wait.begin >= 3_000_000
              for call, wait in zip(calls, waits)]
    verdict(f"{who}: sleeping is waiting", len(waits) == 3 and all(within), [(wait.begin, wait.end) for wait in waits])
    rate = trace.child(track, "branches per ms")
    verdict(f"{who}: no branches while it sleeps", all(rate.value_at((call.begin + call.end) // 2) == 0 for call in calls), rate.values)


def check_burns(who, output, trace, track):
    told, found = spans(output, who + " burn"), slices(track, "call", "burn")
    shared = [min(after, burn.end) - max(before, burn.begin) for (before, after), burn in zip(told, found)]
    verdict(f"{who}: loops are calls in their places",
            len(told) == len(found) == 3 and all(part > (after - before) / 2 for part, (before, after) in zip(shared, told)), told,
            [(burn.begin, burn.end) for burn in found])
    rate = trace.child(track, "branches per ms")
    fast = [any(value > 0 for at, value in rate.values if burn.begin <= at <= burn.end) or rate.value_at(burn.begin) for burn in found]
    verdict(f"{who}: branches while it loops", all(fast), rate.values)
    source = [burn.source for burn in found]
    line = PROGRAM.lstrip("\n").split("\n").index("ALONE static void burn(void) { for (int i = 0; i < 3000000; i++) sink++; }") + 1
    verdict(f"{who}: functions have their source",
            all(place and place["file_name"][0].endswith("program.c") and place["line_number"] == [line] for place in source), source)


def check_program(output, trace):
    threads = trace.threads()
    pid = int(re.search(r"pid (\d+)", output).group(1))
    ids = [(track.thread["pid"][0], track.thread["tid"][0]) for track in threads]
    parents = [track.parent.process["pid"][0] for track in threads]
    verdict("program: threads are below their processes",
            sorted(found == pid for found in parents) == [False, True, True, True] and parents == [found[0] for found in ids] and
            len(set(ids)) == 4 and (pid, pid) in ids, ids, parents, pid)
    names = {(track.process["process_name"][0], track.process["pid"][0] == pid) for track in trace.tracks.values() if track.process}
    verdict("program: processes have names", names == {("program", True), ("program", False)}, names)
    main, child = (next(track for track, ids in zip(threads, ids) if (ids[0] == pid) == is_main and ids[0] == ids[1])
                   for is_main in (True, False))
    for who, track in (("parent", main), ("child", child)):
        check_naps(who, output, trace, track)
        check_burns(who, output, trace, track)
    signals = [found for found in main.instants if found.category == "signal"]
    handled = [any(call.begin >= found.begin for call in slices(main, "call", "tick")) for found in signals]
    verdict("program: signals", int(re.search(r"ticks (\d+)", output).group(1)) == len(signals) == len(slices(main, "call", "tick")) == 5
            and all(handled) and {(found.name.split()[0], found.notes["signal"]) for found in signals} == {("SIGUSR1", 10)},
            [(found.name, found.notes) for found in signals])
    asked = [[call.notes["result"] for call in slices(track, "syscall", "getppid") if "ask" in call.names()]
             for track in threads if track not in (main, child)]
    verdict("program: every system call of the threads", [len(found) for found in asked] == [100, 100] and len(set(sum(asked, []))) == 1,
            asked)
    cpus = {value for track in threads for _, value in trace.child(track, "CPU").values}
    verdict("program: processors", cpus and all(os.path.isdir(f"/sys/devices/system/cpu/cpu{cpu}") for cpu in cpus), cpus)
    difference = trace.clocks[REALTIME] - trace.clocks[MONOTONIC] - (time.time_ns() - time.monotonic_ns())
    verdict("program: the clocks of the start", abs(difference) < 60_000_000_000, trace.clocks)


def test_program():
    with open("program.c", "w", encoding="utf-8") as file:
        file.write(PROGRAM.lstrip("\n"))
    subprocess.run(["gcc", "-O1", "-g", "-pthread", "-o", "program", "program.c"], check=True)
    run = lbr("record", "-q", "-o", "program.lbr", "./program")
    verdict("program: is recorded", run.returncode == 0, run.stderr)
    check_program(run.stdout, read("program.lbr"))
    part = read("program.lbr", "--function", "nap").threads()
    verdict("--function: its calls, and the system calls in them",
            {found.names()[0] for track in part for found in track.slices} == {"nap"} and
            {found.name for track in part for found in slices(track, "syscall")} <= {"nanosleep", "clock_nanosleep"})
    part = read("program.lbr", "--thread", "1").threads()
    verdict("--thread: one thread", len(part) == 1 and len(slices(part[0], "syscall", "getppid")) == 100)


# ---- the same calls as other formats ----

def chrome_calls(path):
    threads = {}
    with open(path, encoding="utf-8") as file:
        for event in json.load(file)["traceEvents"]:
            if event["ph"] != "M":
                threads.setdefault(event["tid"], []).append((event["ph"], round(event["ts"] * 1000), event.get("name")))
    return [threads[number] for number in sorted(threads)]


def speedscope_calls(path):
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    frames = [frame["name"] for frame in data["shared"]["frames"]]
    calls = [[("B" if event["type"] == "O" else "E", event["at"], frames[event["frame"]]) for event in profile["events"]]
             for profile in data["profiles"]]
    return calls, {profile["unit"] for profile in data["profiles"]}


def perfetto_calls(trace):
    """Calls without the system calls among them; times since the start."""
    threads, start = {}, trace.clocks.get(MONOTONIC, 0)
    for track in trace.threads():
        if "no clock" in (track.name or ""):
            continue
        number = int(re.search(r"\(thread (\d+)\)", track.name or track.thread["thread_name"][0]).group(1))
        threads[number] = sorted((found.begin - start, found.end - start, found.name) for found in slices(track, "call"))
    return [threads[number] for number in sorted(threads)]


def paired(events):
    """(begin, end, name) of events that begin and end."""
    found, begun = [], []
    for kind, at, name in events:
        if kind == "B":
            begun.append((at, name))
        else:
            begin, name = begun.pop()
            found.append((begin, at, name))
    assert not begun
    return sorted(found)


def test_agree():
    for by in ("time", "instructions"):
        trace = read("program.lbr", "--by", by)
        calls = perfetto_calls(trace)
        export("program.lbr", "out.chrome", "--by", by, form="chrome")
        export("program.lbr", "out.speedscope", "--by", by, form="speedscope")
        chrome = [paired(events) for events in chrome_calls("out.chrome")]
        others, units = speedscope_calls("out.speedscope")
        verdict(f"by {by}: the calls of chrome", calls == chrome, [len(found) for found in calls], [len(found) for found in chrome])
        verdict(f"by {by}: the calls of speedscope", sorted(calls) == sorted(paired(events) for events in others))
        verdict(f"by {by}: the unit of speedscope", units == {"nanoseconds" if by == "time" else "none"}, units)
    verdict("by instructions: no clock, and nothing that has a time",
            not trace.clocks and not any(slices(track, "syscall") or track.is_counter for track in trace.tracks.values()))


# ---- traces with known times ----

def test_known():
    subprocess.run([MAKE, "known", "known.lbr"], check=True)
    trace = read("known.lbr")
    first, second = trace.threads()
    verdict("known: the clock", trace.clocks == {MONOTONIC: BASE, REALTIME: 5_000_000_000_000}, trace.clocks)
    verdict("known: threads", [track.thread for track in (first, second)] ==
            [{"pid": [100], "tid": [100], "thread_name": ["maker (thread 0)"]},
             {"pid": [100], "tid": [101], "thread_name": ["worker (thread 1)"]}], first.thread, second.thread)
    calls = [(found.begin - BASE, found.end - BASE) for found in slices(first, "call") if "402000" in found.name]
    verdict("known: a call", calls == [(2000, 8005000)], calls)
    sleeps = [(found.begin - BASE, found.end - BASE, found.parent.begin - BASE, found.notes) for found in slices(first, "syscall")]
    verdict("known: a system call", sleeps == [(3000, 8003000, 2000, {"call": "nanosleep(ptr, NULL) = 0", "result": 0,
                                                                     "duration_ns": 8000000, "waited_ns": 8000000})], sleeps)
    signals = [(found.begin - BASE, found.name.split()[0], "402000" in found.parent.name) for found in first.instants]
    verdict("known: a signal", signals == [(8004000, "SIGUSR1", True)], signals)
    waits = [[(found.begin - BASE, found.end - BASE) for found in trace.child(track, "waiting").slices] for track in (first, second)]
    verdict("known: waits", waits == [[(3000, 8003000)], [(1001000, 5001000), (5700000, 6000000)]], waits)
    # A rate is that of a millisecond at least, or of the time between two stamps that are as far apart.
    rates = [[(at - BASE, value) for at, value in trace.child(track, "branches per ms").values] for track in (first, second)]
    verdict("known: rates", rates[0] == [(1000, 500), (3000, 0), (8003000, 1), (9000000, 0)], rates)
    cpus = [(at - BASE, value) for at, value in trace.child(first, "CPU").values]
    verdict("known: processors", cpus == [(1000, 3), (8003000, 5)], cpus)


def test_hostile():
    subprocess.run([MAKE, "hostile", "hostile.lbr"], check=True)
    for options in ((), ("--by", "instructions"), ("--function", "0x402000")):
        try:
            trace = read("hostile.lbr", *options)
            verdict(f"hostile: the rules are obeyed {' '.join(options)}", trace.tracks and not trace.clocks, trace.clocks)
        except AssertionError as error:
            verdict(f"hostile: the rules are obeyed {' '.join(options)}", False, error)
    for form in ("chrome", "speedscope"):
        export("hostile.lbr", "out." + form, "--by", "time", form=form)
    for events in chrome_calls("out.chrome"):
        verdict("hostile: chrome's times do not go back", all(a[1] <= b[1] for a, b in zip(events, events[1:])) and paired(events))


def test_late():
    subprocess.run([MAKE, "late", "late.lbr"], check=True)
    thread = read("late.lbr").threads()[0]
    found = [(call.name[-6:], call.begin - BASE, call.end - BASE) for call in thread.slices if not call.name.endswith("401010?")]
    verdict("late: a call whose begin is not known begins at the first time", [call[1:] for call in found[-1:]] == [(7000, 8000)] and
            "403000" in thread.slices[-1].name, found)
    verdict("late: a call whose times are not known is left out", not any("402000" in call.name for call in thread.slices), found)
    verdict("late: a signal at the first time is in its call", [signal.parent.name for signal in thread.instants] ==
            [thread.slices[-1].name])


def test_bare():
    subprocess.run([MAKE, "bare", "bare.lbr"], check=True)
    warning = export("bare.lbr", "bare.pftrace")
    trace = Trace("bare.pftrace")
    verdict("no times: a warning says so", "no times" in warning, warning)
    verdict("no times: so does a track",
            any("instruction" in (track.name or "") and len(track.instants) == 1 for track in trace.tracks.values()))
    thread = trace.threads()[-1]
    verdict("no times: a processor of a machine is a plain track", thread.name == "processor 0 (thread 0)" and len(thread.slices) == 2,
            [track.name for track in trace.tracks.values()])
    warning = export("bare.lbr", "bare.pftrace", "--by", "instructions")
    verdict("--by instructions: no warning about times", "no times" not in warning, warning)
    for form in ("perfetto", "chrome"):
        run = lbr("export", "--to", form, "--by", "time", "-o", "none", "bare.lbr")
        verdict(f"no times: --by time is refused: {form}", run.returncode == 1 and "has no times" in run.stderr and
                "record it again" in run.stderr and not os.path.exists("none"), run.stderr)
    run = lbr("export", "--to", "pprof", "--by", "time", "-o", "none", "program.lbr")
    verdict("--by of a format without times", run.returncode == 2 and "no time axis" in run.stderr and not os.path.exists("none"),
            run.stderr)


if not shutil.which("protoc"):
    print("skip: protoc is not here")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for test in (test_program, test_agree, test_known, test_hostile, test_late, test_bare):
        test()
finish()
