# SPDX-License-Identifier: Apache-2.0
"""Compares branch stacks that perf printed with the one order in which the program of branches.S can run."""
import re
import subprocess

# What one pair of rounds does, the oldest branch first: in the first, the counter is odd.
ROUNDS = ["call", "return", "indirect", "loop", "call", "return", "skip", "indirect", "loop"]
TARGETS = {"call": "to_function", "return": "to_return", "skip": "to_skip", "indirect": "to_middle", "loop": "to_loop"}


def symbols(program):
    """Names and addresses, as binutils read them from the ELF file."""
    lines = subprocess.run(["nm", program], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return {line.split()[2]: int(line.split()[0], 16) for line in lines}


def pairs(program):
    """FROM and TO of each branch, by its name."""
    known = symbols(program)
    return {name: (known["from_" + name], known[target]) for name, target in TARGETS.items()}


def stacks(text):
    """The stacks of `perf script -F brstack`: each a list of (from, to), the newest first."""
    found = [re.findall(r"0x([0-9a-f]+)/0x([0-9a-f]+)/\S+", line) for line in text.splitlines()]
    return [[(int(source, 16), int(target, 16)) for source, target in stack] for stack in found if stack]


def is_right(stack, branches):
    """Is it a part of the program's run?"""
    names = {pair: name for name, pair in branches.items()}
    order = [names.get(pair) for pair in reversed(stack)]
    rounds = ROUNDS * (len(order) // len(ROUNDS) + 2)
    return any(order == rounds[start:start + len(order)] for start in range(len(ROUNDS)))
