#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_run.sh LBR: lbr run as a command. Where a program has died and why is compared with what its source says, with gdb and
# with a run without lbr; what the program prints and returns must be the same with and without.
. "$(dirname "$0")/shell.sh"
cd "$scratch" || exit 1
export GLIBC_TUNABLES=glibc.pthread.rseq=0

cat >crash.c <<'END'
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static inline __attribute__((always_inline)) void poke(volatile int *p)
{
  *p = 7; /* line 9 */
}
__attribute__((noinline)) int deep(int n, volatile int *p)
{
  if (n > 0)
    return deep(n - 1, p) + 1;
  poke(p); /* line 15 */
  return 0;
}
static pthread_barrier_t barrier;
static void *idle(void *p)
{
  pthread_barrier_wait(&barrier);
  for (;;)
    pause();
  return p;
}
static void *die(void *p)
{
  pthread_barrier_wait(&barrier);
  settle();
  deep(3, p);
  return p;
}
static void threads(void)
{
  pthread_t thread[3];
  pthread_barrier_init(&barrier, NULL, 3);
  pthread_create(&thread[0], NULL, idle, NULL);
  pthread_create(&thread[1], NULL, idle, NULL);
  pthread_create(&thread[2], NULL, die, (void *)16);
  pthread_join(thread[2], NULL);
}
int main(int argc, char **argv)
{
  const char *what = argc > 1 ? argv[1] : "";
  volatile int zero = 0;
  puts("begun");
  fflush(stdout);
  if (!strcmp(what, "write"))
    deep(5, (int *)16);
  if (!strcmp(what, "read"))
    return *(volatile int *)32;
  if (!strcmp(what, "execute"))
    ((void (*)(void))4660)();
  if (!strcmp(what, "divide"))
    return 10 / zero;
  if (!strcmp(what, "abort"))
    abort();
  if (!strcmp(what, "illegal"))
    __builtin_trap();
  if (!strcmp(what, "threads"))
    threads();
  if (!strcmp(what, "exit"))
    return 3;
  if (!strcmp(what, "kill"))
    kill(getpid(), SIGKILL);
  while (!strcmp(what, "loop"))
    deep(2, (int *)&zero);
  if (!strcmp(what, "catch")) {
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    puts("ready");
    fflush(stdout);
    for (;;)
      pause();
  }
  return 0;
}
END
# Waits until all other threads of the process sleep. In a file of its own, so that the lines above stay where they are.
cat >settle.h <<'END'
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static inline int settle_running(void)
{
  DIR *tasks = opendir("/proc/self/task");
  int running = 0;
  for (struct dirent *task; (task = readdir(tasks));) {
    char path[300], state = 'S';
    snprintf(path, sizeof(path), "/proc/self/task/%s/stat", task->d_name);
    FILE *file = task->d_name[0] == '.' ? NULL : fopen(path, "r");
    if (file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1)
      running += state != 'S';
    if (file)
      fclose(file);
  }
  closedir(tasks);
  return running;
}
static inline void settle(void)
{
  while (settle_running() > 1) /* one is this thread */
    usleep(1000);
}
END
gcc -g -O1 -pthread -include settle.h -o crash crash.c || exit 1
strip -o stripped crash

# died SIGNAL: the exit status is that of a process that the signal killed; its own output is all there is on stdout.
died() { [ $status -eq $((128 + $(kill -l "$1"))) ] && [ "$(cat out)" = begun ]; }
quietly() { "$@" 2>/dev/null; }
# As shell.sh has it, without what bash says when the signal kills lbr, too.
run()
{
  {
    "$lbr" "$@" >out 2>err <in
    status=$?
  } 2>/dev/null
}
# first: the newest branch of the report, without its number.
first() { sed -n 's/^  0  *//p' err | head -1; }

