#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_export_perf.py DATA SCRIPT: reads perf.data as linux/perf_event.h and perf.data-file-format.txt describe it,
checks every field, and compares the branches of each thread with lines "THREAD FROM TO KIND" of the trace."""
import struct
import sys

TYPES = {"jcc": 1, "jmp": 2, "jmp_ind": 3, "call": 4, "call_ind": 5, "ret": 6, "syscall": 7}


def main():
    data = open(sys.argv[1], "rb").read()
    magic, size, attr_size, attrs, attrs_size, offset, length, types, types_size = struct.unpack_from("<8s8Q", data)
    features = struct.unpack_from("<4Q", data, 72)
    assert magic == b"PERFILE2" and size == 104 and attrs == 104 and attrs_size == attr_size
    assert (types, types_size) == (0, 0) and features[1:] == (0, 0, 0) and features[0] >> 15 & 1
    kind, attr, config, period, sample_type = struct.unpack_from("<IIQQQ", data, attrs)
    flags, = struct.unpack_from("<Q", data, attrs + 40)
    branch_type, = struct.unpack_from("<Q", data, attrs + 72)
    assert attr == attr_size - 16 and (kind, config) == (0, 4) and period > 1
    assert sample_type == 0x1 | 0x2 | 0x4 | 0x100 | 0x800 and branch_type & 0x9 == 0x9 and not branch_type >> 17 & 1
    for bit in (5, 6, 8, 9, 13, 18, 23, 24):  # no kernel, no hypervisor; mmap, comm, task, ids, mmap2, comm_exec
        assert flags >> bit & 1
    # Features: a place for each bit, in order, behind the data.
    at = offset + length
    places = [struct.unpack_from("<QQ", data, at + 16 * i) for i in range(bin(features[0]).count("1"))]
    assert all(start + size <= len(data) for start, size in places) and places[-1][0] + places[-1][1] == len(data)

    threads, mapped, last, longest, samples = {}, {}, 0, 0, 0
    at, end = offset, offset + length
    while at < end:
        record, misc, size = struct.unpack_from("<IHH", data, at)
        body = data[at + 8:at + size]
        assert size >= 8 and size % 8 == 0 and at + size <= end
        at += size
        if record == 68:  # FINISHED_ROUND
            continue
        if record == 9:
            ip, pid, tid, time, weight, count = struct.unpack_from("<QIIQQQ", body)
            entries = [struct.unpack_from("<QQQ", body, 40 + 24 * i) for i in range(count)]
            assert 1 <= count <= 127 and len(body) == 40 + 24 * count and weight == count and misc == 2
            assert ip == entries[0][1]  # the newest comes first
            threads.setdefault((pid, tid), []).extend((f, t, bits >> 20 & 15) for f, t, bits in reversed(entries))
            longest, samples = max(longest, count), samples + 1
            # Each end is in something that is mapped, but for what the kernel alone knows.
            inside = sum(any(a <= entry[0] < b for a, b in mapped.get(pid, [])) for entry in entries)
            assert inside == count, f"{count - inside} branches of {pid} in nothing"
        else:
            pid, tid, time = struct.unpack("<IIQ", body[-16:])
            if record == 10:
                start, bytes_, _ = struct.unpack_from("<QQQ", body, 8)
                name = body[64:-16].rstrip(b"\0").decode()
                assert misc & 2 and struct.unpack_from("<II", body) == (pid, tid) and name
                if misc & 0x4000:
                    assert body[32] == 20 and body[33:36] == b"\0\0\0"
                mapped.setdefault(pid, []).append((start, start + bytes_))
            elif record == 3:
                name = body[8:-16].rstrip(b"\0").decode()
                print("comm", "exec" if misc & 0x2000 else "thread", name)
                if misc & 0x2000:
                    mapped[pid] = []
            else:
                assert record in (4, 7) and len(body) == 24 + 16
        assert time >= last and time > 0
        last = time

    # Threads of the trace, and those of the file; a program that was executed has its own in the trace.
    wanted = {}
    for line in open(sys.argv[2]):
        thread, source, target, kind = line.split()
        wanted.setdefault(thread, []).append((int(source, 16), int(target, 16), TYPES.get(kind, -1)))
    found = sorted(threads.values(), key=lambda branches: (len(branches), branches))
    merged = dict(wanted)
    for one in list(merged):
        for other in list(merged):
            if one != other and merged.get(one) and merged.get(other) and merged[one] + merged[other] in found:
                merged[one] = merged[one] + merged.pop(other)
    for branches in merged.values():
        for index, branch in enumerate(branches):
            assert branch[2] != -1, f"kind of {index}"
    assert sorted(merged.values(), key=lambda branches: (len(branches), branches)) == found, "not the branches of the trace"
    print(f"threads {len(found)} branches {sum(map(len, found))} samples {samples} longest {longest}")


main()
