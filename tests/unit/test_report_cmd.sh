#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_report_cmd.sh LBR LABS: lbr report. Its counts must be those of gcov, of callgrind, and those that follow from programs
# whose loops are written out; for programs that are linked, stripped and debugged in the ways that programs are.
. "$(dirname "$0")/shell.sh"
labs=$(realpath "$2")
cd "$scratch" || exit 1
content() { ! [ -s "$scratch/err" ]; }

if [ "$(uname -m)" != x86_64 ]; then
  exit 77
fi

# record NAME PROGRAM...: makes NAME.lbr.
record()
{
  "$lbr" record --quiet -o "$1.lbr" "${@:2}" >native 2>&1
}

# ask EXPRESSION ARGUMENT...: a Python expression over the JSON `j` of lbr report ARGUMENT... must be true. rows(TABLE, KEY=VALUE...)
# are the rows of a table that have these values.
ask()
{
  "$lbr" report --json "${@:2}" >json 2>err || return 1
  python3 - "$1" <<'END'
import json, sys
j = json.load(open("json"))
def rows(table, **keys):
    return [row for row in j[table] if all(row.get(key) == value for key, value in keys.items())]
def one(table, **keys):
    found = rows(table, **keys)
    assert len(found) == 1, found
    return found[0]
sys.exit(0 if eval("(" + sys.argv[1] + ")") else print("not so:", sys.argv[1], "\n", json.dumps(j)[:2000], file=sys.stderr) or 1)
END
}

# ---- arithmetic: a program of which every instruction is known ----

cat >loops.S <<'END'
  .intel_syntax noprefix
  .globl _start
  .type _start, @function
_start:                         # runs once
  mov ebx, 300                  # 1
.Louter:
  call inner                    # 300
  dec ebx                       # 300
  jnz .Louter                    # 300, 299 of them taken
  mov ecx, 7                    # 1
.Lagain:
  loop .Lagain                   # 7, 6 taken
  xor ebx, ebx                  # 1
.Lturn:
  lea rax, [table + rip]        # 90
  mov edx, ebx                  # 90
  and edx, 1                    # 90
  movsxd rdx, [rax + 4 * rdx]   # 90
  add rax, rdx                  # 90
  call rax                      # 90: 45 to even, 45 to odd
  inc ebx                       # 90
  cmp ebx, 90                   # 90
  jne .Lturn                     # 90, 89 taken
  jmp last                      # 1: a jump to another function
  .size _start, . - _start
  .type inner, @function
inner:
  mov eax, 9                    # 300
1:
  dec eax                       # 2700
  js 2f                         # 2700, never taken
  jne 1b                        # 2700, 2400 taken
2:
  ret                           # 300
  .size inner, . - inner
  .type even, @function
even:
  ret                           # 45
  .size even, . - even
  .type odd, @function
odd:
  jmp even                      # 45: a tail call
  .size odd, . - odd
  .type last, @function
last:
  mov eax, 60                   # 1
  xor edi, edi                  # 1
  syscall                       # 1
  .size last, . - last
  .section .rodata
table:
  .long even - table, odd - table
END
gcc -nostdlib -static -Wl,--build-id=none -o loops loops.S && record loops ./loops
verdict 'a recording of loops' $?
# What runs in even: 45 by calls, 45 by the jump of odd. The last instruction, a system call that does not come back, may
# or may not be seen as a branch.
ask 'one("functions", symbol="inner")["instructions"] == 300 + 3 * 2700 + 300 and one("functions", symbol="inner")["taken"] == 2700 and
  one("functions", symbol="inner")["calls"] == 300 and one("functions", symbol="inner")["not_taken"] == 2700 + 300' --by function loops.lbr
verdict 'a loop in a loop' $?
ask 'one("functions", symbol="even")["instructions"] == 90 and one("functions", symbol="even")["calls"] == 90 and
  one("functions", symbol="odd")["instructions"] == 45 and one("functions", symbol="odd")["calls"] == 45' --by function loops.lbr
