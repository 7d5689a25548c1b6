#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_export_perf.sh LBR: lbr export --to perf and brstack, read by perf, perf2bolt, create_llvm_prof and llvm-profgen.
# How often functions are called is known by arithmetic; the layout of the file is read by test_export_perf.py.
. "$(dirname "$0")/shell.sh"
reader=$(realpath "$(dirname "$0")/test_export_perf.py")
make=$(realpath "$(dirname "$0")/trace_make.py")
cd "$scratch" || exit 1

if [ "$(uname -m)" != x86_64 ]; then
  exit 77
fi

record() { "$lbr" record --quiet -o "$1.lbr" "${@:2}" >/dev/null 2>record.err; }
# tool NAME: is it here? Says so if not.
tool()
{
  command -v "$1" >/dev/null || { echo "ok $1 is not here: skipped"; return 1; }
}
perf2bolt=/usr/lib/llvm-19/bin/perf2bolt # the one on the path does not know what it is

# fib(18) makes 2 * F(19) - 1 = 8361 calls; each thread one tree of them.
cat >fib.c <<'END'
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline, noclone)) int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
#ifdef THREADS
static void *work(void *n) { return (void *)(long)fib((int)(long)n); }
#endif
int main(void)
{
#ifdef THREADS
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, (void *)18L);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
  if (!fork()) { fib(18); execl("/bin/true", "true", (char *)0); }
  wait(0);
#endif
  return fib(18) != 2584;
}
END
calls=8361
flags='-O1 -g -gdwarf-4 -fno-optimize-sibling-calls'
gcc $flags -Wl,-q -fPIE -pie -o pie fib.c && gcc $flags -Wl,-q -fno-pie -no-pie -o exec fib.c &&
  gcc $flags -static -o static fib.c && gcc $flags -DTHREADS -o threads fib.c || exit 1
for name in pie exec static threads; do
  record $name ./$name && "$lbr" export -q --to perf -o $name.data $name.lbr && "$lbr" export -q --to brstack $name.lbr
  verdict "$name is recorded and exported" $?
done

# ---- the file itself ----

for name in pie exec static threads; do
  "$lbr" script --no-symbols -F thread,from,to,kind $name.lbr >$name.script &&
    python3 "$reader" $name.data $name.script >$name.read
  verdict "$name: records are well formed, and their branches are those of the trace, in order" $?
done
grep -q 'comm exec true' threads.read
verdict "a program that a process executes is a COMM with its own mappings" $?

"$lbr" export -q --to perf --window 127 -o wide.data pie.lbr && python3 "$reader" wide.data pie.script >wide.read &&
  grep -q 'longest 127' wide.read && grep -q 'longest 32' pie.read
verdict "samples are as long as --window says, and 32 without" $?
"$lbr" export -q --to perf --window 1 -o narrow.data pie.lbr && python3 "$reader" narrow.data pie.script >/dev/null
verdict "a window of 1 keeps the event's period above 1" $?
run export --to perf --window 128 pie.lbr
[ $status -eq 2 ]
verdict "longer samples, which perf takes for damaged ones, are refused" $?
"$lbr" export --to perf -o - pie.lbr 2>err | cat >piped
[ ! -s piped ] && grep -q 'pipe' err
verdict "a pipe is refused: the head is known last" $?
"$lbr" export --to perf -o - pie.lbr >redirected && cmp -s redirected pie.data
verdict "standard output that is a file is good enough" $?
run export --to perf --function nosuch -o none.data pie.lbr
[ $status -eq 1 ] && complained 'no branches' && [ ! -e none.data ]
verdict "nothing to write: no file, status 1" $?
head -c -100 threads.lbr >cut.lbr
run export --to perf -o cut.data cut.lbr
[ $status -eq 1 ] && [ -s cut.data ] && complained 'cut'
verdict "a cut trace: what could be read is there, status 1" $?

# ---- traces made by hand: what ends a sample ----

mkdir hand && python3 "$make" hand "$PWD/pie"
id=$(readelf -n pie | sed -n 's/.*Build ID: //p')
cat >want <<END
PERF_RECORD_MMAP2 100/100: [0x10000(0x1000) @ 0x1000 <$id>]: r-xp $PWD/pie
 0x10000/0x10010/-/-/-/0/UNCOND  0x10010/0x10000/M/-/-/0/COND  0x10000/0x10010/-/-/-/0/UNCOND 
PERF_RECORD_MMAP2 200/200: [0x555000(0x1000) @ 0x1000 <$id>]: r-xp $PWD/pie
 0x555020/0x777000/-/-/-/0/CALL  0x555000/0x555010/-/-/-/0/UNCOND 
PERF_RECORD_MMAP2 100/100: [0x10000(0x1000) @ 0x1000 <$id>]: r-xp $PWD/pie
 0x10000/0x10010/-/-/-/0/UNCOND  0x10010/0x20000/-/X/-/0/RET 
