#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_live.py LBR SILICON SHIM: lbr live against processors in files, which a preloaded library shows as msr devices.

What is expected is what was fed to the processor, and the layouts that Zhang Yinkui's book shows; registers are compared
before and after. Where this machine has the real device, it is read, too."""
import ctypes
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

LBR, SILICON, SHIM = (os.path.realpath(path) for path in sys.argv[1:4])
DEBUGCTL, SELECT = "0x1d9", "0x1c8"


def preload():
    """What LD_PRELOAD has to name. ASan ends a program in which its runtime is not the first library."""
    libraries = subprocess.run(["ldd", LBR], capture_output=True, text=True).stdout
    return " ".join([*re.findall(r"=> (\S*/libasan\.so\S*)", libraries), SHIM])


PRELOAD = preload()
failures = 0


def verdict(name, is_true, *what):
    global failures
    print("ok" if is_true else "FAIL", name, *([] if is_true else what), flush=True)
    failures += not is_true


class Processors:
    """A directory with a file for each."""

    def __init__(self, root, cpu):
        self.root, self.cpu = tempfile.mkdtemp(dir=root), cpu
        self.state = os.path.join(self.root, "state")
        for number in (0, 1):
            self.silicon("make", cpu, number=number)

    def silicon(self, *words, number=0):
        return subprocess.run([SILICON, f"{self.root}/{number}", *map(str, words)], check=True, capture_output=True,
                              text=True).stdout

    def registers(self, number=0):
        return dict(line.split() for line in self.silicon("registers", number=number).splitlines())

    def environment(self, variables):
        return {**os.environ, "LD_PRELOAD": PRELOAD, "SHIM_DIRECTORY": self.root, "TERM": "xterm", "NO_COLOR": "1",
                **variables}

    def command(self, options, cpu=True):
        return [LBR, "live", *(["--cpu", self.cpu] if cpu else []), "--state-directory", self.state, *options]

    def live(self, *options, cpu=True, **variables):
        return subprocess.run(self.command(options, cpu), env=self.environment(variables), capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=100)

    def json(self, *options, **variables):
        done = self.live("--json", *options, **variables)
        return json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr}


def pairs(page):
    return [(int(entry["from"], 16), int(entry["to"], 16)) for entry in page.get("entries", [])]


def branches(count, kernel=False):
    base = 0xFFFFFFFF81000000 if kernel else 0x401000
    return [(base + 64 * i, base + 64 * i + 32, i % 3 == 0, 10 + i) for i in range(count)]


def feed(processors, taken, number=0):
    processors.silicon("branch", *(word for one in taken for word in (hex(one[0]), hex(one[1]), int(one[2]), one[3])),
                       number=number)


def newest_first(taken, depth):
    return [(one[0], one[1]) for one in reversed(taken[-depth:])]


# ---- on, read, off ----

def test_whole_way(root):
    for cpu, depth in (("p6", 1), ("pentium4", 4), ("pentium-m", 8), ("merom", 4), ("nehalem", 16), ("haswell", 16),
                       ("skylake", 32), ("goldmont", 32), ("sapphirerapids", 32), ("zen2", 1), ("zen4", 16)):
        processors = Processors(root, cpu)
        before = processors.registers()
        armed = processors.live("--arm")
        taken = branches(depth + 3)
        feed(processors, taken)
        full = processors.registers()
        page = processors.json()
        verdict(f"{cpu}: what was fed is shown, newest first", pairs(page) == newest_first(taken, depth), armed, page)
        flags = [entry["mispredicted"] for entry in page.get("entries", [])]
        verdict(f"{cpu}: mispredicted branches", set(flags) == {None} or
                flags == [one[2] for one in reversed(taken[-depth:])], flags)
        verdict(f"{cpu}: reading changes no register", processors.registers() == full and page.get("recording"))
        disarmed = processors.live("--disarm")
        after = processors.registers()
        changed = {msr for msr in before if before[msr] != after.get(msr)} & {DEBUGCTL, SELECT, "0x14ce", "0xc000010e",
                                                                               "0xc000010f"}
        verdict(f"{cpu}: --disarm puts back what was before", disarmed.returncode == 0 and not changed, disarmed, changed)
        verdict(f"{cpu}: and forgets it", not os.listdir(processors.state))


def test_processor_number(root):
    processors = Processors(root, "skylake")
    processors.live("--arm", "--cpu-number", "1")
    feed(processors, branches(5), number=1)
    feed(processors, branches(5), number=0)
    verdict("each processor has its own", len(pairs(processors.json("-n", "1"))) == 5 and not pairs(processors.json()))
    verdict("and its own number", processors.json("-n", "1")["cpu_number"] == 1)
    done = processors.live("-n", "9")
    verdict("a processor that is not there", done.returncode == 1 and "there is no processor 9" in done.stderr, done)


def test_cycles(root):
    processors = Processors(root, "skylake")
    processors.live("--arm")
    feed(processors, branches(4))
    cycles = [entry["cycles"] for entry in processors.json()["entries"]]
    verdict("cycles", cycles == [13, 12, 11, 10], cycles)


# ---- what is selected ----

def test_select(root):
    processors = Processors(root, "skylake")
    for options, value in ((["--user"], "0x1"), (["--kernel"], "0x2"), (["--select", "JCC,NEAR_RET"], "0x24"),
                           (["--select", "0xc4", "--user"], "0xc5"), (["--call-stack"], "0x3c4"), ([], "0x0")):
        done = processors.live("--arm", *options)
        registers = processors.registers()
        verdict(f"--arm {' '.join(options)}", registers[SELECT] == value and registers[DEBUGCTL] == "0x1", done, registers[SELECT])
    processors.live("--disarm")
    processors.silicon("wrmsr", SELECT, "0x80")
    processors.live("--arm", "--user")
    processors.live("--arm", "--kernel")
    processors.live("--disarm")
    verdict("--arm twice, and back to what was before the first", processors.registers()[SELECT] == "0x80")
    processors = Processors(root, "sapphirerapids")
    for options, value in (([], "0x7f0007"), (["--user"], "0x7f0005"), (["--kernel"], "0x7f0003"),
                           (["--select", "COND"], "0x10007")):
        processors.live("--arm", *options)
        verdict(f"architectural: --arm {' '.join(options)}", processors.registers()["0x14ce"] == value,
                processors.registers()["0x14ce"])
    processors = Processors(root, "zen4")
    processors.live("--arm", "--user")
    verdict("AMD: --arm --user", processors.registers()["0xc000010e"] == "0x1")
    processors = Processors(root, "merom")
    done = processors.live("--arm", "--user")
    verdict("a CPU without filters", done.returncode == 1 and "cannot tell kernel and user" in done.stderr, done)
    done = Processors(root, "skylake").live("--arm", "--select", "nonsense")
    verdict("a filter that is none", done.returncode == 1 and "no filter 'nonsense'" in done.stderr, done)


def test_for_a_while(root):
    processors = Processors(root, "skylake")
    before = processors.registers()
    page = processors.json("--user", "--interval", "0.01")
    verdict("--user records for a while", page.get("select", {}).get("bits") == ["CPL_EQ_0"] and page["recording"], page)
    verdict("and all is as before", processors.registers() == before)


# ---- somebody else's ----

def test_in_use(root):
    processors = Processors(root, "skylake")
    processors.silicon("wrmsr", DEBUGCTL, "0x1")
    feed(processors, branches(3))
    for options, words in (([], "not by 'lbr live --arm'"), (["--arm"], "take it over with --force"),
                           (["--user"], "take it over with --force"), (["--disarm"], "--force switches it off")):
        done = processors.live(*options)
        verdict(f"in use: {' '.join(options)}", done.returncode == 1 and words in done.stderr, done)
    verdict("in use: --no-stop reads along", len(pairs(processors.json("--no-stop"))) == 3)
    verdict("and nothing was touched", processors.registers()[DEBUGCTL] == "0x1")
    processors.live("--disarm", "--force")
    verdict("--disarm --force", processors.registers()[DEBUGCTL] == "0x0")
    processors.live("--arm")
    processors.silicon("wrmsr", SELECT, "0x5")
    done = processors.live("--disarm")
    verdict("another took over after --arm", done.returncode == 1 and "have changed since 'lbr live --arm'" in done.stderr, done)


def test_state(root):
    processors = Processors(root, "skylake")
    processors.live("--arm")
    path = os.path.join(processors.state, "cpu-0")
    modes = [os.stat(name).st_mode & 0o777 for name in (processors.state, path)]
    verdict("what --arm remembers is for its owner alone", modes == [0o700, 0o600], modes)
    with open(path, encoding="ascii") as file:
        text = file.read()
    for name, changed in (("another register", text.replace("0x1d9", "0x10")), ("nonsense", "lbr live 1\nboot x"),
                          ("more than there can be", text + "change 0x1c8 0x1 0x0 0x1\n" * 9), ("no text", "")):
        with open(path, "w", encoding="ascii") as file:
            file.write(changed.replace("boot x", text.splitlines()[1] + "\nchange 1"))
        done = processors.live("--disarm")
        verdict(f"a state that is {name}", done.returncode == 1 and processors.registers()[DEBUGCTL] == "0x1", done)
    with open(path, "w", encoding="ascii") as file:
        file.write(re.sub("boot .*", "boot another", text))
    done = processors.live("--disarm")
    verdict("a state of an earlier boot is none", "was not armed" in done.stderr, done)
    os.remove(path)
    os.symlink("/etc/passwd", path)
    verdict("a link is not read", "remove it" in processors.live().stderr)
    os.remove(path)
    os.chmod(processors.state, 0o777)
    verdict("nor a directory of everybody", "not owned by root alone" in processors.live().stderr)


# ---- errors ----

def test_errors(root):
    processors = Processors(root, "skylake")
    for number, words in ((13, "run as root"), (1, "CAP_SYS_RAWIO"), (6, "offline"), (2, "modprobe msr")):
        done = processors.live(SHIM_OPEN_ERROR=str(number))
        verdict(f"open: {os.strerror(number)}", done.returncode == 1 and words in done.stderr and
                len(done.stderr.splitlines()) == 1, done)
    processors.silicon("wrmsr", DEBUGCTL, "0x0")
    done = processors.live("--arm", SHIM_WRITE_ERROR="1")
    verdict("writes are forbidden", done.returncode == 1 and "may not be written" in done.stderr, done)
    verdict("and reading goes on", processors.live(SHIM_WRITE_ERROR="1").returncode == 0)
    done = Processors(root, "zen").live("--cpu", "skylake", cpu=False)
    verdict("no such registers", done.returncode == 1 and "faults" in done.stderr, done)
    done = processors.live("--cpu", "nano", cpu=False)
    verdict("a CPU without records", done.returncode == 1 and "has no branch records" in done.stderr, done)
    for options in (["--arm", "--disarm"], ["--user", "--kernel"], ["--watch", "--arm"], ["--interval", "0"], ["x"],
                    ["--count", "3"], ["--no-stop", "--user"], ["--format", "x"], ["--disarm", "--user"]):
        verdict(f"usage: {' '.join(options)}", processors.live(*options).returncode == 2)


def test_signals(root):
    processors = Processors(root, "skylake")
    before = processors.registers()
    reached = 0
    for step in range(0, 300, 7):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGSEGV):
            done = processors.live("--user", "--interval", "0.01", SHIM_SIGNAL=f"{step}:{int(number)}")
            if done.returncode == 0: # it was over before
                break
            reached = step
            if done.returncode != -number or processors.registers() != before:
                verdict(f"signal {number} at step {step}", False, done)
    verdict("signals put everything back", processors.registers() == before and reached > 100, reached)


# ---- pages ----

def test_watch(root):
    processors = Processors(root, "skylake")
    before = processors.registers()
    done = processors.live("--watch", "--count", "3", "--interval", "0.01", "--json")
    pages = re.split(r"(?<=^})\n", done.stdout, flags=re.M)
    verdict("--watch in a pipe", done.returncode == 0 and len([json.loads(page) for page in pages if page.strip()]) == 3, done)
    process, terminal = pty.fork()
    if process == 0:
        os.execve(LBR, processors.command(["--user", "--watch", "--interval", "0.05"]), processors.environment({}))
    text, deadline = b"", time.time() + 100
    while text.count(b"\033[H") < 3 and time.time() < deadline:
        if select.select([terminal], [], [], 1)[0]:
            text += os.read(terminal, 65536)
    os.write(terminal, b"\x03")
    status = os.waitpid(process, 0)[1]
    verdict("--watch on a terminal, in place", text.count(b"\033[H") >= 3 and b"Processor 0: Intel Skylake" in text, text)
    verdict("Ctrl-C ends it", os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0, status)
    verdict("and puts everything back", processors.registers() == before)


def test_windbg(root):
    processors = Processors(root, "kabylake")
    processors.live("--arm")
    feed(processors, [(0xFFFFF80095C66D7E, 0xFFFFF80095C66D8A, True, 20), (0xFFFFF80095C66D91, 0xFFFFF800957E686C, False, 28)])
    lines = processors.live("--format", "windbg", "--no-symbols").stdout.splitlines()
    expected = ["Family 0x6 Model 0x8e detected",
                "LBR stack: count 32, BaseFrom=0x680, BaseTo=0x6c0, BaseInfo=0xdc0, flags 0x4",
                "IA32_PERF_CAPABILITIES = 0x33c5", "MSR_DEBUGCTL = 0x1", "LBR bit is cleared now.", "MSR_LASTBRANCH_TOS=2",
                "MSR_LASTBRANCH_2 (info): Cycle Count 28, HIDWORD 0", "MSR_LASTBRANCH_2 (to): [fffff800957e686c]",
                "MSR_LASTBRANCH_2 (from): [fffff80095c66d91] bMISPRED 0",
                "MSR_LASTBRANCH_1 (info): Cycle Count 20, HIDWORD 80000000", "MSR_LASTBRANCH_1 (to): [fffff80095c66d8a]",
                "MSR_LASTBRANCH_1 (from): [fffff80095c66d7e] bMISPRED 1"]
    verdict("windbg, as the book has it", lines[2:14] == expected, lines[:16])
    table = processors.live("--no-symbols").stdout
    verdict("table", "IA32_PERF_CAPABILITIES 0x33c5 LBR_FMT=5" in table and "IA32_DEBUGCTL          0x1 LBR" in table and "2 of 32 records" in table, table)

    processors = Processors(root, "sapphirerapids")
    processors.live("--arm")
    feed(processors, branches(2))
    table = processors.live("--no-symbols").stdout
    verdict("the type of an architectural record in words", re.search(r"^  0 +0 +0x401040 +0x401060 +jmp\b", table, re.M), table)


def test_names(root):
    processors = Processors(root, "skylake")
    processors.live("--arm")
    address = ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p).value
    feed(processors, [(address + 4, address, False, 1)])
    named = processors.json("--pid", str(os.getpid()))["entries"][0]
    verdict("a function of a process", named["to_symbol"] and "getpid" in named["to_symbol"]["name"], named)
    page = processors.json()
    verdict("without --pid it has no name, and the page says so",
            page["entries"][0]["to_symbol"] is None and any("--pid" in note for note in page["notes"]), page)
    done = processors.live("--pid", "2000000000")
    verdict("a process that is not there", done.returncode == 1 and "no process 2000000000" in done.stderr, done)
    with open("/proc/kallsyms", encoding="utf-8") as file:
        symbol = next((line.split() for line in file if " T " in line), None)
    feed(processors, [(int(symbol[0], 16) or 0xFFFFFFFF81000000, 0x401000, False, 1)])
    page = processors.json()
    if int(symbol[0], 16):
        name = page["entries"][0]["from_symbol"]
        verdict("a function of the kernel", name and name["offset"] == "0x0", name, symbol)
    else:
        verdict("the kernel hides its names", any("kptr_restrict" in note for note in page["notes"]), page)


# ---- the real one ----

def test_real():
    if not os.path.exists("/dev/cpu/0/msr"):
        print("# the real device is not read: this machine has no /dev/cpu/0/msr")
        return
    done = subprocess.run([LBR, "live", "--no-stop", "--json"], capture_output=True, text=True, timeout=100)
    if done.returncode:
        verdict("the real device: one line says why not", len(done.stderr.splitlines()) == 1, done)
        print("# the real device is not read:", done.stderr.strip())
    else:
        page = json.loads(done.stdout)
        verdict("the real device", page["used"] <= page["depth"] and page["cpu_number"] == 0, page)


def main():
    with tempfile.TemporaryDirectory() as root:
        for test in (test_whole_way, test_processor_number, test_cycles, test_select, test_for_a_while, test_in_use,
                     test_state, test_errors, test_signals, test_watch, test_windbg, test_names):
            test(root)
    test_real()
    sys.exit(failures > 0)


main()