verdict 'calls, and jumps that are calls' $?
ask 'sum(row["instructions"] for row in j["functions"]) == j["instructions"] and
  sum(row["taken"] for row in j["functions"]) == j["taken"] and sum(row["not_taken"] for row in j["functions"]) == j["not_taken"] and
  j["instructions"] - (1 + 900 + 1 + 7 + 1 + 810 + 1 + 8700 + 90 + 45) in (0, 3) and
  j["taken"] - (300 + 299 + 6 + 90 + 89 + 1 + 2400 + 300 + 90 + 45) in (0, 1) and
  j["not_taken"] == 1 + 1 + 1 + 2700 + 300 and j["exact"]' --by function --top all loops.lbr
verdict 'the sums' $?
at() { printf '0x%x' $((0x$(nm loops | sed -n "s/ [a-zA-Z] $1\$//p") + $2)); }
ask 'all(one("branches", taken=taken, not_taken=passed)["rate"] == rate for taken, passed, rate in
  ((299, 1, 0.996667), (6, 1, 0.857143), (89, 1, 0.988889), (0, 2700, 0), (2400, 300, 0.888889))) and len(j["branches"]) == 5' \
  --by branch loops.lbr
verdict 'conditional branches' $?
ask 'one("indirect")["count"] == 90 and [(t["count"], t["to"]["symbol"]) for t in one("indirect")["targets"]] ==
  [(45, "even"), (45, "odd")]' --by indirect loops.lbr
verdict 'indirect branches' $?
ask "[(e['count'], e['kind'], e['to']['symbol']) for e in j['edges']][:2] == [(2400, 'jcc', 'inner'), (300, 'call', 'inner')] and
  j['edges'][1]['to']['address'] == '$(at inner 0)' and j['edges'][1]['from']['address'] == '$(at _start 5)'" --by edge loops.lbr
verdict 'edges' $?
# Which order follows from the comments above.
while read -r order names; do
  ask "' '.join(row['symbol'] for row in j['functions']) == '$names'" --by function --sort "$order" loops.lbr
  verdict "functions by $order" $?
done <<'END'
instructions inner _start even odd last
taken inner _start even odd last
passed inner _start even last odd
calls inner even odd last _start
name _start even inner last odd
END
ask '[row["rate"] for row in j["branches"]] == sorted((row["rate"] for row in j["branches"]), reverse=True)' --by branch --sort rate loops.lbr
verdict 'branches by rate' $?
ask 'len(j["functions"]) == 1 and all("inner" in (e["from"]["symbol"], e["to"]["symbol"]) for e in j["edges"]) and len(j["edges"]) == 3 and
  len(j["branches"]) == 2' --function inner loops.lbr
verdict 'report --function' $?
ask 'len(j["functions"]) == 2' --by function --top 2 loops.lbr
verdict 'report --top' $?
run report loops.lbr
[ $status -eq 0 ] && content && said 'exact counts, not samples' && said 'every branch counted: 3,' && said 'Conditional branches' &&
  ! grep -q $'[\033\x80-\xff]' out && grep -qE '^ +[0-9.]+% +8,700 +2,700 +300 inner  \[loops\]$' out
verdict 'the dashboard, as text' $?
script -qec "$lbr report --by function loops.lbr" /dev/null >out 2>&1 </dev/null
grep -q '█' out && grep -q $'\033' out
verdict 'bars on a terminal' $?
LC_ALL=C script -qec "$lbr report --by function loops.lbr" /dev/null >out 2>&1 </dev/null
grep -q '####' out && ! grep -q '█' out
verdict 'bars on a terminal without UTF-8' $?
NO_COLOR=1 script -qec "$lbr report --by function loops.lbr" /dev/null >out 2>&1 </dev/null
grep -q '█' out && ! grep -q $'\033' out
verdict 'NO_COLOR' $?

# ---- gcov ----

