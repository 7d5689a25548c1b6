# SPDX-License-Identifier: Apache-2.0
"""What tests of `lbr record -p` and `lbr run -p` share: processes to attach to, lbr itself, and what /proc says."""
import ctypes
import os
import re
import select
import signal
import struct
import subprocess
import tempfile
import time

PATIENCE = 60
LIBC = ctypes.CDLL(None, use_errno=True)
ADDR_NO_RANDOMIZE = 0x40000
# Where the recorder maps its own memory in a process.
RECORDER = range(0x7E7FF0000000, 0x7EC000000000)
os.environ["XDG_CACHE_HOME"] = "/dev/null"  # no translations that an earlier recording has kept
failures = 0
processes = []


def verdict(name, is_true, *what):
    global failures
    print("ok" if is_true else "FAIL", name + ("" if is_true or not what else ":"), *([] if is_true else what), flush=True)
    failures += not is_true
    return is_true


def skip(name, reason):
    print(f"skip {name}: {reason}", flush=True)


def until(condition, patience=PATIENCE):
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)  # the condition decides, not the time
    return True


def end_all():
    """Ends all processes that were started here, and their children."""
    for process in processes:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if process.poll() is None:
            process.kill()
            process.wait()


# ---- /proc ----


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def status(process, thread=None):
    """The fields of /proc/PID/status, {} if it is gone."""
    try:
        text = read(f"/proc/{process}/task/{thread or process}/status")
    except OSError:
        return {}
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def sleeps(process):
    """Is it in the kernel? A process in vfork(2) is in state D."""
    return status(process).get("State", "X")[0] in "SD"


def state(process):
    """As ps(1) has it; S for a process that runs, too."""
    return status(process).get("State", "X")[0].replace("R", "S")


def maps(process):
    """(start, end, rights, name) of each mapping."""
    for line in read(f"/proc/{process}/maps").splitlines():
        words = line.split(None, 5)
        start, end = (int(word, 16) for word in words[0].split("-"))
        yield start, end, words[1], words[5] if len(words) > 5 else ""


def recorder_maps(process):
    """Mappings that only the recorder makes."""
    return [one for one in maps(process) if "memfd:" in one[3] or (one[0] in RECORDER) or (one[1] - 1 in RECORDER)]


def is_traced(process):
    """Does a process trace one of its threads, as lbr does while it attaches and leaves?"""
    return any(status(process, thread).get("TracerPid", "0") != "0" for thread in os.listdir(f"/proc/{process}/task"))


def is_recorded(process):
    """Has lbr attached to it?"""
    try:
        return any("memfd:lbr-" in one[3] for one in maps(process)) and not is_traced(process)
    except OSError:
        return False


def descriptors(process):
    """What the descriptors are, by number. Of a thread that has one for a moment, nothing may be left to read."""
    links = {}
    for name in os.listdir(f"/proc/{process}/fd"):
        try:
            links[int(name)] = os.readlink(f"/proc/{process}/fd/{name}")
        except FileNotFoundError:
            pass
    return links


def start_time(process, thread):
    try:
        return int(read(f"/proc/{process}/task/{thread}/stat").rpartition(")")[2].split()[19])
    except OSError:
        return None


def signal_state(process):
    """Of each thread, what it blocks, ignores and catches. A thread that handles a signal, or is in a function of the C
    library that must not be interrupted, blocks more for a moment: what it blocks at each of several looks counts. The time
    at which a thread has started tells it from an earlier one with its number."""
    threads = {}
    for _ in range(20):
        for thread in os.listdir(f"/proc/{process}/task"):
            fields = status(process, thread)
            if not fields:
                continue
            masks = [int(fields[name], 16) for name in ("SigBlk", "SigIgn", "SigCgt")]
            threads.setdefault((int(thread), start_time(process, thread)), masks)[0] &= masks[0]
        time.sleep(0.002)
    return threads


def remains(process):
    """What lbr has left in a process: nothing."""
    try:
        found = recorder_maps(process)
    except OSError:
        return ["no process"]
    if any("memfd:lbr" in link for link in descriptors(process).values()):
        found.append("descriptor")
    return found + (["tracer"] if is_traced(process) else [])


def children(process):
    return [int(word) for word in read(f"/proc/{process}/task/{process}/children").split()]


def inner_number(process, thread):
    """The number of a thread in its own PID namespace."""
    return int(status(process, thread)["NSpid"].split()[-1])


def runs(process):
    """Does it get time of a processor?"""
    def ticks():
        return sum(int(word) for word in read(f"/proc/{process}/stat").rpartition(")")[2].split()[11:13])

    start = ticks()
    return until(lambda: ticks() > start)


