#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_latency.py LBR STAMPS PACED: durations in lbr report, lbr stat and lbr diff. PACED (tests/process/paced.c) tells how long its
functions took at most, by the system's clock, and at least, since it slept for so long; STAMPS (tests/process/stamps.c) lists the
times of a trace."""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from trace_make import CALL, RET, Trace  # noqa: E402
from verdict import finish, verdict  # noqa: E402

LBR, STAMPS, PACED = (os.path.realpath(path) for path in sys.argv[1:4])
SLACK = 100_000  # ns between the clock of the trace and the program's, per call
TIMES, DEPTH = 5, 10


def lbr(*arguments):
    return subprocess.run([LBR, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def page(*arguments):
    run = lbr(*arguments, "--json")
    return json.loads(run.stdout) if run.stdout else {"error": run.stderr}


def ns(seconds):
    return round(seconds * 1e9)


class Run:
    """A recording, what the program told, and the times of its trace."""

    def __init__(self, trace, nap):
        self.trace = trace
        output = subprocess.run([LBR, "record", "-q", "-o", trace, PACED, str(nap), str(TIMES)], stdout=subprocess.PIPE, text=True,
                                check=True).stdout
        self.told = {word: [tuple(map(int, row)) for row in re.findall(rf"^{word} (\d+) (\d+) (\d+)$", output, re.M)]
                     for word in ("nap", "spin", "nest", "thread")}
        stamps = [line.split() for line in
                  subprocess.run([STAMPS, trace], stdout=subprocess.PIPE, text=True, check=False).stdout.splitlines()]
        self.begin = next(int(words[2]) for words in stamps if words[0] == "0" and words[5] == "start")
        self.held = sum(int(words[7]) for words in stamps if words[5] == "held")
        self.threads = page("stat", trace)["threads"]
        self.zero = self.begin - ns(self.threads[0]["start"])

    def asked(self, *words):
        return [row[2] for word in words for row in self.told[word]]

    def spans(self, *words):
        return [row[1] - row[0] for word in words for row in self.told[word]]


ALL_NAPS = "nap", "nest", "thread"


def test_naps(run, functions):
    row = functions["nap"]
    asked, spans = run.asked(*ALL_NAPS), run.spans(*ALL_NAPS)
    count = len(asked)
    verdict("nap: calls", row["calls"] == count == 2 * TIMES + 1 and row["cut"] == 0, row["calls"], count)
    least, most = sum(asked) - count * SLACK, sum(spans) + count * SLACK
    verdict("nap: total is what the program asked for and saw", least <= ns(row["total"]) <= most, least, row["total"], most)
    verdict("nap: it calls nothing", row["own"] == row["total"] and row["own_waiting"] == row["total_waiting"], row)
    verdict("nap: it waits", 0.9 * sum(asked) - count * SLACK <= ns(row["own_waiting"]) <= ns(row["own"]), row, asked)
    for key, share in ("median", 0.5), ("p90", 0.9), ("p99", 0.99), ("longest", 1):
        rank = -int(-share * count // 1) - 1
        least, most = sorted(asked)[rank] * 30 / 31 - SLACK, sorted(spans)[rank] * 32 / 31 + SLACK
        verdict(f"nap: {key}", least <= ns(row[key]) <= most, least, row[key], most)


def test_longest(run, functions):
    """The longest call is one that the program saw, and the trace has a call of the function at that branch."""
    where = functions["nap"]["longest_call"]
    start, duration = run.zero + ns(where["start"]), ns(where["duration"])
    inside = [row for word in ALL_NAPS for row in run.told[word]
              if row[0] - SLACK <= start and start + duration <= row[1] + SLACK]
    verdict("longest: in a span that the program saw", len(inside) == 1, where, run.zero, run.told["nap"])
    verdict("longest: the one that the program asked for", duration >= max(run.asked(*ALL_NAPS)) - SLACK, where)
    lines = {int(line.split()[1]): line for line in lbr("script", "--thread", str(where["thread"]), run.trace).stdout.splitlines()}
    first, last = lines[where["first_branch"]], lines[where["last_branch"]]
    verdict("longest: its branches", " nap+0x0 call" in first and " nap+" in last and last.endswith(" ret"), first, last)


def test_spins(run, functions):
    row = functions["spin"]
    least = sum(run.asked("spin")) - run.held - TIMES * SLACK
    most = sum(run.spans("spin")) + TIMES * SLACK
    verdict("spin: calls", row["calls"] == TIMES, row["calls"])
    verdict("spin: total is what the program saw", least <= ns(row["total"]) <= most, least, row["total"], most, run.held)
    verdict("spin: some of it is spent in callees", 0 < row["own"] < row["total"], row)
    verdict("spin: now is called by it", functions["now"]["calls"] > TIMES and ns(functions["now"]["own"]) > 0, functions["now"])


def test_recursion(run, functions):
    row = functions["nest"]
    asked, spans = sum(run.asked("nest")), sum(run.spans("nest"))
    verdict("nest: calls", row["calls"] == TIMES * DEPTH, row["calls"])
    verdict("nest: a recursion counts once", asked - TIMES * SLACK <= ns(row["total"]) <= spans + TIMES * SLACK, asked, row["total"],
            spans)
    verdict("nest: without what it called", ns(row["own"]) <= spans - asked + TIMES * SLACK, row["own"], spans, asked)


def test_buckets(run, rows):
    wrong = []
    for row in rows:
        counts = sum(bucket["calls"] for bucket in row["buckets"])
        edges = [(ns(bucket["from"]), ns(bucket["to"])) for bucket in row["buckets"]]
        if counts != row["calls"] - row["cut"] or any(to - least > max(1, least / 16) for least, to in edges):
            wrong.append(row)
        elif counts and not edges[0][0] <= ns(row["shortest"]) <= ns(row["longest"]) < edges[-1][1]:
            wrong.append(row)
        elif not counts and (row["median"] is not None or row["longest_call"] is not None):
            wrong.append(row)
    verdict("buckets: all whole calls are in them", not wrong, wrong[:2])
    cut = [row for row in rows if row["cut"]]
    verdict("cut: calls that the end of the program cuts", 0 < len(cut) < 20, [row["symbol"] for row in cut])
    own, threads = sum(row["own"] for row in rows), sum(thread["duration"] for thread in run.threads)
    verdict("own: the times of all functions are those of the threads", 0.9 * threads - 0.002 <= own <= threads + 0.001, own, threads)


def test_text(run):
    report = lbr("report", "--by", "latency", "--function", "nap", run.trace)
    verdict("text: a row and a histogram", report.returncode == 0 and re.search(r"^ +11 .* nap  \[paced\]$", report.stdout, re.M) and
            re.search(r"^Durations of nap  \[paced\]\n +from +before +calls +share", report.stdout, re.M), report.stdout, report.stderr)
    rows = re.findall(r"^ +[0-9.]+ [nmu]?s +[0-9.]+ [nmu]?s +([0-9,]+) +[0-9.]+%", report.stdout, re.M)
    verdict("text: the histogram has all calls", sum(map(int, rows)) == 2 * TIMES + 1, rows, report.stdout)
    for order in "longest", "total", "own", "waiting", "median", "p99", "calls":
        key = {"waiting": "own_waiting"}.get(order, order)
        rows = page("report", "--by", "latency", "--top", "all", "--sort", order, run.trace)["functions"]
        values = [row[key] or 0 for row in rows]
        verdict(f"sort: {order}", len(rows) > 20 and values == sorted(values, reverse=True), values[:20])
    report = lbr("report", run.trace)
    verdict("report: running and waiting", "its threads ran for " in report.stdout and "--by latency" in report.stdout,
            report.stdout[:300])
    one = page("report", "--by", "latency", "--top", "all", "--thread", "1", run.trace)
    verdict("report: one thread", [row["calls"] for row in one["functions"] if row["symbol"] == "nap"] == [1] and one["thread"] == 1,
            one)


def test_stat(run):
    first, second = run.threads
    told = [row for word in run.told for row in run.told[word]]
    least = max(row[1] for row in told) - min(row[0] for row in told) - run.held
    verdict("stat: duration of the first thread", ns(first["duration"]) >= least, first, least)
    verdict("stat: it waits in naps", ns(first["waiting"]) >= 0.9 * sum(run.asked("nap", "nest")), first, run.asked("nap", "nest"))
    verdict("stat: running and waiting are all", all(abs(row["running"] + row["waiting"] - row["duration"]) < 1e-8
                                                     for row in run.threads), run.threads)
    before, after, asked = run.told["thread"][0]
    start = run.zero + ns(second["start"])
    verdict("stat: the second thread", before - SLACK <= start and start + ns(second["duration"]) <= after + SLACK and
            ns(second["duration"]) >= asked - SLACK, before, second, after)
    text = lbr("stat", run.trace).stdout
    verdict("stat: columns", re.search(r"^ +thread .*start +duration +running +waiting", text, re.M), text[:2000])


def test_diff(run, other):
    both = page("diff", "--by", "time", "--top", "all", run.trace, other.trace)["times"]
    rows = {row["function"]: row for row in both["functions"]}
    calls = {row["name"]: row for row in both["syscalls"]}
    count = len(run.asked(*ALL_NAPS))
    least = sum(other.asked(*ALL_NAPS)) - sum(run.spans(*ALL_NAPS)) - count * SLACK
    most = sum(other.spans(*ALL_NAPS)) - sum(run.asked(*ALL_NAPS)) + count * SLACK
    for name, row in ("nap", rows["nap"]), ("nanosleep", calls["nanosleep"]):
        verdict(f"diff: the change of {name}", least <= ns(row["change"]) <= most and row["calls_a"] == row["calls_b"] == count, least,
                row, most)
    verdict("diff: waiting", least * 0.9 <= ns(rows["nap"]["own_waiting_b"]) - ns(rows["nap"]["own_waiting_a"]), rows["nap"])
    verdict("diff: the greatest change comes first",
            [abs(row["change"]) for row in both["functions"]] == sorted((abs(row["change"]) for row in both["functions"]), reverse=True))
    same = lbr("diff", "--by", "time", run.trace, run.trace)
    verdict("diff: times of equal runs", same.returncode == 0 and "Functions whose own time" in same.stdout and "+" not in
            same.stdout.split("Functions whose own time")[1], same.stdout[-2000:])
    verdict("diff: counts are the default", "times" not in page("diff", run.trace, other.trace))


def test_without_times():
    trace = Trace()
    trace.meta("producer", "hand")
    trace.stream("one", 1, 100, 101)
    trace.branches(0, (0x1000, 0x2000, CALL), (0x2000, 0x1005, RET))
    trace.end()
    with open("plain", "wb") as file:
        file.write(trace.bytes)
    words = "plain: the trace has no times; record it again with this version of lbr"
    for arguments, status in (["report", "--by", "latency", "plain"], 1), (["diff", "--by", "time", "plain", "plain"], 2):
        run = lbr(*arguments)
        verdict(f"no times: lbr {' '.join(arguments)}", run.returncode == status and words in run.stderr, run.returncode, run.stderr)
    report, stat = lbr("report", "plain"), lbr("stat", "plain")
    verdict("no times: report says nothing of them", report.returncode == 0 and "ran for" not in report.stdout, report.stdout)
    verdict("no times: stat has no columns for them", stat.returncode == 0 and "waiting" not in stat.stdout, stat.stdout)
    verdict("no times: null in JSON", page("stat", "plain")["threads"][0]["start"] is None and page("report", "plain")["running"] is None)


def test_options():
    for arguments, words in ((["report", "--by", "latency", "--sort", "taken", "x"], "longest, total, own"),
                             (["report", "--by", "time", "x"], "thread or latency"),
                             (["diff", "--by", "latency", "x", "y"], "--by wants 'count' or 'time'"),
                             (["diff", "--by", "time", "--no-counts", "x", "y"], "exclude each other")):
        run = lbr(*arguments)
        verdict(f"usage: lbr {' '.join(arguments)}", run.returncode == 2 and words in run.stderr, run.returncode, run.stderr)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    short, long = Run("short.lbr", 5), Run("long.lbr", 20)
    all_rows = page("report", "--by", "latency", "--top", "all", short.trace)["functions"]
    rows_by_name = {row["symbol"]: row for row in all_rows}
    for test in (test_naps, test_longest, test_spins, test_recursion):
        test(short, rows_by_name)
    test_buckets(short, all_rows)
    test_text(short)
    test_stat(short)
    test_diff(short, long)
    test_without_times()
    test_options()
    missing = lbr("report", "--by", "latency", "--function", "nothing_like_it", short.trace)
    verdict("report: no such function", missing.returncode == 1 and "no call of 'nothing_like_it'" in missing.stderr, missing.stderr)
finish()
