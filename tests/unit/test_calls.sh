#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_calls.sh LBR LABS: lbr calls on programs of every kind. What is expected comes from callgrind, gdb, arithmetic, and from
# programs that know how deep their calls are.
. "$(dirname "$0")/shell.sh"
labs=$(realpath "$2")
check=$(realpath "$(dirname "$0")/test_calls.py")
cd "$scratch" || exit 1

if [ "$(uname -m)" != x86_64 ]; then
  exit 77
fi

# record NAME COMMAND...: into NAME.lbr.
record() { "$lbr" record --quiet -o "$1.lbr" "${@:2}" >/dev/null 2>record.err; }
# summary NAME, calls NAME OPTION...: as JSON.
summary() { "$lbr" calls --summary --json "$1.lbr"; }
calls() { "$lbr" calls --json "${@:2}" "$1.lbr"; }

# ---- against callgrind, and arithmetic ----

cat >numbers.c <<'END'
#include <stdint.h>
#define ALONE __attribute__((noinline, noclone))
typedef uint64_t function(uint64_t);
static volatile uint64_t sink;
ALONE static uint64_t fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
ALONE static uint64_t even(unsigned n);
ALONE static uint64_t odd(unsigned n) { sink++; return n ? even(n - 1) : 0; }
ALONE static uint64_t even(unsigned n) { sink++; return n ? odd(n - 1) : 1; }
ALONE static uint64_t leaf(uint64_t x) { uint64_t r = 0; for (; x; x >>= 1) r += x & 1; return r; }
ALONE static uint64_t wrap(uint64_t x) { sink++; return leaf(x * 3); }
static function *volatile table[] = {leaf, wrap};
ALONE static uint64_t spread(unsigned n) { uint64_t r = 0; for (unsigned i = 0; i < n; i++) r += table[i & 1](i); return r; }
ALONE static unsigned ack(unsigned m, unsigned n) { return !m ? n + 1 : !n ? ack(m - 1, 1) : ack(m - 1, ack(m, n - 1)); }
ALONE static int compare(const unsigned *a, const unsigned *b) { return *a < *b ? -1 : *a > *b; }
ALONE static void sort(unsigned *v, int low, int high)
{
  if (low >= high)
    return;
  unsigned middle = v[(low + high) / 2];
  int i = low, j = high;
  while (i <= j) {
    while (compare(&v[i], &middle) < 0) i++;
    while (compare(&v[j], &middle) > 0) j--;
    if (i <= j) { unsigned t = v[i]; v[i++] = v[j]; v[j--] = t; }
  }
  sort(v, low, j);
  sort(v, i, high);
}
ALONE static void work(void)
{
  unsigned v[300];
  uint32_t x = 1;
  for (unsigned i = 0; i < 300; i++) v[i] = x = x * 1664525u + 1013904223u;
  sink += fib(20) + even(100) + spread(50) + ack(2, 6);
  sort(v, 0, 299);
  sink += v[0];
}
int main(void) { work(); return 0; }
END
for options in '-O0' '-O2' '-O2 -static'; do
  # shellcheck disable=SC2086
  gcc -g $options -o numbers numbers.c || exit 1
  record numbers ./numbers
  if command -v valgrind >/dev/null; then
    valgrind --tool=callgrind --callgrind-out-file=callgrind.out ./numbers 2>/dev/null
    summary numbers | "$check" callgrind callgrind.out numbers
    verdict "calls and instructions are those of callgrind: gcc $options" $?
  fi
done
gcc -O0 -o numbers numbers.c && record numbers ./numbers
# fib(n) makes 2 fib(n + 1) - 1 calls; Ackermann's function of 2 and n makes 2n^2 + 7n + 5.
summary numbers | "$check" counts fib=21891 ack=119 even=51 odd=50 leaf=50 wrap=25 spread=1 work=1 main=1
verdict 'calls of recursive functions by arithmetic' $?

# Without symbols, what is called is a function all the same.
gcc -O0 -o stripped numbers.c && record stripped ./stripped && summary stripped >named
strip -s stripped && record stripped ./stripped && summary stripped >bare
"$check" addresses named bare && ! grep -q '"function":"fib"' bare
verdict 'a stripped program has the same functions with the same numbers' $?

