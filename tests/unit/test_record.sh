#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_record.sh LBR PROGRAMS: lbr record. PROGRAMS is the folder with the programs of tests/process and the oracle. What a
# program prints and how it ends must be as it is without lbr; its branches as the oracle steps them; and whatever ends a
# recording, the trace must be readable up to there.
. "$(dirname "$0")/shell.sh"
programs=$(realpath "$2")
cd "$scratch" || exit 1

if [ "$(uname -m)" != x86_64 ]; then
  exit 77
fi

# whole FILE: finished by its writer, nothing damaged, no gaps.
whole() { "$lbr" script --no-symbols "$1" >script 2>script.err && ! grep -q '^gap' script && ! [ -s script.err ]; }
# gaps FILE WORD: there is a gap for this reason.
gaps() { "$lbr" script --no-symbols "$1" 2>/dev/null | grep -q "^gap: .*($2)"; }
# fact FILE KEY: a line of the head of lbr stat.
fact() { "$lbr" stat --no-symbols "$1" 2>/dev/null | sed -n "s/^  $2  *//p" | head -n 1; }

# ---- a program alone ----

run record /bin/true
[ $status -eq 0 ] && silent && complained 'true.lbr: ' && complained ' branches of 1 thread in 1 process, ' && whole true.lbr &&
  [ "$(stat -c %a true.lbr)" = 600 ] && ! [ -e true.lbr.incomplete ]
verdict 'record /bin/true' $?
[ "$(fact true.lbr complete)" = yes ] && [ "$(fact true.lbr source)" = process ] && [ "$(fact true.lbr command)" = /bin/true ] &&
  [ "$(fact true.lbr branches)" -eq "$(wc -l <script)" ] && [ "$(sed -n 's/.*: \([0-9]*\) branches of .*/\1/p' err)" -eq "$(wc -l <script)" ]
verdict 'the numbers of the last line are those of the trace' $?
run record --quiet -o quiet.lbr /bin/true
[ $status -eq 0 ] && silent && ! [ -s err ] && whole quiet.lbr
verdict 'record --quiet' $?

# ---- branches, against single steps ----

# The list of a program without address randomisation; what is not in the program itself (the vdso) may lie elsewhere.
"$programs/oracle" -d list "$programs/hello-static" >/dev/null
stepped=$?
for program in hello-static jit-static signals-static crash-static dispatch-static; do
  [ $stepped -eq 126 ] && break # no tracing here
  [ -e "$programs/$program" ] || continue
  setarch -R "$programs/oracle" -d list "$programs/$program" >native 2>/dev/null
  native=$?
  setarch -R "$lbr" record --quiet -o list.lbr "$programs/$program" >recorded 2>/dev/null
  [ $? -eq $native ] && cmp -s native recorded && whole list.lbr &&
    diff <(awk '$1 == 1 { print substr($2, length($2) - 2), substr($3, length($3) - 2), $4 }' list) \
      <(awk '{ print substr($3, length($3) - 2), substr($5, length($5) - 2), $6 }' script) >difference
  verdict "the branches of $program are those of single steps" $?
done

run record --quiet -o hello.lbr "$programs/hello-static"
[ $status -eq 0 ] && said hello && "$lbr" script hello.lbr | grep -q '_start+0x[0-9a-f]* -> 0x[0-9a-f]* __libc_start_main'
verdict 'symbols' $?

# ---- threads and processes ----

"$programs/threads-dynamic" >native
run record -o threads.lbr "$programs/threads-dynamic"
[ $status -eq 0 ] && cmp -s native out && whole threads.lbr && complained ' branches of 6 threads in 1 process, ' &&
  [ "$(cut -d ' ' -f 1 script | sort -u | wc -l)" -eq 6 ]
verdict 'threads' $?