cat >cover.c <<'END'
#include <stdio.h>
static int steps(unsigned n) {
  int count = 0;
  while (n != 1) {
    if (n % 2)
      n = 3 * n + 1;
    else
      n /= 2;
    count++;
  }
  return count;
}
static int kind(int c) {
  switch (c) {
  case 0: return 5;
  case 1: return 7;
  case 2: return 1;
  case 3: return 9;
  case 4: return 4;
  case 5: return 2;
  default: return 0;
  }
}
static int both(int a, int b) {
  return (a > 3 && b < 5) || a == b;
}
static int down(int n) {
  if (n <= 1)
    return n;
  return down(n - 1) + down(n - 2);
}
int main(void) {
  int sum = down(12);
  for (unsigned i = 1; i < 300; i++)
    sum += steps(i);
  for (int i = 0; i < 50; i++)
    for (int j = 0; j < i; j++) {
      sum += kind((i + j) % 8);
      sum ^= both(i, j) ? i : j;
    }
  do
    sum -= 1000;
  while (sum > 0);
  if (sum > 0)
    puts("never");
  printf("%d\n", sum);
  return 0;
}
END
# covered PROGRAM WHAT...: the counts of PROGRAM's trace are gcov's. Lines: all that gcov has, but for those that have no code.
# Branches: the ways of every condition.
covered()
{
  "$lbr" report --by line --top all --json --module "$1" "$1.lbr" >lines.json && "$lbr" report --by branch --top all --json --module "$1" "$1.lbr" >branches.json &&
    "$lbr" report --by indirect --top all --json --module "$1" "$1.lbr" >indirect.json && python3 - "${@:2}" <<'END'
import collections, json, sys
def here(place):
    return (place.get("file") or "").endswith("cover.c")
wanted, ways = collections.Counter(), {}
for line in [f for f in json.load(open("gcov.json"))["files"] if f["file"].endswith("cover.c")][0]["lines"]:
    wanted[line["line_number"]] += line["count"]
    if line["branches"]:
        ways[line["line_number"]] = sorted(b["count"] for b in line["branches"])
lines = {row["line"]: row["executed"] for row in json.load(open("lines.json"))["lines"] if here(row)}
found = collections.defaultdict(list)
for row in json.load(open("branches.json"))["branches"]:
    if here(row["from"]):
        found[row["from"]["line"]] += [row["taken"], row["not_taken"]]
for row in json.load(open("indirect.json"))["indirect"]: # a switch: the table's ways, and the one that is none of them
    if here(row["from"]):
        found[row["from"]["line"]].remove(row["count"])
        found[row["from"]["line"]] += [target["count"] for target in row["targets"]]
assert len(wanted) > 30 and len(ways) > 10
bad = [("line", n, c, lines.get(n)) for n, c in wanted.items() if lines.get(n, 0) != c]
bad = bad if "lines" in sys.argv else []
bad += [("ways", n, w, sorted(found[n])) for n, w in ways.items() if w != sorted(found[n])]
bad += [("extra", n) for n in found if n not in ways]
for what in bad:
    print(*what, file=sys.stderr)
sys.exit(bool(bad))
END
}
gcc -O0 -g -o cover cover.c && gcc -O0 -g --coverage -o counted cover.c && ./counted >/dev/null && gcov -b --json-format --stdout counted-cover.gcda >gcov.json &&
  record cover ./cover && covered cover lines branches
verdict 'lines and branches are those of gcov' $?
# The counting code of gcov itself is not on the lines that it counts, but its branches are the same.
record counted ./counted && covered counted branches
verdict 'branches of the program that gcov counts' $?
for version in 4 5; do
  gcc -O0 -gdwarf-$version -o dwarf$version cover.c && record dwarf$version ./dwarf$version && covered dwarf$version lines
  verdict "lines with DWARF $version" $?
done
clang -O0 -g -o clanged cover.c && record clanged ./clanged && "$lbr" report --by line --top all --json --module clanged clanged.lbr >json &&
  python3 -c 'import json
lines = {row["line"]: row["executed"] for row in json.load(open("json"))["lines"]}
wanted = {line["line_number"]: line["count"] for line in json.load(open("gcov.json"))["files"][0]["lines"]}
assert all(lines.get(n, 0) == wanted[n] for n in (3, 4, 5, 6, 8, 9, 11, 14, 27, 28, 30, 35, 38, 39, 47)), (lines, wanted)'
verdict 'lines of a program that clang made' $?

# ---- callgrind ----

if command -v valgrind >/dev/null; then
  gcc -O1 -fno-inline -g -o grind cover.c && record grind ./grind &&
    valgrind --tool=callgrind --callgrind-out-file=grind.out --compress-strings=no --compress-pos=no --skip-plt=no ./grind >/dev/null 2>&1 &&
    "$lbr" report --by function --top all --json --module grind grind.lbr >json && python3 - <<'END'
