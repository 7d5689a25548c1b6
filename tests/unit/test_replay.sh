#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_replay.sh LBR PROGRAMS: lbr replay. What a processor's LBR stack and BTS buffer hold must be what follows from the
# list of single steps (PROGRAMS is the folder with the oracle, and with programs of tests/process), what lbr run --cpu
# shows of the same program, and the same whether all branches are read or the last ones only.
. "$(dirname "$0")/shell.sh"
here=$(realpath "$(dirname "$0")")
programs=$(realpath "$2")
cd "$scratch" || exit 1

gcc -nostdlib -static -Wl,--build-id=none -o scan "$here/test_script_scan.S" || exit 1
text=$(printf 'xaybazab%.0s' $(seq 250)) # more branches than are read where the last ones are enough
"$lbr" record --quiet -o scan.lbr ./scan "$text"
"$programs/oracle" list ./scan "$text" 2>/dev/null
if [ $? -eq 126 ]; then
  echo 'skip single steps: not permitted here'
  "$lbr" script scan.lbr | awk '{ print 1, $3, $6, $8 }' >list
fi
grep -v '^#' list >steps
count=$(wc -l <steps)
# Three for each of 2000 letters, one more for 750 a's, the call, the end of the loop, the return, exit.
[ "$count" -eq 6754 ]
verdict 'a list of single steps' $?

# holds NAME PYTHON: what replay printed as JSON is what the list gives; `steps` has (from, to, kind), `lbr` the object.
holds()
{
  [ "$status" -eq 0 ] && python3 - "$2" <<'END'
import json, sys
steps = [(int(a, 16), int(b, 16), kind) for _, a, b, kind in map(str.split, open("steps"))]
page = json.load(open("out"))
lbr = page.get("lbr")
got = [(int(e["from"], 16), int(e["to"], 16), e["kind"]) for e in lbr["entries"]] if lbr else None

def last(branches, depth):
    return branches[::-1][:depth]

def call_stack(branches):
    stack = []
    for branch in branches:
        if branch[2] in ("call", "call_ind"):
            stack.append(branch)
        elif branch[2] == "ret" and stack:
            stack.pop()
    return stack[::-1]

sys.exit(not eval(sys.argv[1]))
END
  verdict "$1" $?
}

# ---- the LBR stack ----

while read -r cpu depth; do
  run replay --cpu "$cpu" --json scan.lbr
  holds "$cpu: its $depth records are the last branches" "got == last(steps, $depth) and page['position'] == len(steps)"
  for at in 0 "$((depth - 1))" 4095 4096 $((count - 1)); do
    run replay --cpu "$cpu" --json --at $at scan.lbr
    holds "$cpu: behind branch $at" "got == last(steps[:$at + 1], $depth) and page['position'] == $at + 1"
  done
done <<END
merom 4
westmere 16
haswell 16
skylake 32
sapphirerapids 32
END

run replay --cpu haswell --json --at vowel:7 scan.lbr
holds 'when a function is entered for the seventh time' \
  "got == last(steps[:[i for i, s in enumerate(steps) if s[2] == 'call'][7] + 1], 16)"
run replay --cpu haswell --json --at vowel scan.lbr
holds 'when it is entered for the first time' 'got == last(steps[:2], 16)'
to=$(awk '$4 == "jcc" { print $3; exit }' steps)
run replay --cpu haswell --json --at "$to:30" scan.lbr
holds 'when an address is reached' "got == last(steps[:[i for i, s in enumerate(steps) if s[1] == $to][29] + 1], 16)"
run replay --cpu haswell --json --select jcc,near_rel_jmp scan.lbr
holds 'with a filter' "got == last([s for s in steps if s[2] not in ('jcc', 'jmp')], 16)"
run replay --cpu haswell --json --select 0x84 scan.lbr
holds 'the same, as a number' "got == last([s for s in steps if s[2] not in ('jcc', 'jmp')], 16)"
run replay --cpu sapphirerapids --json --select near_ret scan.lbr
holds 'with a filter of architectural LBR' "got == last([s for s in steps if s[2] == 'ret'], 32)"
for at in vowel:7 4999 end; do
  for cpu in haswell sapphirerapids; do
    run replay --cpu $cpu --call-stack --json --at $at scan.lbr
    holds "$cpu: call-stack mode, $at" "got == call_stack(steps[:page['position']])"
  done
done

# ---- as lbr run has it ----

for cpu in merom haswell skylake sapphirerapids zen4; do
  run run --always --cpu $cpu ./scan "$text"
  sed -n '/: recording on/,$p' err >want
  run replay --cpu $cpu scan.lbr
  [ $status -eq 0 ] && [ -s want ] && sed -n '/: recording on/,$p' out | cmp -s - want
  verdict "$cpu: as lbr run --cpu" $?