run run --tail 12 ./crash write
died SEGV && complained 'lbr: Segmentation fault: wrote to 0x10, which is not mapped' && complained ': mov dword ptr [' &&
  grep -qE '^  at 0x[0-9a-f]+ deep\+0x[0-9a-f]+ crash.c:9 poke < crash.c:15: mov dword ptr' err &&
  [[ $(first) =~ ^deep\+0x[0-9a-f]+\ crash.c:14\ +deep\+0x0\ crash.c:1[123]\ +call ]] &&
  [ "$(grep -cE '^  [0-9]+ ' err)" -eq 12 ] && [ "$(grep -cE '^  [0-9]+ .* call +call 0x' err)" -eq 6 ]
verdict 'a write to nowhere: why, where, and the calls that led there' $?
run run ./crash read
died SEGV && complained ': read 0x20, which is not mapped'
verdict 'a read' $?
run run ./crash execute
died SEGV && complained ': executed 0x1234, which is not mapped' && grep -q '^  at 0x1234$' err &&
  [[ $(first) =~ ^main\+0x[0-9a-f]+\ crash.c:[0-9]+\ +0x1234\ +call_ind\ +call ]]
verdict 'a call of nowhere is the newest branch' $?
run run ./crash divide
died FPE && complained 'Floating point exception: an integer was divided by zero' && complained ': idiv '
verdict 'a division by zero' $?
run run ./crash abort
died ABRT && grep -q '^lbr: Aborted$' err && grep -q ' abort+0x' err
verdict 'abort()' $?
run run ./crash illegal
died ILL && complained 'Illegal instruction: no such instruction' && complained ': ud2'
verdict 'an illegal instruction' $?
run run ./crash kill
died KILL && grep -q '^lbr: killed by SIGKILL$' err && [[ $(first) =~ ^kill\+.*syscall ]]
verdict 'SIGKILL: no record, but the branches' $?

run run ./crash threads
died SEGV && [ "$(grep -c '^last .* branches of thread' err)" -eq 1 ] && [[ $(first) =~ ^deep ]] && grep -q 'in process .*, thread ' err
verdict 'the thread that died' $?
run run --all-threads --all --tail 5 ./crash threads
died SEGV && [ "$(grep -c '^last 5 branches of thread' err)" -eq 4 ] && grep -q '  0  .*pause' err
verdict 'all threads' $?

run run ./crash exit
[ $status -eq 3 ] && [ "$(cat out)" = begun ] && ! [ -s err ]
verdict 'an exit is not reported' $?
run run --always ./crash exit
[ $status -eq 3 ] && grep -q '^lbr: exited with status 3$' err && [[ $(first) =~ ^_exit.*syscall ]]
verdict 'unless it is asked for' $?
run run --on-exit-code 3 ./crash exit
[ $status -eq 3 ] && grep -q 'exited with status 3' err && run run --on-exit-code 4 ./crash exit && ! [ -s err ]
verdict 'an exit with a certain status' $?

run run --tail 4 ./stripped write
died SEGV && grep -q '  0  stripped+0x' err && complained 'no symbols found'
verdict 'a program without symbols gets a hint' $?
run run ./crash write
died SEGV && ! complained 'no symbols'
verdict 'one with symbols does not' $?

# ---- code that changes ----

