#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_cli.sh LBR: lbr cpu, lbr decode and lbr encode: what they print, complain about and return. Expected values are
# from Intel SDM vol. 3 (June 2016) chapters 17 and 18 and from values measured on real CPUs (VirtualBox CPU profiles).
. "$(dirname "$0")/shell.sh"
content() { ! [ -s "$scratch/err" ]; }

# row WORD...: is there a line of output with these words in this order, separated by blanks, perhaps with more before or
# after?
row() { tr -s ' ' <"$scratch/out" | grep -qF -- "$*"; }

# bytes SIZE VALUE...: numbers in little-endian bytes.
bytes() { python3 -c 'import sys; [sys.stdout.buffer.write(int(v, 0).to_bytes(int(sys.argv[1]), "little"))
                                   for v in sys.argv[2:]]' "$@"; }

# ---- lbr cpu ----

run cpu
[ $status -eq 0 ] && content && said 'This machine' && said 'Usable from here' && said 'PTRACE_SINGLEBLOCK'
verdict 'cpu: the host report needs nothing' $?

run cpu --list
[ $status -eq 0 ] && content && row 'westmere Intel Westmere NHM 16 3 3 06_25, 06_2C, 06_2F' &&
  row 'skylake-server Intel Skylake (server) SKL 32 5 4 06_55_0-4'
verdict 'cpu --list' $?

run cpu --list --names
[ $status -eq 0 ] && content && grep -qx skylake "$scratch/out" && ! grep -q ' ' "$scratch/out" &&
  [ "$(sort "$scratch/out" | uniq -d | wc -l)" -eq 0 ]
verdict 'cpu --list --names: a name a line, each once' $?

run cpu skylake
row 'C4H/20H yes BR_INST_RETIRED.NEAR_TAKEN' && row 'C4H/00H no BR_INST_RETIRED.ALL_BRANCHES' && said 'skylake_core.json'
verdict 'cpu: counter events with their codes and source' $?

run cpu zen4 --json
python3 - "$scratch/out" <<'END'
import json, sys
page = json.load(open(sys.argv[1]))["events"]
codes = {row["name"]: row["code"] for row in page["list"]}
assert codes["RETIRED_TAKEN_BRANCH_INSTRUCTIONS"] == "C4H", codes
assert codes["RETIRED_BRANCH_MISPREDICTED_DIRECTION_MISMATCH"] == "1C7H", codes
assert not any(row["precise"] for row in page["list"]) and "zen4" in page["evidence"]
END
verdict 'cpu --json: counter events' $?

for name in kabylake KABY-LAKE 06_8E kbl; do
  run cpu "$name"
  [ $status -eq 0 ] && content && row 'name kabylake'
  verdict "cpu $name" $?
done

run cpu skylake
row 'from 0x680 to 0x69f' && row 'info 0xdc0 to 0xddf' && row 'tos 0x1c9' && row 'tos bits 4:0' &&
  row 'faults 0xffffffffffff003c' && row 'value 0x33c5' && row '9 EN_CALLSTACK' && row '63:16 - #GP reserved' &&
  said PT_EXCLUDES_LBR
verdict 'cpu skylake: its numbers' $?

run cpu westmere
row 'from 0x680 to 0x68f' && row 'tos bits 3:0' && ! said EN_CALLSTACK && said NHM_SELECT
verdict 'cpu westmere: its numbers' $?

run cpu pentium4
row '2 TR kept' && row '3 BTS kept' && row 'tos 0x1da' && row 'combined 0x1db to 0x1de'
verdict 'cpu pentium4: its numbers' $?

run cpu zen4
row 'from 0xc0010300 to 0xc001031e, 2 apart' && row '6:3 - #GP reserved' && row 'kept 0x1807' && row 'bts no'
verdict 'cpu zen4: its numbers' $?

run cpu p6
[ $status -eq 0 ] && row 'feature meaning' && ! said 'CPUID leaves of'
verdict 'cpu p6: a table without rows is left out' $?

run cpu --list --json
[ $status -eq 0 ] && said core-i7-7700k
verdict 'cpu --list --json has the aliases' $?

