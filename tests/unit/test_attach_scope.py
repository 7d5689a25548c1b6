#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_attach_scope.py LBR FOLDER [TEST]...: what lbr records of processes that it attaches to: single threads, children, programs
that they execute; and processes with filters of system calls. FOLDER has the programs of tests/process/attach. Expected counts
come from the programs: how often they call a function, and how they end."""
import json
import os
import random
import signal
import subprocess
import sys
import time

import attach_rig as rig
from attach_rig import Lbr, Program, remains, skip, status, totals, until, verdict

LBR, FOLDER = (os.path.realpath(path) for path in sys.argv[1:3])
FILTERED, PAIR, SPAWNER, STEPS, TARGET = (os.path.join(FOLDER, name) for name in ("filtered", "pair", "spawner", "steps", "target"))
TIMES = int(os.environ.get("ATTACH_TIMES", "12"))


def record(program, *more, trace="t.lbr", by="-p"):
    return Lbr(LBR, "record", "-o", trace, by, getattr(program, "pid", program), *more)


def is_left(process):
    return status(process) != {} and remains(process) == []


def calls(trace):
    """How often each function was called."""
    run = subprocess.run([LBR, "report", "--json", "--by", "function", "--top", "all", trace], stdout=subprocess.PIPE, check=True)
    return {row["symbol"] or "": row["calls"] for row in json.loads(run.stdout)["functions"]}


# ---- threads ----


def threads(program):
    words = program.line().split()
    return int(words[1]), int(words[2])


def test_thread():
    """Each of the two threads calls its function so often as it is told to. Only one is recorded."""
    for number, name in enumerate(("first_work", "second_work")):
        program = Program(PAIR)
        thread = threads(program)[number]
        lbr = record(thread, by="-t")
        is_fine = lbr.attached(program.pid) and program.ask("5000\n") == "done" and program.ask("321\n") == "done"
        lbr.interrupt()
        found = calls("t.lbr") if is_fine and lbr.status == 0 else {}
        works = {name: found[name] for name in found if name.endswith("_work")}
        verdict(f"-t, {name}: the calls of that thread, and no others", works == {name: 5321}, works, lbr.why())
        verdict(f"-t, {name}: one thread in one process", totals(lbr.output)[1:] == (1, 1), lbr.why())
        verdict(f"-t, {name}: the process is left", is_left(program.pid), remains(program.pid))
        verdict(f"-t, {name}: both threads go on", program.ask("10\n") == "done")
        verdict(f"-t, {name}: status", program.end()[2] == 0)


def test_thread_both():
    program = Program(PAIR)
    first, second = threads(program)
    lbr = record(f"{first},{second}", by="-t")
    is_fine = lbr.attached(program.pid) and program.ask("700\n") == "done"
    lbr.interrupt()
    found = calls("t.lbr") if is_fine and lbr.status == 0 else {}
    works = {name: found[name] for name in found if name.endswith("_work")}
    verdict("-t with two threads", works == {"first_work": 700, "second_work": 700}, works, lbr.why())
    program.end()


def test_thread_ends():
    """lbr ends with the thread, and leaves the process."""
    program = Program(PAIR)
    second = threads(program)[1]
    lbr = record(second, by="-t")
    is_fine = lbr.attached(program.pid)
    line = program.ask("end\n")
    verdict("-t: the thread ends", is_fine and line == "ended", is_fine, line)
    verdict("-t: lbr ends with the thread", lbr.wait() == 0 and is_left(program.pid), lbr.why(), remains(program.pid))
    result = program.end()
    verdict("-t: the process goes on", result == ([], "", 0), result)


def test_thread_run():
    program = Program(PAIR)
    second = threads(program)[1]
    run = subprocess.run([LBR, "run", "-t", str(second), "--snapshot", "--tail", "3"], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, check=False)
    verdict("lbr run -t: a report of this thread", run.returncode == 0 and f"of thread {second}" in run.stdout and
            f"of thread {program.pid}" not in run.stdout, run.stdout)
    run = subprocess.run([LBR, "top", "-t", str(second), "--count", "1"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, check=False)
    verdict("lbr top -t: it ends well, and leaves the process", run.returncode == 0 and is_left(program.pid), run.stdout)
    verdict("lbr run -t: the process goes on", program.ask("3\n") == "done")
    program.end()


def test_thread_usage():
    program = Program(PAIR)
    first, second = threads(program)
    other = Program(TARGET, "answer").ready()
    for words, code, reason in (([f"-t{second},{second}"], 2, "twice"), (["-t", "none"], 2, "none"), (["-t", "4194303"], 125, "exist"),
                                (["-t", second, "-p", other.pid], 2, f"process {other.pid}"),
                                (["-t", second, "--children"], 2, "--children"), (["--children", "/bin/true"], 2, "-p"),
                                (["-p", first, "--children", "--no-follow"], 2, "--no-follow"), (["-t", second, "/bin/true"], 2, "program")):
        lbr = Lbr(LBR, "record", "-o", "no.lbr", *words)
        lbr.wait()
        name = " ".join(str(word) for word in words).replace(str(second), "TID").replace(str(other.pid), "PID").replace(str(first), "PID")
        verdict(f"record {name}: refused", lbr.status == code and reason in lbr.output, lbr.why())
    lbr = record(second, "-p", program.pid, "--for", "20ms", by="-t")
    lbr.wait()
    verdict("record -t TID -p ITS-PROCESS", lbr.status == 0 and is_left(program.pid), lbr.why())
    program.end()
    other.kill()


# ---- programs that are executed ----

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def test_executed():
    """The branches of a program that an attached process executes are those of the program alone."""
    natively = subprocess.run([LBR, "record", "-q", "-o", "alone.lbr", STEPS, "40"], env=ENVIRONMENT, stdout=subprocess.PIPE,
                              check=True, preexec_fn=lambda: rig.LIBC.personality(rig.ADDR_NO_RANDOMIZE)).stdout.decode()
    expected = rig.branches(LBR, "alone.lbr")
    program = Program(SPAWNER, STEPS, "40", environment=ENVIRONMENT, is_fixed=True).ready()
    lbr = record(program)
    lbr.attached(program.pid)
    lines = [program.ask("2\n")]
    while lines[-1] and not lines[-1].startswith("ran"):
        lines.append(program.line())
    lbr.interrupt()
    verdict("programs that are executed: output and status", lines == [*(natively.splitlines() * 2), "ran 2 of 2"], lines)
    verdict("programs that are executed: processes in the trace", lbr.status == 0 and totals(lbr.output)[2] == 3, lbr.why())
    found = subprocess.run([LBR, "script", "-q", "--no-symbols", "-F", "from,to", "t.lbr"], stdout=subprocess.PIPE, check=True).stdout
    verdict("programs that are executed: their branches are those of the program alone", found.count(expected) == 2, found.count(expected))
    program.end()


def test_executed_not():
    """Children that are not followed run natively once they have executed a program."""
    program = Program(SPAWNER, "/bin/true").ready()
    lbr = record(program, "--no-follow")
    lbr.attached(program.pid)
    verdict("--no-follow: programs that are executed run", program.ask("4\n") == "ran 4 of 4")
    lbr.interrupt()
    verdict("--no-follow: one process in the trace", lbr.status == 0 and totals(lbr.output)[2] == 1, lbr.why())
    program.end()


def test_executed_stays():
    """lbr leaves a program that was executed meanwhile: it goes on natively, and looks as if it had never been recorded."""
    program = Program(SPAWNER, "/bin/sleep", "1000", environment=ENVIRONMENT).ready()
    lbr = record(program)
    lbr.attached(program.pid)
    child = int(program.ask("stay\n").split()[1])
    until(lambda: rig.is_recorded(child) and rig.sleeps(child))
    lbr.interrupt()
    verdict("a program that stays: lbr ends", lbr.status == 0 and totals(lbr.output)[2] == 2, lbr.why())
    verdict("a program that stays: it is left", is_left(child) and rig.sleeps(child), remains(child), status(child).get("State"))
    link = os.readlink(f"/proc/{child}/exe")
    effective = int(status(child)["CapEff"], 16)
    if effective >> 40 & 1 or effective >> 21 & 1:
        verdict("a program that stays: its link in /proc", link == os.path.realpath("/bin/sleep"), link)
    else:
        skip("a program that stays: its link in /proc", "only processes with CAP_CHECKPOINT_RESTORE can change it")
    verdict("a program that stays: its words in /proc", rig.read(f"/proc/{child}/cmdline") == "/bin/sleep\x001000\x00")
    native = subprocess.Popen(["/bin/sleep", "1000"], env=ENVIRONMENT)
    rig.processes.append(native)
    until(lambda: len(list(rig.maps(native.pid))) >= len(list(rig.maps(child))))
    names = [sorted((rights, name) for _, _, rights, name in rig.maps(process) if name.startswith("/")) for process in (child, native.pid)]
    verdict("a program that stays: the same files are mapped as natively", names[0] == names[1], set(names[0]) ^ set(names[1]))
    lbr = record(child, "--for", "50ms")
    verdict("a program that stays: lbr can attach to it", lbr.wait() == 0 and is_left(child), lbr.why(), remains(child))
    os.kill(child, signal.SIGTERM)
    until(lambda: rig.state(child) in "ZX")
    native.kill()
    native.wait()
    program.kill()


def test_executed_often():
    """Programs start and end all the time while lbr attaches and leaves: each ends with 0, and none is left in the cache."""
    program = Program(SPAWNER, "/bin/sh", "-c", "x=0; for i in 1 2 3 4 5 6 7 8; do x=$((x + i)); done; test $x = 36").ready()
    program.write("loop\n")
    wrong = []
    for number in range(TIMES):
        more = ["--for", f"{random.randrange(1, 80)}ms"] if number % 3 else ["--children", "--for", "30ms"]
        lbr = record(program, *more)
        lbr.wait()
        if lbr.status or remains(program.pid):
            wrong.append((number, lbr.why(), remains(program.pid)))
    program.write("x\n")
    line = program.line() or ""
    words = line.split()
    verdict(f"programs start while lbr attaches and leaves, {TIMES} times", not wrong, wrong)
    verdict("programs start while lbr attaches and leaves: each ends with 0", len(words) == 4 and words[1] == words[3] != "0", line,
            program.process.poll())
    verdict("programs start while lbr attaches and leaves: none is left in the cache", not members(), members())
    result = program.end()
    verdict("programs start while lbr attaches and leaves: nothing went wrong", result[1:] == ("", 0), result)


def members():
    """Processes that run the recorder, of whatever recording. Other tests may run at the same time: only those of this user's
    test programs count, which have this test as an ancestor."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.getpgid(int(name)) in {process.pid for process in rig.processes} and \
                    any("memfd:lbr-" in line[3] for line in rig.maps(int(name))):
                found.append(int(name))
        except OSError:
            pass
    return found


