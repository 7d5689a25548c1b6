#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_relay.py LBR TOLD: signals to lbr run and lbr record, and from the terminal. What is expected is what the same
program gets when it runs alone: each case is tried that way first, with the signal sent to the program itself."""
import ctypes
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

LBR, TOLD = (os.path.realpath(path) for path in sys.argv[1:3])
PATIENCE = 60
WAYS = {"alone": [], "run": [LBR, "run"], "record": [LBR, "record", "-q", "-o", "t.lbr"]}
SOURCES = {"run block-step": [LBR, "run", "--source", "block-step"],
           "record block-step": [LBR, "record", "-q", "--source", "block-step", "-o", "t.lbr"]}
os.environ["LBR_SINGLE_STEPS"] = "1"  # where the processor cannot step by blocks
LIBC = ctypes.CDLL(None)
failures = 0


def verdict(name, is_true, *what):
    global failures
    print("ok" if is_true else "FAIL", name, *([] if is_true else what), flush=True)
    failures += not is_true


def state_of(process):
    with open(f"/proc/{process}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)  # the condition decides, not the time
    return True


class Lines:
    """What the program says, line by line."""

    def ready(self):
        """The program's number."""
        line = self.next()
        if not line or not line.startswith("ready "):
            raise RuntimeError(f"the program has not started: {line}")
        return int(line.split()[1])

    def __init__(self, fd):
        self.fd, self.bytes = fd, b""

    def next(self):
        """Returns "" at the end, None if nothing came for long."""
        while b"\n" not in self.bytes:
            if not select.select([self.fd], [], [], PATIENCE)[0]:
                return None
            piece = os.read(self.fd, 4096)
            if not piece:
                return ""
            self.bytes += piece
        line, _, self.bytes = self.bytes.partition(b"\n")
        return line.decode()

    def rest(self):
        lines = []
        while line := self.next():
            lines.append(line)
        return lines


class Program:
    """told, by itself or under lbr, without a terminal, in a session of its own."""

    def __init__(self, way, *words, ignored=(), blocked=(), before=lambda: None):
        def prepare():
            for number in range(1, 32):
                if number not in (signal.SIGKILL, signal.SIGSTOP):
                    signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            before()

        reader, writer = os.pipe()
        self.process = subprocess.Popen([*({**WAYS, **SOURCES}[way]), TOLD, *words], stdin=subprocess.DEVNULL, stdout=writer,
                                        stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=prepare)
        os.close(writer)
        self.lines = Lines(reader)
        self.pid = self.process.pid

    def ready(self):
        self.program = self.lines.ready()
        return self

    def end(self):
        """What it said until it ended, and its status."""
        rest = self.lines.rest()
        os.close(self.lines.fd)
        try:
            return rest, self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(self.pid, signal.SIGKILL)
            return rest, None


def test_sent():
    names = ["HUP", "INT", "QUIT", "ABRT", "USR1", "USR2", "ALRM", "WINCH", "CONT", "PWR", "IO", "PROF", "34", "64"]
    numbers = [int(name) if name.isdigit() else getattr(signal, "SIG" + name) for name in names]
    words = ["+" + {"IO": "POLL"}.get(name, name) for name in names]
    expected = None
    for how, ignored in (("", ()), (", which lbr found ignored", [n for n in numbers if n < 32])):
        for way in [*WAYS, *(["run block-step"] if ignored else [])]:
            program = Program(way, *words, ignored=ignored).ready()
            said = []
            for number in numbers:
                os.kill(program.pid, number)
                said.append(program.lines.next())
            os.kill(program.pid, signal.SIGTERM)
            result = said, program.end()
            expected = expected or result
            verdict(f"{way}: every signal arrives once{how}", result == expected and len(set(said)) == len(names), result)


