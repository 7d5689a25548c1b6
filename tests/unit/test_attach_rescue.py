#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_attach_rescue.py LBR ORACLE FOLDER [TEST]...: lbr is killed while it is attached, and another lbr leaves the processes
and attaches anew. The arguments, the programs and the sources of expected values are those of test_attach.py."""
import os
import signal
import struct
import subprocess
import sys

import attach_rig as rig
import test_attach as attach
from attach_rig import Elsewhere, Lbr, Program, is_recorded, remains, skip, totals, until, verdict

LBR, ORACLE, FOLDER = (os.path.realpath(path) for path in sys.argv[1:4])
SAID = "code cache of an lbr that was killed"


def snapshot(process):
    """What must be as before at the end."""
    return {"maps": {one for one in rig.maps(process) if "x" in one[2]}, "files": rig.descriptors(process),
            "signals": rig.signal_state(process)}


def kill_attached(*programs, words=("record", "-o", "t.lbr"), lbr=LBR):
    """Attaches, kills that lbr, and returns whether the processes are in its code cache then."""
    if os.path.exists("t.lbr.incomplete"):  # of the lbr that was killed before
        os.unlink("t.lbr.incomplete")
    killed = Lbr(lbr, *words, "-p", ",".join(str(program.pid) for program in programs))
    is_fine = killed.attached(*(program.pid for program in programs))
    killed.interrupt(signal.SIGKILL)
    return is_fine and all(is_recorded(program.pid) for program in programs)


def differences(programs, before):
    after = [snapshot(program.pid) for program in programs]
    return [(key, one[key], two[key]) for one, two in zip(before, after) for key in one if one[key] != two[key]]


def check_rescue(name, killed, rescuer, programs, recorded=1):
    """The processes of the killed lbr are left by the one that is given the first of them."""
    before = [snapshot(program.pid) for program in programs]
    is_killed = kill_attached(*programs, words=killed)
    lbr = rescuer(programs[0])
    lbr.wait()
    verdict(f"{name}: attached anew", is_killed and lbr.status == 0 and SAID in lbr.output, is_killed, lbr.why())
    if recorded:
        verdict(f"{name}: recorded", totals(lbr.output)[2] == recorded, lbr.why())
    left = {program.pid: remains(program.pid) for program in programs}
    verdict(f"{name}: all are left", not any(left.values()), left)
    verdict(f"{name}: all are as before", until(lambda: not differences(programs, before), 10), differences(programs, before))


def short(program):
    return attach.record(program, more=["--for", "50ms"])


def once(program):
    return Lbr(LBR, "run", "-p", program.pid, "--snapshot", "--tail", "3")


def test_rescue():
    one, two = attach.target("compute"), attach.target("answer")
    for name, killed in (("record", ("record", "-o", "t.lbr")), ("run", ("run",))):
        check_rescue(f"lbr {name} was killed, then record", killed, short, [one, two])
        check_rescue(f"lbr {name} was killed, then run", killed, once, [one, two], 0)
        check_rescue(f"lbr {name} was killed, then record of the other one", killed, short, [two, one])
        verdict(f"lbr {name} was killed: the processes go on", two.ask() == "answer 0" and rig.runs(one.pid))
    one.kill()
    two.kill()


def test_both():
    """Both processes of the killed recording are given."""
    one, two = attach.target("compute"), attach.target("answer")
    is_killed = kill_attached(one, two)
    lbr = attach.record(two, one, more=["--for", "50ms"])
    lbr.wait()
    verdict("both processes of a killed lbr", is_killed and lbr.status == 0 and totals(lbr.output)[2] == 2, is_killed, lbr.why())
    verdict("both processes of a killed lbr: left", attach.is_left(one.pid) and attach.is_left(two.pid))
    one.kill()
    two.kill()


def test_top():
    program = attach.target("compute")
    is_killed = kill_attached(program)
    done = subprocess.run([LBR, "top", "-p", str(program.pid), "--count", "1", "--interval", "100ms"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, check=False)
    verdict("lbr top after a killed lbr", is_killed and done.returncode == 0 and SAID in done.stdout and "[target]" in done.stdout,
            is_killed, done.stdout)
    verdict("lbr top after a killed lbr: left", attach.is_left(program.pid), remains(program.pid))
    program.kill()


def test_exact():
    """What is recorded anew is still a part of the full list, and the program ends as it does natively."""
    count = "60000"
    full, output = attach.full_list(count)
    program = Program(attach.STEPS, count, environment=attach.ENVIRONMENT, is_fixed=True)
    is_killed = kill_attached(program)
    lbr = attach.record(program, more=["--for", "60ms"])
    lbr.wait()
    part = b"\n" + rig.branches(LBR, "t.lbr") if lbr.status == 0 else b""
    verdict("branches after a killed lbr: a part of the full list", is_killed and part.count(b"\n") > 1000 and part in full, is_killed,
            lbr.why(), part.count(b"\n"))
    verdict("branches after a killed lbr: output and status", program.end() == (output, "", 0))


def forks(name, program):
    program.ask("f")
    killed = attach.record(program)
    killed.attached(program.pid)
    program.ask("f")
    program.ask("f")
    family = [program.pid, *rig.children(program.pid)]
    is_killed = until(lambda: all(is_recorded(child) for child in family[2:]))
    killed.interrupt(signal.SIGKILL)
    lbr = short(program)
    lbr.wait()
    verdict(f"{name}: attached anew", is_killed and lbr.status == 0 and SAID in lbr.output, is_killed, lbr.why())
    left = {process: remains(process) for process in family}
    verdict(f"{name}: all are left", len(family) == 4 and not any(left.values()), left)
    verdict(f"{name}: the children run", all(rig.runs(child) for child in family[1:]))
    lines = [program.ask("e"), *program.end()[0]]
    verdict(f"{name}: SIGTERM ends the children", lines == [f"status {int(signal.SIGTERM)}"] * 3, lines)


def test_forks():
    forks("children of a killed recording", attach.target("forks"))
    if subprocess.run(["unshare", "--pid", "--fork", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        return skip("children in another PID namespace", "the kernel forbids it")
    forks("children of a killed recording in another PID namespace", Elsewhere(["--pid"], "", attach.TARGET, "forks").ready())


def test_child():
    """The process that is given is a child of the one that the killed lbr was attached to."""
    program = attach.target("forks")
    killed = attach.record(program)
    killed.attached(program.pid)
    child = int(program.ask("f"))
    is_killed = until(lambda: is_recorded(child))
    killed.interrupt(signal.SIGKILL)
    lbr = Lbr(LBR, "run", "-p", child, "--snapshot")
    lbr.wait()
    verdict("a child of a killed recording", is_killed and lbr.status == 0 and SAID in lbr.output, lbr.why())
    verdict("a child of a killed recording: both are left", attach.is_left(child) and attach.is_left(program.pid), remains(child),
            remains(program.pid))
    program.kill()


def test_stress():
    """Many threads: full logs, which nobody reads any more, children, signals."""
    program = Program(attach.STRESS, 1, 100000).ready()
    for number in range(4):
        is_killed = kill_attached(program, words=("record", "-o", "t.lbr") if number % 2 else ("run",))
        lbr = short(program)
        lbr.wait()
        is_fine = is_killed and lbr.status == 0 and SAID in lbr.output and remains(program.pid) == []
        if not verdict(f"many threads of a killed lbr, time {number + 1}", is_fine, is_killed, lbr.why(), program.process.poll()):
            break
    os.kill(program.pid, signal.SIGTERM)
    lines, errors, result = program.end()
    verdict("many threads of a killed lbr: the program finds nothing wrong", result == 0 and lines[-1:] == ["fine"], result, errors)


# ---- killed while it attaches or leaves ----


def kill_traced(lbr, program, skipped):
    """Kills lbr and all processes of its group when it traces the program, after `skipped` more looks. Returns whether it
    did so in time."""
    while lbr.process.poll() is None:
        if rig.is_traced(program.pid):
            if not skipped:
                os.killpg(lbr.pid, signal.SIGKILL)
                lbr.wait()
                return True
            skipped -= 1
    lbr.wait()
    return False


def kill_between(program, number):
    """Attaches to the program, and kills lbr while it attaches (even numbers) or leaves. Returns whether that happened."""
    lbr = attach.record(program, more=["--for", "100ms"] if number % 2 == 0 else [])
    if number % 2:
        lbr.attached(program.pid)
        os.kill(lbr.pid, signal.SIGINT)
    return kill_traced(lbr, program, number // 2 % 6)


def check_between(name, program, is_fine):
    """Kills lbr often in the middle. The process must go on each time; what is left in it is left by the next lbr."""
    times, wrong = 0, None
    for number in range(24):
        times += kill_between(program, number)
        if not until(lambda: program.process.poll() is not None or not rig.is_traced(program.pid)):
            wrong = number, "still traced"
        elif program.process.poll() is not None:
            wrong = number, f"ended with {program.process.poll()}"
        elif rig.recorder_maps(program.pid):
            lbr = once(program)
            lbr.wait()
            wrong = None if lbr.status == 0 and SAID in lbr.output else (number, lbr.why())
        if not wrong and (remains(program.pid) or not is_fine()):
            wrong = number, "it does not go on", remains(program.pid)
        if wrong:
            break
    verdict(f"{name}, lbr is killed while it attaches or leaves: the process goes on", not wrong, wrong)
    verdict(f"{name}, lbr is killed while it attaches or leaves: that happened", times > 4, times)


def test_between():
    program = attach.target("answer")
    check_between("a process that waits", program, lambda: program.ask() == "answer 0")
    program.kill()
    program = Program(attach.STRESS, 1, 100000).ready()
    check_between("many threads", program, lambda: program.ask("check\n") == "checked")
    if program.process.poll() is None:
        os.kill(program.pid, signal.SIGTERM)
    lines, errors, result = program.end()
    verdict("many threads, lbr is killed while it attaches or leaves: the program finds nothing wrong",
            result == 0 and lines[-1:] == ["fine"], result, errors)


# ---- refusals ----


def test_alive():
    program = attach.target("answer")
    lbr = attach.record(program)
    lbr.attached(program.pid)
    attach.both("an lbr that lives", program.pid, f"process {lbr.pid}, records it already")
    verdict("an lbr that lives: it goes on", program.ask() == "answer 0" and is_recorded(program.pid))
    lbr.interrupt()
    verdict("an lbr that lives: it ends well", lbr.status == 0 and attach.is_left(program.pid), lbr.why())
    program.kill()


def test_started():
    """A program that lbr has started has no code of its own to go on with."""
    lbr = Program(LBR, "record", "-q", "-o", "own.lbr", attach.TARGET, "answer").ready()
    child = rig.children(lbr.pid)[0]
    attach.both("a program that lbr has started", child, f"process {lbr.pid}, records it already")
    os.kill(lbr.pid, signal.SIGKILL)
    until(lambda: rig.status(lbr.pid).get("State", "X")[0] in "XZ")
    attach.both("a program that an lbr has started that was killed", child, "restart it")
    verdict("a program that an lbr has started that was killed: it goes on", lbr.ask() == "answer 0")
    lbr.kill()


def other_build():
    """A copy of lbr whose runtime differs in a text that does not matter here; None: there is no such text."""
    with open(LBR, "rb") as file:
        content = file.read()
    if content.count(b"/proc/self/pagemap\0") != 1:
        return None
    with open("other-lbr", "wb") as file:
        file.write(content.replace(b"/proc/self/pagemap\0", b"/proc/self/pagemup\0"))
    os.chmod("other-lbr", 0o755)
    return os.path.realpath("other-lbr")


def test_build():
    other = other_build()
    if not verdict("another build of lbr", other is not None):
        return
    program = attach.target("answer")
    is_killed = kill_attached(program, lbr=other)
    attach.both("another build was killed", program.pid, "another build of lbr", program=program)
    verdict("another build was killed: it goes on", is_killed and program.ask() == "answer 0")
    lbr = Lbr(other, "run", "-p", program.pid, "--snapshot")
    lbr.wait()
    verdict("another build was killed: that build leaves it", lbr.status == 0 and attach.is_left(program.pid), lbr.why())
    program.kill()


FAKE = """
import ctypes, mmap, os, sys
fd = os.memfd_create("lbr-shared")
content = bytes.fromhex(sys.argv[1])
os.ftruncate(fd, int(sys.argv[2]))
os.pwrite(fd, content, 0)
memory = mmap.mmap(fd, 4096)
if sys.argv[3] == "image":
    image = os.memfd_create("lbr-runtime")
    os.ftruncate(image, 1 << 20)
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap(ctypes.c_void_p(0x7E7FF0000000), 1 << 20, 5, 0x12, image, ctypes.c_long(0))
print("ready", flush=True)
sys.stdin.read()
"""


def test_fake():
    """A process that pretends: lbr must refuse it, and leave it and the others alone."""
    magic, locked = 0x3252424C, 1 << 1
    for name, content, size, image in (("nothing", b"", 4096, ""),
                                       ("only the magic number", struct.pack("<III", magic, 0, locked), 4096, ""),
                                       ("another runtime", struct.pack("<III", magic, 0, locked), 1 << 30, "image")):
        program = Program(sys.executable, "-c", FAKE, content.hex(), size, image).ready()
        until(lambda: rig.sleeps(program.pid))
        attach.both(f"a fake recording, {name}", program.pid, "records it already", "restart", program=program)
        program.kill()


if __name__ == "__main__":
    sys.exit(rig.run(globals(), sys.argv[4:]))
