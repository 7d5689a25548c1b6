#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_export_calls.sh LBR: lbr export --to chrome, speedscope, folded and pprof. How often functions are called, and
# how deep, is known by arithmetic; test_export_calls.py reads the files by the rules of those who will.
. "$(dirname "$0")/shell.sh"
check=$(realpath "$(dirname "$0")/test_export_calls.py")
make=$(realpath "$(dirname "$0")/trace_make.py")
cd "$scratch" || exit 1

if [ "$(uname -m)" != x86_64 ]; then
  exit 77
fi

record() { "$lbr" record --quiet -o "$1.lbr" "${@:2}" >/dev/null 2>record.err; }

# fib(N) makes 2 * F(N + 1) - 1 calls, N of them in each other: 8361 and 18; 3193 and 16 in each thread. Below them a
# jump out of a function that is 20 calls deep, a signal, and a tail call.
cat >tree.c <<'END'
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#define ALONE __attribute__((noinline, noclone))
static jmp_buf back;
static volatile int sink;
__attribute__((optimize("no-optimize-sibling-calls")))
ALONE static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
ALONE static void dig(int n) { if (n == 0) longjmp(back, 1); dig(n - 1); sink++; }
ALONE static void handler(int signal) { sink += signal; }
ALONE static void last(int n) { sink += n; }
ALONE static void tail(int n) { sink += n; last(n + 1); }
#ifdef THREADS
static void *work(void *n) { return (void *)(long)fib((int)(long)n); }
#endif
int main(void)
{
#ifdef THREADS
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, (void *)16L);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
  if (!fork()) { fib(16); execl("/bin/true", "true", (char *)0); }
  wait(0);
#endif
  signal(SIGUSR1, handler);
  raise(SIGUSR1);
  if (!setjmp(back)) dig(19);
  tail(1);
  return fib(18) != 2584;
}
END
gcc -O1 -g -foptimize-sibling-calls -o tree tree.c && gcc -O1 -g -no-pie -static -DTHREADS -o threads tree.c &&
  cp tree stripped && strip stripped || exit 1
for name in tree threads stripped; do
  record $name ./$name
  for format in chrome speedscope folded pprof; do
    "$lbr" export -q --to $format -o $name.$format $name.lbr
    verdict "$name: $format is written" $?
  done
  branches=$("$lbr" stat $name.lbr | awk '$1 == "branches" { print $2; exit }')
  python3 "$check" $name $branches
  verdict "$name: all four obey their rules and tell the same" $?
  "$lbr" calls --folded $name.lbr >calls && cmp -s calls $name.folded
  verdict "$name: folded is what lbr calls --folded prints" $?
done

# count NAME FUNCTION CALLS DEPTH: in the timelines.
count()
{
  python3 "$check" $1 - $2 >counted && [ "$(cat counted)" = "$3 $4" ]
  verdict "$1: $2 is called $3 times, and $4 deep" $?
}
count tree fib 8361 18
count tree dig 20 20
count tree handler 1 1
count tree last 1 1
count threads fib $((8361 + 4 * 3193)) 18

# ---- choices ----

"$lbr" export -q --to speedscope --thread 1 -o one.speedscope threads.lbr &&
  python3 -c 'import json,sys; sys.exit(len(json.load(open("one.speedscope"))["profiles"]) != 1)'
verdict "one thread" $?
for choice in '--kind ret' '--from main' '--into main'; do
  run export --to chrome $choice -o kind.chrome tree.lbr
  [ $status -eq 2 ] && complained 'about calls, not single branches' && [ ! -e kind.chrome ]
  verdict "calls without some of their branches are refused: $choice" $?
done

# chosen NAME HOW WORD OPTION...: all formats of a part of the calls.
chosen()
{
  for format in chrome speedscope folded pprof; do
    "$lbr" export -q --to $format -o part.$format "${@:4}" "$1.lbr" || return 1
  done
  python3 "$check" part "$2" "$1" "$3"
}
chosen tree within fib --function fib
verdict "--function: what happens in calls of it, which call it again" $?
chosen tree within dig --function dig
verdict "--function: the same of one that longjmp leaves" $?
chosen threads within work --function work
verdict "--function: the same in several threads" $?
chosen tree within main --function main
verdict "--function: the same with calls of other modules" $?
chosen stripped module stripped --module stripped
verdict "--module: frames of others are left out, and count for those that are kept" $?
chosen tree within main --function main --module '*'
verdict "--function and --module go together" $?
"$lbr" export -q --to folded --function main --module tree -o both.folded tree.lbr && grep -q '^main;dig;dig' both.folded &&
  ! grep -vq '^main[; ]' both.folded && ! grep -q 'raise\|longjmp' both.folded && grep -q 'main;.*raise' tree.folded
verdict "--function and --module: frames of neither are there" $?
"$lbr" export -q --to folded --function dig --function last -o two.folded tree.lbr && grep -q '^dig' two.folded &&
  grep -q '^last' two.folded && ! grep -vq '^dig\|^last' two.folded
verdict "--function: any of several" $?
run export --to folded --function nosuch -o none.folded tree.lbr
[ $status -eq 1 ] && complained 'the trace has no calls that match the options' && [ ! -e none.folded ]
verdict "a function that is none: no file" $?
run export --to pprof --thread 7 -o none.pprof tree.lbr
[ $status -ne 0 ] && [ ! -e none.pprof ]
verdict "a thread that is none: no file" $?

# ---- names from strangers ----

mkdir hand && python3 "$make" hand "$PWD/tree"
for format in chrome speedscope; do
  "$lbr" export -q --to $format -o strangers.$format hand/strangers 2>/dev/null &&
    python3 -c 'import json, sys; json.load(open(sys.argv[1], encoding="utf-8"))' strangers.$format &&
    grep -q 'title' strangers.$format && ! LC_ALL=C grep -q $'[\x01-\x09\x0b-\x1f]' strangers.$format
  verdict "$format: names from strangers do no harm" $?
done

# ---- pprof's own reader ----

if go tool 2>/dev/null | grep -qx pprof; then
  go tool pprof -top -nodecount 1000000 -nodefraction 0 -edgefraction 0 tree.pprof >top 2>top.err &&
    total=$(awk '{ n += $NF } END { print n }' tree.folded) && grep -q "of $total total" top &&
    [ "$(awk '$NF == "fib" { print $1 }' top)" = "$(awk '/fib [0-9]*$/ { n += $NF } END { print n }' tree.folded)" ]
  verdict "go tool pprof reads it and finds the same sums" $?
else
  echo "ok go is not here: skipped, test_export_calls.py reads pprof itself"
fi

[ $failures -eq 0 ]
