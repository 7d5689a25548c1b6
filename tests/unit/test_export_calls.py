#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_export_calls.py NAME BRANCHES: checks NAME.chrome, .speedscope, .folded and .pprof by the rules of their
readers, and that they tell the same.
test_export_calls.py NAME - FUNCTION: prints how often it is called, and how deep in itself.
test_export_calls.py NAME within WHOLE FUNCTION, or NAME module WHOLE MODULE: checks that the files of NAME are those of
WHOLE without what is not in calls of the function, or without frames that are not "MODULE+0xADDRESS"."""
import gzip
import json
import sys


def folded(stacks, stack, count):
    if count:
        key = ";".join(name.replace(";", ":") for name in stack)
        stacks[key] = stacks.get(key, 0) + count


def read_chrome(path):
    """Chrome's trace event format: B and E nest in each thread, times do not go back."""
    data = json.load(open(path))
    threads, names, stacks, events = {}, set(), {}, []
    assert data["displayTimeUnit"] == "ns" and "instruction" in data["otherData"]["clock"]
    for event in data["traceEvents"]:
        thread = event["pid"], event["tid"]
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name") and event["args"]["name"]
            names.add(thread)
            continue
        stack, before = threads.setdefault(thread, ([], [0]))
        now = round(event["ts"] * 1000)
        assert thread in names and now >= before[0] and abs(event["ts"] * 1000 - now) < 1e-3
        folded(stacks, stack, now - before[0] if stack else 0)
        before[0] = now
        if event["ph"] == "B":
            stack.append(event["name"])
            events.append((event["name"], stack.count(event["name"])))
        else:
            assert event["ph"] == "E"
            stack.pop()
    assert not any(stack for stack, _ in threads.values()), "left open"
    return stacks, events


def read_speedscope(path):
    """speedscope's schema, and what its importer demands beyond it."""
    data = json.load(open(path))
    assert data["$schema"] == "https://www.speedscope.app/file-format-schema.json" and data["activeProfileIndex"] == 0
    frames = data["shared"]["frames"]
    for frame in frames:
        assert isinstance(frame["name"], str) and set(frame) <= {"name", "file", "line", "col"}
        assert isinstance(frame.get("file", ""), str) and isinstance(frame.get("line", 1), int)
    stacks, events = {}, []
    for profile in data["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "events"}
        assert profile["type"] == "evented" and profile["unit"] == "none" and profile["startValue"] == 0
        stack, before = [], 0
        for event in profile["events"]:
            assert set(event) == {"type", "at", "frame"} and before <= event["at"] <= profile["endValue"]
            names = [frames[number]["name"] for number in stack]
            folded(stacks, names, event["at"] - before if stack else 0)
            before = event["at"]
            if event["type"] == "O":
                assert 0 <= event["frame"] < len(frames)
                stack.append(event["frame"])
                name = frames[event["frame"]]["name"]
                events.append((name, (names + [name]).count(name)))
            else:
                assert event["type"] == "C" and stack.pop() == event["frame"]
        assert not stack
    return stacks, events


def read_folded(path):
    stacks = {}
    for line in open(path):
        stack, count = line.rstrip("\n").rsplit(" ", 1)
        stacks[stack] = stacks.get(stack, 0) + int(count)  # functions of different files may have one name
    return stacks


def fields(data):
    """Fields of a message of protobuf: (number, value), a value being a number or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        else:
            assert tag & 7 == 2
            size = varint()
            at += size
            assert at <= len(data)
            yield tag >> 3, data[at - size:at]


def packed(data):
    """Numbers one after the other, as a repeated field has them."""
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(value)
            value = shift = 0
    assert not shift
    return values


def read_pprof(path):
    """proto/profile.proto of pprof, and what its CheckValid demands."""
    profile = {}
    for number, value in fields(gzip.open(path).read()):  # gzip checks the sum and the length
        profile.setdefault(number, []).append(value)
    strings = [value.decode() for value in profile[6]]
    assert strings[0] == "" and len(profile[12]) == 1
    types = [[strings[dict(fields(value))[key]] for key in (1, 2)] for value in profile[1]]
    assert types == [["instructions", "count"], ["branches", "count"]] and strings[profile[14][0]] == "instructions"
    mappings = {dict(fields(value))[1]: dict(fields(value)) for value in profile[3]}
    functions = {dict(fields(value))[1]: dict(fields(value)) for value in profile[5]}
    locations = {dict(fields(value))[1]: dict(fields(value)) for value in profile[4]}
    assert 0 not in mappings and 0 not in functions and 0 not in locations
    for mapping in mappings.values():
        assert mapping[2] < mapping[3] and strings[mapping[5]] and mapping[7] == 1 and mapping[6] < len(strings)
    names = {}
    for number, location in locations.items():
        line = dict(fields(location[4]))
        assert location.get(2, 0) in [0, *mappings] and line[1] in functions
        if 2 in location:
            assert mappings[location[2]][2] <= location[3] < mappings[location[2]][3]
        names[number] = strings[functions[line[1]][2]]
    stacks, branches = {}, 0
    for value in profile[2]:
        sample = dict(fields(value))
        numbers, counts = packed(sample[1]), packed(sample[2])
        assert len(counts) == 2 and numbers
        folded(stacks, [names[number] for number in reversed(numbers)], counts[0])
        branches += counts[1]
    return stacks, branches, strings[mappings[dict(fields(profile[3][0]))[1]][5]]


def choose(stacks, how, word):
    """Stacks from the function on, or their frames of the module only; what has none of them is left out."""
    chosen = {}
    for stack, count in stacks.items():
        frames = stack.split(";")
        if how == "within":
            frames = frames[frames.index(word):] if word in frames else []
        else:
            frames = [frame for frame in frames if frame.startswith(word + "+0x")]
        if frames:
            folded(chosen, frames, count)
    return chosen


def check_chosen(name, how, whole, word):
    wanted = choose(read_folded(whole + ".folded"), how, word)
    assert wanted and len(wanted) < len(read_folded(whole + ".folded"))
    for what, stacks in (("folded", read_folded(name + ".folded")), ("chrome", read_chrome(name + ".chrome")[0]),
                         ("speedscope", read_speedscope(name + ".speedscope")[0]),
                         ("pprof", read_pprof(name + ".pprof")[0])):
        assert stacks == wanted, (what, set(stacks.items()) ^ set(wanted.items()))


def main():
    name = sys.argv[1]
    if sys.argv[2] in ("within", "module"):
        check_chosen(name, *sys.argv[2:5])
        return
    chrome, events = read_chrome(name + ".chrome")
    speedscope, others = read_speedscope(name + ".speedscope")
    if sys.argv[2] == "-":
        wanted = [depth for function, depth in events if function == sys.argv[3]]
        assert sorted(events) == sorted(others)
        print(len(wanted), max(wanted, default=0))
        return
    stacks = read_folded(name + ".folded")
    profile, branches, program = read_pprof(name + ".pprof")
    for what, other in (("chrome", chrome), ("speedscope", speedscope), ("pprof", profile)):
        assert other == stacks, (what, set(other.items()) ^ set(stacks.items()))
    assert branches == int(sys.argv[2]), (branches, sys.argv[2])
    assert program.endswith("/" + name), program


main()
