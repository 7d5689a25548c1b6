#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trace_numbers.py STAT LINES: what `lbr stat --json` says (with every function and edge) must be what one counts in the lines
that `lbr script` prints of the same trace, a lab's."""
import collections
import json
import sys


def branch(words):
    """(name of from, name of to, kind, addresses) of a line."""
    arrow = words.index("->")
    to = words[arrow + 2].split("+")[0] if len(words) > arrow + 3 else None
    start = words[3].split("+")[0] if arrow == 4 else None
    return start, to, words[-1], (words[2], words[arrow + 1])


with open(sys.argv[1], encoding="utf-8") as file:
    stat = json.load(file)
with open(sys.argv[2], encoding="utf-8") as file:
    branches = [branch(line.split()) for line in file]
assert stat["complete"] and stat["branches"] == len(branches) == stat["threads"][0]["branches"]
assert {kind["kind"]: kind["branches"] for kind in stat["kinds"]} == collections.Counter(b[2] for b in branches)
assert {f["symbol"]: f["branches"] for f in stat["functions"]} == collections.Counter(b[1] for b in branches)
outside = collections.Counter(b[1] for b in branches if b[0] != b[1])
assert {f["symbol"]: f["from_outside"] for f in stat["functions"] if f["from_outside"]} == outside
edges = collections.Counter(b[3] + (b[2],) for b in branches)
assert {(e["from"]["address"], e["to"]["address"], e["kind"]): e["branches"] for e in stat["edges"]} == edges
assert stat["edges_are_exact"] and [e["branches"] for e in stat["edges"]] == sorted(edges.values(), reverse=True)
assert stat["instructions"] > stat["branches"] and 0 < stat["taken_per_instruction"] < 1
assert stat["gaps"] == [] and stat["modules"][0]["pieces"] == 4 and stat["modules"][0]["symbols"] > 50
assert stat["cpu"] == "westmere" and stat["source"] == "machine" and 0 < stat["bits_per_branch"] < 16
