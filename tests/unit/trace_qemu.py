#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trace_qemu.py LOG ELF: the branches of a guest, as a log of QEMU that steps through it shows them (-d exec,nochain
-singlestep): wherever an instruction is not followed by the one behind it. Prints from, to and kind a line. What the
instructions are, objdump knows."""
import re
import subprocess
import sys

KINDS = {"call": "call", "jmp": "jmp", "ret": "ret", "iret": "iret", "int": "int", "ud2": "fault", "ljmp": "jmp_far",
         "lcall": "call_far", "lret": "retf"}


def program(path):
    """Address -> (size, words)."""
    listing = subprocess.run(["objdump", "-d", "--insn-width=16", path], capture_output=True, text=True, check=True).stdout
    found = {}
    for address, code, words in re.findall(r"^ *([0-9a-f]+):\t([0-9a-f ]+)\t(.*)$", listing, re.M):
        found[int(address, 16)] = (len(code.split()), words.split())
    return found


def kind_of(words, is_next):
    """The kind of branch that the instruction made, None if it made none."""
    if words[0] in KINDS:
        kind = KINDS[words[0]]
        return kind + "_ind" if kind in ("call", "jmp") and words[1].startswith("*") else kind
    return "jcc" if not is_next and (words[0][0] == "j" or words[0].startswith("loop")) else None


def main():
    instructions = program(sys.argv[2])
    with open(sys.argv[1], encoding="ascii") as log:
        steps = [int(address, 16) for address in re.findall(r"^Trace 0: \S+ \[[0-9a-f]+/([0-9a-f]+)/", log.read(), re.M)]
    for one, other in zip(steps, steps[1:]):
        if one == other:  # REP, or QEMU was called away before it ran the instruction; the guest has no jump to itself
            continue
        size, words = instructions[one]
        kind = kind_of(words, other == one + size)
        if kind:
            print(f"{one:#x} {other:#x} {kind}")


main()
