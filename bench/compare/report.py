# SPDX-License-Identifier: Apache-2.0
"""The tables that bench/process prints, and the goals beside them. A goal that is missed is said, and no failure:
machines are noisy."""
import math
import statistics

TITLES = {"run": "lbr run", "record": "lbr record", "valgrind": "valgrind none", "qemu": "qemu-x86_64",
          "callgrind": "callgrind (small)"}
GOAL_RUN, GOAL_RUN_WORST, GOAL_RECORD = 1.8, 4, 3
GOAL_BITS, GOAL_START_MS, GOAL_READ = 1.2, 30, 100


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def ratios(result, peer, clock):
    """Of a program under a peer: one for each repetition; none if an output was wrong."""
    entry = result["peers"].get(peer)
    if not entry or entry["error"]:
        return []
    return [under / native for under, native in zip(entry[clock], entry["native_" + clock]) if native > 0]


def medians(results, peer, clock):
    return [statistics.median(values) for values in (ratios(result, peer, clock) for result in results) if values]


def cell(result, peer, clock):
    if peer not in result["peers"]:
        return "-"
    values = ratios(result, peer, clock)
    if not values:
        return "error"
    text = "%.2f" % statistics.median(values)
    return text if len(values) == 1 else "%s %.2f..%.2f" % (text, min(values), max(values))


def table(rows):
    """Columns as wide as their widest cell; the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0])] + [text.rjust(width) for text, width in zip(row[1:], widths[1:])]
        print("  ".join(cells).rstrip())


def table_ratios(data, clock, title):
    results, peers = data["results"], data["peers"]
    print("\n%s over native, median of %d (min..max)" % (title, data["repetitions"]))
    rows = [["", "native s"] + [TITLES.get(peer, peer) for peer in peers]]
    for result in results:
        native = statistics.median(result["native_" + clock]) if result["native_" + clock] else 0
        rows.append([result["name"], "%.2f" % native] + [cell(result, peer, clock) for peer in peers])
    rows.append(["geometric mean", ""] + [mean_cell(medians(results, peer, clock), len(results)) for peer in peers])
    table(rows)


def mean_cell(values, count):
    if not values:
        return "-"
    return "%.2f" % geomean(values) + ("" if len(values) == count else " of %d only" % len(values))


def read_speed(trace):
    return trace["branches"] / max(trace["read_cpu"], 1e-6) / 1e6


def print_traces(data):
    rows = [["", "branches", "taken/s native", "bits/branch", "file MB", "read back /s"]]
    for result in data["results"]:
        trace = result.get("trace")
        if not trace:
            continue
        native = statistics.median(result["native_cpu"])
        rows.append([result["name"], "%.1f M" % (trace["branches"] / 1e6),
                     "%.0f M" % (trace["branches"] / native / 1e6), "%.2f" % trace["bits_per_branch"],
                     "%.1f" % (trace["bytes"] / 1e6), "%.0f M" % read_speed(trace)])
    if len(rows) == 1:
        return
    print("\ntraces of lbr record: taken branches, and reading them back (lbr stat --no-symbols, CPU time)")
    table(rows)


def print_start(data):
    start = data["start"]
    print("\nstart-up of `true`: ms over native, median of %d (min..max)" % start["repetitions"])
    rows = [["", "clock", "CPU"]]
    native = {clock: statistics.median(start["native"][clock]) for clock in ("wall", "cpu")}
    rows.append(["native itself"] + ["%.1f" % (1e3 * native[clock]) for clock in ("wall", "cpu")])
    for peer, times in start["peers"].items():
        row = [TITLES.get(peer, peer).replace(" (small)", "")]
        for clock in ("wall", "cpu"):
            over = [1e3 * (value - native[clock]) for value in times[clock]]
            row.append("%.1f %.1f..%.1f" % (statistics.median(over), min(over), max(over)))
        rows.append(row)
    table(rows)


def goals(data):
    """(goal, what was measured, whether it is met, of how many programs) of all that was measured."""
    results = data["results"]
    run, record = medians(results, "run", "cpu"), medians(results, "record", "cpu")
    traces = [result["trace"] for result in results if "trace" in result]
    if run:
        yield "lbr run <= %gx" % GOAL_RUN, "%.2fx" % geomean(run), geomean(run) <= GOAL_RUN, len(run)
        yield "lbr run none above %gx" % GOAL_RUN_WORST, "worst %.2fx" % max(run), max(run) <= GOAL_RUN_WORST, len(run)
    if record:
        yield "lbr record <= %gx" % GOAL_RECORD, "%.2fx" % geomean(record), geomean(record) <= GOAL_RECORD, len(record)
    if traces:
        bits = [trace["bits_per_branch"] for trace in traces]
        speeds = [read_speed(trace) for trace in traces]
        yield ("<= %g bits per taken branch" % GOAL_BITS, "%.2f, worst %.2f" % (geomean(bits), max(bits)),
               geomean(bits) <= GOAL_BITS, len(traces))
        yield (">= %d million branches a second read back" % GOAL_READ,
               "%.0f, worst %.0f" % (geomean(speeds), min(speeds)), geomean(speeds) >= GOAL_READ, len(traces))


def goal_start(data):
    start = data["start"]["peers"].get("run")
    if start and not data["start"]["error"]:
        over = 1e3 * (statistics.median(start["wall"]) - statistics.median(data["start"]["native"]["wall"]))
        yield "lbr run true < %d ms over native" % GOAL_START_MS, "%.1f ms" % over, over < GOAL_START_MS


def verdict(data, is_met, count):
    """A goal is about all of the programs at their full size."""
    if data["scale"] < 1 or count < data["programs"]:
        return "no verdict: %d of %d programs, %g of their inputs" % (count, data["programs"], min(data["scale"], 1))
    return "met" if is_met else "MISSED"


def print_goals(data):
    rows = [[goal, measured, verdict(data, is_met, count)] for goal, measured, is_met, count in goals(data)]
    rows += [[goal, measured, "met" if is_met else "MISSED"] for goal, measured, is_met in goal_start(data)]
    if rows:
        print("\ngoals (geometric means; CPU time of program and recorder together)")
        table([["", "measured", ""]] + rows)


def errors(data):
    """A line for each thing that went wrong."""
    yield from data["failures"]
    for result in data["results"]:
        if result.get("error"):
            yield "%s: %s" % (result["name"], result["error"])
        for peer, entry in result["peers"].items():
            if entry["error"]:
                yield "%s under %s: %s" % (result["name"], TITLES.get(peer, peer), entry["error"])
    if data["start"]["error"]:
        yield "start-up: " + data["start"]["error"]


def print_all(data):
    print("%(cpu)s, %(processors)d processors, load %(load).1f" % data["machine"])
    for peer, version in data["versions"].items():
        print("%s: %s" % (TITLES.get(peer, peer), version))
    for line in data["left_out"]:
        print("left out: " + line)
    if data["results"]:
        table_ratios(data, "cpu", "CPU time")
        table_ratios(data, "wall", "time by the clock")
    print_traces(data)
    print_start(data)
    print_goals(data)
    lines = list(errors(data))
    if lines:
        print("\nerrors (their ratios are void)")
        print("\n".join(lines))