run cpu sandybrigde
[ $status -eq 1 ] && silent && complained "no CPU 'sandybrigde'"
verdict 'cpu: an unknown name' $?

run cpu 'intel skylake'
[ $status -eq 1 ] && silent && complained 'near it: skylake, skylake-server'
verdict 'cpu: a title is near the name' $?

run cpu skylake haswell
[ $status -eq 2 ] && silent && complained 'one CPU at a time'
verdict 'cpu: two names' $?

run cpu --list skylake
[ $status -eq 2 ] && silent && complained 'either a list or one CPU'
verdict 'cpu: a list and a name' $?

# ---- lbr decode: registers ----

run decode --cpu westmere debugctl 0x1801
[ $status -eq 0 ] && content && row '* 0 LBR 0x1' && row '* 11 FREEZE_LBRS_ON_PMI 0x1' &&
  row '* 12 FREEZE_PERFMON_ON_PMI 0x1' && row ' 1 BTF 0x0' && ! row '* 1 BTF' && row 'answer kept' && ! said Reserved
verdict 'decode debugctl: set flags are marked' $?

run decode --cpu skylake debugctl 0x10005
[ $status -eq 0 ] && row '* 2 #GP PB0 on p6,' && row '* 16 #GP not used' && row 'faulting bits 0x10004'
verdict 'decode debugctl: reserved bits fault' $?

run decode --cpu pentium-m debugctl 0x200
row '* 9 ignored BTS_OFF_OS on' && row 'answer changed' && row 'reads back 0x0'
verdict 'decode debugctl: reserved bits are ignored' $?

run decode --cpu nehalem lbr_select 0x2ff
row '* 9 #GP EN_CALLSTACK on haswell,' && row 'answer #GP' && row 'faulting bits 0x200'
verdict 'decode lbr_select: a bit of other CPUs' $?

run decode --cpu silvermont lbr_select 0x201
row '* 9 ignored EN_CALLSTACK on' && row 'answer changed' && row 'reads back 0x1'
verdict 'decode lbr_select: Silvermont ignores bit 9' $?

run decode --cpu alderlake lbr_depth 40
row 'answer #GP' && row 'reason the CPU does not have this depth' && ! said 'faulting bits'
verdict 'decode lbr_depth: no bit is to blame' $?

run decode --cpu zen3 dbg_extn_cfg 0
row 'answer #GP' && row 'faulting bits 0x18'
verdict 'decode dbg_extn_cfg: bits that must be 1' $?

run decode --cpu zen3 dbg_extn_cfg 0x118
row '* 8 ignored not used' && row 'answer changed' && row 'reads back 0x18'
verdict 'decode dbg_extn_cfg: a reserved bit beside those that must be 1' $?

run decode --cpu pentium-m tos 0x08000005
row '* 2:0 TOS 0x5' && row 'answer read-only'
verdict 'decode tos: Pentium M' $?

run decode --cpu ivybridge MSR_LASTBRANCH_3_FROM_IP 0x7FFFFF7FA38C2289
row 'address 0x683' && row 'from address 0xffffff7fa38c2289' && row 'mispredicted no' && row 'answer kept'
verdict 'decode from: a raw Ivy Bridge value' $?

run decode --cpu ivybridge from_3 0xFFFFFF7FA38C2289
row 'from address 0xffffff7fa38c2289' && row 'mispredicted yes' && row 'answer kept'
verdict 'decode from: the same, mispredicted' $?

run decode --cpu ivybridge to_0 0xFFFFFF7FA38C227F
row 'to address 0xffffff7fa38c227f' && ! said mispredicted\  && row 'answer kept'
verdict 'decode to: a raw Ivy Bridge value' $?

run decode --cpu ivybridge to_0 0x7FFFFF7FA38C227F
row 'answer #GP' && row 'reason the address is not canonical'
verdict 'decode to: has no flag in bit 63' $?

run decode --cpu pentium-m lastbranch_5 0x804FF1908065EF6E
row 'address 0x45' && row 'from address 0x8065ef6e' && row 'to address 0x804ff190'
verdict 'decode: a combined record of the Pentium M' $?

run decode --cpu kabylake info_12 0x8000000000000014
row 'address 0xdcc' && row 'mispredicted yes' && row 'cycles 20'
verdict 'decode info: Kaby Lake' $?