import collections, json, re
own, calls, function, is_callee = collections.Counter(), collections.Counter(), None, False
inside, target = None, None
for line in open("grind.out"):
    line = line.rstrip("\n")
    if line.startswith("ob="):
        inside = line.endswith("/grind")
    elif line.startswith("fn="):
        function = (inside, line[3:])
    elif line.startswith("cfn="):
        target = line[4:]
    elif line.startswith("calls="):
        calls[target] += int(line[6:].split()[0])
        is_callee = True
    elif re.match(r"[0-9+*-]", line):
        if not is_callee:
            own[function] += int(line.split()[-1])
        is_callee = False
ours = {row["symbol"]: row for row in json.load(open("json"))["functions"]}
for name in ("main", "steps", "kind", "both", "down"):
    theirs = sum(count for (_, n), count in own.items() if n.split("'")[0] == name)
    assert theirs > 0 and ours[name]["instructions"] == theirs, (name, ours[name], theirs)
for name, wanted in (("steps", 299), ("kind", 1225), ("both", 1225)):
    assert calls[name] == ours[name]["calls"] == wanted, (name, calls[name], ours[name])
END
  verdict 'instructions and calls are those of callgrind' $?
fi

# ---- inlined functions ----

cat >inline.c <<'END'
#include <stdlib.h>
volatile int sink;
static inline __attribute__((always_inline)) void twice(int x) {
  sink = 2 * x;
}
__attribute__((noinline)) void one(void) {
  for (int i = 0; i < 100; i++)
    twice(i);
}
__attribute__((noinline)) void other(void) {
  for (int i = 0; i < 23; i++)
    twice(i);
}
int main(void) {
  one();
  other();
  return 0;
}
END
for version in 4 5; do
  gcc -O2 -gdwarf-$version -o inline$version inline.c && record inline$version ./inline$version &&
    ask 'one("lines", line=4)["executed"] == 123 and one("lines", line=4)["function"] == "twice" and one("lines", line=4)["is_inlined"] and
      not one("lines", line=15)["is_inlined"]' --by line --top all --module inline$version inline$version.lbr
  verdict "a function that is inlined twice, DWARF $version" $?
  ask 'one("lines", line=4)["executed"] == 123 and not rows("lines", line=15)' --by line --top all --function twice inline$version.lbr
  verdict "report --by line --function of one that is inlined, DWARF $version" $?
done

# ---- the ways in which programs are made ----