pipeline='ls / | sort -r | head -n 3; (exit 3); echo $?; cat /etc/passwd | wc -l; exit 7'
bash -c "$pipeline" >native
run record -o pipeline.lbr -- bash -c "$pipeline"
[ $status -eq 7 ] && cmp -s native out && whole pipeline.lbr && complained ' branches of 7 threads in 7 processes, '
verdict 'a pipeline' $?
# The last branch of a thread is the system call that ended it or its program; bash exits by exit_group, too.
awk '{ last[$1] = $6 } END { for (thread in last) if (last[thread] != "syscall") exit 1 }' script
verdict 'each thread is there up to its end' $?
names=$("$lbr" stat --no-symbols pipeline.lbr | sed -n '/^Threads/,/^$/p' | awk '{ print $6 }' | sort -u | tr '\n' ' ')
case $names in *'bash cat head ls '*' sort wc '*) true ;; *) false ;; esac
verdict 'programs of a pipeline have their names' $?

run record --no-follow -o alone.lbr -- bash -c "$pipeline"
[ $status -eq 7 ] && cmp -s native out && whole alone.lbr && complained ' branches of 1 thread in 1 process, '
verdict 'record --no-follow' $?

run record -o spawn.lbr "$programs/spawn-static"
"$programs/spawn-static" >native
[ $status -eq 0 ] && cmp -s native out && whole spawn.lbr
verdict 'fork, vfork and exec' $?

run record --ring 256K -o ring.lbr -- bash -c 'for ((i = 0; i < 30000; i++)); do :; done'
[ $status -eq 0 ] && whole ring.lbr && [ "$(wc -l <script)" -gt 1000000 ]
verdict 'more than the log holds' $?

# ---- how it ends ----

for status_wanted in 0 1 42 255; do
  run record --quiet -o status.lbr -- sh -c "exit $status_wanted"
  [ $status -eq $status_wanted ]
  verdict "exit status $status_wanted" $?
done
python3 - "$lbr" <<'END'
import signal, subprocess, sys
for number in (signal.SIGSEGV, signal.SIGTERM, signal.SIGKILL):
    done = subprocess.run([sys.argv[1], "record", "--quiet", "-o", "signal.lbr", "sh", "-c", f"kill -{number} $$"])
    if done.returncode != -number:
        sys.exit(f"{number}: {done.returncode}")
END
[ $? -eq 0 ] && whole signal.lbr
verdict 'dies by the signal that killed the program' $?

run record -o killed.lbr -- bash -c 'sleep 100 & until read -r name </proc/$!/comm && [ "$name" = sleep ]; do :; done; kill -KILL $!; wait $! 2>/dev/null; exit 0'
[ $status -eq 0 ] && whole killed.lbr && complained ' branches of 2 threads in 2 processes, '
verdict 'a child that is killed' $?

# terminal SECONDS COMMAND...: runs it in a terminal, types Ctrl-C once the file "ready" is there, waits at most so
# long for its end, and prints the status: -N for signal N. Makes the file "estimated" when it sees an estimate.
terminal()
{
  python3 - "$@" <<'END'
import os, pty, select, sys, time
seconds, command = float(sys.argv[1]), sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    os.execv(command[0], command)
end, typed, output, status = time.monotonic() + seconds, False, b"", None
while status is None and time.monotonic() < end:
    ended, state = os.waitpid(child, os.WNOHANG)
    if ended:
        status = os.waitstatus_to_exitcode(state)
    while select.select([terminal], [], [], 0 if ended else 0.05)[0]:
        try:
            output += os.read(terminal, 4096)
        except OSError: # nobody has it open any more
            time.sleep(0.05)
            break
    if b" times slower" in output:
        open("estimated", "w").close()
    if b" million branches, " in output and os.path.exists("gate"):
        gate = os.open("gate", os.O_WRONLY)
        os.write(gate, b"seen\n")
        os.close(gate)
        os.unlink("gate")
    if not typed and os.path.exists("ready"):
        typed = True
        os.write(terminal, b"\x03")
open("shown", "wb").write(output)
print("it runs on" if status is None else status)
END
}

rm -f ready
[ "$(terminal 100 "$lbr" record -o interrupt.lbr sh -c ': >ready; exec sleep 300')" = -2 ] && whole interrupt.lbr &&
  grep -q 'interrupt.lbr: [0-9]* branches' shown
verdict 'Ctrl-C' $?

# A program that does something of its own with Ctrl-C.
rm -f ready
[ "$(terminal 100 "$lbr" record -o trap.lbr bash -c 'trap "exit 9" INT; touch ready; while :; do sleep 0.1; done')" = 9 ] &&
  whole trap.lbr