run decode --cpu haswell from_0 0x4000000000401000
row '* 62 IN_TSX 0x1' && row 'from address 0x401000' && row 'in tsx yes' && row 'tsx abort no'
verdict 'decode from: TSX flags of Haswell' $?

run decode --cpu goldmont to_1 0x0014000000401000
row 'to address 0x401000' && row 'cycles 20'
verdict 'decode to: cycles of Goldmont' $?

run decode --cpu zen4 ler_from 0xffff800000001000
row 'from address 0xffff800000001000' && ! row 'mispredicted'
verdict 'decode ler_from: plain addresses on Zen 4' $?

run decode --cpu zen4 to_2 0x00000000004010aa
row 'to address 0x4010aa' && row 'empty yes'
verdict 'decode to: an empty record of Zen 4' $?

run decode --cpu skylake 0x38e 0x4400000100000002
said 'IA32_PERF_GLOBAL_STATUS = 0x4400000100000002' && row '* 58 LBR_FRZ 0x1' && row 'answer read-only'
verdict 'decode by address' $?

run decode --cpu skylake pmc0 -- -5
[ $status -eq 0 ] && row 'reads back 0xfffffffffffb'
verdict 'decode: a negative value behind --' $?

# Samples of IA32_PERF_CAPABILITIES: value, LBR_FMT, PEBS_TRAP, PEBS_ARCH_REG, PEBS_FMT, FREEZE_WHILE_SMM, FW_WRITE.
while read -r cpu value lbr_fmt trap regs pebs smm full; do
  run decode --cpu "$cpu" perf_capabilities "$value"
  [ $status -eq 0 ] && row "5:0 LBR_FMT 0x$lbr_fmt " && row "6 PEBS_TRAP 0x$trap " && row "7 PEBS_ARCH_REG 0x$regs " &&
    row "11:8 PEBS_FMT 0x$pebs " && row "12 FREEZE_WHILE_SMM 0x$smm " && row "13 FW_WRITE 0x$full " &&
    row 'answer read-only'
  verdict "decode perf_capabilities $value" $?
done <<'END'
merom 0x82 2 0 1 0 0 0
penryn 0x10C2 2 1 1 0 1 0
bonnell 0xC1 1 1 1 0 0 0
silvermont 0x32C1 1 1 1 2 1 1
sandybridge 0x31C3 3 1 1 1 1 1
broadwell 0x32C4 4 1 1 2 1 1
skylake 0x33C5 5 1 1 3 1 1
END

run decode --cpu skylake perf_capabilities 0x33c5
said 'flags and cycles in the INFO register' && said '200 bytes'
verdict 'decode perf_capabilities: formats are explained' $?

run decode --cpu nehalem lbr_ctl 1
[ $status -eq 1 ] && silent && complained "has no register 'lbr_ctl'" && complained alderlake && complained ' more have it'
verdict 'decode: a register of other CPUs' $?

run decode --cpu nehalem from_20 0
[ $status -eq 1 ] && silent && complained "has no register 'from_20'" && complained skylake
verdict 'decode: a number past the stack' $?

run decode --cpu skylake lbr_slect 0
[ $status -eq 1 ] && silent && complained 'did you mean LBR_SELECT?'
verdict 'decode: a mistyped register' $?

for pair in lbr_info:LBR_INFO_0 debug:DEBUGCTL 1d9:0x1d9; do
  run decode --cpu skylake "${pair%:*}" 0
  [ $status -eq 1 ] && silent && complained "did you mean ${pair#*:}?"
  verdict "decode ${pair%:*}: the beginning of a name, an address without 0x" $?
done

run decode --cpu skylake qqqqqqqq 0
[ $status -eq 1 ] && silent && complained "no CPU has a register 'qqqqqqqq'" && ! complained 'did you mean'
verdict 'decode: no such register' $?

run decode --cpu skylake debugctl twelve
[ $status -eq 2 ] && silent && complained "'twelve' is not a number"
verdict 'decode: not a number' $?

run decode --cpu skylake debugctl 0x10000000000000000
[ $status -eq 2 ] && silent && complained 'not a number of 64 bits'
verdict 'decode: a number that is too big' $?

