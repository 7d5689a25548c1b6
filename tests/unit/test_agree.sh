#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_agree.sh LBR ORACLE LABS: the totals of commands that read the same trace are the same numbers: stat, report,
# calls and the profiles that are exported. For programs with one thread these are also the numbers that single steps
# count (ORACLE, tests/process/oracle.c).
. "$(dirname "$0")/shell.sh"
oracle=$(realpath "$2")
labs=$(realpath "$3")
cd "$scratch" || exit 1

"$oracle" list /bin/true 2>err
if [ $? -eq 126 ]; then
  cat err
  exit 77
fi

# ---- programs ----

cat >plain.c <<'END'
#include <stdio.h>
static int __attribute__((noinline)) fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(void)
{
  int sum = 0;
  for (int i = 0; i < 12; i++)
    sum += fib(i);
  printf("%d\n", sum);
  return 0;
}
END
cat >threads.c <<'END'
#include <pthread.h>
static int __attribute__((noinline)) fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static void *run(void *data) { return (void *)(long)fib(8 + (int)(long)data); }
int main(void)
{
  pthread_t threads[3];
  for (long i = 0; i < 3; i++)
    pthread_create(&threads[i], 0, run, (void *)i);
  for (int i = 0; i < 3; i++)
    pthread_join(threads[i], 0);
  return 0;
}
END
# A fault that a handler mends, and one that kills, each behind conditional branches that are not taken; a signal.
cat >crash.c <<'END'
#define _GNU_SOURCE
#include <signal.h>
#include <ucontext.h>
static int *volatile place;
static int good = 5;
static void mend(int signal, siginfo_t *info, void *data)
{
  (void)signal, (void)info;
  ((ucontext_t *)data)->uc_mcontext.gregs[REG_RAX] = (long)&good;
}
static void count(int signal) { good += signal; }
static int __attribute__((noinline)) load(int a, int b)
{
  int value;
  if (a == 7)
    return 1;
  if (b == 7)
    return 2;
  __asm__ volatile("mov (%1), %0" : "=r"(value) : "a"(place) : "memory");
  return value + a;
}
int main(int argc, char **argv)
{
  struct sigaction action = {.sa_sigaction = mend, .sa_flags = SA_SIGINFO};
  (void)argv;
  sigaction(SIGSEGV, &action, 0);
  signal(SIGUSR1, count);
  raise(SIGUSR1);
  load(argc, argc);
  signal(SIGSEGV, SIG_DFL);
  return load(argc, argc);
}
END
cat >bare.S <<'END'
.globl _start
_start:
  mov $3, %ecx
1:
  nop
  dec %ecx
  jnz 1b
  call f
  mov $60, %eax
  xor %edi, %edi
  syscall
f:
  cld
  ret
END
${CC:-cc} -O1 -g -static -o plain plain.c && strip -o stripped plain && ${CC:-cc} -O1 -g -static -pthread -o threads threads.c &&
  ${CC:-cc} -O1 -g -static -o crash crash.c && ${CC:-cc} -nostdlib -static -o bare bare.S || exit 1

# ---- what each command says ----