# Two functions at one address, one after the other, of which the second dies where the first returned.
cat >jit.c <<'END'
#include <string.h>
#include <sys/mman.h>
int main(void)
{
  static const unsigned char one[] = {0xb9, 5, 0, 0, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3}; /* 1: dec %ecx; jnz 1b; ret */
  static const unsigned char two[] = {0xb9, 3, 0, 0, 0, 0xff, 0xc9, 0x75, 0xfc, 0x48, 0x8b, 0x07, 0xc3}; /* mov (%rdi), %rax */
  unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(code, one, sizeof(one));
  ((void (*)(void *))code)(NULL);
  memcpy(code, two, sizeof(two));
  ((void (*)(void *))code)((void *)64);
  return 0;
}
END
gcc -g -O1 -o jit jit.c || exit 1
run run --json --tail 9 ./jit
python3 - <<'END'
import json
r = json.load(open('err'))
assert r['signal']['access'] == 'read' and r['signal']['address'] == '0x40' and r['instruction'].startswith('mov rax'), r
b = r['threads'][0]['branches']
assert [x['kind'] for x in b] == ['jcc', 'jcc', 'call_ind', 'ret', 'jcc', 'jcc', 'jcc', 'jcc', 'call_ind'], b
assert b[3]['instruction'] == 'ret' and b[3]['from']['address'] == r['place']['address'], b[3]
assert all(x['instruction'].startswith('jnz 0x') for x in b if x['kind'] == 'jcc')
END
verdict 'code in no file: the bytes that were there then' $?
cat >closed.c <<'END'
#include <dlfcn.h>
int main(void)
{
  void *library = dlopen("./library.so", RTLD_NOW);
  int (*fine)(int) = (int (*)(int))dlsym(library, "fine");
  fine(3);
  dlclose(library);
  *(volatile int *)16 = 1;
  return 0;
}
END
echo 'int fine(int n) { return n > 0 ? fine(n - 1) * 2 : 1; }' >library.c
gcc -g -O0 -shared -fPIC -o library.so library.c && gcc -g -o closed closed.c -ldl || exit 1
run run --tail 5000 ./closed
complained 'wrote to 0x10' && [ "$(grep -c 'fine+0x.* library.c:1 .* ret ' err)" -eq 4 ] && ! complained 'library.so+0x'
verdict 'a library that was unloaded has names still' $?

# ---- against gdb ----

if command -v gdb >/dev/null; then
  # shellcheck disable=SC2016 # for gdb
  gdb -batch -nx -ex 'set startup-with-shell off' -ex run -ex 'x/i $pc' -ex 'info symbol $pc' -ex 'info line *$pc' -ex 'p $rsi' --args ./crash write >gdb.out 2>&1
  where=$(sed -n 's/^\(deep + [0-9]*\) in section.*/\1/p' gdb.out | tr -d ' ')
  offset=$(printf 'deep+0x%x' "${where#deep+}" 2>/dev/null)
  run run ./crash write
  [ -n "$where" ] && grep -qF " $offset crash.c:9 " err && grep -q '^Line 9 of "crash.c"' gdb.out
  verdict 'gdb says the same place' $?
fi

# ---- JSON ----

run run --json --tail 4 ./crash write
python3 - <<'END'
import json
r = json.load(open('err'))
assert r['ending'] == 'died' and r['signal']['name'] == 'SIGSEGV' and r['signal']['access'] == 'write', r
assert r['signal']['address'] == '0x10' and r['signal']['code'] == 'SEGV_MAPERR'
assert r['place']['symbol'] == 'deep' and r['place']['line'] == 9 and r['place']['file'].endswith('crash.c')
assert r['place']['inlines'] == [{'function': 'poke', 'file': r['place']['file'], 'line': 15}], r['place']
assert r['program'].endswith('/crash') and r['registers']['rip'] == r['place']['address']
t, = r['threads']
assert not t['complete'] and len(t['branches']) == 4 and t['thread'] == r['process']
b = t['branches']
assert [x['number'] for x in b] == [0, 1, 2, 3] and [x['kind'] for x in b] == ['call', 'jcc', 'call', 'jcc']
assert b[0]['to']['symbol'] == 'deep' and b[0]['to']['offset'] == '0x0'
assert b[0]['from']['line'] == 14 and b[0]['instruction'].startswith('call 0x')
assert int(b[0]['instruction'].split()[1], 16) == int(b[0]['to']['address'], 16)
for new, old in zip(b, b[1:]):  # straight code lies between two branches
    assert 0 <= int(new['from']['address'], 16) - int(old['to']['address'], 16) < 64
END
verdict 'JSON: one object, with the same' $?
run run --json --cpu haswell --all-threads ./crash threads
python3 -c "
import json
r = json.load(open('err'))
assert len(r['threads']) == 4 and all(t['lbr']['cpu'] == 'haswell' and t['lbr']['used'] == 16 for t in r['threads'])
assert r['threads'][0]['lbr']['entries'][0]['from_symbol']['name'] == 'deep'"
verdict 'JSON: the LBR of a processor' $?

# ---- the LBR of a processor ----