run decode --cpu nonesuch debugctl 1
[ $status -eq 2 ] && silent && complained "no CPU 'nonesuch'"
verdict 'decode: no such CPU' $?

for arguments in 'debugctl' '' 'debugctl 1 2' '--32 debugctl 1' 'bts --32 --64 x' 'ds --top 1 x' 'bts --offset -1 x' \
  'bts --top many x'; do
  # shellcheck disable=SC2086 # several words
  run decode $arguments
  [ $status -eq 2 ] && silent && complained 'lbr decode: '
  verdict "decode $arguments: a usage error" $?
done

run decode debugctl 1
[ $status -eq 0 ] && said '--cpu chooses another'
verdict 'decode without --cpu says whose register it is' $?

# ---- lbr decode: buffers ----

base=0xfffffe0000010000
bytes 8 $base 0xfffffe0000010030 0xfffffe0000010961 0xfffffe0000010870 \
  0xfffffe0000012000 0xfffffe0000012000 0xfffffe0000012640 0xfffffe0000012640 0xfffffffffc18 >"$scratch/ds"
run decode --cpu skylake ds "$scratch/ds"
[ $status -eq 0 ] && content && row "base $base" && row 'records 2' && row 'capacity 100' && row 'interrupt after 90' &&
  row 'capacity 8' && row 'counter 0 0xfffffffffc18' && row 'counter 1 0x0' && ! said 'Requirements'
verdict 'decode ds: 64-bit' $?

bytes 4 0x80010000 0x8001000c 0x800104b0 0x800104a4 0 0 0 0 0xfffffc18 0xff 0 0 >"$scratch/ds32"
run decode --cpu pentium-m ds "$scratch/ds32"
[ $status -eq 0 ] && row 'layout 32-bit' && row 'records 1' && row 'capacity 100' && row 'counter 0 0xfffffffc18' &&
  ! said 'Requirements'
verdict 'decode ds: 32-bit' $?

bytes 8 0xfffffe0000010002 $base 0xfffffe0000010967 0xfffffe0000010870 0 0 0 0 >"$scratch/broken"
run decode --cpu skylake ds "$scratch/broken"
[ $status -eq 0 ] && row 'BTS_ALIGNMENT' && row 'BTS_INDEX' && ! row 'PEBS_ALIGNMENT'
verdict 'decode ds: broken requirements' $?

{
  echo -n 'skip me!'
  cat "$scratch/ds"
} >"$scratch/in"
run decode --cpu skylake --offset 8 ds -
[ $status -eq 0 ] && row 'records 2'
verdict 'decode ds: from a file, with an offset' $?

"$lbr" decode --cpu skylake --offset 0x8 ds - < <(cat "$scratch/in") >"$scratch/out"
row 'records 2'
verdict 'decode ds: from a pipe, with an offset' $?
: >"$scratch/in"

bytes 1 0 0 0 >"$scratch/short"
run decode --cpu skylake ds "$scratch/short"
[ $status -eq 1 ] && silent && complained 'the data is truncated'
verdict 'decode ds: too short' $?

for what in ds bts pebs; do
  run decode --cpu skylake $what "$scratch"
  [ $status -eq 1 ] && silent && complained "$scratch: Is a directory"
  verdict "decode $what: a directory" $?
done

for offset in 4 0x7fffffffffffffff 0xffffffffffffffff; do
  run decode --cpu skylake --offset $offset bts "$scratch/short"
  [ $status -eq 1 ] && silent && complained 'the data is truncated'
  verdict "decode bts: offset $offset is past the end" $?
done

for what in bts pebs; do
  run decode --cpu skylake $what - && [ $status -eq 0 ] && content && row 'no records'
  verdict "decode $what: an empty buffer" $?
  run decode --cpu skylake --json $what - && [ $status -eq 0 ] && content && said '"records": []'
  verdict "decode $what: an empty buffer as JSON" $?
done

bytes 8 0x401000 0x401020 0x10 0x401030 0x401000 0 0xffffffff81000000 0x401040 0x10 >"$scratch/bts"
run decode --cpu skylake bts "$scratch/bts"
[ $status -eq 0 ] && content && row '0 0x401000 0x401020 yes' && row '1 0x401030 0x401000 no' &&
  row '2 0xffffffff81000000 0x401040 yes'
