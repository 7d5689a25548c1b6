#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_attach_places.py LBR ORACLE FOLDER [TEST]...: lbr attaches to processes in other namespaces, in a chroot, of other users,
and to those whose files were deleted or replaced. The arguments, the programs and the sources of expected values are those of
test_attach.py; names of functions come from the source of tests/process/attach/places.c."""
import os
import re
import shutil
import signal
import subprocess
import sys

import attach_rig as rig
import test_attach as attach
from attach_rig import Elsewhere, Lbr, Program, remains, skip, status, totals, until, verdict

LBR, ORACLE, FOLDER = (os.path.realpath(path) for path in sys.argv[1:4])
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
PLACES = ("places", "first.so", "later.so", "other.so")
NAMESPACES = ["--pid", "--mount", "--propagation", "private"]
# A file system that only this namespace sees, with what the folder `shown` has.
ONLY_HERE = "mount -t tmpfs only-here hidden && cp -r shown/. hidden/"


def quiet(*words):
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                          check=False).returncode == 0


def has_namespaces():
    return quiet("unshare", *NAMESPACES, "--fork", "true")


def folder_make(name):
    shutil.rmtree(name, ignore_errors=True)
    os.mkdir(name)
    os.chmod(name, 0o755)
    return os.path.realpath(name)


def folder_fill(name, *files):
    folder = folder_make(name)
    for file in files:
        shutil.copy(os.path.join(FOLDER, file), folder)
    return folder


def libraries_copy(folder):
    """The dynamic linker and the C library, at the same paths in the folder."""
    listed = subprocess.run(["ldd", os.path.join(FOLDER, "places")], stdout=subprocess.PIPE, text=True, check=True).stdout
    for path in re.findall(r"(/\S+) \(0x", listed):
        os.makedirs(folder + os.path.dirname(path), exist_ok=True)
        shutil.copy(path, folder + path)


def places_words(folder):
    return [f"{folder}/places", f"{folder}/first.so", f"{folder}/later.so"]


# ---- what all of them have in common ----


def snapshot(process):
    """What lbr must leave as it was."""
    return {"maps": {one for one in rig.maps(process) if one[3] != "[stack]"}, "files": rig.descriptors(process),
            "signals": rig.signal_state(process)}


def names_of(trace):
    """The functions in a trace, while the process is there."""
    done = subprocess.run([LBR, "script", "-q", "-F", "from_sym,to_sym", trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, text=True, check=False)
    return set(re.findall(r"\w+", done.stdout))


def check_names(name, program, lbr_words=(), later=True, expected=("program_compute", "first_compute", "later_compute"), lbr=LBR):
    """Records the program `places` and compares the names. Its files may be anywhere."""
    program.ask("x")
    until(lambda: rig.sleeps(program.pid))
    before = snapshot(program.pid)
    recording = Lbr(*lbr_words, lbr, "record", "-o", "places.lbr", "-p", program.pid)
    is_attached = recording.attached(program.pid)
    answers = [program.ask("x"), program.ask("l" if later else "x"), program.ask("x")]
    until(lambda: rig.sleeps(program.pid))
    recording.interrupt()
    count = 3 if later else 2
    is_fine = is_attached and recording.status == 0
    verdict(f"{name}: recorded", is_fine and answers[1:] == [f"{count} functions "] * 2, recording.why(), answers)
    if is_fine:
        missing = set(expected) - names_of("places.lbr")
        verdict(f"{name}: names of functions", not missing, "missing", missing)
    until(lambda: rig.sleeps(program.pid))
    after = snapshot(program.pid)
    if later:
        after["maps"] = {one for one in after["maps"] if one in before["maps"]}
        before["maps"] &= after["maps"] | {one for one in before["maps"] if "x" in one[2]}
    verdict(f"{name}: nothing is left behind", after == before and remains(program.pid) == [],
            {key: (before[key], after[key]) for key in before if before[key] != after[key]}, remains(program.pid))
    verdict(f"{name}: the process goes on", program.ask("x") == f"{count} functions ")
    program.kill()
    for file in os.listdir("."):
        if file.startswith("places.lbr"):
            os.unlink(file)


def test_addresses():
    """A process that has mapped something where the recorder has its own memory."""
    code = ("import ctypes, sys; libc = ctypes.CDLL(None); libc.mmap.restype = ctypes.c_void_p; "
            f"libc.mmap(ctypes.c_void_p({rig.RECORDER[1 << 32]}), 4096, 3, 0x32, -1, 0); print('ready', flush=True); sys.stdin.read()")
    program = Program(sys.executable, "-c", code).ready()
    until(lambda: rig.sleeps(program.pid))
    attach.both("a process that uses the recorder's addresses", program.pid, "uses the addresses that the recorder needs",
                program=program)
    program.kill()


# ---- namespaces ----


def hidden_make(*files):
    """Two folders: what `hidden` shows is a copy of `shown`, for the process alone. Returns its path."""
    folder_fill("shown", *files)
    return folder_make("hidden")


def test_namespace_exact():
    if not has_namespaces():
        return skip("a process in other namespaces", "the kernel forbids them")
    count, hidden = "60000", hidden_make("steps")
    full, output = attach.full_list(count)
    program = Elsewhere(NAMESPACES, ONLY_HERE, f"{hidden}/steps", count, environment=attach.ENVIRONMENT, is_fixed=True)
    until(lambda: os.readlink(f"/proc/{program.pid}/exe") == f"{hidden}/steps")
    verdict("other namespaces: this is one", program.inner == 1 and not os.path.exists(f"{hidden}/steps"), program.inner)
    position = 0
    for number in range(3):
        lbr = attach.record(program, more=["--for", "60ms"])
        lbr.wait()
        if not verdict(f"other namespaces, recording {number + 1}", lbr.status == 0 and attach.is_left(program.pid), lbr.why(),
                       remains(program.pid)):
            break
        part = b"\n" + rig.branches(LBR, "t.lbr")
        at = full.find(part)
        verdict(f"other namespaces, recording {number + 1}: a part of the full list", at >= position and part.count(b"\n") > 1000, at,
                position, part.count(b"\n"))
        position = max(at, position)
    verdict("other namespaces: output and status", program.end() == (output, "", 0))


def test_namespace_names():
    if not has_namespaces():
        return skip("names of a process in other namespaces", "the kernel forbids them")
    hidden = hidden_make(*PLACES)
    check_names("files that only the process sees", Elsewhere(NAMESPACES, ONLY_HERE, *places_words(hidden)).ready())
    libraries_copy(folder_fill("shown", *PLACES))
    hidden = folder_make("hidden")
    check_names("a chroot in another mount namespace",
                Elsewhere(NAMESPACES, f"{ONLY_HERE}\nmkdir hidden/proc\nmount -t proc proc hidden/proc", "chroot", hidden, *places_words("")).ready())


def test_namespace_user():
    """Made by a normal user, who is root there."""
    kinds = ["--user", "--map-root-user", *NAMESPACES]
    if os.geteuid() or not quiet(*NOBODY, "unshare", *kinds, "--fork", "true"):
        return skip("a user namespace", "not root, or the kernel forbids it")
    hidden = hidden_make(*PLACES)
    program = Program(*NOBODY, "unshare", *kinds, "--fork", "sh", "-ec", f'{ONLY_HERE}\nexec "$@"', "sh", *places_words(hidden)).ready()
    program.pid = rig.children(program.pid)[0]
    check_names("a user namespace", program)


def test_namespace_numbers():
    """Threads have the numbers of their own namespace."""
    if not has_namespaces():
        return skip("numbers in another PID namespace", "the kernel forbids them")
    program = Elsewhere(["--pid"], "", attach.TARGET, "thread").ready()
    inner = int(program.line())
    lbr = attach.record(program, more=["--for", "50ms"])
    lbr.wait()
    verdict("numbers in another PID namespace: recorded", lbr.status == 0 and totals(lbr.output)[1:] == (2, 1), lbr.why())
    done = subprocess.run([LBR, "stat", "t.lbr"], stdout=subprocess.PIPE, text=True, check=False, stdin=subprocess.DEVNULL)
    expected = {rig.inner_number(program.pid, thread) for thread in os.listdir(f"/proc/{program.pid}/task")}
    numbers = {int(word) for word in re.findall(r"\b\d+\b", done.stdout)}
    verdict("numbers in another PID namespace: those of the namespace", inner in expected and expected <= numbers, expected, done.stdout)
    program.kill()


def namespace_forks(name, more, count):
    """The numbers that the program tells are those of its namespace; /proc has those outside."""
    program = Elsewhere(["--pid"], "", attach.TARGET, "forks").ready()
    program.ask("f")
    lbr = attach.record(program, more=more)
    lbr.attached(program.pid)
    program.ask("f")
    program.ask("f")
    family = [program.pid, *rig.children(program.pid)]
    until(lambda: all(rig.runs(child) for child in family[1:]))
    lbr.interrupt()
    verdict(f"{name}: processes in the trace", len(family) == 4 and lbr.status == 0 and totals(lbr.output)[2] == count, lbr.why())
    left = {process: remains(process) for process in family}
    verdict(f"{name}: all are left", not any(left.values()), left)
    verdict(f"{name}: all go on", all(rig.state(process) == "S" for process in family))
    lines = [program.ask("e"), *program.end()[0]]
    verdict(f"{name}: SIGTERM ends the children", lines == [f"status {int(signal.SIGTERM)}"] * 3, lines)


def test_namespace_forks():
    if not has_namespaces():
        return skip("children in another PID namespace", "the kernel forbids them")
    namespace_forks("children in another PID namespace", [], 3)
    namespace_forks("children in another PID namespace, --no-follow", ["--no-follow"], 1)


def test_namespace_stress():
    """Many threads and children, with a code cache that is full again and again: threads tell each other to leave it."""
    if not has_namespaces():
        return skip("many threads in another PID namespace", "the kernel forbids them")
    program = Elsewhere(["--pid"], "", attach.STRESS, 1, 100000).ready()
    for number in range(4):
        lbr = Lbr(LBR, "record", "-o", "t.lbr", "-p", program.pid, "--for", "300ms", env={**os.environ, "LBR_CACHE_SIZE": "1"})
        lbr.wait()
        is_fine = lbr.status == 0 and program.process.poll() is None and remains(program.pid) == []
        if not verdict(f"many threads in another PID namespace, time {number + 1}", is_fine, lbr.why(), program.process.poll()):
            break
    os.kill(program.pid, signal.SIGTERM)
    lines, errors, result = program.end()
    verdict("many threads in another PID namespace: the program finds nothing wrong", result == 0 and lines[-1:] == ["fine"], result,
            errors)


def test_namespace_run():
    """The reports of `lbr run -p`."""
    if not has_namespaces():
        return skip("lbr run -p in another PID namespace", "the kernel forbids them")
    program = Elsewhere(["--pid"], "", attach.TARGET, "compute").ready()
    lbr = Lbr(LBR, "run", "-p", program.pid, "--snapshot")
    lbr.wait()
    verdict("lbr run --snapshot -p in another PID namespace", lbr.status == 0 and "compute" in lbr.output, lbr.why())
    program.kill()
    program = Elsewhere(["--pid"], "", attach.TARGET, "crash").ready()
    lbr = Lbr(LBR, "run", "-p", program.pid)
    lbr.attached(program.pid)
    program.write("x")
    program.end()
    lbr.wait()
    verdict("a crash in another PID namespace: the report", all(word in lbr.output for word in ("Segmentation fault", "crash_here")),
            lbr.why())


# ---- files ----


def test_chroot():
    if os.geteuid():
        return skip("a chroot", "not root")
    root = folder_fill("root", *PLACES)
    libraries_copy(root)
    # Without /proc there, the name of a library that is loaded later is not known.
    check_names("a chroot", Program("chroot", root, *places_words("")).ready(), expected=("program_compute", "first_compute"))


def test_deleted():
    folder = folder_fill("gone", *PLACES)
    program = Program(*places_words(folder)).ready()
    for name in ("places", "first.so"):
        os.unlink(f"{folder}/{name}")
    check_names("deleted files", program)


def test_replaced():
    """As a package manager does it: another file gets the name. It has another function at the same address."""
    folder = folder_fill("replaced", *PLACES)
    program = Program(*places_words(folder)).ready()
    os.rename(f"{folder}/other.so", f"{folder}/first.so")
    shutil.copy(os.path.join(FOLDER, "target"), f"{folder}/new")
    os.rename(f"{folder}/new", f"{folder}/places")
    check_names("replaced files", program)


# ---- users ----


def test_user_other():
    if os.geteuid():
        return skip("root attaches to another user's process", "not root")
    folder = folder_fill("others", *PLACES)
    check_names("root attaches to another user's process", Program(*NOBODY, *places_words(folder)).ready())


def nobody_lbr():
    """lbr at a path that nobody may execute; None: there is none."""
    own = os.path.realpath("lbr-of-nobody")
    shutil.copy(LBR, own)
    os.chmod(own, 0o755)
    return own if quiet(*NOBODY, own, "--version") else None


def yama_scope():
    try:
        return int(rig.read("/proc/sys/kernel/yama/ptrace_scope"))
    except OSError:
        return 0


def test_user_own():
    own = None if os.geteuid() else nobody_lbr()
    if not own or yama_scope():
        return skip("a normal user attaches to an own process", "not root, or yama forbids it")
    folder = folder_fill("own", *PLACES)
    check_names("a normal user attaches to an own process", Program(*NOBODY, *places_words(folder)).ready(), NOBODY, lbr=own)
    program = Program(*NOBODY, *places_words(folder)).ready()
    os.unlink(f"{folder}/places")
    check_names("a normal user attaches to an own process whose program is gone", program, NOBODY, lbr=own,
                expected=("program_compute",))


def test_user_refused():
    own = None if os.geteuid() else nobody_lbr()
    if not own:
        return skip("a normal user and another user's process", "not root")
    program = attach.target("read")
    for words in (["record", "-o", "no.lbr"], ["run"]):
        attach.refused(f"{words[0]} -p, a normal user and another user's process", [*NOBODY, own, *words, "-p", program.pid], "use sudo",
                       program=program)
    program.kill()


if __name__ == "__main__":
    sys.exit(rig.run(globals(), sys.argv[4:]))