# totals TRACE: "COMMAND INSTRUCTIONS TAKEN NOT-TAKEN" in a line each; '-' where the command does not tell.
totals()
{
  "$lbr" stat --json "$1" >stat.json
  "$lbr" report --json --top all "$1" >report.json
  "$lbr" calls --summary --json "$1" >calls.json
  "$lbr" calls --folded "$1" >calls.folded 2>err
  "$lbr" export --quiet --to folded -o export.folded "$1" 2>err
  rm -f export.pprof
  "$lbr" export --quiet --to pprof -o export.pprof "$1" 2>err
  python3 - <<'END'
import gzip, json

def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at

def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        size, at = varint(data, at)
        if key & 7 == 2:
            yield key >> 3, data[at:at + size]
            at += size

def pprof(path):
    sums = [0, 0]
    for field, sample in fields(gzip.open(path).read()):
        for inner, values in fields(sample) if field == 2 else ():
            if inner == 2:
                first, at = varint(values, 0)
                sums = [sums[0] + first, sums[1] + varint(values, at)[0]]
    return sums

def add(rows, key):
    values = [row[key] for row in rows]
    return None if None in values else sum(values)

def folded(path):
    return sum(int(line.rsplit(" ", 1)[1]) for line in open(path))

def show(name, *numbers):
    print(name, *("-" if number is None else number for number in numbers))

stat, report = json.load(open("stat.json")), json.load(open("report.json"))
functions = [row for row in map(json.loads, open("calls.json")) if row["type"] == "function"]
show("stat", stat["instructions"], stat["branches"], stat["not_taken"])
show("report", report["instructions"], report["taken"], report["not_taken"])
show("functions", *(add(report["functions"], key) for key in ("instructions", "taken", "not_taken")))
show("calls", add(functions, "own_instructions"), add(functions, "own_branches"), None)
show("folded", folded("calls.folded"), None, None)
show("export-folded", folded("export.folded"), None, None)
show("pprof", *pprof("export.pprof"), None)
END
}

# agree: are the numbers in the file `numbers` the same in each column, leaving out '-'?
agree()
{
  awk '{ for (i = 2; i <= NF; i++) if ($i != "-") { if (i in seen && seen[i] != $i) bad = 1; seen[i] = $i } }
    END { exit bad || NR < 7 }' numbers || { sed 's/^/  | /' numbers && return 1; }
}

for name in bare plain stripped crash threads; do
  (env -i PATH=/usr/bin:/bin setarch -R "$lbr" record --quiet -o "$name.lbr" -- "./$name" >out 2>err || exit 0) 2>err
  totals "$name.lbr" >numbers
  cp numbers "$name.totals"
  if [ $name != threads ]; then
    env -i PATH=/usr/bin:/bin "$oracle" -d list "./$name" >out 2>err
    echo "oracle $(sed -n 's/^# instructions //p' list) $(grep -vc '^#' list) $(sed -n 's/^# not-taken //p' list)" >>numbers
  fi
  agree
  verdict "$name: all commands agree" $?
done

# By hand: mov, three times nop, dec, jnz; call, cld, ret, mov, xor, syscall.
grep -qx 'report 16 5 1' bare.totals
verdict 'bare: 16 instructions, 5 branches taken and 1 not' $?

# ---- each function of stripped programs ----

# Calls of all kinds, in a program without libraries: recursion, an indirect call, a tail call, a function (join) that
# nothing but jumps lead to.
cat >parts.c <<'END'
#define PART static __attribute__((noinline, noclone, used))
static volatile int sink;
PART int leaf(int n) { return n * 3 + sink; }
PART int loop(int n)
{
  int sum = 0;
  for (int i = 0; i < n; i++)
    sum += i % 3 ? leaf(i) : i;
  return sum;
}
PART int join(int n)
{
  int product = 1;
  while (n-- > 0)
    product *= sink + 2;
  return product;
}
PART int tail(int n) { return n & 1 ? loop(n + 2) : join(n); }
PART int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int (*volatile table[2])(int) = {tail, fib};
__attribute__((used)) void run(void)
{
  for (int i = 0; i < 9; i++)
    sink = table[i % 3 == 0](i) & 1;
  sink = tail(2);
  __asm__ volatile("syscall" : : "a"(60), "D"(0) : "rcx", "r11", "memory");
}
__asm__(".globl _start\n.type _start, @function\n_start: xor %ebp, %ebp\n and $-16, %rsp\n call run\n hlt\n.size _start, .-_start");
END
flags='-O2 -fno-pie -no-pie -nostdlib -static -ffreestanding -fno-stack-protector -fcf-protection=none'
${CC:-cc} $flags -fasynchronous-unwind-tables -Wl,--eh-frame-hdr -o known.whole parts.c && strip -o known known.whole &&
  ${CC:-cc} $flags -fno-asynchronous-unwind-tables -fno-unwind-tables -o guessed.whole parts.c &&
  strip -R .eh_frame -R .eh_frame_hdr -o guessed guessed.whole || exit 1