verdict 'decode bts' $?

cp "$scratch/bts" "$scratch/in"
run decode --cpu skylake BTS -
[ $status -eq 0 ] && content && row '2 0xffffffff81000000 0x401040 yes'
verdict 'decode BTS: case does not matter' $?
echo >>"$scratch/in"
run decode --cpu skylake bts -
[ $status -eq 1 ] && row '2 0xffffffff81000000' && complained 'stdin: record 3: the data is truncated'
verdict 'decode bts: an error says at which record' $?
: >"$scratch/in"

run decode --cpu skylake --offset 24 --top 1 bts "$scratch/bts"
[ $status -eq 0 ] && row '0 0x401030 0x401000 no' && [ "$(grep -c 0x401 "$scratch/out")" -eq 1 ]
verdict 'decode bts: offset and count' $?

bytes 4 0x401000 0x401020 0x10 >"$scratch/bts32"
run decode --cpu pentium-m bts "$scratch/bts32"
[ $status -eq 0 ] && row '0 0x401000 0x401020'
verdict 'decode bts: 32-bit' $?

head -c 40 "$scratch/bts" >"$scratch/short"
run decode --cpu skylake --json bts "$scratch/short"
[ $status -eq 1 ] && complained 'the data is truncated' && python3 -m json.tool "$scratch/out" >"$scratch/json" &&
  grep -q 0x401020 "$scratch/json"
verdict 'decode bts: half a record is an error, what was before it is shown' $?

# shellcheck disable=SC2046 # many words
bytes 8 $(seq 100 124) >"$scratch/pebs"
run decode --cpu skylake pebs "$scratch/pebs"
[ $status -eq 0 ] && row 'format format 3: 200 bytes' && row 'rflags 0x64' && row 'rip 0x65' && row 'r15 0x75' && row 'applicable counters 0x76' &&
  row 'eventing ip 0x7a' && row 'tsc 0x7c'
verdict 'decode pebs: format 3' $?

head -c 144 "$scratch/pebs" >"$scratch/pebs0"
run decode --cpu merom pebs "$scratch/pebs0"
[ $status -eq 0 ] && row 'r15 0x75' && ! said 'tsc' && ! said 'status'
verdict 'decode pebs: format 0' $?

# shellcheck disable=SC2046
bytes 4 $(seq 1 10) >"$scratch/pebs4"
run decode --cpu pentium4 pebs "$scratch/pebs4"
[ $status -eq 0 ] && row 'rip 0x2' && row 'rsp 0xa' && ! said 'r8'
verdict 'decode pebs: Pentium 4' $?

# Adaptive: a record with memory group and two branches (32 + 32 + 48 bytes), then one of the basic group alone.
bytes 8 0x0070000001000009 0x401000 1 777 10 11 12 13 0x401010 0x402020 0x8000000000000005 0x401030 0x402040 6 \
  0x0020000000000000 0x401050 2 778 >"$scratch/adaptive"
run decode --cpu icelake pebs "$scratch/adaptive"
[ $status -eq 0 ] && content && row 'eventing ip 0x401000' && row 'tsc 0x309' && row 'data source 0xb' && row 'tsx abort 0xd' &&
  row '0 0x401010 0x402020 0x8000000000000005' && row '1 0x401030 0x402040 0x6' && row 'eventing ip 0x401050' && ! said rax
verdict 'decode pebs: adaptive records' $?

bytes 8 0x001f000000000000 1 2 3 >"$scratch/adaptive"
run decode --cpu icelake pebs "$scratch/adaptive"
[ $status -eq 1 ] && complained "record 0: its size does not match"
verdict 'decode pebs: an adaptive record that lies about its size' $?

run decode --cpu pentium-m pebs "$scratch/pebs"
[ $status -eq 1 ] && silent && complained 'has no PEBS; these CPUs have it: ' && complained ' more'
verdict 'decode pebs: no PEBS on the Pentium M' $?

