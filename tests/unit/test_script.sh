#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_script.sh LBR PROGRAMS: what lbr script chooses among the branches of a trace, and what it shows of them. PROGRAMS is
# the folder with the programs of tests/process and the oracle, whose single steps say what there is to choose from.
. "$(dirname "$0")/shell.sh"
here=$(realpath "$(dirname "$0")")
programs=$(realpath "$2")
cd "$scratch" || exit 1

# chosen NAME AWK OPTION...: the lines of the whole script that awk finds are those that script finds with these options.
# Columns: 1 thread, 2 number, 3 from, 4 its symbol, 6 to, 7 its symbol, 8 kind.
chosen()
{
  name=$1 filter=$2
  shift 2
  run script "$@" "$trace"
  awk "$filter" all >want
  [ $status -eq 0 ] && [ -s want ] && cmp -s want out
  verdict "$name" $?
}

# ---- a program of few branches, known from its source and from single steps ----

gcc -nostdlib -static -Wl,--build-id=none -o scan "$here/test_script_scan.S" || exit 1
trace=scan.lbr
run record --quiet -o $trace ./scan xaybazab
[ $status -eq 3 ] && "$lbr" script $trace >all
verdict 'a trace' $?
# 1 call, 8 letters with 3 branches each, 3 a's with one more, the end of the loop, the return, exit.
[ "$(wc -l <all)" -eq 31 ]
verdict 'its branches are as many as the source says' $?

"$programs/oracle" list ./scan xaybazab
if [ $? -eq 3 ]; then
  grep -v '^#' list | awk '{ print $2, $3, $4 }' >want
  run script -F from,to,kind $trace
  [ $status -eq 0 ] && cmp -s want out
  verdict 'script -F from,to,kind: the list of single steps' $?
  for kind in jcc call ret jmp syscall; do
    run script --kind $kind -F from,to,kind $trace
    awk -v kind=$kind '$3 == kind' want | cmp -s - out
    verdict "script --kind $kind: single steps" $?
  done
  run script --kind jcc,ret --tail 7 -F from,to $trace
  awk '$3 == "jcc" || $3 == "ret" { print $1, $2 }' want | tail -n 7 | cmp -s - out
  verdict 'script --kind jcc,ret --tail 7: single steps' $?
else
  echo 'skip single steps: not permitted here'
fi

chosen 'script --function' '$4 ~ /^vowel\+/ || $7 ~ /^vowel\+/' --function vowel
chosen 'script --function, a pattern' '$4 ~ /^(scan|_start)\+/ || $7 ~ /^(scan|_start)\+/' --function 's*n' --function '_st?rt'
chosen 'script --from FUNCTION' '$4 ~ /^vowel\+/' --from vowel
chosen 'script --to FUNCTION+OFFSET' '$7 == "vowel+0x0"' --to vowel+0
chosen 'script --from --to' '$4 ~ /^vowel\+/ && $7 ~ /^scan\+/' --from vowel --to scan
chosen 'script --from --to, in a function' '$4 ~ /^vowel\+/ && $7 ~ /^vowel\+/' --from vowel --to vowel
address=$(awk '$8 == "jcc" { print $3; exit }' all)
chosen 'script --from ADDRESS' '$3 == "'"$address"'"' --from "$address"
chosen 'script --to ADDRESS..ADDRESS' '$7 ~ /^vowel\+/' --to "0x$(nm scan | awk '$3 == "vowel" { print $1 }')..0x$(nm scan | awk '$3 == "_end" { print $1 }')"
chosen 'script --module' '1' --module scan
chosen 'script --module PATH' '1' --module "$scratch/scan"
chosen 'script --kind calls,returns' '$8 == "call" || $8 == "ret"' --kind calls,returns
chosen 'script --kind near_rel_jmp,far' '$8 == "jmp" || $8 == "syscall"' --kind near_rel_jmp,far
chosen 'script --kind with --function' '$8 == "ret" && $4 ~ /^vowel/' --kind ret --function vowel
chosen 'script --top with a filter' '$8 == "ret" && ++n <= 4' --kind ret --top 4
run script --kind call --tail 3 $trace
grep ' call$' all | tail -n 3 | cmp -s - out
verdict 'script --tail with a filter: the last that pass it' $?
run script --kind call --tail 3 --top 2 $trace
grep ' call$' all | tail -n 3 | head -n 2 | cmp -s - out
verdict 'script --tail --top with a filter' $?

