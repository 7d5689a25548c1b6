#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_top.py LBR FOLDER [TEST]...: lbr top without -p shows what other lbr processes record now. FOLDER has the programs of
tests/process/attach. The source of rounds.c says how often its functions are called. The test runs in a PID namespace of its
own, if it may make one, so that it sees no other recordings."""
import fcntl
import json
import os
import pty
import random
import re
import select
import signal
import struct
import subprocess
import sys

import attach_rig as rig
from attach_rig import PATIENCE, Lbr, Program, skip, totals, until, verdict

LBR, FOLDER = (os.path.realpath(path) for path in sys.argv[1:3])
ROUNDS = os.path.join(FOLDER, "rounds")
OFTEN, SELDOM = 3000, 1000  # calls in a round
IS_ALONE = "TOP_ALONE" in os.environ
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": "/dev/null"}


def namespace_enter():
    """Runs this test again in a PID namespace of its own. Returns if that cannot be."""
    for user in ([], ["-r"]):
        words = ["unshare", *user, "--pid", "--fork", "--mount-proc", "--kill-child"]
        try:
            if subprocess.run([*words, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
                os.execvpe("unshare", [*words, sys.executable, *sys.argv], {**os.environ, "TOP_ALONE": "1"})
        except OSError:
            pass


def top(*words, **more):
    return subprocess.run([LBR, "top", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                          text=True, check=False, timeout=PATIENCE, **more)


def documents(text):
    """The JSON documents in a text that may end within one."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        try:
            document, at = decoder.raw_decode(text, at)
        except ValueError:
            return
        yield document
        at += len(text[at:]) - len(text[at:].lstrip())


def pages(*words):
    """The pages of all recordings, of one look."""
    return list(documents(top("--count", "1", "--json", "--by", "function", "--top", "all", *words).stdout))


def page_of(process):
    found = [page for page in pages() if page["name"] == f"rounds.{process}"]
    return found[0] if len(found) == 1 else {"functions": [], "found": len(found)}


def calls(page):
    """The numbers of calls of the two functions."""
    counts = {row["symbol"]: row["calls"] for row in page["functions"]}
    return counts.get("often", 0), counts.get("seldom", 0)


def names(page):
    return [row["symbol"] for row in page["functions"][:1]]


# ---- recordings to look at ----


class Recording:
    """A program that lbr runs."""

    def __init__(self, *words):
        self.program = Program(LBR, *words, ROUNDS, environment=ENVIRONMENT).ready()
        self.process = rig.children(self.program.pid)[0]

    def end(self):
        """Its output and its status."""
        return self.program.end()


class Attached:
    """A program that runs already, to which lbr attaches."""

    def __init__(self, *words):
        self.program = Program(ROUNDS, environment=ENVIRONMENT).ready()
        self.process = self.program.pid
        self.lbr = Lbr(LBR, *words, "-p", self.process)
        self.lbr.attached(self.process)

    def end(self):
        result = self.program.end()
        self.lbr.wait()
        return result[0], self.lbr.output, result[2]


WAYS = {"lbr record": lambda: Recording("record", "-o", "way.lbr"), "lbr run": lambda: Recording("run"),
        "lbr record -p": lambda: Attached("record", "-o", "way.lbr"), "lbr run -p": lambda: Attached("run")}


def rounds(recording, count):
    return all(recording.program.ask() == "done" for _ in range(count))


# ---- tests ----


def test_usage():
    for words in (["x"], ["--burst", "1s"], ["--by", "nonsense"], ["--count", "0"], ["--interval", "x"], ["-p", "x"]):
        run = top(*words)
        verdict(f"lbr top {' '.join(words)}: a usage error", run.returncode == 2 and run.stderr, run.returncode, run.stderr)


def is_nothing(run):
    return run.returncode == 1 and not run.stdout and \
        run.stderr == "lbr: nothing is being recorded now; name a process with -p\n"


def test_nothing():
    if not IS_ALONE:
        return skip("nothing is recorded", "no PID namespace of its own")
    run = top()
    verdict("nothing is recorded", is_nothing(run), run)
    recording = Recording("record", "-o", "killed.lbr")
    os.kill(recording.program.pid, signal.SIGKILL)
    recording.program.process.wait()
    run = top()
    verdict("nothing is recorded after lbr was killed", is_nothing(run), run)
    os.kill(recording.process, signal.SIGKILL)


def test_ways():
    for name, begin in WAYS.items():
        recording = begin()
        is_done = rounds(recording, 3)
        until(lambda: rig.sleeps(recording.process))
        page = page_of(recording.process)
        verdict(f"{name}: the calls that the source says", is_done and calls(page) == (3 * OFTEN, 3 * SELDOM), calls(page), page)
        verdict(f"{name}: the function that runs most", names(page) == ["often"], names(page))
        verdict(f"{name}: all code is known", page.get("has_unknown_code") is False, page)
        covers = page.get("covers", "")
        pattern = r"recorded by another lbr: [\d,]+ branches of 1 thread in 1 process, all that its logs hold now"
        verdict(f"{name}: what the page covers", re.fullmatch(pattern, covers) and
                f"{page['taken']:,} branches" in covers, covers, page.get("taken"))
        lines, errors, status = recording.end()
        verdict(f"{name}: the program ends as usual", (lines, status) == ([], 0), lines, errors, status)