# The same code, wherever it lies.
for way in '-fPIE -pie' '-fno-pie -no-pie' '-fno-pie -static' '-fPIE -static-pie'; do
  name=way${way//[ -]/}
  # shellcheck disable=SC2086
  gcc -O0 -g $way -o "$name" cover.c && record "$name" "./$name" && covered "$name" lines
  verdict "a program made with $way" $?
done
sum() { python3 -c 'import json, sys
j = json.load(open(sys.argv[1]))
print(*sorted((str(row["symbol"]), row["instructions"], row["taken"], row["calls"]) for row in j["functions"]))' "$1"; }
"$lbr" report --by function --top all --json --module cover cover.lbr >whole.json
mkdir -p stripped separate
strip -o stripped/cover cover
record stripped ./stripped/cover
ask "len(j['modules']) == 1 and j['modules'][0]['instructions'] == $("$lbr" report --by module --module cover --json cover.lbr |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["modules"][0]["instructions"])')" --by module --module cover stripped.lbr
verdict 'a stripped program runs the same instructions' $?
# Without symbols, functions begin where calls lead to; main and the functions of the program do so.
for name in main steps kind both down; do
  nm cover | sed -n "s/^0*\([0-9a-f]*\) [tT] $name\$/0x\1/p"
done >starts
ask 'all(one("functions", symbol=None, address=start.strip())["instructions"] > 0 for start in open("starts")) and
  sorted((f["instructions"], f["calls"]) for f in j["functions"] if f["address"] in open("starts").read().split()) ==
  sorted((f["instructions"], f["calls"]) for f in __import__("json").load(open("whole.json"))["functions"] if f["symbol"] in
  ("main", "steps", "kind", "both", "down")) and len(open("starts").readlines()) == 5' --by function --module cover --top all stripped.lbr
verdict 'functions of a stripped program, by where calls lead to' $?
objcopy --only-keep-debug cover separate/cover.debug && strip -o separate/cover cover && (cd separate && objcopy --add-gnu-debuglink=cover.debug cover) &&
  record separate ./separate/cover && "$lbr" report --by function --top all --json --module cover separate.lbr >json && [ "$(sum json)" = "$(sum whole.json)" ]
verdict 'a program with a separate debug file' $?
"$lbr" report --by line --top all --json --module cover separate.lbr >json && "$lbr" report --by line --top all --json --module cover cover.lbr >want &&
  python3 -c 'import json; a, b = ([(r["line"], r["executed"]) for r in json.load(open(n))["lines"]] for n in ("json", "want")); assert a and a == b'
verdict 'its lines, too' $?

# ---- libraries that come and go ----

for letter in a b; do
  n=$([ $letter = a ] && echo 111 || echo 77)
  cat >lib$letter.c <<END
volatile int sink;
void work(void) { for (int i = 0; i < $n; i++) sink += i; }
END
  gcc -O0 -g -shared -fPIC -o lib$letter.so lib$letter.c
done
cat >loader.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
static void *once(const char *name) {
  void *library = dlopen(name, RTLD_NOW), *at;
  void (*work)(void);
  if (!library)
    return NULL;
  at = dlsym(library, "work");
  *(void **)&work = at;
  work();
  dlclose(library);
  return at;
}
int main(void) {
  void *a = once("./liba.so"), *b = once("./libb.so");
  once("./liba.so");
  return puts(a && a == b ? "same" : "different") < 0;
}
END
gcc -O0 -g -o loader loader.c && record loader ./loader && [ "$(cat native)" = same ] &&
  ask 'one("branches", taken=222, not_taken=2)["from"]["module"] == "liba.so" and one("branches", taken=77, not_taken=1)["from"]["module"] == "libb.so"' \
    --by branch --top all --function work loader.lbr
verdict 'two libraries, one after the other at one address' $?
ask 'one("functions", module="liba.so")["calls"] == 2 and one("functions", module="libb.so")["calls"] == 1' --by function --function work loader.lbr
verdict 'functions of one name are told apart by their files' $?

# ---- processes and threads ----

cat >first.c <<'END'
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
volatile int sink;
void before(void) { sink++; }
int main(void) {
  for (int i = 0; i < 50; i++)
    before();
  if (!fork()) {
    for (int i = 0; i < 30; i++)
      before();
    execl("./second", "second", (char *)NULL);
    _exit(1);
  }
  wait(NULL);
  for (int i = 0; i < 20; i++)
    before();
  return 0;
}
END
cat >second.c <<'END'
volatile int sink;
void after(void) { sink--; }
int main(void) {
  for (int i = 0; i < 40; i++)
    after();
  return 0;
}
END
gcc -O0 -g -o first first.c && gcc -O0 -g -o second second.c && record first ./first &&
  ask 'one("functions", symbol="before")["calls"] == 100 and one("functions", symbol="after")["calls"] == 40 and
    one("functions", symbol="main", module="first") and one("functions", symbol="main", module="second")["calls"] == 1' --by function --top all first.lbr
verdict 'fork and exec: two programs' $?
ask 'len(j["threads"]) >= 2 and sum(t["instructions"] for t in j["threads"]) == j["instructions"] and
  sum(t["taken"] for t in j["threads"]) == j["taken"] and sum(t["not_taken"] for t in j["threads"]) == j["not_taken"]' --by thread --top all first.lbr
verdict 'the sums of threads' $?
ask 'one("functions", symbol="before")["calls"] == 70 and not rows("functions", symbol="after")' --by function --top all --thread 0 first.lbr
verdict 'report --thread' $?
run report --thread 99 first.lbr
[ $status -eq 1 ] && silent && complained "no thread 99; 'lbr stat' lists the threads"
verdict 'a thread that there is not' $?

cat >busy.c <<'END'
#include <pthread.h>
#include <signal.h>
volatile int sink;
void handler(int signal) { sink += signal; }
void *work(void *count) {
  for (long i = 0; i < (long)count; i++)
    sink++;
  return 0;
}
int main(void) {
  pthread_t threads[3];
  signal(SIGUSR1, handler);
  for (int i = 0; i < 10; i++)
    raise(SIGUSR1);
  for (long i = 0; i < 3; i++)
    pthread_create(&threads[i], 0, work, (void *)(100 + i));
  for (int i = 0; i < 3; i++)
    pthread_join(threads[i], 0);
  return 0;
}
END
gcc -g -O0 -o busy busy.c && record busy ./busy && ask 'one("functions", symbol="handler")["calls"] == 10' --by function --function handler busy.lbr
verdict 'signals enter their handlers' $?
ask 'one("branches")["taken"] == 303 and one("branches")["not_taken"] == 3' --by branch --function work busy.lbr
verdict 'three threads in one function' $?
for number in 1 2 3; do # which of them has which number is up to the system
  ask "one('branches')['taken'] in (100, 101, 102) and one('branches')['not_taken'] == 1" --by branch --function work --thread $number busy.lbr
  verdict "and thread $number alone" $?
  sed -n 's/^ *"taken": \(10[0-2]\),$/\1/p' json >>alone
done
[ "$(sort -u alone | wc -l)" -eq 3 ]
verdict 'each of them is another one' $?

# ---- what is not known ----

"$lbr" machine --cpu westmere --kernel "$labs/ex14_2.elf" --screen none --serial none --trace machine.trace >/dev/null 2>&1
branches=$("$lbr" stat --json machine.trace | python3 -c 'import json, sys; print(json.load(sys.stdin)["branches"])')
[ "$branches" -gt 10 ] && ask "j['taken'] == $branches and j['has_unknown_code'] and not j['exact'] and
  sum(f['taken'] for f in j['functions']) == $branches" --by function --top all machine.trace
verdict 'a trace of a machine: branches without code' $?
run report machine.trace
[ $status -eq 0 ] && said 'not known: some of the code that ran' && ! grep -qE '^ .*% +0 +[0-9,]+ +[0-9,]+ [_a-z]' out &&
  grep -qE '^ .*% +- +[0-9,]+ +[0-9,]+ [_a-z]' out
verdict 'it says so, and does not call it 0' $?
ask "all(f['instructions'] is None and f['not_taken'] is None for f in j['functions'])" --by function --top all machine.trace
verdict 'nor in JSON' $?
run report --no-symbols --json loops.lbr
[ $status -eq 0 ] && python3 -c 'import json; j = json.load(open("out")); assert j["taken"] in (3620, 3621) and all(f["symbol"] is None for f in j["functions"])'
verdict 'report --no-symbols' $?
head -c $(($(stat -c %s cover.lbr) * 2 / 3)) cover.lbr >cut.lbr
run report cut.lbr
[ $status -eq 1 ] && said 'every branch counted' && said 'gaps of the trace' && complained 'truncated: '
verdict 'a trace that was cut' $?
run report /dev/null
[ $status -eq 1 ] && silent && complained '/dev/null: '
verdict 'no trace' $?

run report --function innner loops.lbr
[ $status -eq 1 ] && silent && complained "no function 'innner' ran; near it: inner"
verdict 'a function that did not run' $?
run report --module libnone.so loops.lbr
[ $status -eq 1 ] && silent && complained "no file 'libnone.so' was mapped"
verdict 'a module that there is not' $?

# ---- command lines ----

# wrong WHAT ARGUMENT...: is a usage error that says WHAT.
wrong()
{
  run report "${@:2}"
  [ $status -eq 2 ] && silent && complained "$1"
  verdict "report ${*:2}" $?
}
wrong 'name a trace'
wrong 'name one trace' loops.lbr loops.lbr
wrong "--by wants function, line, edge, branch, indirect, module, thread or latency, not 'x'" --by x loops.lbr
wrong "--sort wants instructions, taken, passed, calls, count, rate, targets, flips, mispredicted or name, not 'x'" --sort x loops.lbr
wrong 'this table cannot be sorted by rate, only by count, name' --by edge --sort rate loops.lbr
wrong "--top wants a number from 0 to" --top -1 loops.lbr
wrong "--thread wants a number from 0 to" --thread 9x loops.lbr
wrong '--by thread excludes' --by thread --thread 0 loops.lbr
wrong '--source-prefix wants DIR or OLD=NEW' --source-prefix = loops.lbr
run report --help
[ $status -eq 0 ] && said 'exact numbers, not samples'
verdict 'report --help' $?

exit $((failures > 0))