run decode --cpu zen4 bts "$scratch/bts"
[ $status -eq 1 ] && silent && complained 'no debug store'
verdict 'decode bts: no BTS on AMD' $?

run decode --cpu skylake bts "$scratch/nonesuch"
[ $status -eq 1 ] && silent && complained 'No such file'
verdict 'decode bts: no such file' $?

# ---- lbr encode ----

run encode --cpu skylake lbr_select jcc,near_ret
[ $status -eq 0 ] && content && [ "$(cat "$scratch/out")" = 0x24 ]
verdict 'encode lbr_select' $?

run encode lbr_select jcc,near_ret
[ $status -eq 0 ] && [ "$(cat "$scratch/out")" = 0x24 ] && complained '--cpu chooses another'
verdict 'encode without --cpu says for whom' $?

run encode --cpu skylake DebugCtl Lbr,BTF
[ $status -eq 0 ] && [ "$(cat "$scratch/out")" = 0x3 ]
verdict 'encode: case does not matter' $?

run encode --cpu pentium4 debugctl tr,bts
[ $status -eq 0 ] && [ "$(cat "$scratch/out")" = 0xc ]
verdict 'encode debugctl: the order of the Pentium 4' $?

run encode --cpu haswell lbr_select en_callstack=1,jcc near_ind_jmp,near_rel_jmp far_branch,cpl_eq_0=0
[ $status -eq 0 ] && content && [ "$(cat "$scratch/out")" = 0x3c4 ]
verdict 'encode: several words' $?

run encode --cpu skylake perfevtsel0 event=0xc4,umask=1,usr,int,en
[ $status -eq 0 ] && content && [ "$(cat "$scratch/out")" = 0x5101c4 ]
verdict 'encode: wide fields' $?

run encode --cpu nehalem lbr_select en_callstack
[ $status -eq 1 ] && silent && complained "no field 'en_callstack' on Intel Nehalem" && complained haswell &&
  complained 'CPL_EQ_0, CPL_NEQ_0'
verdict 'encode: a field of other CPUs' $?

run encode --cpu skylake debugctl nonesuch
[ $status -eq 1 ] && silent && complained "no field 'nonesuch'" && complained 'LBR, BTF, TR'
verdict 'encode: no such field' $?

run encode --cpu skylake debugctl lbr=2
[ $status -eq 1 ] && silent && complained 'LBR=2 is too big'
verdict 'encode: too big for a flag' $?

run encode --cpu skylake perfevtsel0 event=0x100
[ $status -eq 1 ] && silent && complained 'at most 0xff'
verdict 'encode: too big for a field' $?

run encode --cpu skylake perfevtsel0 event
[ $status -eq 2 ] && silent && complained 'write EVENT=VALUE'
verdict 'encode: a value is missing' $?

run encode --cpu skylake debugctl lbr=yes
[ $status -eq 2 ] && silent && complained "'yes' is not a number"
verdict 'encode: not a number' $?

run encode --cpu skylake debugctl lbr,btf,lbr
[ $status -eq 2 ] && silent && complained 'named twice'
verdict 'encode: a field twice' $?

for fields in ,lbr 'lbr,' lbr,,btf ''; do
  run encode --cpu skylake debugctl "$fields"
  [ $status -eq 2 ] && silent && complained "'$fields' lacks a field"
  verdict "encode: an empty field in '$fields'" $?
done

run encode debugctl lbr --cpu nonesuch
[ $status -eq 2 ] && silent && complained "no CPU 'nonesuch'"
verdict 'encode: no such CPU' $?

run encode --cpu nehalem lbr_ctl lbren
[ $status -eq 1 ] && silent && complained "no register 'lbr_ctl'"
verdict 'encode: a register of other CPUs' $?

run encode --cpu skylake debugctl
[ $status -eq 2 ] && silent && complained 'lbr encode: '
verdict 'encode: no fields' $?

run encode --cpu skylake from_0 from=0x1000,sign=1
[ $status -eq 0 ] && [ "$(cat "$scratch/out")" = 0x1000000001000 ] && complained 'gives #GP' && complained canonical
verdict 'encode: an address that faults' $?