class Pages:
    """lbr top in the background."""

    def __init__(self, interval):
        self.process = subprocess.Popen([LBR, "top", "--json", "--by", "function", "--top", "all", "--interval", interval],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        rig.processes.append(self.process)
        self.bytes = b""

    def of(self, process):
        """The pages of a process so far."""
        while select.select([self.process.stdout], [], [], 0)[0]:
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                break
            self.bytes += piece
        return [page for page in documents(self.bytes.decode()) if page["name"] == f"rounds.{process}"]

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate()
        return self.process.returncode


def test_since():
    """A page shows what was logged since the one before. Where one page ends and the next begins, a path may be missing."""
    recording = Recording("record", "-o", "since.lbr")
    look = Pages("20ms")
    until(lambda: look.of(recording.process))
    count = 5

    def found():
        counts = [calls(page) for page in look.of(recording.process)]
        return sum(one[0] for one in counts), sum(one[1] for one in counts)

    is_done = rounds(recording, count)
    until(lambda: found()[0] > count * OFTEN - 5 * count)
    seen = len(look.of(recording.process))
    until(lambda: len(look.of(recording.process)) > seen + 2)
    often, seldom = found()
    last = look.of(recording.process)[-1]
    verdict("pages: together they have all calls once", is_done and count * OFTEN - 5 * count <= often <= count * OFTEN and
            count * SELDOM - 5 * count <= seldom <= count * SELDOM, often, seldom)
    verdict("pages: what was shown is not shown again", calls(last) == (0, 0) and last["taken"] == 0, last)
    verdict("pages: the time", re.search(r": 0 branches of 1 thread in 1 process, all of the last \d+\.\d s$", last["covers"]),
            last["covers"])
    verdict("pages: SIGINT ends it", look.end() == 0, look.process.returncode)
    recording.end()


def record_rounds(trace, count):
    """What lbr record says about a run."""
    recording = Recording("record", "-o", trace)
    is_done = rounds(recording, count)
    _, errors, status = recording.end()
    return totals(errors) if is_done and status == 0 else errors


def test_unharmed():
    """A recording has the same branches while lbr top looks at it. The log is written over more than once."""
    count, batch = 600, 50
    alone = record_rounds("alone.lbr", count)
    recording = Recording("record", "-o", "watched.lbr")
    look = Pages("5ms")
    until(lambda: look.of(recording.process))
    mappings = [one for one in rig.maps(look.process.pid) if "memfd:" in one[3]]
    links = [name for name, link in rig.descriptors(look.process.pid).items() if "memfd:" in link]
    flags = [int(re.search(r"flags:\s*(\d+)", rig.read(f"/proc/{look.process.pid}/fdinfo/{name}"))[1], 8) for name in links]
    is_done = True
    for _ in range(count // batch):
        is_done = is_done and rounds(recording, batch)
        seen = len(look.of(recording.process))
        is_done = is_done and until(lambda: len(look.of(recording.process)) > seen)
    look.end()
    _, errors, status = recording.end()
    verdict("lbr top can only read the memory", mappings and all(one[2] == "r--s" for one in mappings) and
            flags and all(flag & os.O_ACCMODE == os.O_RDONLY for flag in flags), mappings, flags)
    verdict("a recording that is looked at: as many branches", is_done and status == 0 and totals(errors) == alone,
            is_done, errors, alone)
    report = json.loads(subprocess.run([LBR, "report", "--json", "--by", "function", "--top", "all", "watched.lbr"],
                                       stdout=subprocess.PIPE, check=False).stdout)
    verdict("a recording that is looked at: no gap, all calls", report["gaps"] == 0 and
            calls(report) == (count * OFTEN, count * SELDOM), report["gaps"], calls(report))


def test_several():
    one, two = Recording("record", "-o", "one.lbr"), Recording("run")
    is_done = rounds(one, 1) and rounds(two, 2)
    until(lambda: rig.sleeps(one.process) and rig.sleeps(two.process))
    found = calls(page_of(one.process)), calls(page_of(two.process))
    verdict("two recordings: a page of each", is_done and found == ((OFTEN, SELDOM), (2 * OFTEN, 2 * SELDOM)), found)
    one.end()
    two.end()
    first, second = (Program(ROUNDS, environment=ENVIRONMENT).ready() for _ in range(2))
    lbr = Lbr(LBR, "record", "-o", "both.lbr", "-p", f"{first.pid},{second.pid}")
    lbr.attached(first.pid, second.pid)
    is_done = first.ask() == second.ask() == "done"
    until(lambda: rig.sleeps(first.pid) and rig.sleeps(second.pid))
    found = [page for page in pages() if page["name"] in (f"rounds.{first.pid}", f"rounds.{second.pid}")]
    verdict("two processes in a recording: a page of both", is_done and len(found) == 1 and
            calls(found[0]) == (2 * OFTEN, 2 * SELDOM) and "of 2 threads in 2 processes," in found[0]["covers"], found)
    lbr.interrupt()
    first.end()
    second.end()


def test_terminal():
    recording = Recording("run")
    rounds(recording, 1)
    main, other = pty.openpty()
    process = subprocess.Popen([LBR, "top", "--top", "3", "--interval", "60s"], stdin=other, stdout=other, stderr=other,
                               start_new_session=True)
    rig.processes.append(process)
    os.close(other)
    text = b""
    while b"often" not in text and select.select([main], [], [], PATIENCE)[0]:
        text += os.read(main, 4096)
    os.write(main, b"q")
    until(lambda: process.poll() is not None)
    verdict("in a terminal: a page", b"\033[H\033[J" in text and f"rounds.{recording.process}".encode() in text, text)
    verdict("in a terminal: q ends it", process.poll() == 0, process.poll())
    os.close(main)
    recording.end()


def test_user():
    """A user who may not read the recordings. Needs root."""
    other = 65534
    try:
        subprocess.run([LBR, "--version"], stdout=subprocess.DEVNULL, check=True, user=other, group=other, extra_groups=[])
    except (OSError, subprocess.SubprocessError) as problem:
        return skip("the recording of another user", problem)
    recording = Recording("record", "-o", "other.lbr")
    run = top(user=other, group=other, extra_groups=[])
    verdict("the recording of another user", run.returncode == 1 and not run.stdout and "another user: use sudo" in run.stderr, run)
    recording.end()


# ---- memory that only looks like that of a recording ----

MAGIC, PAGE, THREADS, PARTS, PART, NOTES, STEPS = 0x3252424C, 4096, 4096, 4, 1 << 16, 1 << 20, 1 << 16
STEPS_AT = PAGE * (1 + THREADS) + NOTES
LOGS_AT = STEPS_AT + STEPS * 32
SIZE = LOGS_AT + THREADS * PARTS * PART + (1 << 30) + (1 << 20)
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


def forge(number, size=SIZE, part=PART, seals=SEALS):
    """A file with a valid control page and random threads, steps and logs (shared.h). Returns its descriptor."""
    chance = random.Random(number)
    fd = os.memfd_create("lbr-shared", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    os.pwrite(fd, struct.pack("<IIIIQQIIQII", MAGIC, number % 2, 0, part, NOTES, 0, STEPS, STEPS, 0, 5,
                              chance.choice([1, 8, THREADS, 0xFFFFFFFF])), 0)
    for slot in range(8):
        os.pwrite(fd, chance.randbytes(PAGE if slot > 5 else 264), PAGE * (1 + slot))
        start, written = chance.getrandbits(47), chance.choice([0, 1, 2, 5, chance.getrandbits(64)])
        log = start + written % PARTS * (PART + PAGE) + chance.randrange(0, PART, 4)
        os.pwrite(fd, struct.pack("<Q", log % (1 << 64)), PAGE * (1 + slot))
        os.pwrite(fd, struct.pack("<IIIIQQ", chance.choice([2, 2, 2, 3]), chance.randrange(8), os.getpid(), 1 + slot, start,
                                  written), PAGE * (1 + slot) + 264)
        words = [chance.choice([chance.randrange(STEPS), chance.randrange(STEPS) | 1 << 31, 0xFFFFFFFF, chance.getrandbits(32)])
                 for _ in range(PART // 4)]
        for place in range(PARTS):
            if chance.random() < 0.8:
                os.pwrite(fd, struct.pack(f"<{PART // 4}I", *words), LOGS_AT + (slot * PARTS + place) * PART)
    for step in range(1, 4096):
        head = chance.choice([step, max(1, step - chance.randrange(9)), chance.getrandbits(32)])
        os.pwrite(fd, struct.pack("<QQIIBBBBI", chance.getrandbits(64), chance.getrandbits(47), head, chance.randrange(STEPS),
                                  chance.randrange(20), chance.getrandbits(5) | (head == step), chance.getrandbits(8),
                                  chance.getrandbits(4), chance.choice([1, 2, 0xFFFFFFFF])), STEPS_AT + step * 32)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def test_forged():
    wrong = []
    for number in range(8):
        fd = forge(number)
        run = top("--count", "2", "--interval", "10ms", "--json")
        os.close(fd)
        if run.returncode not in (0, 1) or "anitizer" in run.stderr or not run.stdout:
            wrong.append((number, run.returncode, run.stderr[-500:]))
    verdict("forged memory: lbr top shows something and does not fail", not wrong, wrong)
    for name, more in (("size", {"size": SIZE - PAGE}), ("part", {"part": PART - 1}), ("seal", {"seals": fcntl.F_SEAL_GROW})):
        fd = forge(1, **more)
        run = top("--count", "1", "--json")
        os.close(fd)
        process = f".{os.getpid()}\""
        verdict(f"forged memory: a wrong {name} is no recording", is_nothing(run) if IS_ALONE else process not in run.stdout, run)


if __name__ == "__main__":
    if not IS_ALONE:
        namespace_enter()
    sys.exit(rig.run(globals(), sys.argv[3:]))