run run --cpu skylake --select jcc,near_ret ./crash write
died SEGV && complained 'MSR_LBR_SELECT       0x24 JCC NEAR_RET' && [ "$(grep -cE '^  [0-9]+ +[0-9]+ ' err)" -eq 32 ] &&
  ! grep -qE '^  [0-9]+ .* (jcc|ret) ' err && [ "$(grep -cE '^  [0-9]+ .* deep\+.* call ' err)" -eq 6 ]
verdict '--cpu and --select: 32 records, none of them left-out kinds' $?
run run --cpu goldencove --select near_rel_call ./crash write
died SEGV && ! grep -E '^  [0-9]+ +[0-9]+ ' err | grep -qvE ' call( |$)' && grep -qE '^  0 .* deep' err
verdict 'architectural LBR: a 1 records' $?
run run --cpu kabylake --format windbg ./crash write
died SEGV && complained 'LBR stack: count 32, BaseFrom=0x680' && grep -qE '^MSR_LASTBRANCH_[0-9a-f]+ \(to\): \[[0-9a-f]{16}\] deep\+0$' err
verdict 'the layout of WinDbg' $?
run run --cpu nehalem --select jcc,nonsense ./crash write
[ $status -eq 2 ] && complained "no filter 'nonsense'" && complained 'NEAR_IND_CALL' && silent
verdict 'a filter that there is not' $?
run run --cpu pentiumm --select jcc ./crash write
[ $status -eq 2 ] && complained 'has no filter' && silent
verdict 'a processor without filters' $?
run run --cpu zen3 ./crash write
[ $status -eq 2 ] && complained 'only when a counter overflows' && silent
verdict 'a processor that only samples' $?

# ---- how much ----

run run --all --tail 1000000 ./crash write
died SEGV && complained 'that is all: the thread began there' && [ "$(grep -cE '^  [0-9]+ ' err)" -gt 10000 ]
verdict 'everything from the first branch on' $?
for seconds in 1 4 16 64; do # until the time is enough for so many
  run run --all --tail 100000 --timeout $seconds ./crash loop
  [ "$(grep -cE '^  [0-9]+ ' err)" -lt 100000 ] || break
done
died TERM && [ "$(grep -cE '^  [0-9]+ ' err)" -eq 100000 ] && ! complained 'make no sense'
verdict 'a hundred thousand branches of a long run' $?
run run --tail 3000000000 ./crash exit
[ $status -eq 3 ] && complained 'at most the last 67108864 branches'
verdict 'more than a log can hold' $?

# ---- signals ----

for seconds in 1 4 16 64; do # until it comes to pause(2) in this time
  run run --timeout $seconds ./crash catch
  [[ $(first) =~ pause ]] && break
done
[ $status -eq 137 ] && grep -q "^lbr: timed out after $seconds s, and had to be killed" err && [[ $(first) =~ pause ]]
verdict 'a program that ignores SIGTERM gets SIGKILL' $?
: >out # what is in it from before is not waited for
"$lbr" run --on-signal USR1 --tail 5 ./crash loop >out 2>err &
lbr_pid=$!
await grep -q begun out
kill -USR1 $lbr_pid
await grep -q 'last 5 branches' err
quietly kill -0 $lbr_pid && grep -q '^lbr: running$' err && kill -TERM $lbr_pid
quietly wait $lbr_pid
status=$?
died TERM && [ "$(grep -c '^last 5 branches' err)" -eq 2 ] && complained 'lbr: Terminated: sent by kill(2)'
verdict '--on-signal: a report of the living program; SIGTERM is passed on' $?
: >out
"$lbr" run ./crash catch >out 2>err &
lbr_pid=$!
await grep -q ready out
kill -INT $lbr_pid
kill -QUIT $lbr_pid
kill -HUP $lbr_pid
quietly wait $lbr_pid
[ $? -eq 129 ]
verdict 'SIGINT and SIGQUIT, which a background job ignores, end neither; SIGHUP is passed on' $?

# ---- children ----