# ---- children that are there already ----


def test_descendants():
    program = Program(TARGET, "forks").ready()
    children = [int(program.ask("f")), int(program.ask("f"))]
    lbr = record(program, "--children")
    is_fine = lbr.attached(program.pid, *children)
    children.append(int(program.ask("f")))
    until(lambda: rig.is_recorded(children[2]))
    lbr.interrupt()
    verdict("--children: two that are there, and one that comes", is_fine and lbr.status == 0 and totals(lbr.output)[2] == 4, lbr.why())
    left = {child: remains(child) for child in [program.pid, *children]}
    verdict("--children: all are left", not any(left.values()), left)
    lines = [program.ask("e"), *program.end()[0]]
    verdict("--children: all go on", lines == [f"status {int(signal.SIGTERM)}"] * 3, lines)


# ---- filters ----


def filtered(way):
    return Program(FILTERED, way).ready()


def filter_once(way, answer, *more):
    program = filtered(way)
    lbr = record(program, *more)
    is_attached = lbr.attached(program.pid)
    answers = [program.ask() for _ in range(3)]
    if is_attached:
        lbr.interrupt()
    else:
        lbr.wait()
    verdict(f"filter {way}{' '.join(['', *more])}: it is recorded", is_attached and lbr.status == 0 and totals(lbr.output)[0] > 1000, lbr.why())
    verdict(f"filter {way}{' '.join(['', *more])}: it does what it does natively", answers == [answer] * 3, answers)
    verdict(f"filter {way}{' '.join(['', *more])}: it is left", is_left(program.pid), remains(program.pid))
    verdict(f"filter {way}{' '.join(['', *more])}: it goes on", program.ask() == answer and program.end()[2] == 0)


