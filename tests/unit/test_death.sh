#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_death.sh LBR: the call stack in the report of lbr run, which comes from the branches, and the choice of branches. While
# the memory of the stack is intact, gdb unwinds the same stack from it; of a destroyed one the source tells.
here=$(dirname "$(realpath "$0")")
. "$here/shell.sh"
cd "$scratch" || exit 1
export GLIBC_TUNABLES=glibc.pthread.rseq=0

cat >die.c <<'END'
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static const char *what;
static jmp_buf point;
int own(int n, void (*back)(int));
/* A page of letters before one that cannot be read: strcmp faults at the same place whatever else lies in memory. */
static char *endless_string(void)
{
  char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(page, 'a', 4096);
  mprotect(page + 4096, 4096, PROT_NONE);
  return page;
}
__attribute__((noinline)) static void die(int n)
{
  volatile int zero = 0;
  if (!strcmp(what, "abort"))
    abort();
  if (!strcmp(what, "assert"))
    assert(n < 0);
  if (!strcmp(what, "write"))
    *(volatile int *)16 = n;
  if (!strcmp(what, "call"))
    ((void (*)(void))4660)();
  if (!strcmp(what, "signal"))
    raise(SIGUSR1);
  if (!strcmp(what, "library"))
    qsort(endless_string(), 1000, 4, (int (*)(const void *, const void *))strcmp);
  if (!strcmp(what, "divide"))
    zero = n / zero;
  if (!strcmp(what, "exit"))
    exit(7);
}
__attribute__((noinline)) static void jump(int n)
{
  if (n)
    jump(n - 1);
  longjmp(point, 1);
}
__attribute__((noinline)) int recurse(int n, int *sum)
{
  char text[64];
  if (n == 0)
    die(3);
  else
    recurse(n - 1, sum);
  *sum += snprintf(text, sizeof(text), "%d", n);
  return *sum;
}
static void handle(int signal)
{
  (void)signal;
  abort();
}
__attribute__((noinline)) static void back(int n)
{
  int sum = 0;
  if (!setjmp(point))
    jump(5);
  recurse(n, &sum);
}
static void *thread(void *p)
{
  own(3, back);
  return p;
}
int main(int argc, char **argv)
{
  pthread_t other;
  what = argc > 1 ? argv[1] : "";
  signal(SIGUSR1, handle);
  for (int i = 0; i < 50; i++)
    setenv("NAME", what, 1);
  if (argc > 2 && !pthread_create(&other, NULL, thread, NULL))
    pthread_join(other, NULL);
  own(4, back);
  return 0;
}
END
echo 'int own(int n, void (*back)(int)) { for (int i = 0; i < 3; i++) n++; back(n); return n + 1; }' >own.c
gcc -g -O1 -shared -fPIC -o libown.so own.c && gcc -g -O1 -pthread -o die die.c -L. -lown -Wl,-rpath,"$scratch" || exit 1

cat >throw.cc <<'END'
#include <stdexcept>
#include <string>
struct Guard {
  int *p;
  ~Guard() { ++*p; }
};
__attribute__((noinline)) int thrower(int n)
{
  if (n == 2)
    throw std::runtime_error("bad");
  if (n == 3)
    throw 3;
  return n;
}
__attribute__((noinline)) int level(int n, int *p)
{
  Guard guard{p};
  if (n == 1) {
    try {
      thrower(3);
    } catch (int k) {
      *p += k;
    }
  }
  return n ? level(n - 1, p) + 1 : thrower(2);
}
int main()
{
  int sum = 0;
  return level(4, &sum) + sum;
}
END
g++ -g -O1 -o throw throw.cc || exit 1

# report ARGUMENT...: lbr run with these; the report is in the file err.
report()
{
  {
    "$lbr" run -o err "$@" >out 2>noise
    status=$?
  } 2>/dev/null
}

# same NAME PROGRAM ARGUMENT...: gdb and lbr have the same stack. Where strings lie decides how strcmp reads them: gdb runs
# programs without ASLR, so lbr does, too.
same()
{
  local name=$1
  shift
  gdb -batch -nx -ex 'set startup-with-shell off' -ex 'handle SIGUSR1 nostop noprint pass' -ex run -x "$here/death_stack.py" \
    --args "$@" >gdb.out 2>&1
  report --no-aslr --json "$@"
  python3 "$here/death_stack.py" gdb.out err
  verdict "$name" $?
}

if command -v gdb >/dev/null; then
  same 'abort(): gdb unwinds the same stack' ./die abort
  same 'a failed assertion' ./die assert
  same 'a write to nowhere, behind a longjmp' ./die write
  same 'a division by zero in a thread' ./die divide thread
  same 'abort() in the handler of a signal' ./die signal
  same 'a crash inside of a library' ./die library
  same 'an exception that nobody catches, behind one that was caught' ./throw
