#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_programs.sh LBR [NAME]...: programs that people use, under `lbr run` and `lbr record`: the same output, errors
# and end as natively, and a trace that can be read from end to end without a gap. With NAME only those. What is not
# installed is skipped. MODES="run record" says under which commands, TIMES=1 how long each took.
. "$(dirname "$0")/shell.sh"
shift
only=" $* "
modes=${MODES:-run record}
clean=(env -i PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 LC_ALL=C.UTF-8 HOME="$scratch/home" TERM=dumb)
mkdir "$scratch/home"
things=$scratch/things # scripts and what is built before the runs
mkdir "$things"

# outcome COMMAND...: runs it in an empty folder that has the same name each time. Output and errors in out and err.
outcome()
{
  rm -rf "$scratch/work"
  mkdir "$scratch/work"
  (
    cd "$scratch/work" || exit 1
    "${clean[@]}" timeout -s KILL 120 "$@" </dev/null >"$scratch/out" 2>"$scratch/err"
  ) 2>/dev/null
  status=$?
}

# The trace has all branches.
whole()
{
  "$lbr" stat --no-symbols --json "$scratch/trace" >"$scratch/stat" 2>>"$scratch/diff" &&
    grep -q '"gaps": \[\]' "$scratch/stat"
}

# recorded NAME MODE COMMAND...: is the outcome the native one?
recorded()
{
  name=$1
  mode=$2
  shift 2
  rm -f "$scratch/trace"*
  began=$(date +%s%N)
  case $mode in
  run) outcome "$lbr" run --output "$scratch/report" -- "$@" ;;
  record) outcome "$lbr" record --quiet --output "$scratch/trace" -- "$@" ;;
  esac
  ended=$(date +%s%N)
  problem=
  [ $status -eq $native ] || problem="status $status instead of $native"
  diff "$scratch/out.native" "$scratch/out" >"$scratch/diff" || problem="$problem; other output"
  diff "$scratch/err.native" "$scratch/err" >>"$scratch/diff" || problem="$problem; other errors"
  [ "$mode" = run ] || whole || problem="$problem; the trace is not whole"
  [ -z "$problem" ]
  verdict "$mode $name${problem:+: ${problem#; }}${TIMES:+ ($(((ended - began) / 1000000)) ms)}" $?
  [ -z "$problem" ] || head -n 12 "$scratch/diff" | cut -c 1-200 | sed 's/^/  /'
}