# Letter number n is looked at by branch 1 + 3 n + the number of a's before it: 1, 4, 8, 11, 14, 18, 21, 25.
run script --around vowel --context 1 --top 6 $trace
cat >want <<END
$(sed -n 1,3p all)
$(sed -n 4,6p all)
END
[ $status -eq 0 ] && cmp -s want out
verdict 'script --around: what is next to each other is not divided' $?
run script --around scan --context 2 $trace
[ $status -eq 0 ] && head -n 3 all | cmp -s - out
verdict 'script --around: at the start of a trace; exit, which stands before the function, does not enter it' $?
target=$(awk '$8 == "jcc" { print $6; exit }' all) # where vowel goes with an a: branches 5, 15 and 22
run script --around "$target" --context 1 $trace
{ sed -n 5,7p all; echo --; sed -n 15,17p all; echo --; sed -n 22,24p all; } >want
awk -v to="$target" '$6 == to { print $2 }' all | tr '\n' ' ' | grep -qx '5 15 22 ' && [ $status -eq 0 ] && cmp -s want out
verdict 'script --around ADDRESS --context' $?
run script --around vowel --context 0 $trace
[ $status -eq 0 ] && awk '$7 == "vowel+0x0"' all | cmp -s - <(grep -v '^--$' out)
verdict 'script --around --context 0' $?
run script --around vowel --context 3 --kind ret $trace
[ $status -eq 0 ] && grep ' ret$' all | cmp -s - <(grep -v '^--$' out)
verdict 'script --around with a filter' $?

# ---- fields ----

run script -F thread,number,from,from_sym,to,to_sym,kind $trace
sed 's/ -> / /' all | cmp -s - out
verdict 'script -F: the fields of the common line' $?
run script -F module,to_module,flags,cpl,name,process,tid --top 1 $trace
[ $status -eq 0 ] && grep -qxE 'scan scan - 3->3 scan ([0-9]+) \1' out
verdict 'script -F: module, flags, cpl, name, process, tid' $?
run script --no-symbols -F from,from_sym,module --top 1 $trace
[ $status -eq 0 ] && grep -qx '0x[0-9a-f]* - -' out
verdict 'script -F --no-symbols' $?
run script --json -F number,from,kind,insn,flags,from_line $trace
python3 -c 'import json
rows = [json.loads(line) for line in open("out")]
lines = [line.split() for line in open("all")]
assert len(rows) == len(lines)
for row, line in zip(rows, lines):
    assert list(row) == ["type", "number", "from", "kind", "insn", "flags", "from_line"]
    assert (row["number"], row["from"], row["kind"]) == (int(line[1]), line[2], line[7])
    assert row["flags"] == [] and row["from_line"] is None
    assert row["insn"].split()[0] == {"jcc": "jz"}.get(row["kind"], row["kind"])'
verdict 'script -F --json' $?

# Lines, against addr2line.
cat >lines.c <<'END'
static volatile int sum;
__attribute__((noinline)) void add(int number)
{
  if (number & 1)
    sum += number;
}
int main(void)
{
  for (int i = 0; i < 10; i++)
    add(i);
  return 0;
}
END
gcc -g -O1 -no-pie -o lines lines.c && "$lbr" record --quiet -o lines.lbr ./lines
run script --function add -F from,from_line lines.lbr
[ $status -eq 0 ] && [ "$(wc -l <out)" -ge 20 ] && while read -r from line; do
  [ "$(basename "$(addr2line -e lines "$from" | sed 's/ .*//')")" = "$line" ] || echo "$from $line"
done < <(grep -v '^0x7' out | sort -u) | cmp -s - /dev/null
verdict 'script -F from_line: as addr2line has it' $?