fi

# ---- what the source tells ----

cat >smash.c <<'END'
#include <string.h>
__attribute__((noinline)) void fill(unsigned long *words, unsigned long value)
{
  for (int i = 0; i < 24; i++)
    words[i] = value;
  __asm__ volatile("" : : "r"(words) : "memory");
}
__attribute__((noinline)) void victim(unsigned long value)
{
  unsigned long words[2];
  fill(words, value);
}
__attribute__((noinline)) int caller(unsigned long value)
{
  victim(value);
  return 1;
}
int main(int argc, char **argv)
{
  return caller(argc > 1 ? 0x4141414141414141 : 0x1230) + (argv == NULL);
}
END
gcc -g -O1 -fno-stack-protector -o smash smash.c || exit 1
# functions: names on the stack of the report, up to main.
functions() { sed -n 's/^  #[0-9]* *\([^+ ]*\).*/\1/p' err | sed '/^main$/q' | paste -sd ' '; }
report ./smash
[ $status -eq 139 ] && [ "$(functions)" = '0x1230 victim caller main' ] && grep -q '^  #1 .*left by a return' err
verdict 'a destroyed stack' $?
report ./die call
[ $status -eq 139 ] && [ "$(functions)" = '0x1234 die recurse recurse recurse back own main' ] && ! grep -q '^  #1 .*left by' err
verdict 'a call of nowhere' $?

# ---- how deep ----

report --json ./die abort
python3 - <<'END'
import json
t = json.load(open('err'))['threads'][0]
names = [f['place']['symbol'] for f in t['stack'] if f['place']['module'].endswith(('/die', '/libown.so'))]
assert names == ['die'] + 8 * ['recurse'] + ['back', 'own', 'main', '_start'], names
END
verdict 'the stack is deeper than the branches that are shown' $?
cat >busy.c <<'END'
#include <stdlib.h>
volatile int sink;
__attribute__((noinline)) void work(int n) { for (int i = 0; i < n; i++) sink += i; }
__attribute__((noinline)) void late(void) { work(10); abort(); }
int main(void) { work(5000000); late(); return 0; }
END
gcc -g -O1 -fno-inline -o busy busy.c || exit 1
report ./busy
[ "$(sed -n 's/^  #[0-9]* *\(late\|main\)+.*/\1/p' err | paste -sd ' ')" = 'late main' ] &&
  grep -q '^  \.\.\. older frames are not in the record$' err
verdict 'a stack whose oldest frames were called too long ago says so' $?
report --json ./busy
python3 -c "
import json
t = json.load(open('err'))['threads'][0]
assert t['stack_complete'] is False and t['stack'][-1]['place']['symbol'] == 'main', t['stack']"
verdict 'in JSON, too' $?
cat >deep.c <<'END'
int f(int n) { volatile char b[64]; b[0] = (char)n; return f(n + 1) + b[0]; }
int main(void) { return f(0); }
END
gcc -g -O1 -w -o deep deep.c || exit 1
report ./deep
[ "$(grep -c '^  #[0-9]* *f+0x' err)" -eq 3 ] && grep -q '^  \.\.\. [0-9]* more of the same$' err && grep -q '^  #[0-9]* *main+0x' err
verdict 'a recursion without end' $?

# ---- whose branches ----

report --tail 5 ./die abort
[ "$(grep -c '^  [0-9]' err)" -eq 10 ] && grep -q 'last 5 branches .* in the program.s own code, newest first' err &&
  grep -q '^the last 5 of [0-9]* branches in libraries behind these' err &&
  awk '/own code/ { own = 1 } /in libraries/ { own = 0 } /^  [0-9]+ / { n++; if (own != ($0 ~ /(die|recurse|back|own|main)\+0x/)) exit 1 } END { exit n != 10 }' err &&
  [[ $(grep -m1 '^  [0-9]' err) =~ die\+.*\ abort@plt\+0x0\ +call\  ]]
verdict 'own code first, then the tail in libraries' $?
report --own --tail 5 ./die abort
[ "$(grep -c '^  [0-9]' err)" -eq 5 ] && ! grep -q 'in libraries' err && [[ $(grep -m1 '^  [0-9]' err) =~ die\+ ]]
verdict '--own' $?
report --all --tail 5 ./die abort
[ "$(grep -c '^  [0-9]' err)" -eq 5 ] && ! grep -q 'own code' err && grep -q '^  0 .*syscall' err
verdict '--all' $?
report --json --tail 5 ./die abort
python3 - <<'END'
import json
b = json.load(open('err'))['threads'][0]['branches']
assert [x['own'] for x in b] == 5 * [False] + 5 * [True], b
assert [x['number'] for x in b] == sorted(x['number'] for x in b) and b[0]['number'] == 0 and b[5]['to']['symbol'] == 'abort@plt'
for x in b:
    assert x['own'] == any(x[end]['module'].endswith(('/die', '/libown.so')) for end in ('from', 'to')), x
