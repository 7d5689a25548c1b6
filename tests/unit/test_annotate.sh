#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_annotate.sh LBR LABS: lbr annotate. Counts of instructions and branches must be those that follow from the program, its
# instructions and lines those of objdump and addr2line; and it must say what it does not know.
. "$(dirname "$0")/shell.sh"
labs=$(realpath "$2")
cd "$scratch" || exit 1
content() { ! [ -s "$scratch/err" ]; }

if [ "$(uname -m)" != x86_64 ]; then
  exit 77
fi

record() { "$lbr" record --quiet -o "$1.lbr" "${@:2}" >native 2>&1; }

# ask EXPRESSION ARGUMENT...: a Python expression over the JSON `j` of lbr annotate ARGUMENT... must be true. `rows` are those of the
# first function, `by` the same by their addresses.
ask()
{
  "$lbr" annotate --json "${@:2}" >json 2>err || return 1
  python3 - "$1" <<'END'
import json, sys
j = json.load(open("json"))
rows = j["functions"][0]["rows"]
by = {int(row["address"], 16): row for row in rows}
start = int(j["functions"][0]["start"], 16)
sys.exit(0 if eval("(" + sys.argv[1] + ")") else print("not so:", sys.argv[1], "\n", json.dumps(j)[:3000], file=sys.stderr) or 1)
END
}

# ---- a function of which every count is known ----

cat >count.S <<'END'
  .intel_syntax noprefix
  .globl _start
  .type _start, @function
_start:
  mov ebx, 500
1:
  call work
  dec ebx
  jnz 1b
  mov eax, 60
  xor edi, edi
  syscall
  .size _start, . - _start
  .type work, @function
work:                           # counts:
  mov eax, 4                    # 500
1:
  test al, 1                    # 2000
  jz 2f                         # 2000: 1000 taken
  nop                           # 1000
2:
  dec eax                       # 2000
  jnz 1b                        # 2000: 1500 taken
  jmp 3f                        # 500
  ud2                           # 0
3:
  je 4f                         # 500: all taken, behind the prefix
  lock                          # 0: with the next one, LOCK INC
4:
  inc dword ptr [rip + cell]    # 500
  lea rax, [rip + 5f]           # 500
  jmp rax                       # 500
  nop                           # 0
5:
  ret                           # 500
  .size work, . - work
  .bss
cell:
  .long 0
END
gcc -nostdlib -static -Wl,--build-id=none -o count count.S && record count ./count
verdict 'a recording' $?
# Counts in the order of the source; LOCK INC is an instruction of its own that never ran.
ask '[row["executed"] for row in rows] == [500, 2000, 2000, 1000, 2000, 2000, 500, 0, 500, 0, 500, 500, 500, 0, 500] and
  j["exact"] and j["functions"][0]["calls"] == 500 and j["functions"][0]["instructions"] == 500 + 4 * 2000 + 1000 + 6 * 500' count.lbr work
verdict 'counts of instructions' $?
ask '[(row["kind"], row["taken"], row["not_taken"]) for row in rows if row["kind"]] == [("jcc", 1000, 1000), ("jcc", 1500, 500), ("jmp", 500, 0),
  ("jcc", 500, 0), ("jmp_ind", 500, 0), ("ret", 500, 0)]' count.lbr work
verdict 'counts of branches' $?
# Address and length of everything that ran, as objdump has it.
objdump -d --no-show-raw-insn -M intel count | sed -n '/<work>:/,/^$/s/^ *\([0-9a-f]*\):.*/\1/p' >addresses
ask 'set(int(a, 16) for a in open("addresses")) <= set(by) and len(set(by) - set(int(a, 16) for a in open("addresses"))) == 1' count.lbr work
verdict 'instructions are those of objdump, and the one inside of another' $?
run annotate count.lbr work
[ $status -eq 0 ] && content && said 'exact counts, not samples' && said 'entered 500 times' && said 'taken 1,000 (50.0%), not taken 1,000' &&
  said 'taken 1,500 (75.0%), not taken 500' && ! grep -q $'[\033\x80-\xff]' out
verdict 'as text' $?
# Arrows: the line of the branch has a corner, that of its target a head.
grep -E '^ +2,000 .*\+-.*jz' out >/dev/null && grep -E '^ +2,000 .*>.*(dec|test)' out >/dev/null
verdict 'arrows' $?
script -qec "$lbr annotate count.lbr work" /dev/null >out 2>&1 </dev/null
grep -q '╰' out && grep -q '▶' out && grep -q $'\033\[1;31m' out
verdict 'arrows and colours on a terminal' $?

# ---- ways to name it ----