# A place in a file, in each spelling. The address is that of nm; main calls add ten times, as the source says. Without
# symbols no file is opened: places are then offsets, as readelf has them.
address=0x$(nm lines | sed -n 's/^0*\([0-9a-f]*\) T add$/\1/p')
offset=$(python3 - "$(nm lines | sed -n 's/ T add$//p')" <<'END'
import re, subprocess, sys
address = int(sys.argv[1], 16)
for line in subprocess.run(["readelf", "-lW", "lines"], capture_output=True, text=True, check=True).stdout.splitlines():
    match = re.match(r" *LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)", line)
    if match and 0 <= address - int(match[2], 16) < int(match[3], 16):
        print(hex(address - int(match[2], 16) + int(match[1], 16)))
END
)
"$lbr" report --no-symbols --by edge --top all lines.lbr >places
for place in "[lines]+$address" "lines+$address" "lines:$address"; do
  run script --to "$place" lines.lbr
  [ $status -eq 0 ] && [ "$(wc -l <out)" -eq 10 ]
  verdict "script --to ${place%%0x*}ADDRESS" $?
  run script --around "$place" --context 1 lines.lbr
  [ $status -eq 0 ] && [ "$(grep -c ' call$' out)" -eq 10 ]
  verdict "script --around ${place%%0x*}ADDRESS" $?
  run replay --cpu haswell --at "$place:10" lines.lbr
  [ $status -eq 0 ]
  one=$?
  run replay --cpu haswell --at "$place:11" lines.lbr
  [ $one -eq 0 ] && [ $status -ne 0 ] && complained '10 times, not 11'
  verdict "replay --at ${place%%0x*}ADDRESS:NTH" $?
done
grep -qF -- " lines+$offset" places
verdict 'report --no-symbols prints such a place with the offset in the file' $?

# ---- C++ ----

cat >name.cc <<'END'
namespace space { __attribute__((noinline)) int work(int number) { asm volatile(""); return number + 1; } }
int main() { return space::work(0) + space::work(1) - 3; }
END
g++ -O1 -o name name.cc && "$lbr" record --quiet -o name.lbr ./name
for name in space::work 'space::work(int)' _ZN5space4workEi; do
  run script --kind call --to "$name" name.lbr
  [ $status -eq 0 ] && [ "$(wc -l <out)" -eq 2 ]
  verdict "script --to '$name'" $?
done

# ---- threads ----

if "$lbr" record --quiet -o threads.lbr "$programs/threads-static" >/dev/null; then
  trace=threads.lbr
  "$lbr" script $trace >all
  chosen 'script --thread with --kind' '$1 == 1 && $0 ~ / call$/' --thread 1 --kind call
  run script --kind ret --tail 5 $trace
  for thread in $(awk '{ print $1 }' all | sort -nu); do
    awk -v thread="$thread" '$1 == thread && $NF == "ret"' all | tail -n 5
  done | cmp -s - out
  verdict 'script --tail with a filter: of each thread' $?
fi

# ---- what makes no sense, or finds nothing ----

refuses()
{
  want=$1 words=$2
  shift 2
  run script "$@"
  [ $status -eq "$want" ] && silent && complained "$words"
  verdict "script $*: $words" $?
}
trace=scan.lbr
refuses 1 'no branch matches' --function nosuch $trace
refuses 1 'no branch matches' --around nosuch $trace
refuses 1 'no branch matches' --kind iret --tail 5 $trace
refuses 2 "no kind 'goto'" --kind jcc,goto $trace
refuses 2 "no field 'colour'; the fields are: thread" -F colour $trace
refuses 2 "the field 'to' is named twice" -F to,from,to $trace
refuses 2 'is before its start' --from 0x20..0x10 $trace
refuses 2 '--no-symbols excludes options' --no-symbols --function scan $trace
refuses 2 '--tail and --around' --tail 3 --around scan $trace
refuses 2 '--context needs --around' --context 3 $trace
# ---- how far it is ----

cat >loop.c <<'END'
int main(void) { for (volatile int i = 0; i < 20000000; i++) ; return 0; }
END
gcc -O1 -o loop loop.c
"$lbr" record --quiet -o loop.lbr ./loop
script -qec "$lbr script --no-symbols loop.lbr >/dev/null" /dev/null >out 2>&1 </dev/null
said 'million branches, '
verdict 'into a file: the terminal shows how far it is' $?
script -qec "$lbr script --no-symbols loop.lbr | tail -n 1" /dev/null >out 2>&1 </dev/null
! said 'million branches' && said 'syscall'
verdict 'into a pipe: the terminal belongs to who reads it' $?

exit "$((failures != 0))"
