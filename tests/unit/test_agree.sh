#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_agree.sh LBR ORACLE LABS: the totals of commands that read the same trace are the same numbers: stat, report,
# calls and the profiles that are exported. For programs with one thread these are also the numbers that single steps
# count (ORACLE, tests/process/oracle.c).
. "$(dirname "$0")/shell.sh"
oracle=$(realpath "$2")
labs=$(realpath "$3")
cd "$scratch" || exit 1

"$oracle" list /bin/true 2>err
if [ $? -eq 126 ]; then
  cat err
  exit 77
fi

# ---- programs ----

cat >plain.c <<'END'
#include <stdio.h>
static int __attribute__((noinline)) fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(void)
{
  int sum = 0;
  for (int i = 0; i < 12; i++)
    sum += fib(i);
  printf("%d\n", sum);
  return 0;
}
END
cat >threads.c <<'END'
#include <pthread.h>
static int __attribute__((noinline)) fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static void *run(void *data) { return (void *)(long)fib(8 + (int)(long)data); }
int main(void)
{
  pthread_t threads[3];
  for (long i = 0; i < 3; i++)
    pthread_create(&threads[i], 0, run, (void *)i);
  for (int i = 0; i < 3; i++)
    pthread_join(threads[i], 0);
  return 0;
}
END
# A fault that a handler mends, and one that kills, each behind conditional branches that are not taken; a signal.
cat >crash.c <<'END'
#define _GNU_SOURCE
#include <signal.h>
#include <ucontext.h>
static int *volatile place;
static int good = 5;
static void mend(int signal, siginfo_t *info, void *data)
{
  (void)signal, (void)info;
  ((ucontext_t *)data)->uc_mcontext.gregs[REG_RAX] = (long)&good;
}
static void count(int signal) { good += signal; }
static int __attribute__((noinline)) load(int a, int b)
{
  int value;
  if (a == 7)
    return 1;
  if (b == 7)
    return 2;
  __asm__ volatile("mov (%1), %0" : "=r"(value) : "a"(place) : "memory");
  return value + a;
}
int main(int argc, char **argv)
{
  struct sigaction action = {.sa_sigaction = mend, .sa_flags = SA_SIGINFO};
  (void)argv;
  sigaction(SIGSEGV, &action, 0);
  signal(SIGUSR1, count);
  raise(SIGUSR1);
  load(argc, argc);
  signal(SIGSEGV, SIG_DFL);
  return load(argc, argc);
}
END
cat >bare.S <<'END'
.globl _start
_start:
  mov $3, %ecx
1:
  nop
  dec %ecx
  jnz 1b
  call f
  mov $60, %eax
  xor %edi, %edi
  syscall
f:
  cld
  ret
END
${CC:-cc} -O1 -g -static -o plain plain.c && strip -o stripped plain && ${CC:-cc} -O1 -g -static -pthread -o threads threads.c &&
  ${CC:-cc} -O1 -g -static -o crash crash.c && ${CC:-cc} -nostdlib -static -o bare bare.S || exit 1

# ---- what each command says ----