done
run run --always --cpu westmere --select jcc,near_ret --format windbg ./scan xaya
grep '^MSR_' err >want
"$lbr" record --quiet -o short.lbr ./scan xaya
run replay --cpu westmere --select jcc,near_ret --format windbg short.lbr
[ -s want ] && grep '^MSR_' out | cmp -s - want
verdict 'as lbr run --cpu --select, windbg' $?

# ---- all branches, or the last ones ----

# same NAME OPTION...: reading all of them gives the same.
same()
{
  name=$1
  shift
  run replay "$@"
  cp out last
  run replay --from-start "$@"
  [ $status -eq 0 ] && [ -s out ] && cmp -s out last
  verdict "$name: the same from the start" $?
}
cat >signals.c <<'END'
#include <signal.h>
#include <unistd.h>
static volatile int count;
static void note(int signal) { count += signal; }
int main(void)
{
  signal(SIGUSR1, note);
  raise(SIGUSR1);
  for (volatile int i = 0; i < 9000; i++)
    ;
  return count != SIGUSR1;
}
END
gcc -O1 -static -o signals signals.c && "$lbr" record --quiet -o signals.lbr ./signals
event=$("$lbr" script --kind events -F number signals.lbr)
for cpu in merom nehalem haswell sapphirerapids zen4; do
  "$lbr" replay --cpu $cpu scan.lbr >/dev/null 2>&1 || continue
  same $cpu --cpu $cpu scan.lbr
  same "$cpu, with a signal long ago" --cpu $cpu signals.lbr
  same "$cpu, with a signal at the edge" --cpu $cpu --at $((event + 4096)) signals.lbr
  same "$cpu, with a signal right behind the edge" --cpu $cpu --at $((event + 4095)) signals.lbr
done
run replay --cpu haswell --json signals.lbr
[ -n "$event" ] && "$lbr" script --top "$event" signals.lbr | tail -n 1 >before && python3 -c 'import json
words, ler = open("before").read().split(), json.load(open("out"))["lbr"]["last_exception"]
assert (ler["from"], ler["to"]) == (words[2], words[5])'
verdict 'the last-exception record is the branch before the signal' $?

# ---- threads ----

if "$lbr" record --quiet -o threads.lbr "$programs/threads-static" >/dev/null; then
  for thread in 0 1 2; do
    "$lbr" script --thread $thread --tail 16 -F from,to,kind threads.lbr | tac >want
    run replay --cpu haswell --thread $thread --json threads.lbr
    [ $status -eq 0 ] && [ -s want ] && python3 -c 'import json
for e in json.load(open("out"))["lbr"]["entries"]:
    print(e["from"], e["to"], e["kind"])' | cmp -s - want
    verdict "thread $thread: its last branches" $?
  done
fi

# ---- files that lie where others lay before ----

for name in first second; do
  echo "int $name(int count) { int sum = 0; for (int i = 0; i < count; i++) sum += i ^ count; return sum; }" >$name.c
  gcc -O1 -shared -fPIC -o $name.so $name.c
done
cat >load.c <<'END'
#include <dlfcn.h>
int main(void)
{
  for (int i = 0; i < 4; i++) {
    void *library = dlopen(i % 2 ? "./second.so" : "./first.so", RTLD_NOW);
    int (*function)(int) = (int (*)(int))dlsym(library, i % 2 ? "second" : "first");
    function(20);
    dlclose(library);
  }
  return 0;
}
END
gcc -O1 -o load load.c && "$lbr" record --quiet -o load.lbr ./load
"$lbr" script --kind call_ind --to first+0 --to second+0 -F number,to,to_sym load.lbr >calls
[ "$(awk '{ print $3 }' calls | tr '\n' ' ')" = 'first+0x0 second+0x0 first+0x0 second+0x0 ' ]
verdict 'a program that loads one library after the other' $?
while read -r number address symbol; do
  run replay --cpu haswell --at "$number" load.lbr
  [ $status -eq 0 ] && grep -q "^  0 .* $address $symbol  *call_ind" out
  verdict "the name at branch $number is that of the time: $symbol" $?
done <calls
run replay --cpu haswell --at second:2 load.lbr
cp out entry
run replay --cpu haswell --at "$(tail -n 1 calls | cut -d ' ' -f 1)" load.lbr
[ $status -eq 0 ] && cmp -s out entry
verdict 'a function of a library that was loaded twice' $?

# ---- crash ----

