#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_jit_names.py LBR PROGRAM [real]: names of code that is in no file. PROGRAM (tests/process/names.c) names its
functions in each of the known ways, uses addresses again, and counts the calls of each: lbr must show the same numbers.
With "real", programs of the distribution instead: names must be those of the perf map or jitdump file that the program wrote."""
import collections
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

LBR, PROGRAM = (os.path.realpath(path) for path in sys.argv[1:3])
PATIENCE = 250
failures = 0


def verdict(name, is_true, *what):
    global failures
    print("ok" if is_true else "FAIL", name, *([] if is_true else what), flush=True)
    failures += not is_true


def run(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, **options)


def functions(trace, *options):
    """The rows of functions without a file: (calls, symbol), sorted."""
    result = run(LBR, "report", "--by", "function", "--top", "all", "--json", *options, trace)
    rows = json.loads(result.stdout)["functions"]
    return [row for row in rows if row["module"] in ("[jit]", None)]


def counted(output):
    """What the program itself counted, and its number."""
    *lines, number = output.splitlines()
    return sorted((int(line.split(" ", 1)[0]), line.split(" ", 1)[1]) for line in lines), number


def drop(number):
    for path in f"/tmp/perf-{number}.map", f"jit-{number}.dump":
        if os.path.exists(path):
            os.unlink(path)


def recorded(name, mode, *options):
    """One recording: the same calls of the same names."""
    result = run(LBR, "record", "--quiet", "-o", "t.lbr", *options, PROGRAM, *mode)
    expected, number = counted(result.stdout)
    found = sorted((row["calls"], row["symbol"]) for row in functions("t.lbr"))
    verdict(name, found == expected, f"expected {expected}, found {found}", result.stderr)
    return number, result.stderr


def modes():
    for mode in ["map"], ["map", "30"], ["late"], ["dump"], ["dump", "30"], ["gdb", "400"]:
        drop(recorded(" ".join(mode), mode)[0])
    number, errors = recorded("a map with lines that are no names", ["garbage"])
    verdict("one message about them", errors.count("its perf map has lines that are no names") == 1, errors)
    drop(number)
    number, _ = recorded("with a second process that uses the same translations", ["map"])
    drop(number)


def readers():
    """The commands that read a trace show the names."""
    result = run(LBR, "record", "--quiet", "-o", "t.lbr", PROGRAM, "map")
    expected, number = counted(result.stdout)
    drop(number)
    lines = run(LBR, "script", "t.lbr").stdout.splitlines()
    entered = collections.Counter(match[1] for line in lines if (match := re.search(r"-> 0x\w+ (\w+)\+0x0 call_ind", line)))
    for name in "first", "second", "third", "inner", "wide":
        verdict(f"script: calls of {name}", (entered[name], name) in expected, entered)
    tree = run(LBR, "calls", "t.lbr").stdout
    verdict("calls: in their order", re.search(r"first x 1000.*second x 700.*third x 300", tree, re.S), tree)
    result = run(LBR, "annotate", "t.lbr", "second")
    verdict("annotate: the code of the function", re.search(r"700 .*mov\s+eax, *(0x)?0*3\b", result.stdout), result.stdout)
    result = run(LBR, "report", "--by", "module", "--json", "t.lbr")
    modules = [row["module"] for row in json.loads(result.stdout)["modules"]]
    verdict("report: one module", modules.count("[jit]") == 1, modules)
    verdict("report --module", len(functions("t.lbr", "--module", "[jit]")) == len(expected))
    verdict("report --no-symbols: no names", not any(row["symbol"] for row in functions("t.lbr", "--no-symbols")))
    for words in (["stat", "t.lbr"], ["diff", "t.lbr", "t.lbr"], ["view", "-o", "t.html", "t.lbr"], ["gdb", "--help"],
                  ["export", "--to", "perf", "-o", "t.perf", "t.lbr"], ["export", "--to", "folded", "-o", "t.txt", "t.lbr"]):
        result = run(LBR, *words)
        verdict(f"lbr {words[0]} {' '.join(words[1:3])}", result.returncode == 0, result.stderr)
    verdict("export: folded stacks have the names", ";second" in open("t.txt").read())
    verdict("view: the page has the names", "second" in open("t.html").read())


def hostile():
    """Files that must not be read."""
    number = 0
    for name, prepare in {
        "a link": lambda path: os.symlink("/etc/passwd", path),
        "a pipe": os.mkfifo,
        "a folder": os.mkdir,
        "an old map": lambda path: (open(path, "w").write("1000 7fffffff0000 everything\n"), os.utime(path, (1, 1))),
    }.items():
        # The number of the process is known once the shell has it: it makes the file, then becomes the program.
        os.makedirs("ready", exist_ok=True)
        with subprocess.Popen([LBR, "record", "--quiet", "-o", "t.lbr", "sh", "-c",
                               'echo $$ >ready/new; mv ready/new ready/number; until [ -e ready/go ]; do sleep 0.01; done; exec "$@"',
                               "sh", PROGRAM, "dump"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            while not os.path.exists("ready/number"):
                time.sleep(0.01)
            number = int(open("ready/number").read())
            path = f"/tmp/perf-{number}.map"
            if os.path.lexists(path):
                os.unlink(path)
            prepare(path)
            open("ready/go", "w").close()
            output, errors = child.communicate(timeout=PATIENCE)
        expected, _ = counted(output)
        found = sorted((row["calls"], row["symbol"]) for row in functions("t.lbr"))
        verdict(f"{name} in place of the map is not read", found == expected, found, errors)
        os.rmdir(path) if os.path.isdir(path) else os.unlink(path)
        shutil.rmtree("ready")
        drop(number)


def attached():
    """A process that was running before. lbr has attached to it before its first pause ends, even on a busy machine."""
    with subprocess.Popen([PROGRAM, "map", "3000"], stdout=subprocess.PIPE, text=True) as child:
        time.sleep(0.3)
        result = run(LBR, "record", "--quiet", "-o", "t.lbr", "-p", str(child.pid))
        output, _ = child.communicate(timeout=PATIENCE)
    if result.returncode != 0 and "ptrace" in result.stderr:
        print("skip attached:", result.stderr)
        return
    expected, number = counted(output)
    found = {row["symbol"]: row["calls"] for row in functions("t.lbr")}
    wanted = {name: calls for calls, name in expected if name in ("second", "third", "wide", "inner")}
    verdict("attached", all(found.get(name) == calls for name, calls in wanted.items()), f"{wanted}, {found}", result.stderr)
    drop(number)


# ---- programs of the distribution ----

def map_of(trace):
    """The perf map of the recorded process: (start, size, name)."""
    number = json.loads(run(LBR, "stat", "--no-symbols", "--json", trace).stdout)["threads"][0]["process"]
    path = f"/tmp/perf-{number}.map"
    entries = [line.rstrip("\n").split(" ", 2) for line in open(path, errors="replace")]
    os.unlink(path)
    return {name for _, _, name in entries}


def dump_of(_):
    """The names in the jitdump file of this folder: JIT_CODE_LOAD (0) has pid, tid, vma, address, size and index before its name."""
    names = set()
    for file in (file for file in os.listdir(".") if file.endswith(".dump")):
        with open(file, "rb") as dump:
            data = dump.read()
        at = struct.unpack_from("<I", data, 8)[0]  # the size of the head
        while at + 16 <= len(data):
            kind, size = struct.unpack_from("<II", data, at)
            if kind == 0:
                names.add(data[at + 56:data.index(b"\0", at + 56)].decode(errors="replace"))
            at += max(size, 16)
    return names


def real(name, wanted, *words, source=None):
    """`wanted` is in the name of the hottest function that was compiled."""
    if not shutil.which(words[0]):
        print(f"skip {name}: no {words[0]}")
        return
    result = run(LBR, "record", "--quiet", "-o", "t.lbr", "--", *words)
    if result.returncode != 0:
        verdict(name, False, result.stderr)
        return
    rows = [row for row in functions("t.lbr") if row["symbol"]]
    names = (source or map_of)("t.lbr")
    strange = [row["symbol"] for row in rows if row["symbol"] not in names]
    verdict(f"{name}: all names are in the map", rows and not strange, strange[:5])
    hottest = max(rows, key=lambda row: row["instructions"] or 0, default={"symbol": ""})
    verdict(f"{name}: the hottest function is {wanted}", wanted in hottest["symbol"], hottest)
    unnamed = sum(row["taken"] for row in functions("t.lbr") if not row["symbol"])
    taken = sum(row["taken"] for row in functions("t.lbr"))
    print(f"  {name}: {taken - unnamed} of {taken} branches in no file have a name")


JAVA = """public class Hot {
  static int hottest(int n) { int s = 0; for (int i = 0; i < n; i++) s = s * 31 + i % 7; return s; }
  public static void main(String[] words) { int t = 0; for (int k = 0; k < 30000; k++) t += hottest(1000); System.out.println(t); }
}
"""
NODE = """function hottest(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; }
let t = 0; for (let k = 0; k < 30000; k++) t += hottest(1000); console.log(t);
"""


# 2000 calls of sum, 1000 of twice; it runs for long enough to be looked at.
LLVM = """define i32 @sum(i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %s = phi i32 [ 0, %entry ], [ %t, %loop ]
  %next = add i32 %i, 1
  %q = mul i32 %i, %i
  %t = add i32 %s, %q
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret i32 %t
}
define i32 @twice(i32 %n) {
  %a = call i32 @sum(i32 %n)
  %b = call i32 @sum(i32 %n)
  %c = add i32 %a, %b
  ret i32 %c
}
define i32 @main() {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %r = call i32 @twice(i32 100000)
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, 1000
  br i1 %more, label %loop, label %done
done:
  ret i32 0
}
"""


def llvm():
    """LLVM's compilers name their functions by GDB's JIT interface, and by nothing else."""
    program = shutil.which("lli-19")
    if not program:
        print("skip LLVM: no lli-19")
        return
    with open("hot.ll", "w") as file:
        file.write(LLVM)
    for kind in "mcjit", "orc":
        result = run(LBR, "record", "--quiet", "-o", "llvm.lbr", program, f"--jit-kind={kind}", "-O0", "hot.ll")
        found = {row["symbol"]: row["calls"] for row in functions("llvm.lbr") if row["symbol"] in ("sum", "twice")}
        verdict(f"LLVM, {kind}", result.returncode == 0 and found == {"sum": 2000, "twice": 1000}, found, result.stderr)


def programs():
    llvm()
    with open("hot.js", "w") as file:
        file.write(NODE)
    real("node", "hot.js", "node", "--perf-basic-prof", "hot.js")
    real("node, jitdump", "hot.js", "node", "--perf-prof", "hot.js", source=dump_of)
    with open("Hot.java", "w") as file:
        file.write(JAVA)
    if not shutil.which("javac"):
        print("skip java: no javac")
        return
    subprocess.run(["javac", "Hot.java"], check=True)
    real("java", "Hot.hottest", "java", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit", "-cp", ".", "Hot")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    if "real" in sys.argv[3:]:
        programs()
    else:
        modes()
        readers()
        hostile()
        attached()
    os.chdir("/")
sys.exit(failures != 0)
