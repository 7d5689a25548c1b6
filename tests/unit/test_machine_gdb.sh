#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_machine_gdb.sh LBR GUESTS: lbr machine --gdb. GUESTS is the folder with the guests of tests/machine. The real gdb
# debugs debug.S in all its modes; what it shows must be what the source and its symbols say, what the guest itself has read of
# its MSRs, what single steps go through, and what --trace has of the same run.
. "$(dirname "$0")/shell.sh"
guests=$(realpath "$2")
cd "$scratch" || exit 1

if ! command -v gdb >/dev/null; then
  echo 'skip lbr machine --gdb: gdb is not installed (Debian: gdb)'
  exit 77
fi
export HOME=$scratch DEBUGINFOD_URLS=
eval "$(nm "$guests/debug.elf" | sed -nE 's/^0*([0-9a-f]+) t ([a-z_0-9]+)$/at_\2=0x\1/p')"

# start OPTION...: a machine that gdb can connect to; its number is in $machine. (Without --foreground a signal comes twice.)
start()
{
  rm -f socket
  : >err
  timeout --foreground 200 "$lbr" machine --gdb unix:socket "$@" >out 2>err </dev/null &
  machine=$!
  await grep -q 'target remote' err
}

# attach COMMAND...: what gdb prints when it is given the commands.
attach()
{
  local words=() command
  for command in "$@"; do
    words+=(-ex "$command")
  done
  timeout 100 gdb -nx -q -batch -iex 'set width 0' -iex 'set confirm off' -ex 'target remote socket' "${words[@]}" >said 2>&1 </dev/null
}

# finish: the machine's exit status.
finish()
{
  wait "$machine"
  status=$?
}

