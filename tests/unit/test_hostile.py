#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_hostile.py LBR FOLDER: what each command needs for the traces of trace_hostile.py, and for damaged ones."""
import json
import os
import resource
import subprocess
import sys

SECONDS, KILOBYTES = 20, 400 << 10
LBR, FOLDER = sys.argv[1:]
IS_PLAIN = b"__asan_init" not in open(LBR, "rb").read()  # else time and memory are not those of the program
failures = 0

COMMANDS = (["stat"], ["report"], ["report", "--by", "edge"], ["calls"], ["calls", "--summary"], ["script", "--tail", "2"],
            ["view", "-o", "page"], ["replay", "--cpu", "haswell"], ["diff"], ["annotate"],
            *(["export", "-q", "-o", "exported", "--to", name] for name in ("perf", "folded", "pprof", "speedscope", "chrome", "perfetto")))


def verdict(name, is_good, why=""):
    global failures
    print("ok" if is_good else "FAIL", name, *([why] if not is_good else []))
    failures += not is_good


def limit():
    if IS_PLAIN:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def run(*arguments):
    """Returns the exit status, negative for a signal, and the largest resident set in kB."""
    with open("out", "wb") as out, open("err", "wb") as err:
        child = subprocess.Popen([LBR, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=limit)
        status, usage = os.wait4(child.pid, 0)[1:]
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage.ru_maxrss


def check(name, command):
    trace = f"{FOLDER}/{name}"
    behind = {"diff": [trace, trace], "annotate": [trace, "main"]}.get(command[0], [trace])
    if os.path.exists("exported"):
        os.unlink("exported")
    status, memory = run(*command, *behind)
    is_good = status in (0, 1, 2) and (memory <= KILOBYTES or not IS_PLAIN)
    verdict(f"{' '.join(command)} {name}", is_good, f"status {status}, {memory} kB")


def answer(*arguments):
    """What a command prints with --json, one object or one on each line, and what it complains of."""
    run(*arguments)
    with open("out", encoding="utf-8") as out, open("err", encoding="utf-8") as err:
        text, message = out.read(), err.read()
    return [json.loads(text)] if text.startswith("{\n") else [json.loads(line) for line in text.splitlines()], message


def limits():
    """Which traces name more code than is decoded is known from how they are made: `nops` passes 65,000 times 60,000 instructions.
    Of `scattered`, nothing is left out: its one branch begins where code is and ends in code."""
    reason = "names more code than lbr decodes"
    for name, is_reached in (("nops", True), ("jumps", True), ("scattered", False)):
        trace = f"{FOLDER}/{name}"
        (page,), message = answer("report", "--json", trace)
        is_good = page["decode_limit_reached"] is is_reached and (reason in message) is is_reached
        verdict(f"report --json {name}: the limit is{'' if is_reached else ' not'} named", is_good, f"{page} {message}")
        for command in (["calls", "--json"], ["calls", "--summary", "--json"]):
            rows, message = answer(*command, trace)
            found = {row.get("unknown") for row in rows}
            is_good = ("decode_limit" in found) is is_reached and (reason in message) is is_reached
            verdict(f"{' '.join(command)} {name}: the limit is{'' if is_reached else ' not'} named", is_good, f"{rows} {message}")
        for command in (["report"], ["calls"]):
            run(*command, trace)
            with open("out", encoding="utf-8") as out:
                text = " ".join(out.read().split()).replace("more of it", "more code")
            is_good = (reason in text) is is_reached
            verdict(f"{' '.join(command)} {name}: the page names the limit or does not", is_good)


def diff_limits():
    """Of two traces that differ, diff counts both: `nops` reaches the limit, `scattered` does not."""
    reason = "names more code than lbr decodes"
    for pair, is_reached in ((("nops", "scattered"), True), (("scattered", "nops"), True), (("scattered", "scattered"), False)):
        traces = [f"{FOLDER}/{name}" for name in pair]
        (page,), message = answer("diff", "--json", *traces)
        found = page["counts"]["decode_limit_reached"] if is_reached else page.get("counts")
        is_good = bool(found) is is_reached and [f"{trace}: the trace {reason}" in message for trace in traces] == [name == "nops" for name in pair]
        run("diff", *traces)
        with open("out", encoding="utf-8") as out:
            is_said = f"{'AB'[pair.index('nops')] if is_reached else ''} {reason}" in " ".join(out.read().split())
        verdict(f"diff {' '.join(pair)}: the limit is{'' if is_reached else ' not'} named", is_good and is_said is is_reached, f"{page} {message}")


def branches(trace):
    status, _ = run("stat", "--json", trace)
    with open("out", encoding="utf-8") as out:
        return status, json.load(out)["branches"]


def flips():
    """The number of branches of the whole trace is what its writer says; whatever is missing must be named."""
    run("record", "-o", "whole", "--", "/bin/true")
    said = open("err", encoding="utf-8").read()
    total = int(said.split("whole: ")[1].split()[0].replace(",", ""))
    with open("whole", "rb") as file:
        whole = file.read()
    least, is_told, where = total, True, 0
    for at in range(40, len(whole) - 40, len(whole) // 24):
        with open("flipped", "wb") as file:
            file.write(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1:])
        status, count = branches("flipped")
        message = open("err", encoding="utf-8").read()
        lost = int(message.split(" branches are lost")[0].split()[-1]) if "branches are lost" in message else 0
        if status not in (0, 1) or (status == 1 and "bytes could not be read" not in message) or count + lost != total:
            is_told, where = False, at
        least = min(least, count)
    verdict("a flipped byte: those that are left and those that are named as lost are all", is_told, f"at {where}")
    verdict("a flipped byte never costs more than three quarters of a small trace", least > total // 4, f"{least} of {total}")


for trace_name in sorted(os.listdir(FOLDER)):
    for one in COMMANDS:
        check(trace_name, one)
limits()
diff_limits()
flips()
sys.exit(failures != 0)