# ---- programs ----


def elf32(code):
    """The file of a 32-bit program of one page."""
    start, head = 0x08048000, 52 + 32
    ident = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9)
    size = head + len(code)
    header = struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, start + head, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    return ident + header + struct.pack("<IIIIIIII", 1, 0, start, start, size, size, 5, 4096) + code


class Program:
    """A process to attach to, in a process group of its own."""

    def __init__(self, *words, environment=None, is_fixed=False):
        def prepare():
            os.setpgid(0, 0)
            if is_fixed:
                LIBC.personality(ADDR_NO_RANDOMIZE)

        self.process = subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, preexec_fn=prepare, env=environment)
        processes.append(self.process)
        self.pid, self.bytes = self.process.pid, b""

    def line(self):
        """Returns "" at the end, None if nothing came for long."""
        while b"\n" not in self.bytes:
            if not select.select([self.process.stdout], [], [], PATIENCE)[0]:
                return None
            piece = os.read(self.process.stdout.fileno(), 4096)
            if not piece:
                return ""
            self.bytes += piece
        line, _, self.bytes = self.bytes.partition(b"\n")
        return line.decode()

    def ready(self):
        line = self.line()
        if not line or not line.startswith("ready"):
            raise RuntimeError(f"the program has not started: {line} {self.process.stderr.read()}")
        return self

    def write(self, text):
        try:
            os.write(self.process.stdin.fileno(), text.encode())
        except BrokenPipeError:
            pass  # it has ended; what it said is still to be read

    def ask(self, text="x"):
        self.write(text)
        return self.line()

    def end(self):
        """(lines that were not read yet, errors, status)"""
        try:
            output, errors = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            return [], "it does not end", None
        return (self.bytes + output).decode().splitlines(), errors.decode(), self.process.returncode

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.communicate()


class Elsewhere(Program):
    """A process in namespaces of its own: unshare(1) makes them, then a shell prepares them and executes the program. `pid`
    is its number outside, `inner` that inside."""

    def __init__(self, kinds, prepare, *words, **more):
        super().__init__("unshare", *kinds, "--fork", "sh", "-ec", f'{prepare}\nexec "$@"', "sh", *words, **more)
        outside = self.process.pid
        if until(lambda: self.process.poll() is not None or children(outside)) and self.process.poll() is None:
            self.pid = children(outside)[0]

    @property
    def inner(self):
        return inner_number(self.pid, self.pid)


class Lbr:
    """lbr in the background."""

    def __init__(self, *words, **more):
        self.words = [str(word) for word in words]
        self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, start_new_session=True, **more)
        processes.append(self.process)
        self.pid, self.status, self.output = self.process.pid, None, ""

    def wait(self):
        """Its status; what it said is in `output`."""
        try:
            self.output = self.process.communicate(timeout=PATIENCE)[0]
            self.status = self.process.returncode
        except subprocess.TimeoutExpired as late:
            self.output = f"{(late.output or b'').decode()} does not end"
            os.killpg(self.pid, signal.SIGKILL)
            self.process.communicate()
        return self.status

    def attached(self, *targets):
        """Waits until all processes are recorded, and the process that has attached for lbr is gone; False if lbr has ended
        before."""
        def is_attached():
            return all(is_recorded(target) for target in targets) and not children(self.pid)

        until(lambda: self.process.poll() is not None or is_attached())
        return self.process.poll() is None

    def interrupt(self, number=signal.SIGINT):
        os.kill(self.pid, number)
        return self.wait()

    def why(self):
        return f"status {self.status}: {self.output[-600:]!r}"


# ---- traces ----

BRANCHES = re.compile(r": (\d+) branch(?:es)? of (\d+) threads? in (\d+) process")


def totals(output):
    """(branches, threads, processes) that lbr record names."""
    match = BRANCHES.search(output)
    return tuple(int(word) for word in match.groups()) if match else (0, 0, 0)


def branches(lbr, trace):
    """The branches of a trace: "FROM TO" lines, as bytes. Raises ValueError if it is damaged."""
    done = subprocess.run([lbr, "script", "-q", "--no-symbols", "-F", "from,to", trace], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise ValueError(f"lbr script: status {done.returncode}: {done.stderr.decode()}")
    return done.stdout


# ---- a test program ----


def run(functions, names):
    """Runs the functions test_NAME among these, or those with the given names, in a folder of their own. Returns a status."""
    tests = {name[5:]: function for name, function in list(functions.items()) if name.startswith("test_")}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        os.chdir(folder)
        try:
            for name in names or tests:
                tests[name]()
        finally:
            end_all()
    return int(failures > 0)