# debug OPTION... -- COMMAND...: both, and the machine is killed in the end.
debug()
{
  local options=()
  while [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  start --wait "${options[@]}"
  attach "${@:2}" kill
  finish
}

guest=(--flat "$guests/debug.bin@0x7c00")
saw() { grep -qF -- "$1" said; }
interrupt='python import os, threading; threading.Timer(0.4, lambda: os.kill(os.getpid(), 2)).start()'

# where ADDRESS...: gdb stopped there, one after the other.
where()
{
  local address
  for address in "$@"; do
    printf '%x\n' "$address"
  done >places
  sed -nE 's/^([A-Za-z].*, )?0x0*([0-9a-f]+) in .*/\2/p' said | tail -n +2 | diff places -
}

# ---- breakpoints in every mode ----

debug "${guest[@]}" -- 'show architecture' "break *$at_based_sub" c c delete 'monitor catch none' "break *$at_write" c 'x/i $pc' \
  "hbreak *$at_numbers" c 'unset tdesc filename' 'show architecture' 'x/i $pc' "break *$at_long_mode" c 'unset tdesc filename' \
  'show architecture' 'x/i $pc' "break *0xffff80000000${at_sub64#0x}" c c 'info breakpoints'
where "$at_based_sub" "$at_based_sub" "$at_write" "$at_numbers" "$at_long_mode" "0xffff80000000${at_sub64#0x}" "0xffff80000000${at_sub64#0x}"
verdict 'breakpoints in real mode with and without a base, protected and 64-bit mode' $?
saw '(currently "i8086")' && saw '(currently "i386")' && saw '(currently "i386:x86-64")' && saw "movw   \$0x1234,0x" &&
  saw "mov    \$0x4,%ecx" && saw 'movabs $0xffff800000000000,%r15'
verdict 'unset tdesc filename: gdb follows the mode' $?
[ $status -eq 0 ] && [ ! -e socket ] && complained 'waiting for gdb: target remote socket' && saw 'hit 2 times'
verdict 'kill ends the machine' $?

# ---- watchpoints ----

debug "${guest[@]}" -- "break *$at_write" c "watch *(short *)$at_watched" "rwatch *(short *)$at_watched" c c c delete 'monitor catch none' \
  "awatch *(char (*)[4000])($at_watched + 1)" c "p/x \$pc"
grep -A9 '^Hardware watchpoint 2' said | grep -q 'New value = 4660' && [ "$(grep -c '^Hardware read watchpoint 3' said)" -ge 2 ] &&
  grep -A3 '^Hardware watchpoint 2' said | grep -q 'New value = 4661'
verdict 'watch and rwatch: behind the instruction that touched it' $?
grep -q '^Hardware access (read/write) watchpoint 4' said && grep -q '^\$1 = 0x7d' said
verdict 'awatch of 4000 bytes' $?

# ---- steps, interrupts, exceptions ----

debug "${guest[@]}" -- "break *$at_behind" c delete stepi stepi stepi stepi stepi "tbreak *$at_interrupted" c stepi stepi stepi stepi
where "$at_behind" "$at_handler" $((at_handler + 1)) $((at_handler + 3)) $((at_handler + 4)) $((at_behind + 2)) "$at_interrupted" \
  $((at_interrupted + 1)) $((at_interrupted + 2)) "$at_tick" $((at_tick + 1))
verdict 'single steps through INT n, and through an interrupt' $?
debug "${guest[@]}" -- c 'p $pc' c 'p $pc' 'set var $pc = $pc + 2' 'tbreak *$pc' c
saw 'received signal SIGFPE' && saw 'received signal SIGILL' && saw "= (void (*)()) $at_divided" && saw "= (void (*)()) $at_undefined" &&
  saw 'lbr: exception #DE' && saw 'lbr: exception #UD'
verdict 'exceptions as signals, at the instruction' $?
debug "${guest[@]}" -- 'handle SIGFPE nostop noprint pass' c 'monitor catch gp,#pf' 'monitor catch xx' 'monitor catch' "break *$at_long_mode" c
saw SIGILL && ! saw 'signal SIGFPE' && saw 'exceptions that stop the guest: #GP #PF' && saw 'usage: monitor catch' && where "$at_undefined" "$at_long_mode"
verdict 'handle SIGFPE nostop; monitor catch' $?
debug --fda "$guests/triple.bin" -- 'monitor catch none' c 'monitor cpu' c 'monitor reset' 'maint flush register-cache' 'p $pc'
[ "$(grep -c 'received signal SIGABRT' said)" -eq 2 ] && saw 'lbr: triple fault' && saw 'it is shut down' && saw '(void (*)()) 0x7c00' &&
  [ $status -eq 0 ]
verdict 'a triple fault can be looked at; monitor reset' $?

# The guest sleeps (ACPI's S3) without an event that wakes it, and has no waking vector: it restarts.
start --fda "$guests/nap.bin"
attach 'monitor wake' 'tbreak *0x7c00' c 'monitor xp 0x1004 1' 'monitor wake' kill
finish
saw 'it goes on at its waking vector' && where 0x7c00 && saw '1004: 01' && saw 'the guest is not asleep' && [ $status -eq 0 ]
verdict 'monitor wake' $?

# ---- registers and memory ----

debug "${guest[@]}" -- 'monitor catch none' "break *$at_numbers" c 'unset tdesc filename' 'p $st0' 'p $st1' 'p $xmm0.v4_float' 'p/x $fctrl' \
  'set var $st1 = 2.5' 'set var $xmm3.uint128 = 77' 'set var $mxcsr = 0x10000' 'set var $mxcsr = 0x1fa0' 'set var $ebx = 0x12345678' \
  'set var $es = 0x1234' 'set var $es = 0' 'set var $cr4 = 0x80000000' 'set var $cr2 = 0x777' 'stepi' 'maint flush register-cache' \
  'p $st1' 'p $xmm3.uint128' 'p/x $mxcsr' 'p/x $ebx' 'p $es' 'p/x $cr2' 'p/x $cr0' 'info registers eflags' 'set var $cr0 = 0x80000000' \
  "set var *(int *)$((at_numbers + 5)) = 0x90909090" stepi 'x/i $pc'
for line in '= 1' '= 3.14159265358979323851' '= {1, 1, 1, 1}' '= 0x37f' '= 2.5' '= 77' '= 0x1fa0' '= 0x12345678' '= 0x777' '= 0x60000011'; do
  saw "$line" || echo "no '$line'"
done >missing
[ ! -s missing ] && [ "$(grep -c "reply 'E16'" said)" -eq 4 ] && saw 'Could not write register "cr4"' && saw 'Could not write register "cr0"' &&
  saw 'Could not write register "es"' && saw 'Could not write register "mxcsr"'
verdict 'registers: x87, SSE, segments, control, and what is refused' $?
tail -n 3 said | grep -q "=> 0x$(printf %x $((at_numbers + 6))):.nop"
verdict 'code that is written runs' $?
debug "${guest[@]}" -- 'monitor catch none' "break *$at_long_mode" c 'unset tdesc filename' "tbreak *0xffff80000000${at_high#0x}" c \
  "x/wx $at_watched" stepi "x/wx $at_watched" "x/wx 0xffff80000000${at_watched#0x}" 'x/wx 0xffff900000000000' 'set var $r8 = 0x123456789abcdef0' \
  'set var $fs_base = 0x4321' 'set var $cr8 = 3' 'set var $rip = 0x80000000000000' stepi 'p/x $r8' 'p/x $fs_base' 'p/x $cr8' 'p/x $efer' \
  "monitor xp $at_watched 4" "set var *(long *)0xffff80000000${at_watched#0x} = 0x1122" "x/gx $at_watched"
for line in '0x3f800000' '0x000055aa' 'Cannot access memory at address 0xffff900000000000' '= 0x123456789abcdef0' '= 0x4321' '= 0x3' '= 0x500' \
  'Could not write register "rip"' "${at_watched#0x}: aa 55 00 00" '0x0000000000001122'; do
  saw "$line" || echo "no '$line'"
done >missing
[ ! -s missing ]
verdict 'memory through paging, physical memory, registers of 64-bit mode' $?

# ---- the recording unit ----

commands=("x/33gx $at_records" 'monitor msr 0x1c9')
for ((i = 0; i < 16; i++)); do
  commands+=("monitor msr $((0x680 + i))" "monitor msr $((0x6c0 + i))")
done
debug "${guest[@]}" -- 'monitor catch none' "break *$at_protect" c "${commands[@]}" 'monitor lbr' 'monitor lbr json' 'monitor msr debugctl' \
  'monitor msr 0x12345' 'monitor msr debugctl 0xf0000000' 'monitor msr lbr_select 0x1' 'monitor msr nothing' 'monitor bts' 'monitor help' \
  'monitor msr 0x186 0x430151' 'monitor msr 0x187 0x4320c4' 'monitor events'
sed -nE 's/^0x[0-9a-f]+:\t(0x[0-9a-f]+)(\t(0x[0-9a-f]+))?$/\1\n\3/p' said | sed '/^$/d; s/^0x0*//; s/^$/0/' >guest
sed -nE 's/^0x(1c9|68.|6c.) = 0x(.*)$/\2/p' said >ours
[ "$(wc -l <guest)" -eq 33 ] && diff guest ours && [ "$(grep -vc '^0$' ours)" -gt 8 ]
verdict 'monitor msr: what the guest itself has read' $?
saw "0x$(printf %x $((at_lbr + 23)))  0x" && saw '"from":' && saw '0x1d9 = 0x0' && saw '#GP(0): RDMSR of 0x12345 faults' &&
  saw '#GP(0): WRMSR of 0xf0000000 to 0x1d9 faults' && saw '0x1c8 = 0x1' && saw "no register 'nothing'" && saw 'set up no DS area' &&
  saw 'monitor key TEXT'
verdict 'monitor lbr, msr, bts, help' $?
saw 'counter 0: 51H/01H is not modelled' && saw 'counter 1: C4H/20H BR_INST_RETIRED.NEAR_TAKEN' &&
  saw 'counter events programmed but not modelled: 51H/01H'
verdict 'monitor events' $?

# ---- back in time ----

cat >steps <<'END'
set $n = 0
while $n < 230
  printf "at %x\n", $pc
  stepi
  set $n = $n + 1
end
printf "at %x\n", $pc
END
debug "${guest[@]}" -- 'monitor catch none' 'source steps'
sed -nE 's/^at //p' said | uniq >stepped
last=$(tail -n 1 stepped)
debug "${guest[@]}" --trace t.lbr -- 'monitor catch none' 'record btrace' "break *0x$last" c 'record instruction-history 1,100000' 'info record' \
  'delete' "break *$at_handler" 'reverse-continue' 'reverse-stepi' 'reverse-stepi' 'info record' "tbreak *$at_based_sub" 'reverse-continue' \
  'record goto end' 'p $pc' 'info record'
sed -nE 's/^[0-9]+\t.. 0x0*([0-9a-f]+):.*/\1/p' said | uniq >recorded
# the stop at the last address may come earlier than the last step: as far as both go
[ "$(wc -l <recorded)" -gt 50 ] && head -n "$(wc -l <recorded)" stepped | diff - recorded && saw '(0 gaps)' && grep -qi "^${at_divided#0x}$" recorded &&
  grep -qi "^${at_tick#0x}$" recorded
verdict 'record btrace: the places of single steps, across segments, interrupts and faults' $?
where "0x$last" "$at_handler" "$at_behind" "$at_read" "$at_based_sub"
verdict 'reverse-continue to a breakpoint, reverse-stepi' $?
sed 's/printf .*/info record/; s/230/100/' steps >deltas
debug "${guest[@]}" -- 'monitor catch none' 'record btrace' 'source deltas' 'record instruction-history 1,1000'
sed -nE 's/^[0-9]+\t.. 0x0*([0-9a-f]+):.*/\1/p' said | uniq >recorded
[ "$(wc -l <recorded)" -gt 80 ] && head -n "$(wc -l <recorded)" stepped | diff - recorded && ! saw 'Falling back' &&
  [ "$(grep -c '^Recorded .* (0 gaps)' said)" -eq 101 ]
verdict 'the same, read piece by piece' $?
debug "${guest[@]}" -- 'monitor history 10' 'record btrace' "break *$at_real" c 'record instruction-history 1,1000' 'monitor history'
sed -nE 's/^[0-9]+\t.. 0x0*([0-9a-f]+):.*/\1/p' said >recorded
[ "$(wc -l <recorded)" -gt 8 ] && sed "/^${at_real#0x}\$/,\$d" stepped | tail -n "$(wc -l <recorded)" | diff - recorded && grep -qE '^[5-9] branches of at most 10' said
verdict 'monitor history: the end of it' $?
"$lbr" machine "${guest[@]}" --until insns=2000 --trace alone.lbr >/dev/null 2>&1
start --wait "${guest[@]}" --until insns=2000 --trace beside.lbr
attach 'monitor catch none' 'record btrace' c
finish
"$lbr" script alone.lbr >alone && "$lbr" script beside.lbr >beside && [ "$(wc -l <alone)" -gt 100 ] && diff alone beside && saw 'exited normally'
verdict '--trace has the same beside it' $?

# ---- coming and going ----

start "${guest[@]}"
attach 'monitor catch none' "$interrupt" c 'unset tdesc filename' 'p/x $pc' 'p $rbx' 'watch *(char *)0x1' "break *$at_high" detach
first=$(sed -nE 's/^\$2 = ([0-9]+)$/\1/p' said)
saw 'signal SIGINT' && grep -qE '^\$1 = 0xffff80000000' said
verdict 'Ctrl-C on a guest that spins' $?
attach "$interrupt" c 'unset tdesc filename' 'p $rbx' "$interrupt" 'stepi' quit
second=$(sed -nE 's/^\$1 = ([0-9]+)$/\1/p' said)
[ -n "$first" ] && [ -n "$second" ] && [ "$second" -gt "$first" ]
verdict 'detach, and connect again' $?
kill -TERM $machine
finish
[ $status -eq 143 ] && [ ! -e socket ]
verdict 'a signal ends the machine' $?
debug --fda "$guests/halt1.bin" -- "$interrupt" c 'monitor cpu'
saw 'signal SIGINT'
verdict 'Ctrl-C on a guest that waits' $?
debug --fda "$guests/hello.bin" -- "$interrupt" c 'monitor screen' 'monitor key x<f1>\n' 'monitor key <no>'
saw 'from sector 1' && saw 'usage: monitor key TEXT'
verdict 'monitor screen and key' $?

# ---- a processor without 64-bit mode; and how a run ends ----

debug --cpu pentium-m "${guest[@]}" -- 'monitor catch none' "break *$at_undefined" "break *$at_spin32" c c 'unset tdesc filename' 'x/i $pc' \
  'info registers eip cs' 'delete' "watch \$ebx == $((0x100))" 'monitor msr efer' 'record btrace' stepi stepi stepi reverse-stepi
where "$at_undefined" "$at_spin32" $((at_spin32 + 1)) "$at_spin32" $((at_spin32 + 1)) "$at_spin32" && saw 'inc    %ebx'
verdict 'a pentium-m: protected mode, btrace' $?
start --wait --gdb 0 --kernel "$guests/kernel64.elf"
port=$(sed -nE 's/.*target remote 127.0.0.1:([0-9]+)$/\1/p' err)
timeout 100 gdb -nx -q -batch -ex "target remote 127.0.0.1:$port" -ex 'stepi' -ex 'show architecture' -ex kill "$guests/kernel64.elf" >said 2>&1 </dev/null
finish
[ $status -eq 0 ] && saw 'in _start ()' && saw '(currently "i386:x86-64")'
verdict 'a port; a 64-bit kernel with its symbols' $?
start --wait "${guest[@]}" --until insns=100
attach 'monitor catch none' c
finish
saw 'exited normally' && [ $status -eq 0 ]
verdict '--until ends it' $?
run machine --wait "${guest[@]}"
[ $status -eq 2 ] && complained '--wait needs --gdb'
verdict '--wait alone' $?
run machine "${guest[@]}" --gdb 99999
[ $status -eq 2 ] && complained '--gdb takes'
verdict '--gdb wants a port or a path' $?
[ $failures -eq 0 ]
