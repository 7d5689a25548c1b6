# SPDX-License-Identifier: Apache-2.0
# view_time.py WHAT TOLD PAGE [PART]: are the times in a page of lbr view those that the program view_time.c has told? Exits
# with 1 if not; or prints a number for the test.
import sys

what, told_name, page_name = sys.argv[1:4]
part_name = sys.argv[4] if len(sys.argv) > 4 else ""
here = sys.argv[0].rsplit("/", 1)[0]
sys.argv = ["view_page.py", "data", page_name, "True"]
exec(open(here + "/view_page.py", encoding="utf-8").read())
page = data_names(text)
d, f, blocks = page["d"], page["f"], page["blocks"]
SLACK = 1_000_000  # ns, for branches between two stamps
CLOCKS = 200_000  # between the clock of the trace and the program's

told = {"nap": [], "spin": [], "around": []}
for line in open(told_name, encoding="utf-8"):
    words = line.split()
    if words[0] in told:
        told[words[0]].append(tuple(map(int, words[1:])))
for spans in told.values():
    spans.sort()


def calls_of(name, of=page):
    """(start, end, waited, held, stream) of the calls of a function, by time."""
    return sorted((b[8], b[9], b[10], b[11], b[0]) for b in of["blocks"] if of["d"]["functions"][b[6]][0] == name)


naps = sorted((event for event in d["times"]["calls"]["events"] if event[8].startswith("nanosleep(")), key=lambda event: event[1])
# What is to be added to a time of the page: as the sleeps lie within what was measured, it is between these two.
least = max(nap[0] - event[1] for nap, event in zip(told["nap"], naps))
most = min(nap[1] - event[2] for nap, event in zip(told["nap"], naps))
offset = (least + most) // 2


def check(is_good, *why):
    if not is_good:
        print(*why)
        sys.exit(1)


if what == "naps":
    check(len(naps) == len(told["nap"]) == 3, naps, told)
    check(least <= most + CLOCKS, "there is no one clock", least, most)
    check({event[0] for event in naps} == {0, 1}, naps)
    check(all(d["functions"][event[7]][0] in ("syscall", "nap") for event in naps), naps)
elif what == "spins":
    found = calls_of("spin")
    check(len(found) == len(told["spin"]) == 3, found, told)
    for (before, after), (inner, until), call in zip(told["around"], told["spin"], found):
        start, end = call[0] + offset, call[1] + offset
        check(before - SLACK <= start <= inner + SLACK and until - SLACK <= end <= after + SLACK, before, inner, start, end, until, after)
elif what == "waits":
    for call, (before, after, asked), event in zip(calls_of("nap"), told["nap"], naps):
        length = call[1] - call[0] - call[3]
        check(length >= asked and event[3] >= asked and asked * 0.8 <= call[2] <= length, call, event, asked)
        check(event[4] <= event[3] and event[4] >= asked * 0.8, event)
elif what == "functions":
    for name in ("nap", "spin", "worker"):
        found = calls_of(name)
        check(f[name][11] == sum(call[1] - call[0] - call[3] for call in found), name, f[name], found)
        check(f[name][13] == sum(min(call[2], call[1] - call[0] - call[3]) for call in found), name, f[name], found)
        check(f[name][10] <= f[name][11] and f[name][12] <= f[name][13], f[name])
elif what == "part":
    worker = [event for event in naps if event[0] == 1]
    print("%.9fs,%.9fs" % tuple((event[1] + event[2]) // 2 / 1e9 for event in worker))
elif what == "cut":
    part = data_names(open(part_name, encoding="utf-8").read())
    first, last = part["d"]["times"]["part"]
    wanted = ("nap", "spin", "spin_around", "worker", "main")
    for name in wanted:
        whole = sorted((max(first, call[0]), min(last, call[1]), call[4]) for call in calls_of(name) if call[1] > first and call[0] < last)
        check([call[:2] + call[4:] for call in calls_of(name, part)] == whole, name, calls_of(name, part), whole)
    worker = [call for call in calls_of("nap", part) if call[4] == 1]
    check(len(worker) == 2 and worker[0][0] == first and worker[1][1] == last, worker, first, last)
    check(all(call[2] <= call[1] - call[0] and call[2] >= 0.8 * (call[1] - call[0]) for call in worker), worker)
    taken = sum(row[3] for row in part["d"]["functions"])
    check(part["d"]["totals"]["taken"] == taken == sum(s[3] for s in part["d"]["stacks"]), part["d"]["totals"], taken)
elif what == "merged":
    found = max((b for b in data_names(open(part_name, encoding="utf-8").read())["blocks"] if b[7] > 1), key=lambda b: b[9] - b[8])
    print(f"{found[8]}-{found[9]}")
elif what == "lasted":
    print(d["times"]["lasted"])
elif what == "point":
    # The middle of the longest sleep, in a chart that is about 1170 wide and shows everything; its lane may be the second.
    event = max(naps, key=lambda each: each[3])
    begin, end = min(s["time"][0] for s in d["streams"]), max(s["time"][1] for s in d["streams"])
    lanes = sorted(d["streams"], key=lambda s: -s["branches"])
    top = 22
    for lane in lanes:
        if lane["number"] == event[0]:
            break
        rows = max([b[1] for b in blocks if b[0] == lane["number"]] + [e[6] for e in d["times"]["calls"]["events"] if e[0] == lane["number"]]) + 1
        top += 22 + 17 * rows + 6
    print(round(((event[1] + event[2]) / 2 - begin) / (end - begin) * 1160), top + 22 + 17 * event[6] + 8)