def test_ignored():
    """What was ignored and blocked when lbr started is so for the program, and nothing else."""
    cases = [((), ()), ((signal.SIGINT, signal.SIGQUIT), ()), ((signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD), ()),
             ((), (signal.SIGUSR1, signal.SIGINT, 40))]
    for ignored, blocked in cases:
        expected = None
        for way in [*WAYS, *(["record block-step"] if signal.SIGCHLD in ignored else [])]:
            result = Program(way, "list", ignored=ignored, blocked=blocked).end()
            expected = expected or result
            verdict(f"{way}: the program inherits ignored {[int(n) for n in ignored]}, blocked {[int(n) for n in blocked]}",
                    result == expected and len(result[0]) == len(ignored) + len(blocked), result, expected)


def test_default():
    for number in (signal.SIGINT, signal.SIGUSR1, signal.SIGQUIT, signal.SIGHUP):
        for way in WAYS:
            program = Program(way).ready()
            os.kill(program.pid, number)
            result = program.end()
            verdict(f"{way}: {number.name} without a handler kills the program and lbr", result == ([], -number), result)


def test_value():
    for way in WAYS:
        program = Program(way, "+36").ready()
        subprocess.run(["/bin/kill", "-36", "-q", "4711", str(program.pid)], check=True)
        said = program.lines.next()
        os.kill(program.pid, signal.SIGTERM)
        program.end()
        verdict(f"{way}: the value of a queued signal", said == "got 36 4711", said)


def test_group():
    """The program signals its own process group, in which lbr is, too."""
    expected = None
    for way in WAYS:
        program = Program(way, "+USR1", "group=USR1").ready()
        said = program.lines.next()
        os.kill(program.pid, signal.SIGTERM)
        result = said, program.end()
        expected = expected or result
        verdict(f"{way}: a signal that the program sends to its own group comes once", result == expected, result)


def test_early():
    """A signal that comes while lbr starts is not lost: the program, or lbr before it, dies of it."""
    for way in ("run", "record"):
        statuses = set()
        for i in range(20):
            program = Program(way, "+USR1")
            time.sleep(i * 0.002)  # any moment will do
            os.kill(program.pid, signal.SIGINT)
            statuses.add(program.end()[1])
        verdict(f"{way}: SIGINT at the start", statuses == {-signal.SIGINT}, statuses)
        statuses = set()
        for i in range(10):
            program = Program(way, "+USR1", ignored=[signal.SIGINT])
            os.kill(program.pid, signal.SIGTERM)
            statuses.add(program.end()[1])
        verdict(f"{way}: SIGTERM at the start", statuses <= {-signal.SIGTERM, 7}, statuses)


def queue_before(queued):
    """Returns what a child is to call before it executes a program: it waits until another process has queued these
    signals to it."""
    asks, answers = os.pipe(), os.pipe()
    sender = os.fork()
    if sender == 0:
        os.close(asks[1])
        process = int(Lines(asks[0]).next())
        is_done = all(LIBC.sigqueue(process, int(number), ctypes.c_void_p(value)) == 0 for number, value in queued)
        os.write(answers[1], b"\n")
        os._exit(not is_done)

    def wait():
        os.write(asks[1], b"%d\n" % os.getpid())
        os.read(answers[0], 1)

    return wait, sender, (*asks, *answers)


def queued_early(way, queued, words, heard):
    """What the program says of signals that are queued, and blocked, before lbr is executed: lbr gets them as soon as it
    catches signals, and cannot have started the program yet. They wait in the program until it unblocks them. `heard`: how
    many it must get before SIGTERM, which would overtake them."""
    wait, sender, fds = queue_before(queued)
    program = Program(way, *words, "open", blocked={number for number, _ in queued}, before=wait).ready()
    for fd in fds:
        os.close(fd)
    is_sent = os.waitstatus_to_exitcode(os.waitpid(sender, 0)[1]) == 0
    said = [program.lines.next() for _ in range(heard)]
    os.kill(program.pid, signal.SIGTERM)
    rest, status = program.end()
    return is_sent, said + rest, status