run run --tail 5 sh -c './crash write; echo $?; ./crash exit; exit 6'
[ $status -eq 6 ] && [ "$(tr '\n' ' ' <out)" = 'begun 139 begun ' ] && [ "$(grep -c '^lbr: ' err)" -eq 1 ] &&
  complained 'wrote to 0x10' && complained '(crash)' && [[ $(first) =~ ^deep ]]
verdict 'a child that dies' $?
run run --no-follow sh -c './crash write; exit 6'
[ $status -eq 6 ] && ! complained 'lbr: '
verdict '--no-follow: a child is not ours' $?
run run sh -c 'sh -c "kill -9 \$\$"; echo $?'
[ $status -eq 0 ] && said 137 && complained 'as SIGKILL does it'
verdict 'a child that SIGKILL killed' $?
run run sh -c 'sleep 30 & echo $! >child; exit 4'
[ $status -eq 4 ] && kill "$(cat child)"
verdict 'a child that outlives the program is not waited for' $?

# What has given itself a seccomp filter executes natively. native HOW COMMAND: "child" or "self" does; the child's end
# does not matter to the status, which is 5, or 0 for "well".
cat >native.c <<'END'
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
static int execute(char *command)
{
  struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
  struct sock_fprog program = {1, &allow};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
    return 9;
  execl("/bin/sh", "sh", "-c", command, NULL);
  return 8;
}
int main(int argc, char **argv)
{
  int pid, status;
  if (argc < 3 || !strcmp(argv[1], "self"))
    return execute(argv[argc - 1]);
  pid = fork();
  if (!pid)
    _exit(execute(argv[2]));
  if (waitpid(pid, &status, 0) != pid || (WIFEXITED(status) && WEXITSTATUS(status) > 7))
    return 9;
  return strcmp(argv[1], "well") ? 5 : 0;
}
END
gcc -o native native.c || exit 1
./native well 'exit 0'
if [ $? -ne 9 ]; then
  run run ./native well 'echo well'
  [ $status -eq 0 ] && [ "$(cat out)" = well ] && ! [ -s err ]
  verdict 'what ends natively, and all is well, is not reported' $?
  run run ./native child 'kill -SEGV $$'
  [ $status -eq 5 ] && grep -q '^lbr: executed a program that cannot be recorded; how that ended is not known$' err &&
    grep -qE '^  in process [0-9]+ \(native\)$' err && [ "$(wc -l <err)" -eq 2 ]
  verdict 'what ends natively before a failure: that nothing is known of it' $?
  run run --json ./native child 'exit 3'
  [ $status -eq 5 ] && python3 -c "
import json
r = json.load(open('err'))
assert r['ending'] == 'unknown' and r['native'] is True and r['signal'] is None and r['threads'] == [], r
assert r['program'].endswith('/native'), r"
  verdict 'the same as JSON' $?
  run run --tail 3 ./native self 'kill -SEGV $$'
  [ $status -eq 139 ] && grep -q '^lbr: killed by SIGSEGV, in a program that it had executed and that cannot be recorded$' err &&
    [ "$(grep -c '^last 3 branches' err)" -eq 1 ]
  verdict 'a program that is killed natively' $?
  run run --always --tail 3 ./native self 'exit 4'
  [ $status -eq 4 ] && grep -q '^lbr: exited with status 4, in a program that it had executed and that cannot be recorded$' err
  verdict 'a program that exits natively' $?
fi

# ---- names of C++ ----