# What the oracle's list says of each function, with the instructions that objdump finds between two branches; then what
# each command says of it. Functions of `known` are those that nm lists of its twin with symbols; those of `guessed`
# begin where the oracle saw calls lead.
cat >parts.py <<'END'
import collections, json, re, subprocess, sys

name, lbr = sys.argv[1:]

def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout

branches, first = [], None
for line in open("list"):
    words = line.split()
    if line.startswith("#"):
        first = int(words[3], 16) if words[2] == "exec" else first
    else:
        branches.append((int(words[1], 16), int(words[2], 16), words[3]))
code = sorted(int(m[1], 16) for m in re.finditer(r"^ +([0-9a-f]+):\t", run("objdump", "-dw", name + ".whole"), re.M))
symbols = [line.split() for line in run("nm", "-S", "--defined-only", name + ".whole").splitlines()]
symbols = {int(w[0], 16): (int(w[1], 16), w[3]) for w in symbols if len(w) == 4 and w[2] in "tT"}
is_known = name == "known"
starts = set(symbols) - {first} if is_known else {to for _, to, kind in branches if kind.startswith("call")}
assert starts < set(symbols) and len(starts) >= 4, starts

def function(address):
    if is_known:
        return next(start for start, (size, _) in symbols.items() if start <= address < start + size)
    return max((start for start in starts if start <= address), default=None)

want = {start: collections.Counter() for start in starts | {function(first)}}
at = first
for source, to, kind in branches:
    for address in code:
        if at <= address <= source:
            want[function(address)]["instructions"] += 1
    want[function(source)]["taken"] += 1
    want[function(to)]["into"] += 1
    at = to
want = {start: counts for start, counts in want.items() if counts["instructions"]}
assert is_known == any(symbols[start][1] == "join" for start in want if start), want
# _start has neither a call that leads to it nor unwind tables.
guesses = {start: not is_known or start == first for start in want}
names = {}

def check(what, got, key, field):
    expected = {start: counts[field] for start, counts in want.items() if counts[field]}
    found = {(None if row[0] is None else row[0]): row[key] for row in got if row[key]}
    if is_known and first in expected and first not in found and None in found:
        found[first] = found.pop(None)
    assert found == expected, f"{what} {field}: {found}, not {expected}"

def number(word):
    return None if word is None else int(word, 16)

trace = name + ".lbr"
report = json.loads(run(lbr, "report", "--json", "--top", "all", trace))["functions"]
rows = [(number(row["address"]), row["instructions"], row["taken"], row["is_guess"], row["size"]) for row in report]
check("report", rows, 1, "instructions")
check("report", rows, 2, "taken")
for start, _, _, is_guess, size in rows:
    start = first if start is None and is_known else start
    assert is_guess == guesses[start], (start, is_guess)
    assert is_guess or size == symbols[start][0], (start, size)
calls = [json.loads(line) for line in run(lbr, "calls", "--summary", "--json", trace).splitlines()]
calls = [row for row in calls if row["type"] == "function"]
rows = [(int(row["address"], 16), row["own_instructions"], row["own_branches"], row["is_guess"]) for row in calls]
rows = [((None if function(row[0]) != row[0] else row[0]), *row[1:]) for row in rows]
check("calls", rows, 1, "instructions")
check("calls", rows, 2, "taken")
assert all(row[3] == guesses.get(row[0], True) for row in rows), rows
stat = json.loads(run(lbr, "stat", "--json", "--top", "100", trace))["functions"]
rows = [(number(row["address"]), row["branches"]) for row in stat]
check("stat", rows, 1, "into")
for start in (start for start in want if start and start != first):
    shown = json.loads(run(lbr, "annotate", "--json", trace, hex(start)))["functions"]
    assert [number(row["start"]) for row in shown] == [start], (hex(start), shown)
    assert sum(row["executed"] for row in shown[0]["rows"]) == want[start]["instructions"] == shown[0]["instructions"]
    assert shown[0]["is_guess"] == guesses[start]
