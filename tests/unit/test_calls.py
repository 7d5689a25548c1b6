#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what lbr calls prints; for test_calls.sh.

test_calls.py callgrind FILE MODULE <SUMMARY   calls and instructions are those that callgrind counted in FILE
test_calls.py levels <CALLS                    functions that are named level_N were called at level N, and there are some
test_calls.py counts NAME=COUNT... <SUMMARY    functions were called so often
test_calls.py addresses ONE OTHER              two summaries have the same numbers for the same addresses
test_calls.py folded CALLS <FOLDED             stacks and their sums are those of the calls
test_calls.py between WHOLE PART...            the numbers of the parts add up to those of the whole"""
import json
import re
import sys
from collections import Counter


# Of numbers.c. What else is in a program is the C library's, and depends on the machine.
NAMES = {"fib", "even", "odd", "leaf", "wrap", "spread", "ack", "compare", "sort", "work", "main"}


def lines(file):
    """All objects but system calls, which test_calls_times.py checks."""
    return [line for line in map(json.loads, file) if line.get("type") != "syscall"]


def functions(file):
    return [line for line in lines(file) if line["type"] == "function"]


def callgrind(path):
    """Calls, own instructions and those of calls to others, by function. Names are written once and numbered then; a
    function that calls itself has names with 'N behind them, one for each depth."""
    names, calls, own, called = {}, Counter(), Counter(), Counter()

    def name(text):
        number, rest = re.match(r"\((\d+)\)(?: (.*))?$", text).groups()
        if rest:
            names[number] = rest
        return re.sub(r"'\d+$", "", names[number])

    function = callee = None
    is_call = False
    for line in open(path):
        if line.startswith("fn="):
            function = name(line[3:].strip())
        elif line.startswith("cfn="):
            callee = name(line[4:].strip())
        elif line.startswith("calls="):
            calls[callee] += int(line[6:].split()[0])
            is_call = True
        elif re.match(r"[+*\-\d]", line):
            cost = int(line.split()[1])
            if is_call:
                called[function, callee] += cost
            else:
                own[function] += cost
            is_call = False
    return calls, own, called


def check_callgrind(path, module):
    calls, own, called = callgrind(path)
    compared = 0
    for line in functions(sys.stdin):
        name = line["function"]
        if line["module"] != module or name not in NAMES:
            continue
        whole = own[name] + sum(cost for (one, other), cost in called.items() if one == name != other)
        # Of functions that call each other in a circle callgrind's sums say nothing.
        if name in ("even", "odd"):
            whole = line["instructions"]
        if (line["calls"], line["own_instructions"], line["instructions"]) != (calls[name], own[name], whole):
            sys.exit(f"{name}: {line}, callgrind has {calls[name]} calls, {own[name]} and {whole} instructions")
        compared += 1
    if compared != len(NAMES):
        sys.exit(f"only {compared} functions are in both")


def check_levels():
    found = 0
    for line in lines(sys.stdin):
        level = re.match(r"level_(\d+)", line["function"] or "")
        if level:
            found += 1
            if int(level.group(1)) != line["level"]:
                sys.exit(f"{line}: not at its level")
    if not found:
        sys.exit("no function with a level")


def check_counts(wanted):
    found = Counter()
    for line in functions(sys.stdin):
        found[line["function"]] += line["calls"]
    for pair in wanted:
        name, count = pair.rsplit("=", 1)
        if found[name] != int(count):
            sys.exit(f"{name}: {found[name]} calls, not {count}")


def check_addresses(one, other):
    bare = {line["address"]: line for line in functions(open(other)) if line["module"] == "stripped"}
    compared = 0
    for line in functions(open(one)):
        if line["module"] == "stripped" and line["function"] in NAMES:
            mine = bare.get(line["address"], {})
            if any(line[key] != mine.get(key) for key in ("calls", "instructions", "own_instructions", "own_branches")):
                sys.exit(f"with symbols {line}, without {mine}")
            compared += 1
    if compared != len(NAMES):
        sys.exit(f"only {compared} functions are in both")


def check_folded(path):
    """Calls come in the order in which they end: the stack is that of those that end later."""
    wanted, stack = Counter(), []
    for line in reversed(lines(open(path))):
        del stack[line["level"]:]
        stack.append(line["function"] or f"{line['module']}+{line['address']}")
        wanted[";".join(stack)] += line["own_instructions"]
    found = Counter()
    for line in sys.stdin:
        names, count = line.rsplit(" ", 1)
        found[names] += int(count)
    if +wanted != +found:
        sys.exit(f"stacks differ: {list((wanted - found).items())[:3]} {list((found - wanted).items())[:3]}")


def check_between(whole, parts):
    def total(path):
        outer = [line for line in lines(open(path)) if line["level"] == 0]
        return sum(line["instructions"] for line in outer), sum(line["branches"] for line in outer)

    sums = [total(part) for part in parts]
    if total(whole) != (sum(part[0] for part in sums), sum(part[1] for part in sums)):
        sys.exit(f"{total(whole)} is not the sum of {sums}")


what, arguments = sys.argv[1], sys.argv[2:]
if what == "callgrind":
    check_callgrind(*arguments)
elif what == "levels":
    check_levels()
elif what == "counts":
    check_counts(arguments)
elif what == "addresses":
    check_addresses(*arguments)
elif what == "folded":
    check_folded(*arguments)
elif what == "between":
    check_between(arguments[0], arguments[1:])
else:
    sys.exit(__doc__)