def test_early_values():
    """Natively the lower number comes first, those of one number in the order in which they were sent, and a signal that
    is not a real-time signal only once."""
    queued = [(40, 1), (36, 2), (40, 3), (36, 4), (signal.SIGUSR1, 5), (signal.SIGUSR1, 6), (64, 7), (36, 8)]
    heard = ["USR1 5", "36 2", "36 4", "36 8", "40 1", "40 3", "64 7", "TERM"]
    for way in (*WAYS, *SOURCES):
        result = queued_early(way, queued, ["+USR1", "+36", "+40", "+64"], len(heard) - 1)
        verdict(f"{way}: queued signals that come before the program exists",
                result == (True, ["got " + word for word in heard], 7), result)
    for way in WAYS:
        is_sent, said, status = queued_early(way, [(36, value) for value in range(300)], ["+36"], 300)
        verdict(f"{way}: 300 queued signals that come before the program exists",
                is_sent and status == 7 and said[:200] == [f"got 36 {value}" for value in range(200)] and len(said) == 301, said)


def test_alarm():
    """An alarm outlives execve(2): "alarm; exec" limits a program's time. The kernel sends that signal."""
    for way in WAYS:
        program = Program(way, "+ALRM", before=lambda: signal.setitimer(signal.ITIMER_REAL, 1.5))
        said = program.lines.next()
        if said and said.startswith("ready "):
            said = program.lines.next()
        if said == "got ALRM":
            os.kill(program.pid, signal.SIGTERM)
        result = said, program.end()
        # On a slow machine it comes before the program is ready.
        verdict(f"{way}: an alarm that was set before", result in (("got ALRM", (["got TERM"], 7)), ("", ([], -14))), result)


def test_stop():
    """Without a terminal there is no job control: the program stops, lbr does not."""
    for way in ("run", "record"):
        program = Program(way, "+CONT").ready()
        # SIGSTOP: SIGTSTP does not stop a process group that has no parent in its session.
        os.kill(program.program, signal.SIGSTOP)
        has_stopped = until(lambda: state_of(program.program) == "T")
        os.kill(program.pid, signal.SIGCONT)
        said = program.lines.next()
        is_awake = state_of(program.pid) != "T"
        os.kill(program.program, signal.SIGSTOP)
        has_stopped = has_stopped and until(lambda: state_of(program.program) == "T")
        os.kill(program.program, signal.SIGCONT)
        said = said, program.lines.next()
        os.kill(program.pid, signal.SIGTERM)
        result = has_stopped, is_awake, said, program.end()
        verdict(f"{way}: SIGSTOP to the program, SIGCONT to lbr or to the program",
                result == (True, True, ("got CONT", "got CONT"), (["got TERM"], 7)), result)


# ---- at a terminal ----


