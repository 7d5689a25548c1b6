#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_stamps_strace.py LBR CALLERS: are the system calls and signals in a trace those that strace sees? CALLERS
(tests/process/callers.c) and some programs of the system run under `lbr record`, then twice under strace: once for names, paths
and errors as text, once for the values of all arguments ("raw"). Threads are compared one by one.

What must differ is left out: addresses, the numbers of processes, and what a program reads from a clock."""
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from verdict import finish, verdict

LBR, CALLERS = (os.path.realpath(path) for path in sys.argv[1:3])
# The address space and the processes are others; these calls have addresses or processes as results.
ADDRESSES = {"brk", "mmap", "mremap", "shmat"}
PROCESSES = {"clone", "clone3", "fork", "vfork", "getpid", "getppid", "gettid", "set_tid_address", "wait4", "waitid", "getpgrp",
             "getpgid", "setsid"}
# (call, index) of arguments that are addresses or processes, and differ between runs.
VARYING = {("brk", 0), ("mmap", 0), ("mprotect", 0), ("munmap", 0), ("madvise", 0), ("mremap", 0), ("mremap", 4), ("msync", 0),
           ("arch_prctl", 1), ("prctl", 1), ("prctl", 4), ("wait4", 0), ("tgkill", 0), ("tgkill", 1), ("kill", 0),
           ("rt_sigqueueinfo", 0), ("futex", 2), ("fcntl", 2), ("ioctl", 2), ("prlimit64", 0), ("clone", 1)}
# strace prints these in an order or form of its own, or fewer of their arguments.
OTHER_FORM = {"clone", "clone3", "futex", "prctl", "rt_sigreturn", "exit", "exit_group", "ioctl", "mknod"}
# The recorder does not let the kernel restart sequences of instructions (rseq), so the C library asks for it less often.


class Call:
    """A system call; or a signal, whose name begins with SIG."""

    def __init__(self, name, arguments, result, error=None):
        self.name, self.arguments, self.result, self.error = name, arguments, result, error

    def __repr__(self):
        return f"{self.name}({', '.join(map(str, self.arguments))}) = {self.result} {self.error or ''}"


def split_arguments(text):
    """The arguments of a call as strace or lbr prints them: commas in strings and brackets do not separate."""
    parts, depth, at, start = [], 0, 0, 0
    while at < len(text):
        if text[at] == '"':
            at += 1
            while text[at] != '"':
                at += 2 if text[at] == "\\" else 1
        elif text[at] in "([{":
            depth += 1
        elif text[at] in ")]}":
            depth -= 1
        elif text[at] == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
        at += 1
    last = text[start:].strip()
    return parts + [last] if last or parts else []


def signal_number(name):
    """By names of lbr or strace, which counts real-time signals as the kernel does."""
    if name.startswith("SIGRT_"):
        return 32 + int(name[6:])
    name, _, more = name.partition("+")
    return getattr(signal, name).value + int(more or 0)


# ---- what lbr has ----


def lbr_result(event):
    error = re.search(r"\) = -1 ([A-Z]\w+)$", event["text"])
    return event["result"], error.group(1) if error else None


def lbr_calls(events):
    """A list of calls for each thread, in the order of their beginnings."""
    threads = collections.defaultdict(list)
    for event in events:
        if event["type"] == "syscall" and event["name"] != "rseq":
            name = event["name"] or f"syscall_{event['call'] & 0xFFFFFFFF:#x}"
            inner = re.match(r"\w+\((.*)\) = ", event["text"], re.S).group(1)
            threads[event["thread"]].append(Call(name, split_arguments(inner), *lbr_result(event)))
        elif event["type"] == "signal":
            threads[event["thread"]].append(Call(f"SIG{signal_number(event['text'].split()[0])}", [event["code"]], None))
    return [calls for _, calls in sorted(threads.items())]


# ---- what strace has ----


def strace_lines(path):
    """(process, line); lines that were interrupted by others are joined."""
    begun = {}
    for line in open(path, encoding="latin-1"):
        process, line = line.rstrip("\n").split(None, 1)
        if line.endswith("<unfinished ...>"):
            begun[process] = line[:-len("<unfinished ...>")].rstrip()
            continue
        resumed = re.match(r"<\.\.\. \w+ resumed>(.*)", line)
        yield process, begun.pop(process) + resumed.group(1) if resumed else line


def strace_number(text):
    return None if text == "?" else int(text, 8) if re.fullmatch("0[0-7]+", text) else int(text, 0)


def strace_call(line):
    match = re.match(r"(\w+)\((.*)\)\s+= (\?|-?\w+)(?: \(errno (\d+)\)| (E\w+))?", line)
    if not match:
        raise ValueError("a line of strace that is not understood: " + line)
    name, inner, result, number, error = match.groups()
    if number:
        error = number
    return Call(re.sub("^syscall_0xf{8}(f{8})$", r"syscall_0x\1", name), split_arguments(inner), strace_number(result), error)


def strace_calls(path):
    """A list of calls for each thread, in the order of their beginnings, without signals that have no effect: lbr has no stamp of
    them. A process that executes another program is a new thread, as for lbr."""
    threads, handled = collections.defaultdict(list), set()
    for process, line in strace_lines(path):
        arrived = re.match(r"--- (SIG\w+) \{si_signo=(\w+), si_code=(\w+)", line)
        end = re.match(r"\+\+\+ killed by (SIG\w+)", line)
        action = re.match(r"rt_sigaction\((\d+), \{sa_handler=(\w+)", line)
        if action:
            (handled.discard if int(action.group(2), 0) < 2 else handled.add)(int(action.group(1)))
        if arrived:
            code, number = int(arrived.group(3), 0), signal_number(arrived.group(1))
            threads[process].append(Call(f"SIG{number}", [code - (1 << 32) if code >> 31 else code], None))
            threads[process][-1].is_handled = number in handled
        elif end:
            threads[process][-1].is_handled = True  # it ended the process
        elif not line.startswith("+++") and not line.startswith("rseq("):
            threads[process].append(strace_call(line))
            if threads[process][-1].name == "execve" and threads[process][-1].result == 0:
                threads[f"{process} before {line}"] = threads.pop(process)
                threads[process] = []
    del threads[next(iter(threads))]  # it has nothing but execve of the program itself
    return [[call for call in calls if getattr(call, "is_handled", True)] for calls in threads.values()]


# ---- comparison ----


def pairs_of(name, ours, theirs):
    """Pairs of threads: in order, as both number them by their start; the names of their calls must agree."""
    sequences = [[[call.name for call in calls] for calls in side] for side in (ours, theirs)]
    for mine, other in zip(*sequences):
        if mine != other:
            at = next((i for i, (a, b) in enumerate(zip(mine, other)) if a != b), min(len(mine), len(other)))
            verdict(f"{name}: the same system calls and signals in the same order", False, f"from {at} on", mine[at:at + 8],
                    other[at:at + 8])
            return []
    verdict(f"{name}: the same threads", len(ours) == len(theirs), len(ours), len(theirs))
    verdict(f"{name}: the same system calls and signals in the same order", len(ours) == len(theirs))
    return list(zip(ours, theirs))


def is_same_result(mine, other):
    if mine.name in ("rt_sigreturn", "execve", "execveat") and mine.result is None:
        return True  # it does not return to its caller
    if mine.error or other.error:
        # A handler has interrupted it: strace sees the kernel's own code for that.
        return mine.error == other.error or (mine.error == "EINTR" and str(other.error).startswith("ERESTART"))
    if mine.name in ADDRESSES | PROCESSES:
        return (mine.result is None) == (other.result is None)
    return mine.result == other.result


def path_bytes(text):
    """The bytes of a string of strace (-x: escapes for bytes that are not ASCII)."""
    return text[1:text.rindex('"')].encode("latin-1").decode("unicode_escape").encode("latin-1")


def is_same_path(mine, other):
    """lbr prints '?' for bytes that cannot be printed, and 255 bytes at most."""
    wanted = path_bytes(other)[:255].decode("utf-8", "replace")
    return re.sub(r"\\(.)", r"\1", mine[1:-1]) == re.sub("[\ufffd\\x00-\\x1f\\x7f]", "?", wanted)


def number_of(text):
    """A number as lbr prints it, or None."""
    if text.startswith("SIG"):
        return signal_number(text)
    if text == "AT_FDCWD":
        return -100
    return int(text, 8) if re.fullmatch("0[0-7]+", text) else int(text, 0)


def is_same_value(mine, raw):
    """Is the number that lbr prints the value of the register, or of its lower half?"""
    value, raw = number_of(mine), int(raw, 0)
    return value is not None and value in (raw, raw - (1 << 64), raw & 0xFFFFFFFF, (raw & 0xFFFFFFFF) - (1 << 32))


def argument_error(mine, other, raw, index):
    """What is wrong with an argument, or None."""
    text = mine.arguments[index]
    if text in ("ptr", "NULL"):
        # An address where there is nothing to read is shown as it is by strace, too.
        return None if (int(raw.arguments[index], 0) != 0) == (text == "ptr") else "is it NULL?"
    if text.startswith('"') and other.error == "EFAULT":
        return None  # a text without an end: lbr shows what it has, strace does not
    if text.startswith('"'):
        return None if is_same_path(text, other.arguments[index]) else "path"
    if (mine.name, index) in VARYING:
        return None
    return None if is_same_value(text, raw.arguments[index]) else "value"


def check_arguments(name, mine, other, raw):
    wrong = [(a, b) for a, b in zip(mine, other) if a.name.startswith("SIG") and a.arguments != b.arguments]
    mine, other, raw = ([call for call in calls if not call.name.startswith("SIG")] for calls in (mine, other, raw))
    verdict(f"{name}: both logs of strace are alike", [call.name for call in other] == [call.name for call in raw])
    for a, b, c in zip(mine, other, raw):
        if not a.name.startswith("syscall_") and a.name not in OTHER_FORM and len(a.arguments) != len(b.arguments):
            wrong.append(("number of arguments", a, b))
            continue
        if a.name.startswith("syscall_"):
            continue
        wrong += [(error, a, b, c) for error in (argument_error(a, b, c, i) for i in range(len(a.arguments))) if error]
    verdict(f"{name}: arguments, and codes of signals", not wrong, *wrong[:5])


def check_paths(name, mine, other):
    """Each string that strace shows for an argument that lbr takes for a path is there."""
    wrong = [(a, b) for a, b in zip(mine, other) if not a.name.startswith("SIG") for x, y in zip(a.arguments, b.arguments)
             if x.startswith('"') != (y.startswith('"') and x not in ("ptr", "NULL")) and a.error != "EFAULT" and a.name != "prctl"]
    verdict(f"{name}: paths", not wrong, *wrong[:5])


def check_table(name, trace, log, left_out):
    """The table of lbr stat has the numbers of calls and errors of strace -c, which counts what it sees itself."""
    table = json.loads(subprocess.run([LBR, "stat", "--syscalls", "--top", "1000", "--json", trace], stdout=subprocess.PIPE, check=True).stdout)
    ours = {row["name"]: (row["calls"], row["errors"]) for row in table["syscalls"]}
    theirs = {}
    for line in open(log, encoding="utf-8"):
        row = re.match(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(\d+)?\s+(\w+)$", line)
        if row and row.group(3) != "total":
            theirs[row.group(3)] = (int(row.group(1)), int(row.group(2) or 0))
    theirs["execve"] = (theirs["execve"][0] - 1, theirs["execve"][1])  # of the program itself
    theirs = {key: value for key, value in theirs.items() if value[0] and not key.startswith("syscall_")}
    ours = {key: value for key, value in ours.items() if key and not key.startswith("syscall_")}
    # strace does not count a call that does not return, and counts what a handler interrupts as no error.
    for key in (left_out, "rseq", "exit", "exit_group", "rt_sigreturn", "rt_sigsuspend", "ppoll"):
        ours.pop(key, None), theirs.pop(key, None)
    wrong = {key: (ours.get(key), theirs.get(key)) for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)}
    verdict(f"{name}: lbr stat --syscalls counts as strace -c does", not wrong, wrong)


def run(command, way, expected):
    """Runs a command in an empty folder."""
    folder = tempfile.mkdtemp(dir=".")
    done = subprocess.run(way + command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, check=False, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"}, timeout=200)
    shutil.rmtree(folder)
    verdict(f"{' '.join(command)[-60:]}: status {expected} under {os.path.basename(way[0])}", done.returncode == expected,
            done.returncode, done.stderr[-300:])


def without(threads, name):
    return [[call for call in calls if call.name != name] for calls in threads]


def compare(name, command, expected=0, has_table=True, left_out=None):
    trace, text, raw, table = (os.path.abspath(file) for file in (name + ".lbr", "text", "raw", "table"))
    run(command, [LBR, "record", "-q", "-o", trace], expected)
    run(command, ["strace", "-f", "-X", "raw", "-s", "300", "-x", "-o", text], expected)
    run(command, ["strace", "-f", "-X", "raw", "-e", "raw=all", "-o", raw], expected)
    if has_table:  # strace -c crashes if there is an unknown call
        run(command, ["strace", "-f", "-c", "-U", "time-percent,total-time,avg-time,calls,errors,name", "-o", table], expected)
    script = subprocess.run([LBR, "script", "--events=only", "--json", trace], stdout=subprocess.PIPE, check=True).stdout
    ours = lbr_calls([json.loads(line) for line in script.decode("utf-8").split("\n") if line])
    ours, theirs, values = (without(side, left_out) for side in (ours, strace_calls(text), strace_calls(raw)))
    for index, (mine, other) in enumerate(pairs_of(name, ours, theirs)):
        thread = f"{name}: thread {index}"
        wrong = [(a, b) for a, b in zip(mine, other) if not a.name.startswith("SIG") and not is_same_result(a, b)]
        verdict(f"{thread}: results and errors", not wrong, *wrong[:5])
        check_arguments(thread, mine, other, values[index])
        check_paths(thread, mine, other)
    if has_table:
        check_table(name, trace, table, left_out)


if not shutil.which("strace") or subprocess.run(["strace", "-o", "/dev/null", "true"], check=False).returncode:
    print("strace cannot be used here")
    sys.exit(77)
with tempfile.TemporaryDirectory() as top:
    os.chdir(top)
    compare("calls", [CALLERS, "calls"])
    compare("unknown", [CALLERS, "unknown"], has_table=False)
    compare("signals", [CALLERS, "signals"], -11)
    compare("threads", [CALLERS, "threads"], 3, left_out="futex")  # of pthread_join: it depends on which thread is faster
    compare("children", [CALLERS, "children"])
    compare("sh", ["sh", "-c", "umask 027; echo one >file; cat file >other; cd /; exit 4"], 4)
    compare("cp", ["cp", "-r", "/etc/passwd", "/etc/nothing", "."], 1)
    compare("find", ["find", "/usr/include/linux", "-name", "a*", "-newer", "/etc/passwd"])
    compare("trap", ["sh", "-c", "trap 'echo caught' USR1; kill -USR1 $$; kill -KILL $$"], -9, has_table=False)
    compare("ls", ["ls", "-l", "/usr/include/linux"])
    if shutil.which("python3", path="/usr/bin:/bin"):
        compare("python", ["python3", "-S", "-c", "import os; os.listdir('/usr'); os.stat('/etc/passwd'); open('/nothing')"], 1)
finish()