cat >names.cc <<'END'
#include <map>
#include <string>
#include <vector>
namespace shop {
template <class T> struct Box {
  T value;
  __attribute__((noinline)) int size(int n) const;
};
template <class T> int Box<T>::size(int n) const { return n > 0 ? size(n - 1) + 1 : (int)value.size(); }
struct Thing {
  int n;
  __attribute__((noinline)) bool operator<(const Thing &other) const;
};
bool Thing::operator<(const Thing &other) const { return n < other.n; }
__attribute__((noinline)) int fall(const std::map<std::string, std::vector<Box<std::string>>> &all, Thing one)
{
  return one < Thing{3} ? *(volatile int *)(16 * all.size()) : 0;
}
}
int main()
{
  shop::Box<std::string> box{"a"};
  return shop::fall({{"x", {box}}}, {box.size(3) - 4});
}
END
g++ -g -O1 -o names names.cc || exit 1
# demangled: what c++filt makes of the names of the functions.
nm names | sed -n 's/^[0-9a-f]* [tTwW] //p' | grep '^_Z' | sort -u >mangled
c++filt <mangled >demangled
run run --json --tail 300 ./names
python3 - <<'END'
import json
r = json.load(open('err'))
want = dict(zip(open('mangled').read().split('\n'), open('demangled').read().split('\n')))
places = [r['place']] + [b[k] for t in r['threads'] for b in t['branches'] for k in ('from', 'to')]
own = {p['mangled']: p['symbol'] for p in places if 'mangled' in p and p['module'].endswith('/names')}
assert r['place']['symbol'].startswith('shop::fall(std::map<'), r['place']
assert len([n for n in own if '@' not in n]) >= 3 and '_ZNK4shop5ThingltERKS0_' in own, own
for mangled, symbol in own.items():
    name, _, rest = mangled.partition('@')
    assert symbol == want.get(name, symbol if rest else None) + ('@' + rest if rest and name in want else ''), (mangled, symbol)
left = {p['symbol'] for p in places if (p['symbol'] or '').startswith('_Z') and p['module'].endswith('/names')}
assert all(len(want[name].encode()) > 1023 for name in left if '@' not in name), left  # SYMBOL_NAME_MAX
END
verdict 'names of C++ are those that c++filt has' $?
run run --json --no-demangle --tail 300 ./names
python3 - <<'END'
import json
r = json.load(open('err'))
assert r['place']['symbol'] in open('mangled').read().split() and 'mangled' not in r['place'], r['place']
END
verdict '--no-demangle' $?
run run --tail 300 ./names
grep -q '^  at 0x[0-9a-f]* shop::fall(std::map<.*Thing)+0x[0-9a-f]* names.cc:17: ' err && [ "$(grep -cE '^  [0-9]+ .* -?shop::' err)" -ge 1 ] &&
  awk '/^  #/ { at = index($0, "  kind") } /^  [0-9]+ / && substr($0, at, 2) != "  " { exit 1 } END { exit !at }' err &&
  [ "$(grep -E '^  ([0-9]+|#) ' err | wc -L)" -le 240 ]
verdict 'long names leave the columns where they are' $?
# lines COLUMNS: the widest line of the table in a terminal so wide, without its instruction.
lines()
{
  command script -qec "stty cols $1; NO_COLOR=1 $lbr run --tail 300 ./names" /dev/null </dev/null 2>/dev/null | tr -d '\r' |
    awk '/^  #/ { at = index($0, "instruction") } /^  [0-9]+ / { if (substr($0, at - 2, 2) !~ /^ *$/) exit 1 } END { print at }'
}
narrow=$(lines 150)
wide=$(lines 190)
[ "$narrow" -le 150 ] && [ "$wide" -le 190 ] && [ "$narrow" -gt 90 ] && [ "$wide" -gt "$narrow" ]
verdict 'the table is as wide as the terminal' $?

# ---- what is run ----