run encode --cpu alderlake lbr_depth depth=40
[ $status -eq 0 ] && [ "$(cat "$scratch/out")" = 0x28 ] && complained 'gives #GP' && complained 'this depth'
verdict 'encode: a depth that faults' $?

run encode --cpu skylake global_status lbr_frz
[ $status -eq 0 ] && [ "$(cat "$scratch/out")" = 0x400000000000000 ] && complained 'read-only'
verdict 'encode: a read-only register' $?

# ---- everything, by program ----

cat >"$scratch/all.py" <<'END'
"""JSON of every page; every register of several CPUs: its fields and reserved bits are all bits, each once, and what
decode takes apart, encode puts together again."""
import json
import os
import subprocess
import sys

LBR = os.environ["LBR"]
SAMPLE = ("p6", "pentium4", "pentium-m", "westmere", "haswell", "skylake", "sapphirerapids", "zen3", "zen4", "nano")
RECORD = ["format", "from_address", "to_address", "mispredicted", "in_tsx", "tsx_abort", "branch_type", "cycles", "empty"]


def lbr(*arguments):
    return subprocess.run((LBR,) + arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout


def mask(bits):
    high, _, low = bits.rpartition(":")
    low = int(low)
    return (1 << (int(high or low) - low + 1)) - 1 << low


def keys(page):
    """The keys of a page and of those of its sections that every CPU has."""
    return {key: list(page[key]) if isinstance(page[key], dict) else None
            for key in page if key not in ("select", "lbr_ctl", "ler", "perf_capabilities")}


def pages():
    names = lbr("cpu", "--names").decode().split()
    listed = json.loads(lbr("cpu", "--list", "--json"))["cpus"]
    assert [cpu["name"] for cpu in listed] == names and len(names) > 20
    assert json.loads(lbr("cpu", "--names", "--json"))["names"] == names
    host = json.loads(lbr("cpu", "--json"))
    assert {row["usable"] for row in host["usable"]["facilities"]} <= {"yes", "partly", "perhaps", "no"}
    shape = None
    for name, row in zip(names, listed):
        page = json.loads(lbr("cpu", name, "--json"))
        assert page["name"] == name and page["title"] == row["title"] and page["models"] == row["models"]
        assert page["lbr"]["entries"] == row["entries"]
        assert page["aliases"] == row["aliases"]
        shape = shape or keys(page)
        assert keys(page) == shape, name


def register(cpu, name):
    page = json.loads(lbr("decode", "--cpu", cpu, "--json", name, "0xffffffffffffffff"))
    assert page["record"] is None or list(page["record"]) == RECORD, (cpu, name)
    left = (1 << 64) - 1
    for field in page["fields"]:
        here = mask(field["bits"])
        assert left & here == here and field["set"], (cpu, name, field)
        assert int(field["value"], 0) == here >> (here & -here).bit_length() - 1
        left &= ~here
    assert int(page["reserved"]["mask"], 0) == left, (cpu, name)
    for run in page["reserved"]["runs"]:
        left &= ~mask(run["bits"])
    assert left == 0, (cpu, name)
    return page["fields"]


def trip(cpu, name, fields):
    """Every other field at its widest, there and back."""
    words = ["%s=%s" % (field["name"], field["value"] if i % 2 else "0") for i, field in enumerate(fields)]
    if not words:
        return
    value = lbr("encode", "--cpu", cpu, name, ",".join(words)).decode().strip()
    back = json.loads(lbr("decode", "--cpu", cpu, "--json", name, value))
    for i, (was, now) in enumerate(zip(fields, back["fields"])):
        assert now["value"] == (was["value"] if i % 2 else "0x0"), (cpu, name, was, now)
    assert back["reserved"]["mask"] == "0x0", (cpu, name)


def registers():
    for cpu in SAMPLE:
        for row in json.loads(lbr("cpu", cpu, "--json"))["registers"]["list"]:
            trip(cpu, row["name"], register(cpu, row["name"]))


{"pages": pages, "registers": registers}[sys.argv[1]]()
END

python3 "$scratch/all.py" pages
verdict 'JSON: every page of lbr cpu' $?
python3 "$scratch/all.py" registers
verdict 'decode and encode are each other'\''s inverse on every register' $?

exit $((failures > 0))
