#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_gdb.sh LBR PROGRAMS: lbr gdb. PROGRAMS is the folder with the programs of tests/process and the oracle. The real gdb
# reads traces; what it shows must be what the oracle stepped through, what the source says, and what gdb shows of the same
# program when it runs without us.
. "$(dirname "$0")/shell.sh"
programs=$(realpath "$2")
here=$(realpath "$(dirname "$0")")
cd "$scratch" || exit 1

if [ "$(uname -m)" != x86_64 ]; then
  exit 77
fi
if ! command -v gdb >/dev/null; then
  echo 'skip lbr gdb: gdb is not installed (Debian: gdb)'
  exit 77
fi
export HOME=$scratch DEBUGINFOD_URLS=

# debug TRACE COMMAND...: what gdb prints when it is given the commands.
debug()
{
  local words=() command
  for command in "${@:2}"; do
    words+=(-ex "$command")
  done
  timeout 100 "$lbr" gdb "$1" -- -nx -batch -ex 'set width 0' "${words[@]}" >out 2>err </dev/null
  status=$?
}

# addresses: of the instructions in a history, first one first.
addresses() { sed -nE 's/^[0-9]+\t.. 0x0*([0-9a-f]+)[ :].*/\1/p' out; }

# ---- instructions, against single steps ----

# A program that gets signals, without address randomisation.
setarch -R "$programs/oracle" -d list "$programs/signals-static" >native 2>/dev/null
if [ $? -eq 126 ]; then
  echo 'skip the instructions are those of single steps: no tracing here'
else
  setarch -R "$lbr" record --quiet -o signals.lbr "$programs/signals-static" >recorded 2>/dev/null
  printf 'reverse-stepi\np $pc\n%.0s' 1 2 3 4 5 6 7 8 9 10 >steps
  debug signals.lbr 'source steps' 'record instruction-history 1,10000000' 'info record' 'record goto begin' 'p $pc' stepi 'p $pc'
  python3 "$here/gdb_expand.py" list "$programs/signals-static" >want && [ "$(wc -l <want)" -gt 20000 ] &&
    addresses >got && diff want got >difference
  verdict 'the instructions are those of single steps' $?
  sed -nE 's/^\$[0-9]+ = .* 0x([0-9a-f]+).*/\1/p' out >places
  { tail -n 10 want | tac && head -n 2 want; } | diff - places
  verdict 'reverse-stepi goes back through them, record goto begin to the first' $?
  grep -q "^Recorded $(wc -l <want) instructions in .* (0 gaps)" out
  verdict 'info record' $?
  timeout 100 "$lbr" gdb --tail 10 signals.lbr -- -nx -batch -ex 'record instruction-history 1,1000' >out 2>err </dev/null
  addresses >got && lines=$(wc -l <got) && [ "$lines" -ge 10 ] && [ "$lines" -lt 300 ] && tail -n "$lines" want | diff - got
  verdict 'gdb --tail: the end of it' $?
fi

# ---- a position-independent program with libraries, whose stack is gone ----

cat >smash.c <<'END'
#include <stdio.h>
#include <string.h>
static const char text[64] = "0123456789012345678901234567890123456789";
__attribute__((noinline)) static void inner(size_t size)
{
  volatile char buffer[8];
  for (size_t i = 0; i < size; i++)
    buffer[i] = 0;
}
__attribute__((noinline)) static int middle(size_t size)
{
  inner(size);
  return text[size];
}
int main(void)
{
  puts("begun");
  return middle(2) + middle(4) + middle(60);
}
END
gcc -g -O1 -fno-stack-protector -fno-tree-loop-distribute-patterns -fPIE -pie -o smash smash.c
(ulimit -c 0 && "$lbr" record --quiet -o smash.lbr ./smash >/dev/null 2>&1) 2>/dev/null
[ $? -eq 139 ]
verdict 'a program that destroys its stack' $?
debug smash.lbr 'record function-call-history 1,100000'
[ $status -eq 0 ] && sed -nE 's/^[0-9]+\t([a-z_]*)$/\1/p' out | grep -xE 'main|middle|inner' |
  diff - <(printf '%s\n' main main middle inner middle main middle inner middle main middle inner)
