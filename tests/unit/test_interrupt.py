#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_interrupt.py LBR: a signal that ends a command while it reads a trace. lbr must end by that signal, soon, and leave no file
behind; a file that had the name of the output keeps its contents. The trace is small and has twenty thousand million branches, so
that the reading is under way for minutes; that it has begun is seen by the progress on the terminal, or by output."""
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from trace_make import BRANCHES, JMP, Trace, varint, zigzag

LBR = os.path.realpath(sys.argv[1])
CHUNKS, EACH = 20000, 1 << 20
PATIENCE = 60  # seconds, of a machine that has much else to do
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
COMMANDS = {
    "stat": ["stat"],
    "report": ["report"],
    "calls": ["calls"],
    "script": ["script"],
    "view": ["view", "-o", "out"],
    "export": ["export", "--to", "folded", "-o", "out"],
    "export pprof": ["export", "--to", "pprof", "-o", "out"],
    "stat -o": ["stat", "-o", "out"],
    "report -o": ["report", "-o", "out"],
    "calls -o": ["calls", "-o", "out"],
    "script -o": ["script", "-o", "out"],
}


def trace_write(name):
    """One jump to itself, again and again: five times it is not foreseen, since the path has a part of the last four branches."""
    strings = bytes(5) + varint(EACH - 5), bytes([1, 2, 0, 0, 0]), bytes([JMP, 3, 0, 0xF]) + zigzag(0x1000) + zigzag(0), b""
    contents = b"".join(varint(len(s)) for s in strings) + b"".join(strings)
    trace = Trace()
    trace.stream("main")
    for number in range(CHUNKS):
        position = struct.pack("<QQII", number * EACH, trace.streams[0][0], 0, EACH)
        trace.streams[0] = [trace.chunk(BRANCHES, contents, position), (number + 1) * EACH]
    trace.end()
    with open(name, "wb") as file:
        file.write(trace.bytes)


def wait_for_start(process, terminal):
    """Returns whether the command has said anything."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        ready, _, _ = select.select([terminal, process.stdout], [], [], 0.1)
        if ready and os.read(ready[0] if isinstance(ready[0], int) else ready[0].fileno(), 4096):
            return True
    return False


def interrupt(arguments, number):
    """Returns what is wrong, or None."""
    leader, follower = pty.openpty()
    process = subprocess.Popen([LBR, *arguments, "big.lbr"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=follower)
    os.close(follower)
    try:
        if not wait_for_start(process, leader):
            return f"it has not begun to read, or has ended: {process.poll()}"
        process.send_signal(number)
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        return "it goes on"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        os.close(leader)
    if process.returncode != -number:
        return f"its status is {process.returncode}"
    with open("out", encoding="ascii") as file:
        if file.read() != "old":
            return "the file of that name is not what it was"
    left = sorted(os.listdir("."))
    return None if left == ["big.lbr", "out"] else f"there are {left}"


def main():
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        trace_write("big.lbr")
        with open("out", "w", encoding="ascii") as file:
            file.write("old")
        for place, (name, arguments) in enumerate(COMMANDS.items()):
            number = SIGNALS[place % len(SIGNALS)]
            wrong = interrupt(arguments, number)
            print(f"{'FAIL' if wrong else 'ok'} {signal.Signals(number).name} ends lbr {name}{': ' + wrong if wrong else ''}")
            failures += bool(wrong)
        os.chdir("/")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