def test_filter():
    natively = filtered("none").ask()
    if not rig.status(os.getpid()).get("CapEff") or not int(rig.status(os.getpid())["CapEff"], 16) >> 21 & 1:
        return skip("filters", "not root")
    for way in ("container", "memory", "service", "many", "thread"):
        program = filtered(way)
        answer = program.ask()
        verdict(f"filter {way}: natively", answer == natively, answer)
        program.end()
        filter_once(way, natively)
    program = filtered("memory")
    for number in range(TIMES):
        lbr = record(program, "--for", "20ms")
        if lbr.wait() or program.ask() != natively or not is_left(program.pid):
            verdict("filter memory, often", False, number, lbr.why(), remains(program.pid))
            break
    else:
        verdict("filter memory, often", True)
    program.end()


def test_filter_refused():
    """The filter forbids what the runtime needs: nothing is changed."""
    for way, reason in (("needed", "sigaltstack"), ("strict", "seccomp"), ("deny", "MDWE")):
        program = filtered(way)
        if way == "deny" and rig.LIBC.prctl(66, 0, 0, 0, 0) < 0:
            skip("PR_SET_MDWE", "the kernel does not have it")
            program.kill()
            continue
        until(lambda: rig.sleeps(program.pid))
        before = set(rig.maps(program.pid)), rig.descriptors(program.pid)
        lbr = record(program)
        lbr.wait()
        verdict(f"filter {way}: refused", lbr.status == 125 and reason in lbr.output, lbr.why())
        verdict(f"filter {way}: the process is as before", (set(rig.maps(program.pid)), rig.descriptors(program.pid)) == before)
        answer = program.ask()
        verdict(f"filter {way}: it goes on", answer.startswith("answer"), answer)
        program.kill()


NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


def can_be_nobody():
    return not os.geteuid() and not subprocess.run([*NOBODY, LBR, "--version"], stdout=subprocess.DEVNULL,
                                                   stderr=subprocess.DEVNULL, check=False).returncode


def test_filter_user():
    """Only root can read filters."""
    if not can_be_nobody():
        return skip("a filter, as a user", "not root, or nobody may not execute lbr")
    program = Program(*NOBODY, FILTERED, "container").ready()
    answer = program.ask()
    lbr = Lbr(*NOBODY, LBR, "record", "-o", "no.lbr", "-p", program.pid)
    lbr.wait()
    verdict("a filter, as a user: refused", lbr.status == 125 and "only root" in lbr.output, lbr.why())
    verdict("a filter, as a user: it goes on", program.ask() == answer and program.end()[2] == 0)


def test_filter_later():
    """The process sets a filter while it is recorded. Root's lbr goes on; without root, lbr leaves before that."""
    natively = filtered("none").ask()
    for name, user in (("root", []), ("a user", NOBODY)):
        if user and not can_be_nobody():
            skip("a filter that is set later, as a user", "not root, or nobody may not execute lbr")
            continue
        program = Program(*user, FILTERED, "none").ready()
        os.makedirs("user", exist_ok=True)
        os.chmod("user", 0o777)
        lbr = Lbr(*user, LBR, "record", "-o", f"user/{name[0]}.lbr", "-p", program.pid)
        is_fine = lbr.attached(program.pid)
        answers = [program.ask(), program.ask("s"), program.ask()]
        if user:
            lbr.wait()
            verdict(f"a filter that is set later, as {name}: lbr has left", "seccomp" in lbr.output, lbr.why())
        else:
            lbr.interrupt()
            verdict(f"a filter that is set later, as {name}: lbr ends well", is_fine and lbr.status == 0, lbr.why())
        verdict(f"a filter that is set later, as {name}: the process is left", is_left(program.pid), remains(program.pid))
        verdict(f"a filter that is set later, as {name}: it goes on", answers == [natively] * 3 and program.ask() == natively, answers)
        program.end()


if __name__ == "__main__":
    sys.exit(rig.run(globals(), sys.argv[3:]))