verdict 'function-call-history: who ran, from what the source says' $?
grep -qP '^\d+\t_dl_start$' out && grep -qP '^\d+\t(__GI_|_IO_)*puts$' out
verdict 'functions of the libraries' $?
debug smash.lbr 'reverse-stepi' 'bt' 'record instruction-history' 'info sharedlibrary'
grep -qE '^#0 .* in inner \(' out && grep -qE '^#1 .* in middle \(' out && grep -qE '^#2 .* in main \(' out &&
  grep -qE 'inner.*>:	ret' out
verdict 'bt where the stack was good' $?
grep -qE '^0x0*7[ef][0-9a-f]+ .* Yes .*/ld-linux-x86-64.so.2' out && grep -qE 'Yes .*/libc.so.6' out &&
  complained 'it died at 0x0, where there is no code'
verdict 'where the libraries lay' $?
debug smash.lbr 'p $rsp' 'p text' 'info registers rax' 'p $rip' continue
grep -q '= <unavailable>' out && grep -q '0123456789012345678901234567890123456789' out && grep -q '^rax *<unavailable>' out &&
  grep -q '(void (\*)()) 0x0' out
verdict 'what is known, and what is not' $?
complained 'lbr: the trace ends here'
verdict 'there is nothing to go on to' $?
complained 'lbr: loaded all '
verdict 'how many branches were loaded' $?
cat >stay.c <<'END'
int main(int argc, char **argv)
{
  return argv[argc + 5000][0] + argc; /* dies here: the line has more instructions */
}
END
gcc -g -O0 -w -o stay stay.c
(ulimit -c 0 && "$lbr" record --quiet -o stay.lbr ./stay >/dev/null 2>&1) 2>/dev/null
debug stay.lbr next step 'p 1 + 1' 'reverse-stepi' next 'p 2 + 2'
[ $status -eq 0 ] && grep -q '^\$1 = 2' out && grep -q '^\$2 = 4' out && [ "$(grep -c 'No more reverse-execution history' out)" -ge 2 ]
verdict 'next and step at the end of the trace come back' $?
debug smash.lbr 'break middle' 'reverse-continue' 'reverse-continue' 'bt' 'reverse-continue' 'info breakpoints' 'continue' 'stepi'
[ "$(grep -c '^Breakpoint 1, middle (' out)" -eq 4 ] && grep -q 'already hit 3 times' out
verdict 'breakpoints in the past' $?
debug smash.lbr 'reverse-stepi' 'reverse-finish' 'bt' 'reverse-next' 'reverse-step' 'bt'
grep -qE '^#0 .*middle \(' out
verdict 'reverse-finish' $?

# ---- the instruction that a program died at, as gdb has it ----

cat >list.c <<'END'
struct node {
  struct node *next;
  volatile int value;
};
__attribute__((noinline)) static int sum(struct node *node)
{
  int total = 0;
  for (int i = 0; i < 10; i++) {
    total += node->value;
    node = node->next;
  }
  return total;
}
int main(void)
{
  struct node last = {0, 2}, first = {&last, 1};
  return sum(&first);
}
END
gcc -g -O1 -o list list.c
(ulimit -c 0 && "$lbr" record --quiet -o list.lbr ./list >/dev/null 2>&1) 2>/dev/null
debug list.lbr 'x/i $pc' 'monitor trace' 'reverse-stepi' 'bt'
grep -oE '<sum\+[0-9]+>:.*' out >ours
grep -qE '^thread 0 \(the system.s [0-9]+\): died at 0x' err && grep -qE '^#1 .* in main \(\)' out
verdict 'a program that died of a pointer' $?
if timeout 100 gdb -nx -batch -ex run -ex 'x/i $pc' ./list >native 2>&1 </dev/null && grep -q SIGSEGV native; then
  [ -s ours ] && grep -oE '<sum\+[0-9]+>:.*' native | diff - ours
  verdict 'it died at the instruction at which gdb sees it die' $?
