#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_places.sh LBR: what one command prints for a function or an address, every command takes, and means the same by
# it. Where functions lie is what nm says of the program with symbols.
. "$(dirname "$0")/shell.sh"
cd "$scratch" || exit 1

cat >parts.c <<'END'
static volatile int sink;
static int __attribute__((noinline)) leaf(int n)
{
  return n * 3 + sink;
}
static int __attribute__((noinline)) loop(int n)
{
  int sum = 0;
  for (int i = 0; i < n; i++)
    sum += i % 3 ? leaf(i) : i; /* line 10 */
  return sum;
}
__attribute__((used)) void run(void)
{
  for (int i = 0; i < 5; i++)
    sink = loop(i) & 1;
  __asm__ volatile("syscall" : : "a"(60), "D"(0) : "rcx", "r11", "memory");
}
__asm__(".globl _start\n_start: and $-16, %rsp\n call run\n hlt");
END
# No libraries, which would take time to read. Linked elsewhere than their offsets in the file are. wild has no unwind tables: its functions are guesses.
flags='-O1 -g -static -no-pie -fno-pie -nostdlib -ffreestanding -fno-stack-protector -fcf-protection=none'
${CC:-cc} $flags -fasynchronous-unwind-tables -Wl,--eh-frame-hdr -o whole parts.c && strip -o bare whole &&
  ${CC:-cc} $flags -fno-asynchronous-unwind-tables -o wild.whole parts.c && strip -o wild wild.whole || exit 1
cp whole bare.whole && cp whole whole.whole
for name in whole bare wild; do
  "$lbr" record --quiet -o "$name.lbr" -- "./$name" >out 2>err || exit 77
done

cat >places.py <<'END'
import json, os, re, subprocess, sys

lbr, name = sys.argv[1:]
trace = name + ".lbr"

def run(*words):
    done = subprocess.run([lbr, *words], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout

symbols = [line.split() for line in subprocess.check_output(["nm", "-S", name + ".whole"], text=True).splitlines()]
symbols = {w[3]: (int(w[0], 16), int(w[0], 16) + int(w[1], 16)) for w in symbols if len(w) == 4}
start, end = symbols["loop"]
mark = "?" if name == "wild" else ""
has_symbols = name == "whole"
shown = "loop" if has_symbols else f"{name}+{start:#x}{mark}"

# What is printed for the function.
def has(text, word):
    return re.search(r"(^|[ ;])" + re.escape(word) + r"(?=[ ;\n]|$)", text, re.M)

printed = {
    "report": run("report", "--by", "function", "--top", "all", trace),
    "calls": run("calls", "--summary", "--top", "all", trace),
    "tree": run("calls", "--depth", "100", "--top", "all", trace),
    "callers": run("calls", "--callers", hex(start), trace),
    "folded": run("calls", "--folded", trace),
    "export": run("export", "--quiet", "--to", "folded", "-o", "-", trace),
    "stat": run("stat", "--top", "1000", trace),
    "annotate": run("annotate", trace, hex(start)),
}
for command, text in printed.items():
    assert has(text, shown), (command, shown, text[:2000])

words = [shown, f"{name}+{start:#x}", f"[{name}]+{start:#x}", f"{name}:{start:#x}", f"{start:#x}",
         f"{os.path.realpath(name)}+{start:#x}", f"{name}+{end - 1:#x}"]
if has_symbols:
    words += ["loop+0x1", f"{name}:loop", "parts.c:10", os.path.realpath("parts.c") + ":10"]

def number(word):
    return int(word, 16)

for word in words:
    functions = json.loads(run("annotate", "--json", "--no-source", trace, word))["functions"]
    assert [number(row["start"]) for row in functions] == [start], (word, functions)
    functions = json.loads(run("report", "--json", "--by", "function", "--function", word, trace))["functions"]
    assert [number(row["address"]) for row in functions] == [start], (word, functions)
    rows = [json.loads(line) for line in run("calls", "--all", "--json", "--function", word, trace).splitlines()]
    assert rows and all((number(row["address"]) == start) == (row["level"] == 0) for row in rows), (word, rows)
    assert len([row for row in rows if row["level"] == 0]) == 5
    assert has(run("calls", "--callers", word, trace), shown), word
    rows = [json.loads(line) for line in run("script", "--json", "--function", word, trace).splitlines()]
    rows = [row for row in rows if "from" in row]
    assert rows and all(start <= number(row["from"]["address"]) < end or start <= number(row["to"]["address"]) < end
                        for row in rows), word
    count = len(rows)
    assert f"{count}" in run("diff", "--function", word, trace, trace), (word, count)
    assert has(run("export", "--quiet", "--to", "folded", "--function", word, "-o", "-", trace), shown), word
    if not word.startswith("0x"): # a number is that of a branch
        run("view", "--quiet", "--around", word, "-o", "page.html", trace)

# An address that script and stat print, as it is linked, leads back to the same branches.
rows = [json.loads(line) for line in run("script", "--json", "--kind", "calls", "--function", hex(start), trace).splitlines()]
place = next(row["from"] for row in rows if "from" in row and start <= number(row["from"]["address"]) < end)
plain = f"{place['symbol'] or place['module']}+{place['offset']}"
address = number(place["address"])
assert plain == (f"loop+{address - start:#x}" if has_symbols else f"{name}+{address:#x}"), plain
for text in (run("script", trace), run("stat", "--top", "1000", trace), run("report", "--by", "edge", "--top", "all", trace)):
    assert has(text, plain), plain
same = None
for word in (plain, hex(address), f"{name}+{address:#x}", f"{name}:{address:#x}", f"[{name}]+{address:#x}"):
    text = run("script", "--from", word, trace)
    assert text and (same is None or text == same), (word, text, same)
    same = text
    functions = json.loads(run("annotate", "--json", "--no-source", trace, word))["functions"]
    assert [number(row["start"]) for row in functions] == [start], word
text = run("replay", "--cpu", "skylake", "--at", shown, trace)
assert f"{start:#x}" in text, text
if has_symbols:
    lines = [json.loads(line) for line in run("script", "--json", "--from", "parts.c:10", trace).splitlines()]
    at = subprocess.run(["addr2line", "-e", name, *{row["from"]["address"] for row in lines if "from" in row}],
                        capture_output=True, text=True).stdout.split("\n")
    assert all(re.search(r"parts\.c:10\b", line) for line in at if line) and len(at) > 1, at
END
for name in whole bare wild; do
  python3 -B places.py "$lbr" $name >out 2>err || { tail -n 4 err | cut -c1-1500 | sed 's/^/  | /' && false; }
  verdict "$name: what a command prints for a function, every command takes" $?
done

# A place that is none is told, not taken for something else.
run annotate whole.lbr parts.c:1000
[ $status -eq 1 ] && complained 'parts.c:1000'
verdict 'a line without code' $?
run script --from '' whole.lbr
[ $status -eq 2 ] && complained 'takes an address'
verdict 'an empty place' $?

exit $((failures > 0))
