# SPDX-License-Identifier: Apache-2.0
"""The tables that bench/process prints, and the goals beside them. A goal that is missed is said, and no failure:
machines are noisy."""
import math
import statistics

GOAL_RUN, GOAL_RUN_WORST, GOAL_RECORD, GOAL_RECORD_WORST = 1.25, 2.2, 1.7, 3
GOAL_BITS, GOAL_BITS_WORST, GOAL_START_MS, GOAL_READ_WORST = 0.27, 1.12, 4, 250


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def ratios(result, peer, clock, base=None):
    """Of a program under a peer, over native or over another peer: one for each repetition; none if an output was
    wrong."""
    entry, other = result["peers"].get(peer), result["peers"].get(base or peer)
    if not entry or entry["error"] or not other or other["error"]:
        return []
    return [over / under for over, under in zip(entry[clock], other[clock if base else "native_" + clock]) if under > 0]


def shown(data, result, peer, clock, base=None):
    """The ratio that stands for all repetitions, or None."""
    values = ratios(result, peer, clock, base)
    if not values:
        return None
    if not data["is_best"]:
        return statistics.median(values)
    entry, other = result["peers"][peer], result["peers"][base or peer]
    return min(entry[clock]) / min(other[clock if base else "native_" + clock])


def all_shown(data, peer, clock, base=None):
    values = (shown(data, result, peer, clock, base) for result in data["results"])
    return [value for value in values if value is not None]


def cell(data, result, peer, clock, base=None):
    if peer not in result["peers"]:
        return "-"
    value = shown(data, result, peer, clock, base)
    if value is None:
        return "error"
    values = ratios(result, peer, clock, base)
    is_range = len(values) > 1 and not data["is_best"]
    return "%.2f" % value + (" %.2f..%.2f" % (min(values), max(values)) if is_range else "")