verdict 'Ctrl-C that the program catches' $?

# What the program leaves behind is recorded, too; Ctrl-C leaves it, and it runs on.
rm -f ready
[ "$(terminal 100 "$lbr" record -o left.lbr bash -c \
  '(trap "" INT HUP; : >left.begun; until [ -e left.go ]; do sleep 0.1; done; : >left.end) &
   (while kill -0 $$ 2>/dev/null || ! [ -e left.begun ]; do :; done; : >ready) & exit 4')" = 4 ] &&
  [ -e left.begun ] && ! [ -e left.end ] && gaps left.lbr lost
verdict 'Ctrl-C leaves what the program left behind' $?
touch left.go
await test -e left.end
verdict 'which runs on' $?
run record -o late.lbr -- bash -c '(while kill -0 $$ 2>/dev/null; do :; done; /bin/true; : >late.end) & exit 5'
[ $status -eq 5 ] && [ -e late.end ] && whole late.lbr && complained ' branches of 3 threads in 3 processes, '
verdict 'what the program leaves behind is waited for' $?

# A line that tells how far it is, at a terminal only.
rm -f ready
mkfifo gate
[ "$(terminal 100 "$lbr" record -o progress.lbr bash -c 'read -r line <gate')" = 0 ] && grep -q 'million branches, ' shown && whole progress.lbr
verdict 'progress at a terminal' $?
# What has computed for a while gets an estimate of how much slower it is; not what only sleeps.
! grep -q 'times slower' shown
verdict 'no estimate for what does not compute' $?
work='for ((i = 0; i < N; i++)); do ((x = RANDOM % 7)); done;'
slower='(about [0-9]+\.[0-9]|more than 10) times slower' # more: where lbr gets less of a busy machine than the program
rm -f ready estimated
[ "$(terminal 100 "$lbr" record -o slower.lbr bash -c 'while ! [ -e estimated ]; do for i in {1..999}; do :; done; done')" = 0 ] &&
  tr '\r' '\n' <shown | grep -qE "million branches, .*, $slower" &&
  grep -qE "slower.lbr: .* bits per branch, $slower" shown
verdict 'the line says how much slower it is' $?

# The estimate divides CPU time and waiting time by the CPU time of a native run. bash tells its CPU time, with lbr and
# without. The waiting time is that of the clock, and grows with what else the machine does, as the elapsed time does: it
# lies between none and all of that. The estimate is within a factor of four of this.
near()
{
  python3 - "$lbr" "N=300000; $work times" <<'END'
import re, subprocess, sys, time
def measure(*words):
    begin = time.monotonic()
    done = subprocess.run([*words, "bash", "-c", sys.argv[2]], capture_output=True, text=True, check=True)
    elapsed = time.monotonic() - begin
    used = [float(minutes) * 60 + float(seconds) for minutes, seconds in re.findall(r"(\d+)m([0-9.]+)s", done.stdout)]
    return sum(used[:2]), elapsed, done.stderr.strip()  # user and system time of the shell
native, _, _ = measure()
cpu, elapsed, line = measure(sys.argv[1], "record", "-o", "near.lbr")
assert "million" not in line, line
estimate = float(re.search(r"(?:about|more than) ([0-9.]+) times slower$", line)[1])
print(f"estimate {estimate}, CPU time {cpu / native:.2f}, elapsed time {elapsed / native:.2f}")
sys.exit(not cpu / native / 4 < estimate < elapsed / native * 4)
END
}
near
verdict 'the estimate is near the truth' $?

# signalled NAME WHOM: a program that catches a signal; lbr, or its whole group, gets it. Started by Python, since what a
# shell runs in the background ignores SIGINT.
signalled()
{
  rm -f got begun
  python3 - "$lbr" "$@" <<'END'
import os, signal, subprocess, sys, time
number = getattr(signal, "SIG" + sys.argv[2])
script = f"trap 'echo got >>got; exit 3' {sys.argv[2]}; touch begun; while :; do sleep 0.1; done"
child = subprocess.Popen([sys.argv[1], "record", "--quiet", "-o", "sent.lbr", "bash", "-c", script], start_new_session=True)
for _ in range(2400):
    if os.path.exists("begun"):
        break
    time.sleep(0.05)
(os.killpg if sys.argv[3] == "group" else os.kill)(child.pid, number)
try:
    sys.exit(child.wait(120) != 3)
except subprocess.TimeoutExpired:
    os.killpg(child.pid, signal.SIGKILL)
    sys.exit(1)
END
  [ $? -eq 0 ] && [ -e got ] && whole sent.lbr
}
signalled TERM lbr
verdict 'SIGTERM is handed on' $?
signalled INT lbr
verdict 'SIGINT that is sent is handed on' $?
signalled INT group
verdict 'SIGINT to the group' $?

# ---- where recording ends before the program ----

run record --limit 50K -o limit.lbr -- bash -c 'for ((i = 0; i < 30000; i++)); do :; done; echo done'
[ $status -eq 0 ] && said 'done' && complained 'limit.lbr: the trace has reached its size limit; the program runs on' && gaps limit.lbr lost &&
  [ "$(fact limit.lbr complete)" = yes ] && [ "$(fact limit.lbr remark)" = 'reached its size limit' ] &&
  [ "$(stat -c %s limit.lbr)" -lt 200000 ]
verdict 'record --limit' $?
run record -o /dev/full -- bash -c 'echo done; exit 3'
[ $status -eq 3 ] && said 'done' && complained '/dev/full: cannot write the trace: No space left on device'
verdict 'a full device' $?
run record -o /dev/full -- bash -c 'echo done'
[ $status -eq 125 ] && said 'done'
verdict 'a full device, and a program that succeeds: status 125' $?

# A limit of file sizes. The program has its own SIGXFSZ, as without lbr: bash says 128 + 25.
limited() { (ulimit -S -f 16 && exec "$lbr" "$@") >out 2>err <in; status=$?; }
cp true.lbr limited.lbr
limited record -o limited.lbr -- bash -c 'for ((i = 0; i < 40000; i++)); do ((x = RANDOM % 7)); done; echo done'
[ $status -eq 125 ] && said 'done' && complained 'limited.lbr: cannot write the trace: file size limit reached (ulimit -f); ' &&
  cmp -s true.lbr limited.lbr && gaps limited.lbr.incomplete cut
verdict 'record: a limit of file sizes' $?
limited record -q -o /dev/null -- bash -c 'head -c 100000 /dev/zero >big 2>/dev/null; echo $?'
[ $status -eq 0 ] && said 153 && [ "$(stat -c %s big)" -eq 16384 ]
verdict 'record: the program dies of its own SIGXFSZ' $?
limited run --last 5 -o report -- bash -c 'head -c 100000 /dev/zero >big 2>/dev/null; echo $?'
[ $status -eq 0 ] && said 153
verdict 'run: the program dies of its own SIGXFSZ' $?
run record -q -o big.lbr -- bash -c 'for ((i = 0; i < 20000; i++)); do ((x = RANDOM % 7)); done'
for command in 'export --to chrome --yes -o big.json' 'view -o big.html' 'replay --cpu haswell --bts-size 4096 --bts=big.bts'; do
  # shellcheck disable=SC2086
  limited ${command/ --yes/} big.lbr
  [ $status -eq 1 ] && complained 'file size limit reached (ulimit -f)'
  verdict "${command%% *}: a limit of file sizes" $?
done

# ---- what was there before ----

cp true.lbr again.lbr
cp true.lbr again.expected
run record -q -o again.lbr -- bash -c 'exit 3'
[ $status -eq 3 ] && cmp -s again.expected again.lbr.old && whole again.lbr && ! cmp -s again.lbr again.lbr.old
verdict 'an older trace is kept as NAME.old' $?
cp again.lbr again.expected
run record -q -o again.lbr -- bash -c 'exit 3'
[ $status -eq 3 ] && cmp -s again.expected again.lbr.old && [ "$(echo again.lbr*)" = 'again.lbr again.lbr.old' ]
verdict 'one older trace is kept, not more' $?
echo victim >victim
for command in 'run --always -o link true' 'replay --cpu haswell --bts=link true.lbr'; do
  rm -f link
  ln -s victim link
  # shellcheck disable=SC2086
  run $command
  [ $status -eq 0 ] && [ "$(cat victim)" = victim ] && [ ! -L link ] && [ -s link ] && [ "$(stat -c %a link)" = 600 ]
  verdict "${command%% *}: a symbolic link is replaced, not followed" $?
done

# ---- standard output ----

run record -q -o - -- bash -c 'echo "of the program"; exit 3'
cp out standard.lbr
[ $status -eq 3 ] && whole standard.lbr && complained 'of the program' && [ ! -e - ] && [ ! -e ./-.incomplete ]
verdict 'record -o -: the trace goes to standard output, the output of the program to standard error' $?
"$lbr" record -q -o - -- bash -c 'for ((i = 0; i < 40000; i++)); do ((x = RANDOM % 7)); done; echo done' 2>err | head -c 1 >out
status=${PIPESTATUS[0]}
[ $status -eq 125 ] && complained 'Broken pipe' && complained 'done'
verdict 'record -o -: nobody reads it' $?
[ "$(terminal 100 "$lbr" record -o - true)" = 125 ] && grep -q 'standard output is a terminal' shown
verdict 'record -o -: not to a terminal' $?
mkdir small
trap 'umount -l "$scratch/small" 2>/dev/null; rm -rf "$scratch"' EXIT
if mount -t tmpfs -o size=128k none small 2>/dev/null; then
  run record -o small/full.lbr -- bash -c 'for ((i = 0; i < 40000; i++)); do ((x = RANDOM % 7)); done; echo done; exit 3'
  [ $status -eq 3 ] && said 'done' && complained 'small/full.lbr: cannot write the trace: No space left on device; ' &&
    complained 'small/full.lbr.incomplete has the branches before that' && gaps small/full.lbr cut &&
    [ "$("$lbr" script --no-symbols small/full.lbr 2>/dev/null | grep -vc '^gap')" -gt 10000 ]
  verdict 'a full disk' $?
  umount small
fi

# ---- what cannot be run ----

cp true.lbr nothing.lbr
run record -o nothing.lbr no-such-program
[ $status -eq 127 ] && complained 'no-such-program: no such program' && cmp -s true.lbr nothing.lbr
verdict 'no such program' $?
run record -o nothing.lbr ./no-such-program
[ $status -eq 127 ] && complained 'no such program' && cmp -s true.lbr nothing.lbr && ! [ -e nothing.lbr.incomplete ]
verdict 'no such file' $?
run record -o nothing.lbr /etc/passwd
[ $status -eq 126 ] && cmp -s true.lbr nothing.lbr && ! [ -e nothing.lbr.incomplete ]
verdict 'a file that is not executable' $?
touch there.lbr.incomplete
run record -o there.lbr touch ran
[ $status -eq 125 ] && complained 'there.lbr.incomplete already exists' && ! [ -e ran ]
verdict 'a trace that is being written is not disturbed' $?
run record -o no-such-folder/x.lbr touch ran
[ $status -eq 125 ] && complained 'no-such-folder/x.lbr: No such file or directory' && ! [ -e ran ]
verdict 'no such folder' $?
for words in '' '--ring 1K true' '--ring 2G true' '--ring 1X true' '--limit 0 true' '--limit -1 true' '--limit x true' '--nothing true'; do
  run record $words
  [ $status -eq 2 ] && silent
  verdict "usage: record $words" $?
done
run record -o options.lbr echo --ring -o x
[ $status -eq 0 ] && said '--ring -o x'
verdict "the program's options are its own" $?

# ---- names of C++ ----

cat >names.cc <<'END'
#include <string>
#include <vector>
namespace shop {
template <class T> struct Box {
  T value;
  __attribute__((noinline)) int size(int n) const;
};
template <class T> int Box<T>::size(int n) const { return n > 0 ? size(n - 1) + 1 : (int)value.size(); }
__attribute__((noinline)) bool operator<(const Box<std::string> &one, const Box<std::vector<int>> &other)
{
  return one.size(2) < other.size(100);
}
}
int main()
{
  return !(shop::Box<std::string>{"a"} < shop::Box<std::vector<int>>{{1, 2}});
}
END
if g++ -O1 -o names names.cc; then
  nm names | sed -n 's/^[0-9a-f]* [tTwW] //p' | grep '^_Z' | sort -u >mangled
  c++filt <mangled >demangled
  run record --quiet -o names.lbr ./names
  status_recorded=$status
  "$lbr" script names.lbr >script.out && "$lbr" script --no-demangle names.lbr >script.mangled &&
    "$lbr" stat --json --top 1000 names.lbr >stat.out && "$lbr" stat --no-demangle --json --top 1000 names.lbr >stat.mangled &&
    "$lbr" script --json names.lbr >script.json
  [ $? -eq 0 ] && [ $status_recorded -eq 0 ] && python3 - <<'END'
import json
want = dict(zip(open('mangled').read().split('\n'), open('demangled').read().split('\n')))
text, mangled = open('script.out').read(), open('script.mangled').read()
ran = [name for name in want if name and f' {name}+0x' in mangled]
assert len(ran) >= 3 and any('shop' in name for name in ran), ran
for name in ran:
    assert f' {want[name]}+0x' in text and f' {name}+' not in text, name
    # the same branches, whatever they are called
    assert text.count(f' {want[name]}+0x') == mangled.count(f' {name}+0x'), name
symbols = lambda file: {function['symbol'] for function in json.load(open(file))['functions']}
plain, raw = symbols('stat.out'), symbols('stat.mangled')
assert {name for name in ran if name in raw} and all(want[name] in plain and name not in plain for name in ran if name in raw)
pairs = {(p.get('mangled'), p['symbol']) for line in open('script.json') for r in [json.loads(line)] for p in (r['from'], r['to'])}
assert all((name, want[name]) in pairs for name in ran), pairs
END
  verdict 'names of C++ are those that c++filt has' $?
fi

# A loop of 1000 rounds that is left by its conditional branch: 999 times not taken, once taken.
printf '.globl _start\n_start: mov $1000, %%ecx\n1: dec %%ecx\njz 2f\njmp 1b\n2: mov $231, %%eax\nxor %%edi, %%edi\nsyscall\n' |
  as -o rounds.o - && ld -o rounds rounds.o
run record -o rounds.lbr ./rounds
run stat --json rounds.lbr
[ $status -eq 0 ] && said '"not_taken": 999,' && said '"taken_rate": 0.001,'
verdict 'conditional branches that were not taken' $?

# Long enough that paths are made anew along the ways that are taken: 4,000,000 rounds, three of four over a branch. Taken
# are 3,000,000 and 3,999,999 times, and the system call; not taken 1,000,000 times and once.
printf '.globl _start\n_start: mov $4000000, %%ecx\n1: test $3, %%cl\njnz 2f\nnop\n2: dec %%ecx\njnz 1b\nmov $231, %%eax\nxor %%edi, %%edi\nsyscall\n' |
  as -o many.o - && ld -o many many.o
run record -o many.lbr ./many
run stat --json many.lbr
[ $status -eq 0 ] && said '"branches": 7000000,' && said '"not_taken": 1000001,'
verdict 'counts of a long loop' $?

# What lbr keeps is bounded by what lives, not by what has lived. The shell looks at its memory (VmRSS) after each sixty short
# processes: the most in the first half, and what it has at the end. Each process, when it was kept, took 420 KiB: 172 MiB in
# the second half. How far lbr falls behind decides for how many threads it has tables, so the first half may need much.
kept=$("$lbr" record --quiet -o many.lbr -- /bin/sh -c 'times=0 most=0
  while [ $times -lt 14 ]; do
    i=0; while [ $i -lt 60 ]; do /bin/true; i=$((i + 1)); done
    least=999999999 polls=0
    while [ $polls -lt 100 ]; do
      while read -r key value unit; do
        [ "$key" != VmRSS: ] || [ "$value" -ge $least ] || least=$value
      done </proc/$PPID/status
      polls=$((polls + 1))
    done
    times=$((times + 1))
    [ $times -gt 7 ] || [ $least -le $most ] || most=$least
  done
  echo $most $least')
few=${kept% *} many=${kept#* }
[ "$few" -gt 0 ] && [ "$many" -le $((few + 100000)) ]
verdict "memory after 840 processes ($many kB) is not much more than during the first 420 ($few kB)" $?
[ $failures -eq 0 ]
