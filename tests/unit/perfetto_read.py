# SPDX-License-Identifier: Apache-2.0
"""Reads the files of `lbr export --to perfetto`, as protoc decodes them by perfetto.proto, and checks the rules of Perfetto: tracks
and names are defined before they are used, slices nest, and the times of a track do not go back."""
import os
import subprocess

MONOTONIC = 3  # BuiltinClock


def decode(path):
    """The packets of a trace: dicts with a list for each field."""
    folder = os.path.dirname(os.path.realpath(__file__))
    with open(path, "rb") as file:
        text = subprocess.run(["protoc", "--decode=Trace", "-I", folder, "perfetto.proto"], stdin=file, stdout=subprocess.PIPE,
                              text=True, check=True).stdout
    open_ones = [{}]
    for line in text.split("\n"):
        line = line.strip()
        if line.endswith(" {") and ": " not in line:
            made = {}
            open_ones[-1].setdefault(line[:-2], []).append(made)
            open_ones.append(made)
        elif line == "}":
            open_ones.pop()
        elif line:
            key, value = line.split(": ", 1)
            assert not key.isdigit(), "a field that Perfetto does not have: " + line
            value = value[1:-1] if value[0] == '"' else int(value) if value.lstrip("-").isdigit() else value
            open_ones[-1].setdefault(key, []).append(value)
    assert len(open_ones) == 1
    return open_ones[0]["packet"]


class Slice:
    """A slice; of an instant or a counter, `end` is `begin`."""

    def __init__(self, begin, name, category, notes, parent, source):
        self.begin = self.end = begin
        self.name, self.category, self.notes, self.parent, self.source = name, category, notes, parent, source

    def names(self):
        """Those of the slices around it and its own, the outermost first."""
        return (self.parent.names() if self.parent else []) + [self.name]


class Track:
    def __init__(self, descriptor, parent):
        self.parent = parent
        self.name = descriptor.get("name", [None])[0]
        self.process, self.thread = (descriptor.get(key, [None])[0] for key in ("process", "thread"))
        self.is_counter = "counter" in descriptor
        self.slices, self.instants, self.values = [], [], []
        self.open_ones, self.last = [], 0

    def event(self, kind, time, event, names):
        assert time >= self.last, ("time goes back", self.name, self.last, time)
        self.last = time
        if kind == "TYPE_COUNTER":
            assert self.is_counter
            self.values.append((time, event["counter_value"][0]))
            return
        assert not self.is_counter
        if kind == "TYPE_SLICE_END":
            assert self.open_ones, "an end without a begin"
            self.open_ones.pop().end = time
            return
        name = event["name"][0] if "name" in event else names["event_names"][event["name_iid"][0]]
        category = names["event_categories"][event["category_iids"][0]] if "category_iids" in event else None
        source = names["source_locations"][event["source_location_iid"][0]] if "source_location_iid" in event else None
        notes = {note["name"][0]: note.get("string_value", note.get("int_value"))[0] for note in event.get("debug_annotations", [])}
        made = Slice(time, name, category, notes, self.open_ones[-1] if self.open_ones else None, source)
        if kind == "TYPE_INSTANT":
            self.instants.append(made)
            return
        assert kind == "TYPE_SLICE_BEGIN"
        self.slices.append(made)
        self.open_ones.append(made)

    def value_at(self, time):
        return next((value for at, value in reversed(self.values) if at <= time), None)


class Trace:
    def __init__(self, path):
        packets = decode(path)
        self.tracks, self.clocks = {}, {}
        self.names = {"event_categories": {}, "event_names": {}, "source_locations": {}}
        assert packets[0]["first_packet_on_sequence"] == ["true"]
        for number, packet in enumerate(packets):
            assert packet["trusted_packet_sequence_id"] == [1]
            self.state(packet, number)
            if "track_descriptor" in packet:
                self.descriptor(packet["track_descriptor"][0])
            if "track_event" in packet:
                event = packet["track_event"][0]
                assert packet["sequence_flags"] == [2]
                self.tracks[event["track_uuid"][0]].event(event["type"][0], packet["timestamp"][0], event, self.names)
        assert not any(track.open_ones for track in self.tracks.values()), "slices are left open"

    def state(self, packet, number):
        """Clocks and names, which come before all else; later packets add names to those."""
        for data in packet.get("interned_data", []):
            for field, found in data.items():
                for entry in found:
                    assert entry["iid"][0] and entry["iid"][0] not in self.names[field]
                    self.names[field][entry["iid"][0]] = entry["name"][0] if "name" in entry else entry
        if "clock_snapshot" in packet:
            assert number == 0 and packet["clock_snapshot"][0]["primary_trace_clock"] == [MONOTONIC]
            self.clocks = {clock["clock_id"][0]: clock["timestamp"][0] for clock in packet["clock_snapshot"][0]["clocks"]}
        if "trace_packet_defaults" in packet:
            assert packet["trace_packet_defaults"][0]["timestamp_clock_id"] == [MONOTONIC] and self.clocks
        assert packet["sequence_flags"] == [1 if number == 0 or (number == 1 and self.clocks) else 2]

    def descriptor(self, descriptor):
        uuid, parent = descriptor["uuid"][0], descriptor.get("parent_uuid", [None])[0]
        assert uuid and uuid not in self.tracks
        self.tracks[uuid] = Track(descriptor, self.tracks[parent] if parent else None)

    def threads(self):
        """The tracks of calls, in the order of threads."""
        return [track for track in self.tracks.values()
                if not track.process and not track.is_counter and not (track.parent and not track.parent.process)]

    def child(self, thread, name):
        return next(track for track in self.tracks.values() if track.parent is thread and track.name == name)
