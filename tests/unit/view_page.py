# SPDX-License-Identifier: Apache-2.0
# view_page.py data PAGE EXPRESSION: is it true of the data in a page of lbr view? d is the JSON, f the functions by
# name, blocks the numbers of the timeline: (stream, depth, start, end, start in instructions, end, function, calls, start in
# nanoseconds, end, waited, held).
# view_page.py dom DUMP EXPRESSION: likewise of a document that a browser has made of it: a holds the attributes data-*
# of the root, text what is shown, tags how often each element is there, title the document's.
import base64
import collections
import html.parser
import json
import re
import sys


def numbers(packed):
    value = shift = 0
    for byte in packed:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


def blocks_of(packed, has_times):
    take = numbers(packed).__next__
    blocks = []
    for _ in range(take()):
        stream = take()
        for _ in range(take()):
            depth, count = take(), take()
            branch = instruction = time = 0
            for _ in range(count):
                start = branch + take()
                branch = start + take()
                first = instruction + take()
                instruction = first + take()
                since = time + take() if has_times else 0
                time = since + take() if has_times else 0
                word = take()
                waited, held = (take(), take()) if has_times and word & 2 else (0, 0)
                _, calls, _ = (take(), take(), take()) if word & 1 else (0, 1, 0)
                function = word >> (2 if has_times else 1)
                blocks.append((stream, depth, start, branch, first, instruction, function, calls, since, time, waited, held))
    return blocks


def data_names(page):
    def part(name):
        found = re.findall(r'<script type="[a-z/]*" id="%s">(.*?)</script>' % name, page, re.S)
        assert len(found) == 1, (name, len(found))
        return found[0]

    d = json.loads(part("data"))
    return {"d": d, "f": {row[0]: row for row in d["functions"]}, "page": page,
            "blocks": blocks_of(base64.b64decode(part("blocks"), validate=True), d["times"] is not None)}


class Dom(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.text, self.title, self.tags, self.a, self.stack = "", "", collections.Counter(), {}, []

    def handle_starttag(self, tag, attributes):
        self.tags[tag] += 1
        if tag == "html":
            self.a = {name[5:]: value for name, value in attributes if name.startswith("data-")}
        self.stack.append(tag)

    def handle_endtag(self, tag):
        if tag in self.stack:
            while self.stack.pop() != tag:
                pass

    def handle_data(self, data):
        if self.stack and self.stack[-1] == "title":
            self.title += data
        elif not self.stack or self.stack[-1] not in ("script", "style", "noscript"):
            self.text += data + " "


def dom_names(dump):
    dom = Dom()
    dom.feed(dump)
    return {"a": dom.a, "text": re.sub(r"\s+", " ", dom.text), "tags": dom.tags, "title": dom.title}


text = open(sys.argv[2], encoding="utf-8").read()
names = data_names(text) if sys.argv[1] == "data" else dom_names(text)
if not eval(f"({sys.argv[3]})", names):
    print(names.get("title"), names.get("a"), names.get("text", "")[:1500], file=sys.stderr)
    sys.exit(1)
