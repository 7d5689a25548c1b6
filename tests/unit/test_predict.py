# SPDX-License-Identifier: Apache-2.0
# test_predict.py LISTING BRANCHES MODEL: prints "ADDRESS TAKEN PASSED FLIPS MISPREDICTED" for each conditional branch of a
# static program, sorted by address. LISTING is what objdump -d prints, BRANCHES what `lbr script -F from,to,kind` does. MODEL
# is bimodal or gshare, after their definition in lbr-report(1): 4096 counters from 0 to 3, 1 at first, taken if 2 or 3; the
# index is bits 0 to 11 of (address xor address / 4096), for gshare xor the last 12 outcomes, the newest in bit 0.
import re
import sys

listing, trace, model = sys.argv[1:]
length, conditional = {}, set()
previous = None
for line in open(listing, encoding="utf-8"):
    found = re.match(r"^ *([0-9a-f]+):\t((?:[0-9a-f]{2} )+) *(?:\t(?:bnd |notrack )*(\S+))?", line)
    if not found:
        continue
    address, size, name = int(found[1], 16), len(found[2].split()), found[3]
    if name is None:  # bytes that go on
        length[previous] += size
        continue
    previous, length[address] = address, size
    if re.match(r"^(j(?!mp)\w+|loop\w*)", name):
        conditional.add(address)

taken, passed, flips, wrong, last = {}, {}, {}, {}, {}
counters, history = [1] * 4096, 0


def outcome(address, way):
    global history
    where = taken if way else passed
    where[address] = where.get(address, 0) + 1
    flips[address] = flips.get(address, 0) + (last.get(address, way) != way)
    last[address] = way
    index = (address ^ address // 4096) % 4096
    if model == "gshare":
        index ^= history
    wrong[address] = wrong.get(address, 0) + ((counters[index] > 1) != way)
    counters[index] = min(3, counters[index] + 1) if way else max(0, counters[index] - 1)
    history = (history * 2 + way) % 4096


at = None
for line in open(trace, encoding="utf-8"):
    start, to, kind = line.split()
    start, to = int(start, 16), int(to, 16)
    while at is not None and at < start:
        if at in conditional:
            outcome(at, False)
        at += length[at]
    if kind == "jcc":
        outcome(start, True)
    at = to
for address in sorted(wrong):
    print(f"{address:#x} {taken.get(address, 0)} {passed.get(address, 0)} {flips[address]} {wrong[address]}")