def shell(words, commands, events, output):
    """A shell with one job, in the foreground: says how it is, and does what it is told."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
        signal.signal(number, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTOU):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(output, 1)
        os.execv(words[0], words)
    os.close(output)
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            os.write(events, f"ended {os.waitstatus_to_exitcode(status)}\n".encode())
            os._exit(0)
        os.tcsetpgrp(0, os.getpgrp())
        os.write(events, f"stopped {os.WSTOPSIG(status)} {job}\n".encode())
        command = os.read(commands, 1)
        if command == b"":
            os.killpg(job, signal.SIGKILL)
            os._exit(1)
        os.tcsetpgrp(0, job)
        if command == b"f":
            os.killpg(job, signal.SIGCONT)
        else:
            os.kill(job, signal.SIGCONT)


class Job:
    """told at a terminal, by itself or under lbr, as the foreground job of a shell, or as the session's leader."""

    def __init__(self, way, *words, is_leader=False):
        words = [*WAYS[way], TOLD, *words]
        events, commands, output = os.pipe(), os.pipe(), os.pipe()
        self.shell, self.terminal = pty.fork()
        if self.shell == 0:
            os.close(commands[1])
            if not is_leader:
                shell(words, commands[0], events[1], output[1])
            os.dup2(output[1], 1)
            os.execv(words[0], words)
        for fd in (events[1], commands[0], output[1]):
            os.close(fd)
        self.lines, self.events, self.commands = Lines(output[0]), Lines(events[0]), commands[1]
        self.program = self.lines.ready()

    def type(self, key):
        os.write(self.terminal, key)

    def stopped(self):
        """The signal by which the shell sees the job stopped; the program is, too."""
        words = (self.events.next() or "").split()
        if len(words) != 3 or words[0] != "stopped" or not until(lambda: state_of(self.program) == "T"):
            return words
        return int(words[1])

    def resume(self, command):
        os.write(self.commands, command)

    def end(self):
        """It is asked to end. What it said, and how it ended."""
        os.kill(self.program, signal.SIGTERM)
        result = self.lines.rest(), self.events.next()
        for fd in (self.commands, self.lines.fd, self.events.fd, self.terminal):
            os.close(fd)
        os.waitpid(self.shell, 0)
        return result


ENDED = (["got TERM"], "ended 7")


def test_keys():
    for way in WAYS:
        job = Job(way, "+INT", "+QUIT", "+WINCH")
        said = []
        for key in (b"\x03", b"\x1c", b"\x03"):
            job.type(key)
            said.append(job.lines.next())
        fcntl.ioctl(job.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 100, 0, 0))
        said.append(job.lines.next())
        result = said, job.end()
        verdict(f"{way}: Ctrl-C, Ctrl-\\ and a new size arrive once", result == (["got INT", "got QUIT", "got INT", "got WINCH"], ENDED),
                result)


def test_suspend():
    for way in WAYS:
        job = Job(way, "+INT", "+CONT")
        job.type(b"\x1a")
        result = [job.stopped()]
        job.resume(b"f")
        result.append(job.lines.next())
        job.type(b"\x03")
        result += [job.lines.next(), job.end()]
        verdict(f"{way}: Ctrl-Z and fg", result == [signal.SIGTSTP, "got CONT", "got INT", ENDED], result)

        job = Job(way, "+CONT", "stop")
        result = [job.stopped()]
        job.resume(b"f")
        result += [job.lines.next(), job.end()]
        verdict(f"{way}: a program that stops itself, and fg", result == [signal.SIGSTOP, "got CONT", ENDED], result)

        job = Job(way, "-TSTP", "+INT")
        job.type(b"\x1a")
        job.type(b"\x03")
        result = [job.lines.next(), job.end()]
        verdict(f"{way}: Ctrl-Z that the program ignores", result == ["got INT", ENDED], result)
        if way == "alone":
            continue

        job = Job(way, "+CONT")
        job.type(b"\x1a")
        result = [job.stopped()]
        job.resume(b"p")
        result += [job.lines.next(), job.end()]
        verdict(f"{way}: SIGCONT to lbr alone", result == [signal.SIGTSTP, "got CONT", ENDED], result)


def test_hangup():
    """The terminal is gone: the kernel tells the leader of its session, which the program is without lbr."""
    for way in WAYS:
        job = Job(way, "+HUP", is_leader=True)
        os.close(job.terminal)
        said = job.lines.next()
        os.kill(job.program, signal.SIGTERM)
        result = said, job.lines.rest(), os.waitstatus_to_exitcode(os.waitpid(job.shell, 0)[1])
        verdict(f"{way}: the terminal of the session's leader is gone", result == ("got HUP", ["got TERM"], 7), result)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for test in (test_sent, test_ignored, test_default, test_value, test_group, test_early, test_early_values, test_alarm,
                     test_stop, test_keys, test_suspend, test_hangup):
            test()
    sys.exit(failures > 0)


main()