END
"$lbr" export -q --to brstack -o got hand/threads && cmp want got
verdict "what is missing ends a sample; another process brings its mappings" $?
cat >want <<END
PERF_RECORD_MMAP2 0/0: [0x10000(0x1000) @ 0x1000 <$id>]: r-xp $PWD/pie
 0x10000/0x10010/-/-/-/0/UNCOND 
 0x10000/0x10010/-/-/-/0/UNCOND 
PERF_RECORD_MMAP2 0/0: [0x10000(0x3000) @ 0x40 00:00 0 0]: r-xp /no/such/file
PERF_RECORD_MMAP2 0/0: [0x11000(0x1000) @ 0x1000 <$(printf 'aa%.0s' {1..20})>]: r-xp $PWD/pie
 0x12000/0x10010/-/-/-/0/UNCOND  0x10000/0x11010/-/-/-/0/UNCOND 
END
"$lbr" export -q --to brstack -o got hand/modules && cmp want got
verdict "what is mapped ends a sample" $?
"$lbr" export -q --to brstack -o got hand/strangers &&
  ! LC_ALL=C grep -q $'[\x01-\x09\x0b-\x1f]' got && [ "$(wc -l <got)" = 3 ]
verdict "names of strangers make no lines and do nothing to a terminal" $?
run export -q --to perf -o damaged.data hand/damaged
[ $status -eq 1 ] && [ -s damaged.data ]
verdict "a damaged trace: what could be read is there, status 1" $?

# ---- perf ----

if tool perf; then
  perf script -i pie.data -F brstack --show-mmap-events >script 2>script.err && cmp -s script pie.perfscript
  verdict "brstack is what perf script prints" $?
  # With several processes samples of the text end where another one comes: there it is branch by branch.
  perf script -i threads.data -F brstack 2>script.err | tr ' ' '\n' | sort >script &&
    grep -v '^PERF' threads.perfscript | tr ' ' '\n' | sed '/^$/d' | sort >text && sed -i '/^$/d' script &&
    [ -s text ] && cmp -s text script
  verdict "so it is with threads and processes" $?
  # The first call comes from main, all others from fib itself. perf report is not told that there are branches (-b).
  for name in pie exec static; do
    perf report -i $name.data --stdio -n >report 2>report.err
    grep -q 'Source Symbol .* Target Symbol' report &&
      [ "$(sed -n 's/^# Event count (approx.): //p' report)" = "$(wc -l <$name.script)" ] &&
      [ "$(awk '$6 == "main" && $8 == "fib" || $6 == "fib" && $8 == "main" { n += $2 } END { print n }' report)" = 2 ]
    verdict "$name: perf report shows branches, and counts those of the trace" $?
    perf script -i $name.data -F brstacksym 2>/dev/null | tr ' ' '\n' | grep -c '/fib+0x0/.*CALL$' >count
    [ "$(cat count)" = $calls ]
    verdict "$name: perf finds each call of fib" $?
  done
  perf report -i threads.data --stdio --sort comm -n >report 2>report.err &&
    awk '$3 == "true" { t = $2 } $3 == "threads" { f = $2 } END { exit !(t > 1000 && f > t) }' report
  verdict "perf knows which program ran after exec" $?
  perf buildid-list -i pie.data >ids 2>/dev/null &&
    grep -q "$(readelf -n pie | sed -n 's/.*Build ID: //p') .*/pie" ids
  verdict "perf finds the build-id" $?
fi

# ---- BOLT, AutoFDO, llvm-profgen ----

if tool perf && tool $perf2bolt; then
  for name in pie exec; do
    "$perf2bolt" -p $name.data -o $name.fdata ./$name >bolt.out 2>&1 &&
      grep -q 'mismatching disassembled function contents: 0 ' bolt.out &&
      [ "$(awk '$5 == "fib" && $6 == 0 { n += $8 } END { print n }' $name.fdata)" = $calls ]
    verdict "$name: perf2bolt counts all calls of fib" $?
  done
fi
# AutoFDO leaves out what is too cold: main, and its call with it, if what ran behind that fell between two samples.
if tool create_llvm_prof; then
  for name in pie exec; do
    create_llvm_prof --binary=./$name --profile=$name.data --out=$name.afdo --format=text >afdo.out 2>&1 &&
      grep -qE "^fib:[0-9]*:($calls|$((calls - 1)))\$" $name.afdo
    verdict "$name: create_llvm_prof counts the calls of fib" $?
  done
fi
if tool llvm-profgen-19; then
  for name in pie exec; do
    llvm-profgen-19 --perfscript=$name.perfscript --binary=./$name --output=$name.prof --format=text >/dev/null 2>&1 &&
      grep -q "^fib:[0-9]*:$calls\$" $name.prof
    verdict "$name: llvm-profgen counts all calls of fib" $?
  done
  # Three threads, the child and the program itself, at different times at the same places.
  llvm-profgen-19 --perfscript=threads.perfscript --binary=./threads --output=threads.prof --format=text \
    >/dev/null 2>&1 &&
    grep -q "^fib:[0-9]*:$((5 * calls))\$" threads.prof
  verdict "llvm-profgen counts them in all threads and processes" $?
fi

[ $failures -eq 0 ]
