#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_oracle.sh ORACLE SOURCES FOLDER NAME...: the oracle of the process recorder against what programs without libc
# (NAME.S in SOURCES, built in FOLDER) say of themselves, against gdb's stepi, and against programs with libc: it must
# change nothing of what they do, list the same in each run, and leave no gap that a branch could be missing from.
. "$(dirname "$0")/shell.sh"
oracle=$lbr
sources=$2
folder=$(realpath "$3")
shift 3

"$oracle" "$scratch/list" /bin/true 2>"$scratch/err"
if [ $? -eq 126 ]; then
  cat "$scratch/err"
  exit 77
fi

# The programs that say what they execute, some of them as PIE too.
for program in "$@" kinds-pie signal-pie table-pie; do
  "$sources/check-program" "$sources/${program%-pie}.S" "$folder/$program" "$oracle" 2>&1 || failures=$((failures + 1))
done

# gdb_list PROGRAM: the same list by gdb: where each stepi led, and what gdb's disassembler says of the instruction.
gdb_list()
{
  # shellcheck disable=SC2016 # $pc is gdb's
  printf '%s\n' 'set pagination off' 'set confirm off' 'set width 0' starti 'while 1' 'x/2i $pc' stepi end \
    >"$scratch/steps"
  env -i "$gdb" -nx -nh -batch -x "$scratch/steps" "$1" </dev/null 2>/dev/null | python3 -c '
import re, sys
kinds = (("loop|j[er]?cxz", "jcc"), ("jmp +\\*", "jmp_ind"), ("jmp", "jmp"), ("j", "jcc"), ("call +\\*", "call_ind"),
         ("call", "call"), ("(repz )?ret", "ret"), ("lret", "retf"), ("iret", "iret"), ("ljmp", "jmp_far"),
         ("lcall", "call_far"), ("syscall", "syscall"), ("int ", "int"))
lines = re.findall(r"^(=>)? *0x([0-9a-f]+)[^:\n]*:\t(.*)$", sys.stdin.read(), re.M)
steps = [(int(line[1], 16), int(after[1], 16), line[2]) for line, after in zip(lines, lines[1:]) if line[0]]
ends = [step[0] for step in steps[1:]] + [steps[-1][1]] # exit never comes back
for (at, behind, text), to in zip(steps, ends):
    kind = next((word for pattern, word in kinds if re.match(pattern, text)), None)
    if kind and (to != behind or kind != "jcc"):
        print(f"1 {at:#x} {to:#x} {kind}")
'
}
gdb=$(command -v gdb)
if [ -n "$gdb" ]; then
  for program in far kinds table; do
    gdb_list "$folder/$program" >"$scratch/gdb"
    env -i "$oracle" "$scratch/list" "$folder/$program"
    # What gdb cannot tell: a conditional branch that is taken to the next instruction.
    hidden=$(nm "$folder/$program" | awk '$3 == "to_next" { sub("^0*", "", $1); print "0x" $1 }')
    grep -v '^#' "$scratch/list" | grep -v "^1 ${hidden:-none} " >"$scratch/ours"
    [ -s "$scratch/gdb" ] && diff "$scratch/gdb" "$scratch/ours"
    verdict "gdb steps $program the same way" $?
  done
else
  echo "skip gdb: not installed"
fi

# continuous LIST: within a thread each branch leaves from behind where the last one led.
continuous()
{
  python3 - "$1" <<'END'
import sys
at = {}
for line in open(sys.argv[1], encoding="utf-8"):
    words = line.split()
    if words[0] == "#":
        if words[2:3] and words[2] in ("exec", "fork", "vfork", "clone"):
            at[words[1]] = int(words[-1], 16)
        continue
    source, target = int(words[1], 16), int(words[2], 16)
    if not 0 <= source - at[words[0]] < 4096:
        sys.exit(f"after {at[words[0]]:#x}: {line}")
    at[words[0]] = target
END
}

# same PROGRAM ARGUMENT...: the oracle changes neither output nor status of the program, and lists the same again.
same()
{
  name=$1
  shift
  (
    env -i "$folder/$name" "$@" >"$scratch/out" 2>&1
    exit $?
  ) 2>/dev/null # without the shell's word on a crash
  status=$?
  for list in first second; do
    env -i "$oracle" "$scratch/$list" "$folder/$name" "$@" >"$scratch/traced" 2>&1
    traced=$?
    [ $status -eq $traced ] && cmp "$scratch/out" "$scratch/traced" && continuous "$scratch/$list"
    verdict "$name${*:+ $*}: as without the oracle, $list time" $?
  done
  cmp "$scratch/first" "$scratch/second"
  verdict "$name${*:+ $*}: the same branches twice" $?
}
same crash-static smash
same signals-static
exit "$((failures != 0))"