subprocess.run([lbr, "view", "--quiet", "-o", "page.html", trace], check=True, capture_output=True)
data = json.loads(re.search(r'<script type="[a-z/]*" id="data">(.*?)</script>', open("page.html").read(), re.S)[1])
rows = [(row[8] if function(row[8]) == row[8] else None, row[5], row[3], row[9]) for row in data["functions"]]
check("view", rows, 1, "instructions")
check("view", rows, 2, "taken")
assert all(row[3] == guesses.get(row[0], True) for row in rows), rows

def named(word):
    found = re.fullmatch(re.escape(name) + r"\+(0x[0-9a-f]+)(\??)", word)
    if not found:
        assert word == f"[{name}]", word
        return None
    assert bool(found[2]) == guesses[int(found[1], 16)], word
    return int(found[1], 16)

sums = collections.Counter()
for line in run(lbr, "export", "--quiet", "--to", "folded", "-o", "-", trace).splitlines():
    stack, count = line.rsplit(" ", 1)
    sums[named(stack.split(";")[-1])] += int(count)
check("folded", list(sums.items()), 1, "instructions")
scope = json.loads(run(lbr, "export", "--quiet", "--to", "speedscope", "-o", "-", trace))
sums, stack, last = collections.Counter(), [], 0
for event in scope["profiles"][0]["events"]:
    if stack:
        sums[stack[-1]] += event["at"] - last
    last = event["at"]
    if event["type"] == "O":
        stack.append(named(scope["shared"]["frames"][event["frame"]]["name"]))
    else:
        stack.pop()
check("speedscope", list(sums.items()), 1, "instructions")
text = run(lbr, "report", "--by", "function", "--top", "all", trace) + run(lbr, "calls", "--summary", trace)
for start in (start for start in want if start and start != first):
    mark = "?" if guesses[start] else ""
    assert len(re.findall(re.escape(f"{name}+{start:#x}{mark}") + r"(?= |\n)", text)) >= 2, (hex(start), text)
END
for name in known guessed; do
  env -i PATH=/usr/bin:/bin setarch -R "$lbr" record --quiet -o "$name.lbr" -- "./$name" >out 2>err
  env -i PATH=/usr/bin:/bin "$oracle" -d list "./$name" >out 2>err
  python3 -B parts.py "$name" "$lbr" >out 2>err || { tail -n 3 err | cut -c1-1000 | sed 's/^/  | /' && false; }
  verdict "$name: every command has the same functions, and the oracle's numbers of each" $?
done

# ---- one file of a program ----

# The program's own file: it calls into libc, which calls back.
cat >module.c <<'END'
#include <stdlib.h>
static int __attribute__((noinline)) compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(void)
{
  int values[24];
  for (int i = 0; i < 24; i++)
    values[i] = i * 7 % 25;
  for (int i = 0; i < 2; i++)
    qsort(values, 24, sizeof(*values), compare);
  return values[0] != 0;
}
END
${CC:-cc} -O1 -g -fno-pie -no-pie -o module module.c || exit 1
cat >module.py <<'END'
import collections, json, re, subprocess, sys

lbr = sys.argv[1]

def run(*words):
    return subprocess.run([lbr, *words], check=True, capture_output=True, text=True).stdout

code = subprocess.run(["objdump", "-dw", "module"], check=True, capture_output=True, text=True).stdout
code = {int(m[1], 16): m[2] for m in re.finditer(r"^ +([0-9a-f]+):\t[0-9a-f ]+\t(?:[a-z]+ )*?(?:bnd )?(\w+)", code, re.M)}
places = sorted(code)
names = subprocess.run(["nm", "module"], check=True, capture_output=True, text=True).stdout
names = {line.split()[2]: int(line.split()[0], 16) for line in names.splitlines() if len(line.split()) == 3}
is_in = lambda address: places[0] <= address <= places[-1]
want, kinds, calls, at = collections.Counter(), collections.Counter(), collections.Counter(), None
depth, spent = None, collections.Counter()
for line in open("list"):
    words = line.split()
    if line.startswith("#"):
        continue
    source, to, kind = int(words[1], 16), int(words[2], 16), words[3]
    if is_in(source):
        ran = [place for place in places if at <= place <= source]
        want["instructions"] += len(ran)
        want["not_taken"] += sum(code[place].startswith("j") and code[place] != "jmp" for place in ran[:-1])
        want["taken"] += 1
        kinds[kind] += 1
    want["edges"] += is_in(source) or is_in(to)
    want["into"] += is_in(to)
    # compare has no branch but its return.
    if depth is not None:
        spent["compare" if names["compare"] <= source < names["main"] else "main"] += 1
        depth += kind.startswith("call") - (kind == "ret")
        depth = None if depth == 0 else depth
    if kind.startswith("call") and to == names["main"]:
        depth = 1
    for name in ("main", "compare"):
        calls[name] += kind.startswith("call") and to == names[name]
    at = to
