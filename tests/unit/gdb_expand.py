#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# gdb_expand.py LIST PROGRAM: the instructions that ran between the branches of thread 1 in a list of the oracle, by what
# objdump says about the program: an address a line. The instruction at the end of a trace did not run.
import re
import subprocess
import sys

following = {}
previous = None
for line in subprocess.run(["objdump", "-d", "--no-show-raw-insn", sys.argv[2]], capture_output=True, text=True,
                           check=True).stdout.splitlines():
    match = re.match(r" *([0-9a-f]+):\t\S", line)
    if not match:
        continue
    address = int(match.group(1), 16)
    if previous is not None:
        following[previous] = address
    previous = address

begin = None
for line in open(sys.argv[1]):
    words = line.split()
    if words[0] != "1":
        continue
    start, end = int(words[1], 16), int(words[2], 16)
    at = start if begin is None else begin
    while at != start:
        print(f"{at:x}")
        at = following.get(at)
        if at is None or at > start:
            sys.exit(f"{sys.argv[0]}: no way from {begin:x} to {start:x}")
    if words[3] != "interrupt":
        print(f"{start:x}")
    begin = end
