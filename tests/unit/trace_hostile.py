#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trace_hostile.py FOLDER: small traces that ask for much work or much memory. Each is made from doc/trace-format.md
alone, and each is valid: a reader must bound what it does by the size of the file."""
import ctypes
import struct
import sys

from trace_make import BRANCHES, CALL, CODE, ENTRIES, JMP, STEPS, Trace, varint, zigzag

MIB = 1 << 20


def compress(contents):
    """A zstd frame, by the library that lbr itself is linked to."""
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_compressBound.restype = zstd.ZSTD_compress.restype = ctypes.c_size_t
    room = zstd.ZSTD_compressBound(ctypes.c_size_t(len(contents)))
    out = ctypes.create_string_buffer(room)
    size = zstd.ZSTD_compress(out, ctypes.c_size_t(room), contents, ctypes.c_size_t(len(contents)), 19)
    return out.raw[:size]


def code(trace, address, contents, space=0):
    contents = b"".join(map(varint, (space, address, len(contents)))) + contents
    trace.chunk(CODE, contents, packed=compress(contents))


def ladder(trace, stream, count, start, ahead, back, kind=JMP):
    """`count` different branches: each `ahead` bytes behind the target of the one before, and `back` bytes back."""
    definition = bytes([kind, 2, 0xF]) + zigzag(ahead) + zigzag(-back)
    first = bytes([kind, 3, 0, 0xF]) + zigzag(start) + zigzag(ahead)
    strings = bytes(count + 1), bytes([1]) * count, first + definition * (count - 1), b""
    contents = b"".join(varint(len(s)) for s in strings) + b"".join(strings)
    last, number = trace.streams[stream]
    position = struct.pack("<QQII", number, last, stream, count)
    trace.streams[stream] = [trace.chunk(BRANCHES, contents, position, compress(contents)), number + count]


def straight(name, instruction, chunks=1):
    """16 MiB of one instruction, of which 65,000 branches each pass 60,000 bytes."""
    trace = Trace()
    trace.stream("main")
    code(trace, 0x100000, instruction * ((16 * MIB - 64) // len(instruction)))
    for _ in range(chunks):
        ladder(trace, 0, 65000, 0xF0000, 60000, 60000 - len(instruction))
    trace.end()
    trace.write(name)


def sparse():
    """Steps whose numbers are as high as the size of the file allows, which is large by a hole only."""
    trace = Trace(3, 3)
    trace.stream("main")
    path = varint(1) + zigzag(0) + zigzag(0x1000) + bytes([8, JMP, 2]) + zigzag(0)
    first = (96 << 20) - 64
    for number in (1, first // 2, first):
        trace.chunk(STEPS, varint(number) + varint(2) + path)
    entries = varint(0) + varint(1) + varint(1) + varint(16) + varint(5) + varint(0)
    entries += varint(1) + bytes([1]) + bytes(15) + zigzag(first + 1)
    trace.positioned(ENTRIES, entries, 0, 0)
    trace.write("sparse")
    with open(f"{sys.argv[1]}/sparse", "r+b") as file:
        file.truncate(96 << 20)


def streams():
    """As many streams as there may be, with a branch each."""
    trace = Trace()
    for i in range(65536):
        trace.stream("", 0, 1, i)
    for i in range(65536):
        trace.branches(i, (0x1000, 0x2000, CALL))
    trace.end()
    trace.write("streams")


def scattered():
    """36 MiB of code, here and there, that was packed into 34 kB."""
    trace = Trace()
    trace.stream("main")
    for i in range(600):
        code(trace, 0x1000 + 64 * MIB * i, b"\x90" * 0xF000)
    trace.branches(0, (0x1000, 0x2000, JMP))
    trace.end()
    trace.write("scattered")


def many_code(count):
    """Code that changes all the time between branches that pass much of it."""
    trace = Trace()
    trace.stream("main")
    code(trace, 0x100000, b"\x90" * (16 * MIB - 64))
    for i in range(count):
        trace.chunk(CODE, b"".join(map(varint, (0, 0x100000 + i, 1))) + b"\x90")
        ladder(trace, 0, 65000, 0xF0000, 60000, 59999)
    trace.end()
    trace.write("restless")


if __name__ == "__main__":
    straight("nops", b"\x90")
    straight("jumps", b"\x74\x00")
    many_code(2)
    sparse()
    scattered()
    streams()