END
verdict 'in JSON' $?
report --own --tail 40 ./die abort
grep -q ' own+0x[0-9a-f]* own.c:1 .* back+0x' err
verdict 'a library of its own is own code' $?
report --always --tail 3 /bin/true
[ $status -eq 0 ] && grep -q '^  0  _exit.*syscall' err
verdict 'a program that is in a system folder has own code' $?

# ---- words ----

report --json ./smash x
python3 - <<'END'
import json
r = json.load(open('err'))
assert r['signal']['target'] == '0x4141414141414141' and r['place']['symbol'] == 'victim' and r['instruction'] == 'ret', r['signal']
assert [f['place']['symbol'] for f in r['threads'][0]['stack']][:3] == ['victim', 'caller', 'main']
END
verdict 'a return to what can be no address: the address that it wanted' $?
report --timeout 0.5 sleep 1000
[ $status -eq 143 ] && grep -q '^lbr: timed out after 0.5 s$' err
verdict '--timeout says so' $?
report sh -c 'bash -c "exec -a \"server: writer 7\" ./die write"; ./die abort; :'
grep -q '^  in process [0-9]* (die): server: writer 7 write$' err && grep -q '^  in process [0-9]* (die): \./die abort$' err
verdict 'processes of one name are told apart by their words' $?

# ---- Ctrl-C ----

cat >loop.c <<'END'
#include <stdio.h>
int main(void) { puts("looping"); fflush(stdout); for (volatile int i = 0;; i++); }
END
gcc -O1 -o loop loop.c || exit 1
cat >typed.py <<'END'
import os, pty, select, signal, sys, time
# typed.py WORD COMMAND...: runs it in a terminal; types WORD and Enter if it is not "", Ctrl-C behind "looping", then exit
word, command = sys.argv[1], sys.argv[2:]
pid, fd = pty.fork()
if not pid:
    os.execvp(command[0], command)
def until(text):
    seen, end = b'', time.time() + 60
    while text not in seen and time.time() < end and select.select([fd], [], [], 60)[0]:
        try:
            seen += os.read(fd, 4096)
        except OSError:
            break
if word:
    os.write(fd, word.encode() + b'\n')
until(b'looping\r')
os.write(fd, b'\x03')
if word:
    os.write(fd, b'echo sta""tus $?; exit\n')
    until(b'status 130')
until(b'never')
os.waitpid(pid, 0)
END
python3 typed.py ./loop "$lbr" run -o err bash --norc -i
[ -e err ] && ! [ -s err ]
verdict 'Ctrl-C on a command of an interactive shell is no death to report' $?
python3 typed.py '' "$lbr" run -o err ./loop
grep -q '^lbr: Interrupt' err && grep -q '^  #[0-9]*  *main+0x' err
verdict 'on the program itself it is' $?

# ---- panics ----

# What a runtime does: its function is called, the stack is left, and the program exits much later.
cat >panic.c <<'END'
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
static jmp_buf out;
__attribute__((noinline)) void rust_panic(void) { longjmp(out, 1); }
__attribute__((noinline)) void rust_begin_unwind(void) { puts("panicked"); rust_panic(); }
__attribute__((noinline)) int pick(int n) { if (n > 3) rust_begin_unwind(); return n; }
__attribute__((noinline)) int sum(int n) { int s = 0; for (int i = 0; i < n; i++) s += pick(i); return s; }
int main(int argc, char **argv)
{
  if (!setjmp(out))
    printf("%d\n", sum(argc > 2 ? 2 : 9));
  return argv[1] ? atoi(argv[1]) : 0;
}
END
gcc -g -O1 -fno-optimize-sibling-calls -o panic panic.c || exit 1
report ./panic 101
[ $status -eq 101 ] && grep -q '^lbr: exited with status 101: a panic of Rust; this is where it began$' err &&
  [ "$(functions)" = 'rust_begin_unwind pick sum main' ]
verdict 'a panic is reported where it began' $?
report ./panic 5 && [ $status -eq 5 ] && ! [ -s err ]
[ $status -eq 5 ] && ! [ -s err ] && report ./panic 101 well
[ $status -eq 101 ] && ! [ -s err ]
verdict 'another status, or no panic: no report' $?
exit $((failures > 0))