address=0x$(nm count | sed -n 's/ [tT] work$//p')
for word in count:work "$address" "count:$address" "$(printf '0x%x' $((address + 7)))"; do
  ask 'len(j["functions"]) == 1 and j["functions"][0]["symbol"] == "work"' count.lbr "$word"
  verdict "annotate ${word/$address/ADDRESS}" $?
done
run annotate count.lbr wrok
[ $status -eq 1 ] && silent && complained "no function 'wrok' ran; near it: work"
verdict 'a name that is nearly right' $?
run annotate count.lbr nothing_like_this
[ $status -eq 1 ] && silent && complained "'lbr report --by function --top all' lists those that did"
verdict 'a name that there is not' $?
run annotate count.lbr 0x10
[ $status -eq 1 ] && silent && complained "no function '0x10' ran"
verdict 'an address of nothing' $?
strip -o naked count && record naked ./naked
entry=$(readelf -h naked | sed -n 's/ *Entry point address: *//p')
ask "rows[0]['address'] == '$entry'" naked.lbr "naked:$entry"
verdict 'code without symbols that was never called begins where it ran first' $?
run annotate naked.lbr "naked:$(printf '0x%x' $((entry - 16)))"
[ $status -eq 1 ] && silent && complained 'ran;'
verdict 'and not before' $?

# ---- source ----

mkdir -p source && cat >source/lines.c <<'END'
#include <stdio.h>
int idle(int x) { return x + 1; }
static inline __attribute__((always_inline)) int half(volatile int *x) {
  return *x / 2;
}
volatile int cell;
__attribute__((noinline)) int sum(int n) {
  int s = 0;
  for (int i = 0; i < n; i++)
    /* a comment before the line that counts */
    if (i % 4 == 1)
      s += half(&cell);
  return s;
}
int main(int argc, char **argv) {
  (void)argv;
  printf("%d\n", sum(1000));
  return argc > 5 ? idle(argc) : 0;
}
END
for options in '-O0 -gdwarf-4' '-O0 -gdwarf-5' '-O2 -gdwarf-4' '-O2 -gdwarf-5'; do
  # shellcheck disable=SC2086
  gcc $options -o lines source/lines.c && record lines ./lines && "$lbr" annotate --json lines.lbr sum >json && python3 - <<'END'
import json, subprocess
rows = json.load(open("json"))["functions"][0]["rows"]
told = subprocess.run(["addr2line", "-e", "lines", "-a", "-i"] + [row["address"] for row in rows], capture_output=True, text=True).stdout
wanted, now = {}, None
for line in told.splitlines():
    if line.startswith("0x"):
        now = int(line, 16)
    else:
        wanted.setdefault(now, line.split(" ")[0])
assert len(rows) > 10
for row in rows:
    file, line = wanted[int(row["address"], 16)].rsplit(":", 1)
    assert str(row["line"] or "?") == line and (row["file"] or "??").endswith(file.rsplit("/", 1)[-1]), (row, file, line)
inlined = [row for row in rows if row["is_inlined"]]
assert inlined and all(row["function"] == "half" and row["line"] == 4 for row in inlined) and any(row["executed"] == 250 for row in inlined)
END
  verdict "lines are those of addr2line, $options" $?
done
if command -v valgrind >/dev/null; then
  valgrind --tool=callgrind --dump-instr=yes --callgrind-out-file=lines.out --compress-strings=no --compress-pos=no --skip-plt=no ./lines >/dev/null 2>&1 &&
    "$lbr" annotate --json lines.lbr sum >json && "$lbr" annotate --json lines.lbr main >json2 && python3 - <<'END'
import collections, json
theirs, file, is_call = collections.Counter(), None, False
for line in open("lines.out"):
    if line.startswith("ob="):
        file = line.strip()
    elif line.startswith("calls="):
        is_call = True
    elif line.startswith("0x"): # what a call cost stands in the line behind it
        if not is_call and file.endswith("/lines"):
            theirs[int(line.split()[0], 16)] += int(line.split()[-1])
        is_call = False
rows = [row for name in ("json", "json2") for row in json.load(open(name))["functions"][0]["rows"]]
bad = [(row["address"], row["executed"], theirs[int(row["address"], 16)]) for row in rows if row["executed"] != theirs[int(row["address"], 16)]]
assert len(rows) > 20 and not bad, bad
END
  verdict 'every instruction ran as often as callgrind says' $?