# ---- how deep calls are ----

# Functions that are named level_N are called at level N, main being 0.
cat >levels.c <<'END'
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define ALONE __attribute__((noinline, noclone))
static volatile int sink;
static jmp_buf back;
static sigjmp_buf far_back;
ALONE static void level_1(void) { sink += 1; }
ALONE static void level_2(void) { sink += 2; }
ALONE static void level_3(void) { sink += 3; }
ALONE static void down(int n) { if (n) down(n - 1); else longjmp(back, 1); sink++; }
ALONE static void jumps(void)
{
  for (volatile int i = 0; i < 3; i++) {
    if (!setjmp(back))
      down(i + 2);
    level_2();
  }
}
/* setjmp in a function that is there three times; longjmp to the outermost of them */
ALONE static void nested(int n)
{
  if (n == 2 && setjmp(back)) { level_2(); return; }
  if (n) nested(n - 1); else longjmp(back, 1);
  sink++;
}
ALONE static void on_signal(int signal) { (void)signal; level_3(); sink++; }
ALONE static void signals(long process)
{
  for (int i = 0; i < 3; i++) {
    long result = 62; /* kill */
    __asm__ volatile("syscall" : "+a"(result) : "D"(process), "S"((long)SIGUSR1) : "rcx", "r11", "memory");
    level_2();
  }
}
/* a fault, whose handler does not return */
ALONE static void on_far(int signal) { (void)signal; level_3(); siglongjmp(far_back, 1); }
ALONE static void faults(void)
{
  if (!sigsetjmp(far_back, 1))
    *(volatile int *)8 = 1;
  level_2();
}
ALONE static void level_2_tail(int n) { sink += n; }
ALONE static void tail(int n) { sink++; level_2_tail(n + 1); }
int main(void)
{
  level_1();
  jumps();
  level_1();
  nested(2);
  level_1();
  signal(SIGUSR1, on_signal);
  signal(SIGSEGV, on_far);
  signals(getpid());
  level_1();
  faults();
  level_1();
  tail(1);
  level_1();
  sink += getenv("PATH") ? atoi("12") : 0;
  level_1();
  return 0;
}
END
for options in '-O0' '-O2 -Wl,-z,lazy' '-O2 -Wl,-z,now' '-O1 -static'; do
  # shellcheck disable=SC2086
  gcc -g $options -o levels levels.c && record levels ./levels || exit 1
  calls levels --function main >json && "$check" levels <json && [ "$(grep -c '"level_' json)" -eq 20 ] &&
    grep -q '"entered":"signal"' json && grep -q '"left":"unwind"' json && ! grep -q '@plt"' json
  verdict "longjmp, a signal, tail calls, the PLT: gcc $options" $?
done

cat >exceptions.cc <<'END'
#include <stdexcept>
#define ALONE __attribute__((noinline, noclone))
#define INLINE __attribute__((always_inline))
static volatile int sink;
extern "C" {
ALONE void level_1() { sink = sink + 1; }
ALONE void level_2() { sink = sink + 2; }
ALONE void level_3() { sink = sink + 3; }
ALONE void level_4() { sink = sink + 4; }
ALONE void level_5() { sink = sink + 5; }
}
struct at_3 { INLINE ~at_3() { level_3(); } };
struct at_4 { INLINE ~at_4() { level_4(); } };
ALONE static void innermost(int n) { sink = sink + 1; if (n) throw std::runtime_error("x"); }
ALONE static void inner(int n) { at_4 guard; innermost(n); }
ALONE static void outer(int n) { at_3 guard; inner(n); }
ALONE static void catches(int n) { try { outer(n); } catch (const std::exception &) { level_2(); } level_2(); }
ALONE static void again(int n) { try { outer(n); } catch (...) { level_2(); throw; } }
/* a function that is there four times: each one has something to do on the way, the outermost catches */
struct at_level { int level; INLINE ~at_level() { level == 2 ? level_2() : level == 3 ? level_3() : level == 4 ? level_4() : level_5(); } };
ALONE static void recursion(int n)
{
  at_level guard{5 - n};
  if (n == 3) { try { recursion(n - 1); } catch (int) { level_2(); } level_2(); return; }
  if (!n) throw 1;
  recursion(n - 1);
  sink = sink + 1;
}
int main()
{
  for (int i = 0; i < 3; i++) {
    catches(1);
    level_1();
    catches(0);
    level_1();
    try { again(1); } catch (const std::exception &) { level_1(); }
    level_1();
    recursion(3);
    level_1();
  }
  return 0;
}
END
for options in '-O0' '-O2'; do
  # shellcheck disable=SC2086
  g++ -g $options -o exceptions exceptions.cc && record exceptions ./exceptions || exit 1
  calls exceptions --function main >json && "$check" levels <json && [ "$(grep -c '"level_' json)" -eq 63 ] && grep -q '"left":"unwind"' json
  verdict "C++ exceptions: g++ $options" $?
done

# ---- threads, processes, libraries ----

cat >threads.c <<'END'
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define ALONE __attribute__((noinline, noclone))
static _Thread_local volatile int sink;
ALONE static void step(void) { sink++; }
ALONE static void *worker(void *n) { for (long i = 0; i < (long)n; i++) step(); return NULL; }
ALONE static void child(void) { for (int i = 0; i < 7; i++) step(); }
ALONE static void library(void)
{
  void *handle = dlopen("./library.so", RTLD_LAZY);
  int (*twice)(int) = (int (*)(int))dlsym(handle, "twice");
  for (int i = 0; i < 11; i++) sink += twice(i);
  dlclose(handle);
}
int main(int argc, char **argv)
{
  pthread_t threads[3];
  if (argc > 1) { child(); return 0; }
  for (long i = 0; i < 3; i++) pthread_create(&threads[i], NULL, worker, (void *)(10 * (i + 1)));
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  library();
  pid_t process = fork();
  if (!process) { child(); execl(argv[0], argv[0], "x", NULL); _exit(1); }
  return waitpid(process, NULL, 0) == process ? 0 : 1;
}
END
echo 'int once(int n) { return n + 1; } int twice(int n) { return once(n) + once(n); }' >library.c
gcc -O0 -shared -fPIC -o library.so library.c && gcc -g -O1 -pthread -o threads threads.c -ldl && record threads ./threads || exit 1
summary threads | "$check" counts step=74 worker=3 child=2 twice=11 once=22
verdict 'threads, fork, exec, dlopen' $?
# The child's main returns to callers that were not seen; the parent's and the executed one's were.
calls threads | grep -c '"function":"main".*"entered":"call"' | grep -qx 2
verdict 'main was called twice, and once came out of fork' $?
run calls --all --depth 3 threads.lbr
[ $status -eq 0 ] && said 'thrd' && [ "$(awk 'NR > 1 { print $1 }' out | sort -u | wc -l)" -eq 6 ]
verdict 'calls --all of several threads has a column for them' $?
run calls --thread 1 threads.lbr
[ $status -eq 0 ] && [ "$(grep -c '^thread ' out)" -eq 1 ] && said 'step x '
verdict 'calls --thread, and calls that are alike' $?

# ---- against gdb: which functions are open when it dies ----

cat >dies.c <<'END'
#define ALONE __attribute__((noinline, noclone))
static volatile int *nothing;
ALONE static int deepest(int n) { return *nothing + n; }
ALONE static int middle(int n) { return n ? middle(n - 1) + 1 : deepest(n) + 1; }
ALONE static int first(int n) { return middle(n) * 2; }
int main(void) { return first(3) + 1; }
END
gcc -g -O1 -fno-optimize-sibling-calls -o dies dies.c
(record dies ./dies) 2>/dev/null
if command -v gdb >/dev/null; then
  gdb -batch -nx -ex run -ex bt ./dies 2>/dev/null | sed -n 's/^#[0-9]* *\(0x[0-9a-f]* in \)\{0,1\}\([a-z_]*\) (.*/\2/p' >stack
  calls dies --function main | sed -n 's/.*"function":"\([a-z]*\)".*"left":"end".*/\1/p' >open
  [ -s stack ] && diff stack open
  verdict 'what is open at the end is the stack that gdb shows' $?
fi

# ---- shapes and options ----

calls numbers >all
"$lbr" calls --folded numbers.lbr | "$check" folded all
verdict '--folded has the stacks and costs of the calls' $?
last=$(grep -o '"branch":[0-9]*' all | cut -d: -f2 | sort -n | tail -n 1)
for cut in 1 $((last / 2)) $((last - 7)); do
  calls numbers --between "..$((cut - 1))" >one && calls numbers --between "$cut..$((cut + 5))" >two && calls numbers --between "$((cut + 6)).." >three &&
    "$check" between all one two three
  verdict "--between: the parts add up, at $cut" $?
done
run calls --function work numbers.lbr
[ $status -eq 0 ] && said '    fib' && said '    sort' && said 'Every number is an exact count' && ! said main &&
  awk '/^ .* work/ { exit $1 > 10000 ? 0 : 1 }' out
verdict 'calls --function' $?
run calls --function main --depth 2 numbers.lbr
[ $status -eq 0 ] && [ "$(grep -c '^ .*%' out)" -eq 2 ]
verdict 'calls --depth' $?
run calls --function work --top 12 numbers.lbr
[ $status -eq 0 ] && [ "$(grep -c '^ .*%' out)" -le 12 ] && said ' small call' && said 'are summed up' && said 'sort'
verdict 'the tree has as many lines as --top says' $?
cat >unlike.c <<'END'
#define F(n) __attribute__((noinline, noclone)) static void f##n(void) { __asm__ volatile(""); }
F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15)
static void (*const table[])(void) = {f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15};
int main(void)
{
  unsigned x = 1;
  for (int i = 0; i < 2400000; i++, x = x * 1664525u + 1013904223u)
    table[x >> 28]();
  return 0;
}
END
gcc -O1 -o unlike unlike.c
record unlike ./unlike
run calls --top all --function main unlike.lbr
lines=$(grep -c '^ .*%' out)
[ $status -eq 0 ] && [ "$lines" -gt 1 ] && [ "$lines" -le 2097152 ] && said 'are summed up, because there are too many to keep'
verdict 'the tree of a long run fits in memory, and says so' $?
cat >crowd.c <<'END'
#include <pthread.h>
static void *body(void *n) { for (volatile long i = 0; i < (long)n; i++) ; return n; }
int main(void)
{
  for (long n = 0; n < 300; n++) {
    pthread_t thread;
    pthread_create(&thread, 0, body, (void *)n);
    pthread_join(thread, 0);
  }
  return 0;
}
END
gcc -O1 -pthread -o crowd crowd.c
record crowd ./crowd
run calls crowd.lbr
total=$(summary crowd | python3 -c "
import json, sys
print(sum(row['own_instructions'] for row in map(json.loads, sys.stdin) if row['type'] == 'function'))")
[ $status -eq 0 ] && [ "$(grep -c '^thread ' out)" -eq 101 ] && said '200 more threads' && said 'thread 0:' && said 'thread 300:' &&
  [ "$(awk '/ call$/ { outer = length($0) - 3 } $2 ~ /%$/ && substr($0, outer, 1) != " " { sum += $1 } / more threads/ { sum += $7 } END { print sum }' out)" -eq "$total" ]
verdict 'the heaviest of many threads, and the sum of the others' $?
run calls --all --top 5 numbers.lbr
[ $status -eq 0 ] && [ "$(wc -l <out)" -eq 6 ] && complained 'stopped after 5 lines'
verdict 'calls --all --top says that it is cut' $?
# main calls work 50 times; work calls left 3 times and right once, left calls leaf twice, right calls itself twice and leaf
# in each of its 3 calls: leaf is called 50 * (3 * 2 + 3) times.
cat >callers.c <<'END'
#define ALONE __attribute__((noinline, noclone, noipa))
ALONE static void leaf(void) { __asm__ volatile(""); }
ALONE static void left(void) { leaf(); leaf(); __asm__ volatile(""); }
ALONE static void right(int n) { leaf(); if (n) right(n - 1); __asm__ volatile(""); }
ALONE static void work(void) { left(); left(); left(); right(2); __asm__ volatile(""); }
int main(void) { for (int i = 0; i < 50; i++) work(); }
END
gcc -O1 -fno-optimize-sibling-calls -o callers callers.c && record callers ./callers
"$lbr" calls --callers leaf --json --depth 3 callers.lbr | python3 -c '
import json, sys
rows = {row["number"]: row for row in map(json.loads, sys.stdin)}
def stack(row):
    return (stack(rows[row["called"]]) if row["called"] is not None else ()) + (row["function"],)
got = {stack(row): row["calls"] for row in rows.values()}
want = {("leaf",): 450, ("leaf", "left"): 300, ("leaf", "left", "work"): 300, ("leaf", "left", "work", "main"): 300,
        ("leaf", "right"): 150, ("leaf", "right", "work"): 50, ("leaf", "right", "work", "main"): 50,
        ("leaf", "right", "right"): 100, ("leaf", "right", "right", "work"): 50, ("leaf", "right", "right", "right"): 50}
assert got == want, got'
verdict 'calls --callers: every way to a function, with its calls' $?
# Each call of leaf is one instruction, ret; of right, the outermost calls count all that they ran.
"$lbr" calls --callers right --json --depth 1 callers.lbr | python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
summary = {row["function"]: row["calls"] for row in rows if row["level"]}
assert summary == {"right": 100, "work": 50}, summary
by = {row["function"]: row for row in rows if row["level"]}
assert by["right"]["instructions"] == 0 and by["work"]["instructions"] == rows[0]["instructions"] > 0'
verdict 'calls --callers: the cost of recursion is counted once' $?
run calls --summary --function leaf callers.lbr
[ $status -eq 0 ] && grep -qE '^ +300 +300 .*  left -> leaf$' out && grep -qE '^ +150 +150 .*  right -> leaf$' out
verdict 'calls --summary --function names the callers' $?
run calls --callers nobody callers.lbr
[ $status -eq 1 ] && complained "'nobody' is never called"
verdict 'calls --callers of a function that is not called' $?
run calls --callers leaf --top 3 callers.lbr
[ $status -eq 0 ] && [ "$(wc -l <out)" -eq 5 ] && said 'more: --'
verdict 'calls --callers: as many rows as are asked for' $?

run calls --summary numbers.lbr
[ $status -eq 0 ] && said 'fib -> fib' && grep -qE '^ *21891 .* fib \(numbers\)$' out && grep -qE '^ *21890 .*  fib -> fib$' out
verdict 'calls --summary' $?
run calls --no-symbols --depth 2 numbers.lbr
[ $status -eq 0 ] && said 'numbers+0x' && ! said main && said "'-' for instructions" && grep -qE '^ +- +- +[0-9]+  ' out
verdict 'calls --no-symbols' $?
run calls --function nobody numbers.lbr
[ $status -eq 1 ] && silent && complained "'nobody' is never called"
verdict 'a function that is not called' $?
run calls --thread 9 numbers.lbr
[ $status -eq 1 ] && complained 'no thread 9'
verdict 'a thread that is not there' $?
for bad in '--callers f --summary' '--callers f --function g' '--between 5' '--between 9..3' '--by weight' '--all --summary' '--folded --json' '--depth x'; do
  # shellcheck disable=SC2086
  run calls $bad numbers.lbr
  [ $status -eq 2 ] && silent && [ -s err ]
  verdict "calls $bad makes no sense" $?
done

# ---- a trace of a machine: 32-bit code, whose instructions are not known; functions that fall into others ----

"$lbr" machine --cpu skylake --kernel "$labs/calls.elf" --screen none --serial none --trace machine.trace >/dev/null 2>&1
branches=$("$lbr" script --no-symbols machine.trace | wc -l)
"$lbr" calls --summary --json machine.trace | python3 -c "
import json, sys
rows = [row for row in map(json.loads, sys.stdin) if row['type'] == 'function']
sys.exit(not rows or max(rows, key=lambda row: row['branches'])['instructions'] is not None or
         any(row['own_branches'] and row['own_instructions'] not in (None, 0, row['own_branches']) for row in rows) or
         sum(row['own_branches'] for row in rows) != $branches)"
verdict 'a trace of a machine: branches are not passed off as instructions' $?

# ---- damage ----

head -c $(($(stat -c %s numbers.lbr) - 20)) numbers.lbr >cut.lbr
run calls cut.lbr
[ $status -eq 1 ] && said 'branches' && complained 'cut'
verdict 'a trace that is cut' $?

exit $((failures > 0))