else
  echo 'skip it died at the instruction at which gdb sees it die: gdb cannot run programs here'
fi

# ---- threads ----

"$lbr" record --quiet -o threads.lbr "$programs/threads-dynamic" >/dev/null 2>&1
debug threads.lbr 'info threads' 'thread apply all -q record function-call-history 1,100000' 'monitor nonsense'
"$lbr" stat --json threads.lbr >stat.json
[ "$(grep -cE '^[* ] [0-9]+ +Thread [0-9]+ "' out)" -eq 6 ] && [ "$(grep -cE '^[0-9]+	start_thread$' out)" -ge 5 ] &&
  python3 -c 'import json, re
shown = re.findall(r"^[* ] \d+ +Thread (\d+) ", open("out").read(), re.M)
assert sorted(map(int, shown)) == sorted(t["system_thread"] for t in json.load(open("stat.json"))["threads"]), shown'
verdict 'threads, under their numbers' $?
timeout 100 "$lbr" gdb --thread 3 threads.lbr -- -nx -batch -ex 'p $_gthread' -ex 'thread' >out 2>err </dev/null
grep -q "Thread $(python3 -c 'import json; print(json.load(open("stat.json"))["threads"][3]["system_thread"])')" out
verdict 'gdb --thread' $?

# ---- a machine ----

kernel=$programs/../../labs/arch.elf
if [ -e "$kernel" ]; then
  run machine --cpu westmere --kernel "$kernel" --screen none --serial none --trace machine.lbr
  debug machine.lbr 'info record' 'record instruction-history' 'show architecture'
  grep -q '(0 gaps)' out && grep -q 'currently "i386"' out && [ "$(addresses | wc -l)" -eq 10 ] &&
    addresses | while read -r address; do
      objdump -d --no-show-raw-insn "$kernel" | grep -qE "^ *$address:" || exit 1
    done
  verdict 'a trace of a machine in 32-bit mode' $?
else
  echo 'skip a trace of a machine: there are no labs here'
fi

# ---- ways to gdb ----

: >listen.err
"$lbr" gdb --listen unix:socket list.lbr 2>listen.err &
server=$!
await grep -q 'waiting for gdb' listen.err # the socket is there before lbr listens
mode=$(stat -c %a socket)
timeout 100 gdb -nx -batch -ex 'target remote socket' -ex 'record instruction-history' >out 2>err </dev/null
wait $server
[ $? -eq 0 ] && [ "$mode" = 600 ] && ! [ -e socket ] && grep -q '<sum+' out && grep -q 'target remote socket' listen.err
verdict '--listen unix:PATH' $?
: >listen.err
"$lbr" gdb --listen 0 list.lbr 2>listen.err &
server=$!
await grep -q '127.0.0.1:[0-9]*$' listen.err
port=$(sed -n 's/.*127.0.0.1:\([0-9]*\)$/\1/p' listen.err)
timeout 100 gdb -nx -batch -ex "target remote 127.0.0.1:$port" -ex 'record instruction-history' >out 2>err </dev/null
wait $server
[ $? -eq 0 ] && grep -q '<sum+' out
verdict '--listen PORT' $?
timeout 100 gdb -nx -batch -ex "target remote | '$lbr' gdb --stdio list.lbr" -ex 'record stop' -ex 'record btrace bts' \
  -ex 'record instruction-history' >out 2>err </dev/null
grep -q '<sum+' out
verdict '--stdio; record stop and record btrace' $?
head -c 100000 /dev/urandom | timeout 100 "$lbr" gdb --stdio list.lbr >out 2>err
[ $? -eq 0 ]
verdict 'a client that sends anything' $?

# ---- lbr run --gdb: a program that has died, and is not gone yet ----

is_held() { grep -q 'waiting for gdb' died.err || [ -e ended ]; }
# held PROGRAM COMMAND...: what gdb prints of it when it is given the commands; how lbr run ends in the file ended.
held()
{
  local words=() command server
  for command in "${@:2}"; do
    words+=(-ex "$command")
  done
  rm -f ended socket
  : >died.err
  (ulimit -c 0 && timeout 100 "$lbr" run --gdb=unix:socket -- "$1" >died 2>died.err; echo $? >ended) 2>/dev/null &
  server=$!
  await is_held
  timeout 100 gdb -nx -batch -iex 'set sysroot' -ex 'target remote socket' "${words[@]}" >out 2>err </dev/null
  wait $server
}

held ./list 'bt' 'p node' 'p i' 'p total' 'up' 'p first' 'p first.next == &last' 'p $_siginfo' 'record goto begin' 'record goto end' \
  'reverse-stepi' 'bt'
[ "$(cat ended)" -eq 139 ] && grep -q 'Segmentation fault: read 0x8' died.err && [ "$(grep -cE '^#1 .* in main \(\)' out)" -eq 3 ]
verdict 'run --gdb: it is held, shown, and dies as it would have' $?
# The list has two nodes: 1 and 2 are summed, the third is none.
grep -q '^\$1 = (struct node \*) 0x0' out && grep -q '^\$2 = 2$' out && grep -q '^\$3 = 3$' out && grep -q 'value = 1}' out &&
  grep -q '^\$5 = 1$' out
verdict 'run --gdb: its registers and memory' $?
printf 'reverse-stepi\nbt\n' >commands
(ulimit -c 0 && timeout 100 "$lbr" run --gdb ./smash <commands >out 2>err) 2>/dev/null
[ $? -eq 139 ] && grep -qE '^(\(gdb\) )*#0 .*inner \(' out && grep -qE '^#1 .*middle \(' out && grep -qE '^#2 .*main \(' out
verdict 'run --gdb starts gdb' $?
cp list "held$$"
: >err
(ulimit -c 0 && exec "$lbr" run --gdb=unix:socket "./held$$" >out 2>err) 2>/dev/null &
server=$!
await complained 'waiting for gdb'
kill -TERM $server
wait $server 2>/dev/null
[ $? -ge 128 ] && complained 'waiting for gdb' && complained 'gdb did not connect' && ! pgrep -x "held$$" >/dev/null
verdict 'run --gdb: nobody comes' $?
run run --gdb=unix:socket true
[ $status -eq 0 ] && silent && ! [ -e socket ]
verdict 'run --gdb: a program that does not die' $?
run run --gdb=nonsense true
[ $status -eq 2 ]
verdict 'run --gdb: a place that is none' $?

# ---- what cannot be shown ----

cp list moved
cp list.c other.c
sed -i 's/10/11/' other.c
gcc -g -O1 -o list other.c
debug list.lbr 'info record'
complained 'not the file that ran' && ! grep -q 'Reading symbols' out
verdict 'a file that is not the one that ran is not named to gdb' $?
mv moved list
for arguments in 'gdb nothing' 'gdb list.c' 'gdb --thread 7 list.lbr' 'gdb --thread x list.lbr' 'gdb --stdio nothing' 'gdb --listen unix:/no/such/place list.lbr'; do
  # shellcheck disable=SC2086 # several words
  run $arguments
  [ $status -eq 1 ] && silent && [ -s err ]
  verdict "an error: $arguments" $?
done
for arguments in gdb 'gdb list.lbr list.lbr' 'gdb --tail 0 list.lbr' 'gdb --listen x list.lbr' 'gdb --stdio --listen 1 list.lbr' \
  'gdb --stdio list.lbr -- -batch' 'gdb --thread 9x list.lbr'; do
  # shellcheck disable=SC2086
  run $arguments
  [ $status -eq 2 ] && silent
  verdict "a usage error: $arguments" $?
done
head -c -20 list.lbr >cut.lbr
run gdb --stdio cut.lbr
[ $status -eq 1 ] && complained 'truncated: '
verdict 'a trace that is cut' $?
mkdir empty
(PATH=$scratch/empty && "$lbr" gdb list.lbr >out 2>err)
[ $? -eq 1 ] && complained 'gdb is not installed'
verdict 'no gdb' $?

exit $((failures > 0))