assert calls["main"] == 1 and calls["compare"] > 20 and want["not_taken"] >= 2, (calls, want)

stat = json.loads(run("stat", "--json", "--top", "all", "--module", "module", "module.lbr"))
report = json.loads(run("report", "--json", "--by", "module", "--module", "module", "module.lbr"))["modules"]
whole = json.loads(run("stat", "--json", "module.lbr"))
functions = json.loads(run("report", "--json", "--top", "all", "--module", "module", "module.lbr"))["functions"]
for what, got in (
    ("stat", [stat["instructions"], stat["branches"], stat["not_taken"]]),
    ("report", [report[0][key] for key in ("instructions", "taken", "not_taken")]),
):
    assert got == [want["instructions"], want["taken"], want["not_taken"]], (what, got, want)
assert stat["module"] == "module" and whole["module"] is None and len(report) == 1
assert {row["kind"]: row["branches"] for row in stat["kinds"]} == kinds, (stat["kinds"], kinds)
assert [row["branches"] for row in stat["threads"]] == [want["taken"]]
assert [row["file"].split("/")[-1] for row in stat["modules"]] == ["module"]
assert stat["modules"] == [row for row in whole["modules"] if row["file"].endswith("/module")]
assert sum(row["branches"] for row in stat["functions"]) == want["into"]
assert sum(row["branches"] for row in stat["edges"]) == want["edges"] > want["taken"]

summary = [json.loads(line) for line in run("calls", "--summary", "--json", "--module", "module", "module.lbr").splitlines()]
summary = {row["function"]: row for row in summary if row["type"] == "function"}
assert not {"qsort", "__libc_start_main"} & set(summary), summary
for name in ("main", "compare"):
    assert summary[name]["calls"] == calls[name], (summary[name], calls)
    assert summary[name]["own_branches"] == spent[name], (summary[name], spent)
folded = run("calls", "--folded", "--module", "module", "module.lbr")
assert folded == run("export", "--quiet", "--to", "folded", "--module", "module", "-o", "-", "module.lbr")
assert sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()) == sum(row["own_instructions"] for row in summary.values())
inside = run("calls", "--folded", "--module", "module", "--function", "qsort", "module.lbr")
assert [line.split()[0] for line in inside.splitlines()] == ["compare"], inside
every = [json.loads(line) for line in run("calls", "--json", "--no-syscalls", "--module", "module", "module.lbr").splitlines()]
assert {row["module"] for row in every} == {"module"}, every[:3]
assert sum(row["function"] == "compare" for row in every) == calls["compare"]

