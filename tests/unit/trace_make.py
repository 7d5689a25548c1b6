#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trace_make.py FOLDER ELF: traces that no producer here writes, made from doc/trace-format.md alone: several threads and address
spaces, gaps, modules that come and go, names from a stranger, damage. ELF is a file with a build-id and a symbol `work`."""
import struct
import subprocess
import sys

META, MODULE, CODE, STREAM, BRANCHES, GAP, INDEX, END, STEPS, LINKS, ENTRIES = range(1, 12)
JCC, CALL, RET, JMP = 0, 1, 3, 5
ALL_LOST, PAUSED = 0, 1


def crc_byte(value):
    for _ in range(8):
        value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value


CRC_TABLE = [crc_byte(value) for value in range(256)]


def crc(data, total=0):
    total ^= 0xFFFFFFFF
    for byte in data:
        total = total >> 8 ^ CRC_TABLE[(total ^ byte) & 0xFF]
    return total ^ 0xFFFFFFFF


def varint(value):
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def zigzag(difference):
    difference = (difference + 2 ** 63) % 2 ** 64 - 2 ** 63
    return varint(2 * difference if difference >= 0 else -2 * difference - 1)


def text(string):
    string = string if isinstance(string, bytes) else string.encode()
    return varint(len(string)) + string


class Trace:
    def __init__(self, version=1, minimum=0):
        head = b"\x89LBR\r\n\x1a\n" + struct.pack("<HH", version, minimum)
        self.bytes = bytearray(head + struct.pack("<I", crc(head)))
        self.described, self.streams = [], []

    def chunk(self, kind, contents, position=b"", packed=None):
        """`packed`: the contents as a zstd frame."""
        place, stored = len(self.bytes), position + (packed or contents)
        head = struct.pack("<4sHHIII", b"CHNK", kind, 1 if packed else 0, len(stored), len(contents), crc(stored))
        self.bytes += head + struct.pack("<I", crc(struct.pack("<Q", place), crc(head))) + stored
        if kind <= STREAM:
            self.described.append(place)
        return place

    def meta(self, key, value):
        self.chunk(META, text(key) + text(value))

    def module(self, address, size, name="", space=0, offset=0, build_id=b"", gone=0):
        self.chunk(MODULE, b"".join(map(varint, (space, gone, address, size, offset))) + text(name) + text(build_id))

    def stream(self, name, space=0, process=0, thread=0):
        self.streams.append([0, 0])  # place of the last chunk, number of the next branch
        self.chunk(STREAM, b"".join(map(varint, (len(self.streams) - 1, space, process, thread))) + text(name))

    def positioned(self, kind, contents, stream, count):
        last, number = self.streams[stream]
        self.streams[stream][0] = self.chunk(kind, contents, struct.pack("<QQII", number, last, stream, count))

    def branches(self, stream, *branches):
        """Each (from, to, kind[, flags[, CPL before | after << 2]]). No guess is ever taken: every branch is a symbol."""
        edges, symbols, definitions, marks, last, marked = {}, b"", b"", b"", 0, 0
        for index, branch in enumerate(branches):
            start, to, kind, flags, cpls = branch + (0, 0)[len(branch) - 3:]
            edge = (start, to, kind, flags & ~1, cpls)
            if edge in edges:
                symbols += varint(edges[edge] + 1)
            else:
                edges[edge] = len(edges) + 1
                symbols += varint(1)
                definitions += bytes([kind, 3, flags & ~1, cpls]) + zigzag(start - last) + zigzag(to - start)
            if flags & 1:
                marks += varint(index + 1 - marked)
                marked = index + 1
            last = to
        strings = bytes(len(branches) + 1), symbols, definitions, marks
        self.positioned(BRANCHES, b"".join(varint(len(s)) for s in strings) + b"".join(strings), stream, len(branches))
        self.streams[stream][1] += len(branches)

    def gap(self, stream, reason, lost):
        self.positioned(GAP, varint(reason) + varint(lost), stream, 0)
        self.streams[stream][1] += lost

    def end(self):
        steps = [b - a for a, b in zip([0] + self.described, self.described)]
        index = varint(len(steps)) + b"".join(map(varint, steps)) + varint(len(self.streams))
        place = self.chunk(INDEX, index + b"".join(varint(last) + varint(number) for last, number in self.streams))
        self.chunk(END, struct.pack("<Q", place))

    def write(self, name):
        with open(f"{sys.argv[1]}/{name}", "wb") as file:
            file.write(self.bytes)


def threads(elf, build_id):
    """Two processes of one program at two addresses, in turns; gaps."""
    trace = Trace()
    trace.meta("producer", "trace_make")
    trace.meta("time", "4000000000")
    trace.module(0x10000, 0x1000, elf, 1, 0x1000, build_id)
    trace.module(0x555000, 0x1000, elf, 2, 0x1000, build_id)
    trace.stream("one", 1, 100, 101)
    trace.stream("two", 2, 200, 201)
    trace.branches(0, (0x10000, 0x10010, JMP), (0x10010, 0x10000, JCC, 1), (0x10000, 0x10010, JMP))
    trace.branches(1, (0x555000, 0x555010, JMP), (0x555020, 0x777000, CALL, 0, 3))
    trace.gap(0, ALL_LOST, 7)
    trace.gap(0, PAUSED, 0)
    trace.branches(0, (0x10010, 0x20000, RET, 2), (0x10000, 0x10010, JMP))
    trace.end()
    trace.write("threads")


def modules(elf, build_id):
    """One address, three modules after each other; the last has another build-id than the file."""
    trace = Trace()
    trace.stream("main")
    trace.module(0x10000, 0x1000, elf, 0, 0x1000, build_id)
    trace.branches(0, (0x10000, 0x10010, JMP))
    trace.module(0x10000, 0x1000, gone=1)
    trace.branches(0, (0x10000, 0x10010, JMP))
    trace.module(0x10000, 0x3000, "/no/such/file", 0, 0x40)
    trace.module(0x11000, 0x1000, elf, 0, 0x1000, b"\xAA" * 20)
    trace.branches(0, (0x10000, 0x11010, JMP), (0x12000, 0x10010, JMP))
    trace.end()
    trace.write("modules")


def strangers():
    """Names that would do something to a terminal, and that are not UTF-8."""
    trace = Trace()
    trace.meta("command", b"\x1b[31mred\xff\xc2\x9b1m")
    trace.stream(b"\x1b]0;title\x07\"quoted\"")
    trace.module(0x10000, 0x1000, b"/nowhere/\x1b[2J\xfe\"name\"")
    trace.module(2 ** 64 - 4096, 8192, "[top]")
    trace.branches(0, (0x10000, 2 ** 64 - 1, JMP), (2 ** 64 - 4097, 0, JMP))
    trace.end()
    trace.write("strangers")


def bad():
    trace = Trace()
    trace.write("head")
    trace.stream("main")
    trace.branches(0, (1, 2, JMP), (2, 3, JMP))
    second = len(trace.bytes)
    trace.branches(0, (3, 4, JMP), (4, 5, JMP))
    trace.branches(0, (5, 6, JMP))
    trace.write("finished.incomplete")
    trace.end()
    trace.write("good")
    whole = trace.bytes
    trace.bytes = whole[:second + 60] + bytes([whole[second + 60] ^ 0x55]) + whole[second + 61:]
    trace.write("damaged")
    trace.bytes = whole[:second + 30]
    trace.write("cut")
    trace.bytes = whole[:8] + b"\x09\x00\x09\x00" + struct.pack("<I", crc(whole[:8] + b"\x09\x00\x09\x00"))
    trace.write("newer")


def main():
    build_id_note = subprocess.run(["readelf", "-n", sys.argv[2]], capture_output=True, text=True, check=True).stdout
    program_build_id = bytes.fromhex(build_id_note.split("Build ID:")[1].split()[0])
    threads(sys.argv[2], program_build_id)
    modules(sys.argv[2], program_build_id)
    strangers()
    bad()


if __name__ == "__main__":
    main()