def table(rows):
    """Columns as wide as their widest cell; the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0])] + [text.rjust(width) for text, width in zip(row[1:], widths[1:])]
        print("  ".join(cells).rstrip())


def ratios_all(data):
    """For JSON: {clock: {peer: {program: the ratio over native that the table shows}}}."""
    return {clock: {peer: {result["name"]: shown(data, result, peer, clock) for result in data["results"]}
                    for peer in data["peers"]} for clock in ("cpu", "wall")}


def statistic(data):
    return "best of %d" % data["repetitions"] if data["is_best"] else "median of %d (min..max)" % data["repetitions"]


def seconds(data, values):
    return "%.2f" % (min if data["is_best"] else statistics.median)(values) if values else "-"


def table_ratios(data, clock, title):
    results, peers = data["results"], data["peers"]
    print("\n%s over native, %s" % (title, statistic(data)))
    rows = [["", "native s"] + [data["titles"][peer] for peer in peers]]
    for result in results:
        rows.append([result["name"], seconds(data, result["native_" + clock])] +
                    [cell(data, result, peer, clock) for peer in peers])
    rows.append(["geometric mean", ""] +
                [mean_cell(all_shown(data, peer, clock), len(results)) for peer in peers])
    table(rows)


def pairs(data):
    """Each command of a build of lbr that is not the first, and the same command of the first."""
    first = next(iter(data["lbr"]))
    for peer in data["peers"]:
        kind, _, label = peer.partition("@")
        base = "%s@%s" % (kind, first)
        if label and label != first and base in data["peers"]:
            yield peer, base


def table_builds(data, clock, title):
    found = list(pairs(data))
    if not found:
        return
    print("\n%s over that of the build %s, %s" % (title, next(iter(data["lbr"])), statistic(data)))
    rows = [[""] + [data["titles"][peer] for peer, _ in found]]
    for result in data["results"]:
        rows.append([result["name"]] + [cell(data, result, peer, clock, base) for peer, base in found])
    rows.append(["geometric mean"] +
                [mean_cell(all_shown(data, peer, clock, base), len(data["results"])) for peer, base in found])
    table(rows)


def mean_cell(values, count):
    if not values:
        return "-"
    return "%.2f" % geomean(values) + ("" if len(values) == count else " of %d only" % len(values))


def read_speed(trace):
    return trace["branches"] / max(trace["read_cpu"], 1e-6) / 1e6


def trace_of(result, peer):
    """The trace that was read in the median time, or None: there is none, or one had an error."""
    entry = result["peers"].get(peer)
    if not entry or entry["error"] or not entry.get("traces"):
        return None
    return sorted(entry["traces"], key=lambda trace: trace["read_cpu"])[len(entry["traces"]) // 2]


def print_traces(data):
    """Of first runs: a second one writes the same branches."""
    rows = [["", "branches", "taken/s native", "bits/branch", "file MB", "read back /s"]]
    for result in data["results"]:
        for peer in data["peers"]:
            trace = trace_of(result, peer)
            if not trace or "-2" in peer.partition("@")[0]:
                continue
            native, label = statistics.median(result["native_cpu"]), peer.partition("@")[2]
            rows.append([(result["name"] + " " + label).strip(), "%.1f M" % (trace["branches"] / 1e6),
                         "%.0f M" % (trace["branches"] / native / 1e6), "%.2f" % trace["bits_per_branch"],
                         "%.1f" % (trace["bytes"] / 1e6), "%.0f M" % read_speed(trace)])
    if len(rows) == 1:
        return
    print("\ntraces of lbr record: taken branches, and reading them back (lbr stat --no-symbols, CPU time)")
    table(rows)


def print_start(data):
    start = data.get("start")
    if not start:
        return
    print("\nstart-up of `true`: ms over native, median of %d (min..max)" % start["repetitions"])
    rows = [["", "clock", "CPU"]]
    native = {clock: statistics.median(start["native"][clock]) for clock in ("wall", "cpu")}
    rows.append(["native itself"] + ["%.1f" % (1e3 * native[clock]) for clock in ("wall", "cpu")])
    for peer, times in start["peers"].items():
        row = [data["titles"][peer]]
        for clock in ("wall", "cpu"):
            over = [1e3 * (value - native[clock]) for value in times[clock]]
            row.append("%.1f %.1f..%.1f" % (statistics.median(over), min(over), max(over)))
        rows.append(row)
    table(rows)


def over_native(data, result, peer, clock):
    """ms over native for each process that a program starts, or "error"."""
    values = result["peers"].get(peer)
    if not values or values["error"]:
        return "error"
    over = [1e3 * (under - native) / result["processes"] for under, native in
            zip(values[clock], values["native_" + clock])]
    return "%.1f" % (min if data["is_best"] else statistics.median)(over)


def print_processes(data):
    """Of programs that start many others."""
    results = [result for result in data["results"] if result["processes"]]
    if not results:
        return
    print("\nms over native for each process, CPU / clock, %s" % statistic(data).replace(" (min..max)", ""))
    rows = [["", "processes"] + [data["titles"][peer] for peer in data["peers"]]]
    for result in results:
        cells = ["%s / %s" % tuple(over_native(data, result, peer, clock) for clock in ("cpu", "wall"))
                 for peer in data["peers"]]
        rows.append([result["name"], str(result["processes"])] + cells)
    table(rows)


def print_memory(data):
    sizes = data.get("memory")
    if not sizes:
        return
    print("\nmemory of a small program, MiB: resident at most, resident while it waits, the same in proportion (PSS)")
    rows = [["", "peak RSS", "RSS", "PSS", "lbr: peak RSS", "RSS", "PSS"]]
    for name, size in sizes.items():
        cells = ["%.1f" % size[part][field] for part in ("program", "lbr") for field in ("peak", "rss", "pss")
                 if "error" not in size and (part, name) != ("lbr", "native")]
        rows.append([data["titles"].get(name, name), *(cells or ["error"]), *[""] * (6 - len(cells or ["error"]))])
    table(rows)


def goals(data):
    """(goal, what was measured, whether it is met, of how many programs) of all that was measured."""
    results = data["results"]
    run, record = all_shown(data, "run", "cpu"), all_shown(data, "record", "cpu")
    traces = [trace for trace in (trace_of(result, "record") for result in results) if trace]
    if run:
        yield "lbr run <= %gx" % GOAL_RUN, "%.2fx" % geomean(run), geomean(run) <= GOAL_RUN, len(run)
        yield "lbr run none above %gx" % GOAL_RUN_WORST, "worst %.2fx" % max(run), max(run) <= GOAL_RUN_WORST, len(run)
    if record:
        yield "lbr record <= %gx" % GOAL_RECORD, "%.2fx" % geomean(record), geomean(record) <= GOAL_RECORD, len(record)
        yield ("lbr record none above %gx" % GOAL_RECORD_WORST, "worst %.2fx" % max(record),
               max(record) <= GOAL_RECORD_WORST, len(record))
    if traces:
        bits = [trace["bits_per_branch"] for trace in traces]
        speeds = [read_speed(trace) for trace in traces]
        yield ("<= %g bits per taken branch, worst %g" % (GOAL_BITS, GOAL_BITS_WORST),
               "%.2f, worst %.2f" % (geomean(bits), max(bits)),
               round(geomean(bits), 2) <= GOAL_BITS and round(max(bits), 2) <= GOAL_BITS_WORST, len(traces))
        yield (">= %d million branches a second read back" % GOAL_READ_WORST, "worst %.0f" % min(speeds),
               min(speeds) >= GOAL_READ_WORST, len(traces))


def goal_start(data):
    start = data["start"]["peers"].get("run") if "start" in data else None
    if start and not data["start"]["error"]:
        over = 1e3 * (statistics.median(start["wall"]) - statistics.median(data["start"]["native"]["wall"]))
        yield "lbr run true < %d ms over native" % GOAL_START_MS, "%.1f ms" % over, over < GOAL_START_MS


def verdict(data, is_met, count):
    """A goal is about all of the programs at their full size."""
    if data["scale"] < 1 or count < data["programs"]:
        return "no verdict: %d of %d programs, %g of their inputs" % (count, data["programs"], min(data["scale"], 1))
    return "met" if is_met else "MISSED"


def print_goals(data):
    if data["set"] != "programs":
        return
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
                yield "%s under %s: %s" % (result["name"], data["titles"][peer], entry["error"])
    if "start" in data and data["start"]["error"]:
        yield "start-up: " + data["start"]["error"]
    for name, size in data.get("memory", {}).items():
        if "error" in size:
            yield "memory under %s: %s" % (data["titles"].get(name, name), size["error"])


def print_all(data):
    print("%(cpu)s, %(processors)d processors, load %(load).1f" % data["machine"])
    for peer, version in data["versions"].items():
        path = data["lbr"].get(peer.partition("@")[2]) if "@" in peer else None
        print("%s: %s%s" % (data["titles"][peer], version, ", " + path if path else ""))
    for line in data["left_out"]:
        print("left out: " + line)
    if data["results"]:
        table_ratios(data, "cpu", "CPU time")
        table_ratios(data, "wall", "time by the clock")
        table_builds(data, "cpu", "CPU time")
    print_traces(data)
    print_processes(data)
    print_start(data)
    print_memory(data)
    print_goals(data)
    lines = list(errors(data))
    if lines:
        print("\nerrors (their ratios are void)")
        print("\n".join(lines))
