#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_static.sh LBR SOURCE BUILD: builds the static lbr (meson setup -Dstatic=true) in BUILD/static, and runs it in an empty root:
# nothing is there but it, a few static programs, and /proc or not even that. Branches are those that a program's source says.
. "$(dirname "$0")/shell.sh"
source=$2
build=$3/static

# What tools/install-deps fetched, so that this needs no network.
for tree in "$source"/build/zydis/zydis-*/; do
  [ ! -d "$tree" ] || export ZYDIS_SOURCE=${ZYDIS_SOURCE-$tree}
done
[ -e "$build/build.ninja" ] || meson setup --werror -Dstatic=true -Dtests=false "$build" "$source" >"$scratch/log" 2>&1
if [ ! -e "$build/build.ninja" ] && grep -q 'cannot fetch the source package' "$scratch/log"; then
  echo "skip static: Zydis' source package cannot be fetched"
  exit 77
fi
nice ninja -C "$build" lbr >>"$scratch/log" 2>&1
is_built=$?
[ $is_built -eq 0 ] || cat "$scratch/log"
verdict 'meson setup -Dstatic=true, ninja' $is_built
[ $is_built -eq 0 ] || exit 1

# ---- the root ----

root=$scratch/root
mkdir -p "$root/proc" "$root/tmp" "$root/bin"
cp "$build/lbr" "$root/lbr"
cd "$scratch" || exit 1
gcc -static -O1 -Wall -Werror -o "$root/old_kernel" "$source/tests/unit/old_kernel.c" || exit 1
cp "$(command -v busybox)" "$root/bin/sh" || exit 1
cp "$(find "$source/tests/recorder" -name '*.rec' | sort | head -n 1)" "$root/rule.rec" || exit 1

cat >crash.cc <<'END'
#include <cstdio>
namespace space {
struct thing {
  static __attribute__((noinline)) int work(volatile int *p, int n)
  {
    if (n > 0)
      return work(p, n - 1) + 1;
    return *p; /* line 8 */
  }
};
}
int main()
{
  std::puts("begun");
  std::fflush(stdout);
  return space::thing::work((int *)16, 5);
}
END
g++ -g -O1 -fno-optimize-sibling-calls -static -o "$root/crash" crash.cc || exit 1

# 99 times back, and a system call.
cat >loop.S <<'END'
  .globl _start
_start:
  mov $100, %ecx
again:
  dec %ecx
  jnz again
  mov $60, %eax
  xor %edi, %edi
  syscall
END
gcc -nostdlib -static -o "$root/loop" loop.S || exit 1

# Prints Z on the first serial line, and halts.
cat >flat.S <<'END'
  .code16
  .globl _start
_start:
  mov $0x3F8, %dx
  mov $'Z', %al
  out %al, %dx
  cli
  hlt
END
gcc -m32 -c -o flat.o flat.S && objcopy -O binary flat.o "$root/flat.bin" || exit 1

# inside COMMAND...: runs it with the root's content alone. The mount is private to it and goes with it.
user=
[ "$(id -u)" = 0 ] || user=--map-root-user
inside()
{
  # shellcheck disable=SC2016,SC2086 # expanded by the inner shell; may be empty
  unshare $user --mount sh -c 'if [ "$1" = proc ]; then mount --rbind /proc "$2/proc" || exit 77; fi; root=$2; shift 2; exec chroot "$root" "$@"' \
    - "$proc" "$root" "$@"
}
proc=proc
if ! inside /bin/sh -c true 2>"$scratch/err"; then
  echo "skip static in an empty root: $(tail -n 1 "$scratch/err")"
  [ $failures -eq 0 ] || exit 1
  exit 0
fi

# run_inside ARGUMENT...: as run, in the root, behind the program in $before.
before=
run_inside()
{
  last_command="$* (in the root)"
  # shellcheck disable=SC2086 # may be empty
  { inside $before /lbr "$@" >"$scratch/out" 2>"$scratch/err" </dev/null; } 2>/dev/null
  status=$?
}

# Everything that the commands have to do, whatever is in /proc.
try_commands()
{
  run_inside --version
  [ $status -eq 0 ] && said "lbr $("$lbr" --version | cut -d ' ' -f 2)"
  verdict "$1: --version" $?

  run_inside help
  sed -n 's/^LB_COMMAND(\([a-z]*\),.*/\1/p' "$source/src/cli/command.def" >"$scratch/commands"
  [ $status -eq 0 ] && [ -s "$scratch/commands" ] &&
    ! grep -vxF -f <(awk '$1 == "lbr" { print $2 }' "$scratch/out") "$scratch/commands"
  verdict "$1: help lists every command" $?

  run_inside cpu
  [ $status -eq 0 ] && said 'What CPUID shows'
  verdict "$1: cpu" $?

  run_inside sim /rule.rec
  [ $status -eq 0 ]
  verdict "$1: sim" $?

  run_inside run /crash
  [ $status -eq 139 ] && said begun && complained 'Segmentation fault' && complained 'space::thing::work' && complained 'crash.cc:8'
  verdict "$1: run says where a program died, with its C++ name and line" $?

  run_inside record -o /tmp/loop.lbr /loop
  [ $status -eq 0 ]
  verdict "$1: record" $?
  run_inside stat --json /tmp/loop.lbr
  [ $status -eq 0 ] && python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["branches"] == 100' "$scratch/out"
  verdict "$1: the trace has the 99 jumps and the system call" $?
  run_inside report /tmp/loop.lbr
  [ $status -eq 0 ] && grep -qE ' 99 .*again' "$scratch/out"
  verdict "$1: report counts the 99 jumps" $?

  run_inside record -o /tmp/shell.lbr /bin/sh -c 'for i in 1 2 3; do /bin/sh -c "echo $i"; done; exec /loop'
  [ $status -eq 0 ] && [ "$(paste -sd ' ' "$scratch/out")" = '1 2 3' ] && complained '4 processes'
  verdict "$1: record follows a shell, its children and exec" $?

  run_inside machine --serial stdio --screen none --flat /flat.bin@0x7c00
  [ $status -eq 0 ] && grep -q Z "$scratch/out"
  verdict "$1: machine boots a flat guest" $?
  run_inside lab 14-2
  [ $status -eq 0 ] && said 'Result: as expected'
  verdict "$1: lab" $?
}

for proc in proc none; do
  try_commands "$([ $proc = proc ] && echo 'with /proc' || echo 'without /proc')"
done
proc=none before=/old_kernel
try_commands 'with the system calls of Linux 4.18'
before=

# /proc is what tells the command lines of processes.
# shellcheck disable=SC2016 # $$ is the inner shell's
for proc in proc none; do
  run_inside run --tail 1 /bin/sh -c 'kill -SEGV $$' the-name
  [ $status -eq 139 ] && complained 'sent by kill(2)' && if [ $proc = proc ]; then complained the-name; else ! complained the-name; fi
  verdict "the report has the command line: /proc is $proc" $?
done

export DEBUGINFOD_URLS=http://127.0.0.1:9
run_inside report /tmp/loop.lbr
[ $status -eq 0 ] && complained 'static program' && [ "$(grep -c DEBUGINFOD "$scratch/err")" -eq 1 ]
verdict 'DEBUGINFOD_URLS: a warning, and the report' $?
unset DEBUGINFOD_URLS

readelf -lW "$build/lbr" | grep -q INTERP
[ $? -eq 1 ] && readelf -hW "$build/lbr" | grep -q 'Type: *DYN' && ! readelf -dW "$build/lbr" | grep -q NEEDED
verdict 'no interpreter and no shared libraries, at any address' $?

[ $failures -eq 0 ]