# totals TRACE: "COMMAND INSTRUCTIONS TAKEN NOT-TAKEN" in a line each; '-' where the command does not tell.
totals()
{
  "$lbr" stat --json "$1" >stat.json
  "$lbr" report --json --top all "$1" >report.json
  "$lbr" calls --summary --json "$1" >calls.json
  "$lbr" calls --folded "$1" >calls.folded 2>err
  "$lbr" export --quiet --to folded -o export.folded "$1" 2>err
  rm -f export.pprof
  "$lbr" export --quiet --to pprof -o export.pprof "$1" 2>err
  python3 - <<'END'
import gzip, json

def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at

def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        size, at = varint(data, at)
        if key & 7 == 2:
            yield key >> 3, data[at:at + size]
            at += size

def pprof(path):
    sums = [0, 0]
    for field, sample in fields(gzip.open(path).read()):
        for inner, values in fields(sample) if field == 2 else ():
            if inner == 2:
                first, at = varint(values, 0)
                sums = [sums[0] + first, sums[1] + varint(values, at)[0]]
    return sums

def add(rows, key):
    values = [row[key] for row in rows]
    return None if None in values else sum(values)

def folded(path):
    return sum(int(line.rsplit(" ", 1)[1]) for line in open(path))

def show(name, *numbers):
    print(name, *("-" if number is None else number for number in numbers))

stat, report = json.load(open("stat.json")), json.load(open("report.json"))
functions = [row for row in map(json.loads, open("calls.json")) if row["type"] == "function"]
show("stat", stat["instructions"], stat["branches"], stat["not_taken"])
show("report", report["instructions"], report["taken"], report["not_taken"])
show("functions", *(add(report["functions"], key) for key in ("instructions", "taken", "not_taken")))
show("calls", add(functions, "own_instructions"), add(functions, "own_branches"), None)
show("folded", folded("calls.folded"), None, None)
show("export-folded", folded("export.folded"), None, None)
show("pprof", *pprof("export.pprof"), None)
END
}

# agree: are the numbers in the file `numbers` the same in each column, leaving out '-'?
agree()
{
  awk '{ for (i = 2; i <= NF; i++) if ($i != "-") { if (i in seen && seen[i] != $i) bad = 1; seen[i] = $i } }
    END { exit bad || NR < 7 }' numbers || { sed 's/^/  | /' numbers && return 1; }
}

for name in bare plain stripped crash threads; do
  (env -i PATH=/usr/bin:/bin setarch -R "$lbr" record --quiet -o "$name.lbr" -- "./$name" >out 2>err || exit 0) 2>err
  totals "$name.lbr" >numbers
  cp numbers "$name.totals"
  if [ $name != threads ]; then
    env -i PATH=/usr/bin:/bin "$oracle" -d list "./$name" >out 2>err
    echo "oracle $(sed -n 's/^# instructions //p' list) $(grep -vc '^#' list) $(sed -n 's/^# not-taken //p' list)" >>numbers
  fi
  agree
  verdict "$name: all commands agree" $?
done

# By hand: mov, three times nop, dec, jnz; call, cld, ret, mov, xor, syscall.
grep -qx 'report 16 5 1' bare.totals
verdict 'bare: 16 instructions, 5 branches taken and 1 not' $?

# ---- where instructions are not known, no command makes numbers up ----

"$lbr" calls --summary --json --no-symbols plain.lbr >unknown
python3 - <<'END'
import json
rows = [row for row in map(json.loads, open("unknown")) if row["type"] == "function"]
most = max(rows, key=lambda row: row["own_branches"])
exit(most["own_instructions"] is not None or most["instructions"] is not None)
END
verdict 'calls --no-symbols: instructions are null' $?
run calls --no-symbols --folded plain.lbr
[ $status -eq 0 ] && complained 'not known' && run calls --no-symbols --folded --by branches plain.lbr && ! complained 'not known'
verdict 'calls --folded --no-symbols warns that instructions are not known' $?

"$lbr" machine --cpu skylake --kernel "$labs/calls.elf" --screen none --serial none --trace guest.lbr >out 2>&1
totals guest.lbr >numbers
read -r _ instructions taken _ < <(grep '^report ' numbers)
[ "$taken" -gt 100 ] && grep -q "^stat [0-9]* $taken " numbers && grep -q "^calls - $taken " numbers &&
  grep -q "^pprof [0-9]* $taken " numbers && [ "$instructions" -le "$(sed -n 's/^stat \([0-9]*\) .*/\1/p' numbers)" ] &&
  "$lbr" report --json guest.lbr | grep -q '"has_unknown_code": *true'
verdict 'a guest: branches agree, instructions of 32-bit code are not known' $?

exit $((failures > 0))