cat >segv.c <<'END'
#include <signal.h>
#include <unistd.h>
static volatile int *volatile nowhere;
static void on_fault(int signal) { (void)signal; _exit(3); }
static void on_user(int signal) { (void)signal; }
__attribute__((noinline)) static void poke(void) { *nowhere = 7; }
int main(int argc, char **argv)
{
  (void)argv;
  signal(SIGUSR1, on_user);
  raise(SIGUSR1);
  if (argc == 1)
    signal(SIGSEGV, on_fault);
  poke();
  return 0;
}
END
gcc -O1 -static -o segv segv.c
"$lbr" record --quiet -o handled.lbr ./segv
fault=$("$lbr" script --kind events -F number handled.lbr | tail -n 1)
run replay --cpu haswell --at crash handled.lbr
cp out crash
run replay --cpu haswell --at $((fault - 1)) handled.lbr
[ $status -eq 0 ] && [ -s out ] && cmp -s out crash
verdict 'crash: before the signal whose handler did not return' $?
("$lbr" record --quiet -o killed.lbr ./segv die || exit 1) 2>/dev/null
run replay --cpu haswell --at crash killed.lbr
cp out crash
run replay --cpu haswell --at end killed.lbr
[ $status -eq 0 ] && cmp -s out crash && grep -q '^  0 .*poke+0x0' out
verdict 'crash: without a handler, the end' $?

# ---- BTS ----

for size in 1 10 7000 20000; do
  for at in end 5000; do
    run replay --cpu haswell --bts=buffer --bts-size $size --at $at --json scan.lbr
    holds "BTS, $size records, $at" "(lambda data, part: len(data) == 24 * len(part) and page['stored'] == len(part) and all(
      __import__('struct').unpack_from('<QQ', data, 24 * i) == part[i][:2] for i in range(len(part))))(
      open('buffer', 'rb').read(), steps[:page['position']][-$size:])"
  done
done
run replay --cpu haswell --bts=buffer --bts-size 100 scan.lbr
run decode --cpu haswell bts buffer
tail -n 100 steps | awk '{ print $2, $3 }' | cmp -s - <(awk '$1 ~ /^[0-9]+$/ { print $2, $3 }' out)
verdict 'lbr decode bts reads the buffer' $?
run replay --cpu haswell --bts --bts-size 3 --json scan.lbr
holds 'BTS records are printed' "[(int(r['from'], 16), int(r['to'], 16)) for r in page['records']] == [s[:2] for s in steps[-3:]]"
run replay --cpu pentium-m --bts=buffer --bts-size 5 scan.lbr
[ $status -eq 0 ] && [ "$(stat -c %s buffer)" -eq 60 ] && tail -n 5 steps | awk '{ print $2, $3 }' | cmp -s - <(python3 -c 'import struct
for record in struct.iter_unpack("<III", open("buffer", "rb").read()):
    print(*map(hex, record[:2]))')
verdict 'BTS of a 32-bit processor: records of 12 bytes' $?

# ---- what makes no sense ----

refuses()
{
  want=$1 words=$2
  shift 2
  run replay "$@"
  [ $status -eq "$want" ] && silent && complained "$words"
  verdict "replay $*: $words" $?
}
refuses 2 'name a processor' scan.lbr
refuses 2 'name a trace' --cpu haswell
refuses 2 "no format 'xml'; the formats are table, windbg, windbg-old, json" --cpu haswell --format xml
refuses 2 "no CPU 'hazwell'" --cpu hazwell scan.lbr
refuses 2 "thread 0 has no branch $count" --cpu haswell --at "$count" scan.lbr
refuses 2 'enters vowel 2000 times, not 2001' --cpu haswell --at vowel:2001 scan.lbr
refuses 2 'enters nosuch 0 times, not 1' --cpu haswell --at nosuch scan.lbr
refuses 1 'no thread 5' --cpu haswell --thread 5 scan.lbr
refuses 2 "no filter 'red'" --cpu haswell --select red scan.lbr
refuses 2 'has no call-stack mode' --cpu westmere --call-stack scan.lbr
refuses 2 'has no branch trace store' --cpu zen2 --bts scan.lbr
refuses 2 '--call-stack and --select exclude each other' --cpu haswell --select jcc --call-stack scan.lbr
refuses 2 '--bts excludes' --cpu haswell --bts --call-stack scan.lbr
head -c -40 scan.lbr >cut.lbr
run replay --cpu haswell cut.lbr
[ $status -eq 1 ] && said 'recording on, 16 of 16' && complained 'truncated: '
verdict 'a trace that is cut' $?
exit "$((failures != 0))"