wanted() { [[ -z ${only// /} || $only == *" $1 "* ]]; }

# same NAME COMMAND...: under all modes. Wants the program in $needs, or that of the command.
same()
{
  wanted "$1" || return
  if ! command -v "${needs:-$2}" >/dev/null; then
    echo "skip $1: no ${needs:-$2}"
    return
  fi
  outcome "${@:2}"
  native=$status
  cp "$scratch/out" "$scratch/out.native"
  cp "$scratch/err" "$scratch/err.native"
  for one in $modes; do
    recorded "$1" "$one" "${@:2}"
  done
}

# script NAME COMMAND...: the same with standard input as a file, whose name is the last word.
script()
{
  cat >"$things/$1"
  same "$@" "$things/$1"
}

# ---- shells and small tools ----

script bash bash <<'END'
f() { local n=$1; ((n < 2)) && { echo "$n"; return; }; echo $(($(f $((n - 1))) + $(f $((n - 2))))); }
f 6
declare -A map=([one]=1 [two]=2)
for key in one two; do echo "$key ${map[$key]}"; done
trap 'echo caught' USR1
kill -USR1 $$
(exit 3) || echo "subshell $?"
for i in 1 2 3; do (echo "job $i") & wait $!; done
for i in 1 2 3; do (exit "$i") & done
wait
cat <<TEXT | tr a-z A-Z | while read -r line; do echo "[$line]"; done
first
second
TEXT
exec 5>file; echo five >&5; exec 5>&-; cat file
printf '%05.2f %s\n' 3.14159 "$(echo nested $(echo deeper))"
[[ abc =~ ^a(.)c$ ]] && echo "${BASH_REMATCH[1]}"
trap 'echo bye' EXIT
exit 7
END
script dash sh <<'END'
i=0
while [ $i -lt 50 ]; do i=$((i + 1)); done
echo $i
echo a b c | (read x y; echo $y)
kill -TERM $$
END
script pipeline bash <<'END'
set -o pipefail
seq 5000 | sort -rn | uniq -c | awk '{s += $2} END {print s}'
seq 1000 | md5sum
yes | head -n 3
echo "${PIPESTATUS[@]}"
seq 300 | tr 0-9 a-j | fold -w 40 | cut -c 1-5 | tail -n 2
seq 100 | xargs -n 10 echo | wc
END
script files bash <<'END'
mkdir -p a/b/c
for i in 1 2 3; do echo $i >a/b/$i; done
find a -type f | sort
grep -rl 2 a
cp -r a z
rm -r a
diff z/b/1 z/b/2
ls z/b
chmod 600 z/b/1
ls -l z/b/1 | cut -c 1-10
ln -s z/b/1 link
readlink link
touch -d @0 x
date -u -r x
END
same sed sed -n 's/\([a-z]*\)=\(.*\)/\2=\1/p;$=' "$things/files"
same timeout timeout 0.2 sleep 5
script archive bash <<'END'
seq 20000 >data
tar cf - --mtime=@0 data | gzip -9n | tee z.gz | gunzip | tar tvf - --numeric-owner | cut -c 1-30
xz -k -T2 data
xz -dc data.xz | cmp - data && echo same
sha256sum data
gzip -l z.gz | tail -n 1 | cut -c 1-20
END

# ---- interpreters ----

script perl perl <<'END'
my %h;
$h{$_ % 7} += $_ for 1 .. 2000;
print "$_ $h{$_}\n" for sort keys %h;
my $t = "abc" x 20;
$t =~ s/b(c)/$1$1/g;
print "$t\n";
local $SIG{ALRM} = sub { die "alarm\n" };
eval { alarm 1; 1 while 1 };
print "died $@";
my $p = fork // die;
if (!$p) { exit 5 }
waitpid $p, 0;
print $? >> 8, "\n", `echo from a shell`, sprintf("%.3f", sin 1), "\n";
exit 3;
END
python=$(command -v /usr/bin/python3 || command -v python3)
script python "${python:-python3}" -S <<'END'
import ctypes, hashlib, json, os, re, signal, subprocess, sys, threading, time
numbers = [n for n in range(2, 500) if all(n % d for d in range(2, int(n ** 0.5) + 1))]
print(len(numbers), sum(numbers), hashlib.sha256(repr(numbers).encode()).hexdigest()[:16])
print(json.dumps({"a": [1, 2.5, None], "b": "text"}, sort_keys=True), re.sub(r"(\w)(\d)", r"\2\1", "a1 b2"))
lock, total = threading.Lock(), [0]
def work(count):
    for _ in range(count):
        with lock:
            total[0] += 1
threads = [threading.Thread(target=work, args=(300,)) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(total[0], subprocess.run(["sh", "-c", "echo child; exit 4"], stdout=subprocess.PIPE))
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
values = (ctypes.c_int * 5)(5, 3, 1, 4, 2)
ctypes.CDLL(None).qsort(values, 5, 4, compare(lambda a, b: a[0] - b[0]))
print(list(values))
alarms = []
signal.signal(signal.SIGALRM, lambda *_: alarms.append(print("alarm")))
signal.setitimer(signal.ITIMER_REAL, 0.01)
while not alarms:
    time.sleep(0.001)
child = os.fork()
if child == 0:
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
try:
    1 / 0
except ZeroDivisionError as error:
    print(error)
sys.exit(6)
END
script lua lua <<'END'
local t = {}
for i = 1, 2000 do t[#t + 1] = (i * 7919) % 1009 end
table.sort(t)
print(t[1], t[1000], #t, pcall(error, "wrong"))
local c = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end)
print(c(), c(), c())
os.exit(2)
END
script awk awk -f <<'END'
BEGIN {
  for (i = 0; i < 3000; i++)
    s = (s * 31 + i) % 65521
  print s
  "echo sub" | getline x
  print x
  exit 4
}
END
script node node <<'END'
let s = 0
function f(i) { return i % 3 ? i * 2 : i - 1 }
for (let i = 0; i < 300000; i++) s = (s + f(i)) % 1000003
for (let k = 0; k < 200; k++) s += new Function('a', 'return a * ' + k)(k)
console.log(s, [3, 1, 2].sort(), /a(b+)/.exec('xabbb')[1], JSON.stringify({ a: 1 }))
const { Worker } = require('worker_threads')
require('child_process').exec('echo child', (error, output) => {
  process.stdout.write(output)
  new Worker('require("worker_threads").parentPort.postMessage(42)', { eval: true })
    .on('message', message => { console.log(message); process.exit(5) })
})
END
cat >"$things/Hello.java" <<'END'
public class Hello {
  static int f(int i) { return i % 3 == 0 ? i - 1 : i * 2; }
  public static void main(String[] words) throws Exception {
    long sum = 0;
    for (int i = 0; i < 200000; i++) sum = (sum + f(i)) % 1000003;
    Thread[] threads = new Thread[4];
    long[] sums = new long[4];
    for (int i = 0; i < 4; i++) {
      int n = i;
      threads[i] = new Thread(() -> { for (int k = 0; k < 1000; k++) sums[n] += f(k); });
      threads[i].start();
    }
    for (Thread thread : threads) thread.join();
    try {
      Object nothing = words.length == 0 ? null : words;
      nothing.toString();
    } catch (NullPointerException e) {
      System.out.println("null");
    }
    System.out.println(sum + " " + sums[0] + " " + sums[3]);
    System.exit(8);
  }
}
END
if wanted java && command -v javac >/dev/null; then
  javac -d "$things" "$things/Hello.java"
  same java java -XX:TieredStopAtLevel=1 -Xmx64m -cp "$things" Hello
elif wanted java; then
  echo 'skip java: no javac'
fi

# ---- tools of programmers ----

cat >"$things/main.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int twice(int value);
int main(int argc, char **argv)
{
  char *text = malloc(32);
  strcpy(text, "heap");
  printf("%s %d\n", text, twice(argc));
  free(text);
  (void)argv;
  return 12;
}
END
printf 'int twice(int value);\nint twice(int value)\n{\n  return value * 2;\n}\n' >"$things/twice.c"
for kind in '' address undefined thread; do
  gcc -g ${kind:+-fsanitize=$kind} -o "$things/program$kind" "$things/main.c" "$things/twice.c" 2>/dev/null
done
needs=gcc script gcc bash <<END
gcc -O2 -g -o program '$things/main.c' '$things/twice.c' && ./program
gcc -x c -c -Wall -o x.o - <<<'int f( {'
END
script make make -s -j2 -f <<END
all: program
	./program || echo status \$\$?
program: main.o twice.o
	gcc -o \$@ \$^
%.o: $things/%.c
	gcc -c -o \$@ \$<
END
needs=git script git bash <<'END'
export GIT_AUTHOR_DATE='@1000000000 +0000' GIT_COMMITTER_DATE='@1000000000 +0000' GIT_CONFIG_NOSYSTEM=1
git -c init.defaultBranch=main init -q .
git config user.name A
git config user.email a@b
for i in 1 2 3; do
  seq $i >file$i
  git add .
  git commit -qm "change $i"
done
git log --oneline
git diff HEAD~2 --stat
git checkout -q -b other
git mv file1 moved
git commit -qam move
git merge-base main other
git fsck
git gc -q
git status -s
git show --format=%an -s
END
script sqlite sqlite3 -init <<'END'
create table t(a integer primary key, b text);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 500)
  insert into t select x, hex(x * 7919) from c;
create index i on t(b);
select count(*), sum(a), max(b) from t;
select b from t where b like '3%' order by b limit 3;
begin;
delete from t where a % 2;
rollback;
select count(*) from t;
pragma integrity_check;
select * from nothing;
END
needs=gdb script gdb bash <<END
gdb -nx -nh -batch -iex 'set debuginfod enabled off' -ex 'set startup-with-shell off' -ex 'break twice' -ex run \\
  -ex bt -ex 'print value' -ex finish -ex continue '$things/program' | sed 's/process [0-9]*/process/'
END
needs=strace script strace bash <<END
strace -f -e trace=exit_group,write -o log '$things/program'
sed 's/^[0-9]* //' log
END
for kind in address undefined thread; do
  same $kind "$things/program$kind"
done
exit "$((failures != 0))"