fi
run annotate lines.lbr sum
[ $status -eq 0 ] && content && said 'for (int i = 0; i < n; i++)' && said '(inlined half)' && said 'return *x / 2;'
verdict 'source lines, those of an inlined function too' $?
run annotate --no-source lines.lbr sum
[ $status -eq 0 ] && ! said 'for (int'
verdict 'annotate --no-source' $?
mv source elsewhere
run annotate lines.lbr sum
[ $status -eq 0 ] && [ "$(grep -c 'lines.c: No such file' err)" -eq 1 ] && said 'lines.c:9' && ! said 'for (int'
verdict 'source that is not there: said once' $?
run annotate --source-prefix "$PWD/source=$PWD/elsewhere" lines.lbr sum
[ $status -eq 0 ] && content && said 'for (int i = 0; i < n; i++)'
verdict 'annotate --source-prefix' $?
touch -d '1 hour' elsewhere/lines.c
run annotate --source-prefix "$PWD/source=$PWD/elsewhere" lines.lbr sum
[ $status -eq 0 ] && complained 'changed since the recording began'
verdict 'source that was changed since' $?
printf 'x\033[31m\n\377\n' >elsewhere/lines.c
run annotate --source-prefix "$PWD/source=$PWD/elsewhere" lines.lbr sum
[ $status -eq 0 ] && ! grep -q $'[\033\377]' out
verdict 'source that holds control characters' $?
run annotate lines.lbr idle
[ $status -eq 1 ] && silent && complained "'idle' is in lines, but never ran"
verdict 'a function that never ran' $?

# ---- what is not known ----

strip -o bare lines && record bare ./bare
at=$(nm lines | sed -n 's/^0*\([0-9a-f]*\) [tT] sum$/0x\1/p')
ask "start == $at and rows[0]['address'] == '$at' and any(row['executed'] == 1000 for row in rows) and j['functions'][0]['symbol'] is None" bare.lbr "bare:$at"
verdict 'code without a symbol, by its address' $?
"$lbr" machine --cpu westmere --kernel "$labs/ex14_2.elf" --screen none --serial none --trace machine.trace >/dev/null 2>&1
run annotate machine.trace __putc
[ $status -eq 0 ] && said 'the bytes are not known' && said 'not known: how often its instructions ran' && said '-> __write_char'
verdict 'a trace of a machine: branches only' $?
ask 'all(row["executed"] == row["taken"] for row in rows) and not j["exact"]' machine.trace __putc
verdict 'and their counts' $?
head -c $(($(stat -c %s lines.lbr) - 40)) lines.lbr >cut.lbr
run annotate cut.lbr main
[ $status -eq 1 ] && complained 'cut.lbr: '
verdict 'a trace that was cut' $?

# ---- several functions ----

cat >twin.c <<'END'
int other(int n);
__attribute__((noinline)) static int twin(int n) { return n + 1; }
int main(void) {
  int s = 0;
  for (int i = 0; i < 5; i++)
    s = twin(s) + other(s);
  return s == 1;
}
END
cat >twin2.c <<'END'
__attribute__((noinline)) static int twin(int n) { return n - 1; }
int other(int n) { return twin(n) + twin(n); }
END
gcc -g -O0 -o twin twin.c twin2.c && record twin ./twin && ask 'sorted(f["calls"] for f in j["functions"]) == [5, 10]' twin.lbr twin
verdict 'two functions of one name' $?
cat >name.cc <<'END'
namespace space { struct thing { int work(int n) { return n + 1; } }; }
int main() { space::thing t; int s = 0; for (int i = 0; i < 9; i++) s = t.work(s); return s == 1; }
END
g++ -g -O0 -o name name.cc && record name ./name && ask 'j["functions"][0]["symbol"] == "space::thing::work(int)" and j["functions"][0]["calls"] == 9' \
  name.lbr space::thing::work && ask 'j["functions"][0]["calls"] == 9' name.lbr _ZN5space5thing4workEi &&
  ask 'j["functions"][0]["calls"] == 9' name.lbr name:space::thing::work
verdict 'names of C++' $?

# ---- command lines ----

wrong()
{
  run annotate "${@:2}"
  [ $status -eq 2 ] && silent && complained "$1"
  verdict "annotate ${*:2}" $?
}
wrong 'name a trace and a function' count.lbr
wrong 'name one trace and one function' count.lbr work more
wrong '--thread wants a number' --thread 9x count.lbr work
wrong '--source-prefix wants DIR or OLD=NEW' --source-prefix = count.lbr work
ask '[row["executed"] for row in rows][:2] == [500, 2000]' --thread 0 count.lbr work
verdict 'annotate --thread' $?
run annotate --help
[ $status -eq 0 ] && said 'exact numbers'
verdict 'annotate --help' $?

exit $((failures > 0))