# script TEXT ARGUMENT...: lbr run gives what the kernel gives.
script()
{
  # shellcheck disable=SC2059 # it has escapes
  printf "$1" >script
  chmod +x script
  shift
  ./script "$@" >expected 2>&1
  local expected=$?
  run run ./script "$@"
  [ $status -eq $expected ] && cmp -s out expected
}
# shellcheck disable=SC2016 # for the script
script '#!/bin/echo\nx\n' one 'two three' && script '#! /bin/echo  -a  b \n' one && script '#!/bin/echo' && script '#!/bin/sh -eu\necho "$0" "$@" $-; exit 7\n' x
verdict 'scripts, as the kernel runs them' $?
printf '#!%s/script 1 2\n' "$PWD" >outer
chmod +x outer
printf '#!/bin/echo a b\n' >script
./outer x y >expected
run run ./outer x y
[ $status -eq 0 ] && cmp -s out expected
verdict 'scripts of scripts' $?
PATH=$PWD:$PATH run run crash exit
[ $status -eq 3 ]
verdict 'the program is looked for in PATH' $?
run run echo --always -n x
[ $status -eq 0 ] && [ "$(cat out)" = '--always -n x' ] && run run -- echo -- y && [ "$(cat out)" = '-- y' ]
verdict 'options behind the program are its own' $?
run run ./nothing
[ $status -eq 127 ] && complained 'lbr: ./nothing: no such program' && run run nothing-at-all && [ $status -eq 127 ]
verdict 'no such program' $?
run run ./crash.c
[ $status -eq 126 ] && complained './crash.c: ' && run run . && [ $status -eq 126 ] && chmod +x crash.c && run run ./crash.c &&
  [ $status -eq 126 ] && complained 'not an ELF program'
verdict 'what cannot be executed' $?
printf '#!/nonexistent/program\n' >script
run run ./script
[ $status -eq 126 ] && complained 'the interpreter named in the first line of the script'
verdict 'a script without its interpreter' $?
if [ "$(id -u)" -eq 0 ] && cp crash setid && chown 12345 setid && chmod u+s setid && ! findmnt -nT . -o OPTIONS | grep -q nosuid; then
  run run ./setid exit
  [ $status -eq 126 ] && complained 'set-user-ID' && silent
  verdict 'a set-user-id program' $?
fi
(ulimit -n 40 && run run ./crash exit && [ $status -eq 3 ] && [ "$(cat out)" = begun ])
verdict 'few descriptors' $?
"$lbr" run ./crash exit <&- >&- 2>&-
[ $? -eq 3 ]
verdict 'no descriptors at all' $?
run run env
env >expected
sed -i '/^_=/d' out expected
cmp -s out expected
verdict 'the environment is as it was' $?

# ---- where it goes ----

umask 022
run run -o report --tail 3 ./crash write
died SEGV && ! [ -s err ] && grep -q 'wrote to 0x10' report && [ "$(stat -c %a report)" = 600 ]
verdict '-o: a file of its own' $?
run run -o /nonexistent/report ./crash write
[ $status -eq 125 ] && complained /nonexistent/report && silent
verdict '-o: one that cannot be written is no run' $?
if [ -w /dev/full ]; then
  run run -o /dev/full ./crash write
  died SEGV && complained 'cannot write the report' && run run -o /dev/full --always true && [ $status -eq 1 ] && complained 'cannot write the report'
  verdict '-o: a full disk' $?
fi
! grep -q "$(printf '\033')" report && command script -qec "$lbr run --tail 3 ./crash write" /dev/null </dev/null 2>/dev/null | grep -q "$(printf '\033\\[1;31m')Segmentation"
verdict 'colours on a terminal only' $?
for arguments in '' '--tail 0 true' '--tail x true' '--timeout 0 true' '--on-signal KILL true' '--on-exit-code 256 true' \
  '--format windbg true' '--select jcc true' '--format nonsense true' '--nonsense true' '--cpu nonsense true'; do
  # shellcheck disable=SC2086
  run run $arguments
  [ $status -eq 2 ] && silent && [ -s err ]
  verdict "a usage error: $arguments" $?
done
run run --help
[ $status -eq 0 ] && said 'Usage: lbr run' && said --all-threads
verdict '--help' $?

# libdw and what it needs take a third of the time that lbr takes to start, so that they are loaded only for a report.
# ld.so(8) names the files that it loads; a static program loads none.
loads() # ARGUMENT...
{
  rm -f loaded.* && LD_DEBUG=files LD_DEBUG_OUTPUT=$scratch/loaded "$lbr" run "$@" >out 2>err
  grep -q 'file=libdw\.so' loaded.* 2>/dev/null
}
if readelf -dW "$lbr" | grep -q NEEDED; then
  ! loads true && loads ./crash read
  verdict 'libdw is loaded for a report only' $?
fi

exit $((failures > 0))
