#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_export_lines.py lcov OWN FILE: compares two coverage files of one program, gcc's own and ours.
test_export_lines.py drcov OWN FILE PROGRAM [SYMBOLS]: reads drcov field by field and compares the lines of its blocks,
as objdump and addr2line know them (those of SYMBOLS, if the program has none), with those that gcc says ran.
test_export_lines.py lcov-function OWN FILE FUNCTION: the file must be that part of gcc's own which is about the function.
test_export_lines.py drcov-function WHOLE FILE PROGRAM FUNCTION: the same of the blocks of a whole file, by nm."""
import os
import re
import struct
import subprocess
import sys


def add(table, key, value):
    table[key] = table.get(key, 0) + value


def read_info(path):
    """What a file says; a source that is in it more than once, as one of several units is, is added up."""
    files = {}
    for line in open(path):
        key, _, rest = line.strip().partition(":")
        if key == "SF":
            now = files.setdefault(rest, {"DA": {}, "FN": {}, "FNDA": {}, "ways": {}, "sum": {}, "ran": set()})
        elif key == "DA":
            number, count = rest.split(",")[:2]
            add(now["DA"], int(number), int(count))
        elif key == "FN":
            number, name = rest.split(",", 1)
            now["FN"][name] = int(number)
        elif key == "FNDA":
            count, name = rest.split(",", 1)
            add(now["FNDA"], name, int(count))
        elif key == "BRDA":
            number, block, branch, count = rest.split(",")
            add(now["ways"], (int(number), block, branch), 0 if count == "-" else int(count))
            if count != "-":
                now["ran"].add(int(number))
        elif key in ("LF", "LH", "FNF", "FNH", "BRF", "BRH"):
            now["sum"][key] = int(rest)
    for found in files.values():
        found["BRDA"] = {}
        for (number, _, _), count in found["ways"].items():
            found["BRDA"].setdefault(number, []).append(count)
    return files


def compare_lcov():
    own, ours = read_info(sys.argv[2]), read_info(sys.argv[3])
    assert set(own) == set(ours), (set(own), set(ours))
    for path, wanted in own.items():
        found = ours[path]
        for key in ("DA", "FN", "FNDA"):
            if key == "DA":  # the end of a function is code here; gcc counts it only sometimes
                found[key] = {line: n for line, n in found[key].items()
                              if line in wanted[key] or not is_brace(path, line)}
            assert wanted[key] == found[key], (path, key, set(wanted[key].items()) ^ set(found[key].items()))
        for line in set(wanted["BRDA"]) | set(found["BRDA"]):
            one, other = (sorted(which["BRDA"].get(line, [])) for which in (wanted, found))
            assert one == other, (path, line, one, other)
        assert wanted["ran"] == found["ran"], (path, "branches that never ran", wanted["ran"] ^ found["ran"])
    for path, found in read_info(sys.argv[3]).items():
        sums = found["sum"]
        branches = [n for counts in found["BRDA"].values() for n in counts]
        assert sums["LF"] == len(found["DA"]) and sums["LH"] == sum(n > 0 for n in found["DA"].values()), path
        assert sums["FNF"] == len(found["FN"]) and sums["FNH"] == sum(n > 0 for n in found["FNDA"].values()), path
        assert sums["BRF"] == len(branches) and sums["BRH"] == sum(n > 0 for n in branches), path


def is_brace(path, line):
    return open(path).read().splitlines()[line - 1].strip() == "}"


def compare_lcov_function():
    (path, wanted), = ((path, found) for path, found in read_info(sys.argv[2]).items() if sys.argv[4] in found["FN"])
    (other, found), = read_info(sys.argv[3]).items()
    first = wanted["FN"][sys.argv[4]]
    end = min((line for line in wanted["FN"].values() if line > first), default=1 << 30)
    lines = {line: n for line, n in wanted["DA"].items() if first <= line < end}
    assert other == path and set(found["FN"].items()) == {(sys.argv[4], first)}, found["FN"]
    assert found["FNDA"] == {sys.argv[4]: wanted["FNDA"][sys.argv[4]]}, found["FNDA"]
    found["DA"] = {line: n for line, n in found["DA"].items() if line in lines or not is_brace(path, line)}
    assert found["DA"] == lines, set(found["DA"].items()) ^ set(lines.items())
    for line in {line for line in wanted["BRDA"] if first <= line < end} | set(found["BRDA"]):
        assert sorted(wanted["BRDA"].get(line, [])) == sorted(found["BRDA"].get(line, [])), line


def read_drcov(path):
    data = open(path, "rb").read()
    head, rest = data.split(b"\nBB Table: ", 1)
    count, blocks = rest.split(b" bbs\n", 1)
    lines = head.decode().split("\n")
    assert lines[0] == "DRCOV VERSION: 3" and lines[1] == "DRCOV FLAVOR: drcov-64"
    rows = int(re.fullmatch(r"Module Table: version 5, count (\d+)", lines[2]).group(1))
    assert lines[3] == "Columns: id, containing_id, start, end, entry, offset, preferred_base, path"
    modules = []
    for index, line in enumerate(lines[4:]):
        fields = re.fullmatch(r" *(\d+), +(\d+), " + r"(0x[0-9a-f]{16}), " * 5 + r" (.*)", line).groups()
        number, first = int(fields[0]), int(fields[1])
        start, end, entry, offset, base = (int(field, 16) for field in fields[2:7])
        assert number == index and first <= number and start < end and base % 4096 == 0 and fields[7]
        modules.append((start, end, offset, base, fields[7]))
    assert len(modules) == rows and len(blocks) == 8 * int(count)
    return modules, list(struct.iter_unpack("<IHH", blocks))


def segment_address(path, offset):
    """Where the piece of the file that lies at an offset is linked to lie, by readelf."""
    headers = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
    for line in headers.splitlines():
        fields = line.split()
        if fields and fields[0] == "LOAD":
            start, address, _, size = (int(field, 16) for field in fields[1:5])
            if start - start % 4096 <= offset < start + size:
                return address + offset - start
    raise AssertionError(f"nothing at {offset:#x} of {path}")


def drcov_places(path):
    """Blocks with the file and the address as it is linked."""
    modules, blocks = read_drcov(path)
    linked = [segment_address(name, offset) if os.path.exists(name) else None for _, _, offset, _, name in modules]
    return {(modules[module][4], linked[module] + start, size) for start, size, module in blocks
            if linked[module] is not None}


def compare_drcov_function():
    symbols = subprocess.run(["nm", "-S", sys.argv[4]], capture_output=True, text=True, check=True).stdout
    (first, size), = ((int(words[0], 16), int(words[1], 16)) for words in map(str.split, symbols.splitlines())
                      if words[-1] == sys.argv[5])
    wanted = {block for block in drcov_places(sys.argv[2])
              if block[0].endswith("/" + sys.argv[4]) and first <= block[1] < first + size}
    assert wanted and wanted == drcov_places(sys.argv[3])


def compare_drcov():
    wanted = {(path, line) for path, found in read_info(sys.argv[2]).items() for line, n in found["DA"].items() if n}
    known = {(path, line) for path, found in read_info(sys.argv[2]).items() for line in found["DA"]}
    modules, blocks = read_drcov(sys.argv[3])
    covered = set()
    for start, size, module in blocks:
        assert module < len(modules) and size and start + size <= modules[module][1] - modules[module][0]
    for number, (start, end, offset, base, path) in enumerate(modules):
        if not path.endswith("/" + sys.argv[4]) and not path.endswith("/libpart.so"):
            continue
        linked = segment_address(path, offset)
        ranges = [(linked + at, linked + at + size) for at, size, module in blocks if module == number]
        symbols = path if len(sys.argv) < 6 else path.replace("/" + sys.argv[4], "/" + sys.argv[5])
        code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", symbols], capture_output=True, text=True,
                              check=True)
        places = [int(m.group(1), 16) for m in re.finditer(r"^ +([0-9a-f]+):\t", code.stdout, re.M)]
        ran = [place for place in places if any(first <= place < last for first, last in ranges)]
        for first, _ in ranges:
            assert first in places, f"{first:#x} is no instruction"
        lines = subprocess.run(["addr2line", "-e", symbols], input="\n".join(map(hex, ran)), capture_output=True,
                               text=True, check=True)
        for line in lines.stdout.splitlines():
            path_, _, number_ = line.split(" ")[0].rpartition(":")
            if number_.isdigit():
                covered.add((os.path.normpath(path_), int(number_)))
    assert wanted == covered & known, wanted ^ (covered & known)


{
    "lcov": compare_lcov,
    "drcov": compare_drcov,
    "lcov-function": compare_lcov_function,
    "drcov-function": compare_drcov_function,
}[sys.argv[1]]()