run("view", "--quiet", "-o", "page.html", "--module", "module", "module.lbr")
data = json.loads(re.search(r'<script type="[a-z/]*" id="data">(.*?)</script>', open("page.html").read(), re.S)[1])
rows = [row for row in data["functions"] if row[2]]
assert data["module"] == "module" and {row[1] for row in rows} == {"module"}, rows
assert sum(row[3] for row in rows) == want["taken"] and sum(row[5] for row in rows) == want["instructions"], rows
# Stubs of the PLT are no calls of their own.
assert [row[5] for row in rows if row[0] == "compare"] == [row["instructions"] for row in functions if row["symbol"] == "compare"]
assert {row[0]: row[2] for row in rows if row[0] in calls} == calls, rows
assert sum(edge[3] for edge in data["edges"]) == want["edges"]
assert {entry["module"] for entry in data["code"]} == {"module"}
END
env -i PATH=/usr/bin:/bin setarch -R "$lbr" record --quiet -o module.lbr -- ./module >out 2>err
env -i PATH=/usr/bin:/bin "$oracle" -d list ./module >out 2>err
python3 -B module.py "$lbr" >out 2>err || { tail -n 3 err | cut -c1-1000 | sed 's/^/  | /' && false; }
verdict '--module: stat, report, calls, view and exports have the numbers of the same file, and those of the oracle' $?
for command in report stat calls 'view -o page.html' 'calls --folded'; do
  run $command --module libnone.so module.lbr
  [ $status -eq 1 ] && complained "no file 'libnone.so' was mapped; 'lbr report --by module' lists"
  verdict "$command --module: a file that is not in the trace" $?
done
run stat --module 'mod*' --json module.lbr
[ $status -eq 0 ] && "$lbr" stat --module "$PWD/module" --json module.lbr | sed 's/"module": *"[^"]*"/X/' >one &&
  "$lbr" stat --module 'mod*' --json module.lbr | sed 's/"module": *"[^"]*"/X/' | cmp -s - one
verdict '--module takes a path or a pattern' $?

# ---- where instructions are not known, no command makes numbers up ----

"$lbr" calls --summary --json --no-symbols plain.lbr >unknown
python3 - <<'END'
import json
rows = [row for row in map(json.loads, open("unknown")) if row["type"] == "function"]
most = max(rows, key=lambda row: row["own_branches"])
exit(most["own_instructions"] is not None or most["instructions"] is not None)
END
verdict 'calls --no-symbols: instructions are null' $?
run calls --no-symbols --folded plain.lbr
[ $status -eq 0 ] && complained 'not known' && run calls --no-symbols --folded --by branches plain.lbr && ! complained 'not known'
verdict 'calls --folded --no-symbols warns that instructions are not known' $?

"$lbr" machine --cpu skylake --kernel "$labs/calls.elf" --screen none --serial none --trace guest.lbr >out 2>&1
totals guest.lbr >numbers
read -r _ instructions taken _ < <(grep '^report ' numbers)
[ "$taken" -gt 100 ] && grep -q "^stat [0-9]* $taken " numbers && grep -q "^calls - $taken " numbers &&
  grep -q "^pprof [0-9]* $taken " numbers && [ "$instructions" = - ] &&
  "$lbr" report --json guest.lbr | grep -q '"has_unknown_code": *true'
verdict 'a guest: branches agree, instructions of 32-bit code are not known' $?

# The code of a guest stands at the end of its trace. up runs twice, from its first to its last instruction.
"$lbr" machine --cpu skylake --kernel "$labs/bts_64.elf" --screen none --serial none --trace guest64.lbr >out 2>&1
"$lbr" report --json --top all guest64.lbr >report.json
"$lbr" calls --summary --json guest64.lbr >calls.json
objdump -dw -M x86-64 --disassemble=up "$labs/bts_64.elf" | grep -cP '^ +[0-9a-f]+:\t' >count
python3 - 2>err <<'END'
import json
report = {row["symbol"]: row for row in json.load(open("report.json"))["functions"]}
calls = [row for row in map(json.loads, open("calls.json")) if row["type"] == "function"]
assert report["up"]["instructions"] == 2 * int(open("count").read()) > 10, report["up"]
for row in calls:
    one, other = row["own_instructions"], report[row["function"]]["instructions"]
    # Without a start that is known, calls still has the branch itself.
    assert one == other or (other is None and one == row["own_branches"]), (row, other)
assert sum(row["own_instructions"] is not None for row in calls) >= 8
unknown = [row for row in json.load(open("report.json"))["branches"] if row["from"]["symbol"] == "cpu_find"]
assert unknown and all(row["not_taken"] is None and row["rate"] is None for row in unknown), unknown
END
verdict 'a guest: report and calls know the same instructions of its 64-bit code, and none of its 32-bit code' $?

exit $((failures > 0))
