#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_random.sh LBR ORACLE SOURCES [FIRST LAST]: random programs (SOURCES/random-program), numbers FIRST to LAST. Their
# branches under `lbr record` must be those of single steps, also while signals come at any instruction, and with a cache
# so small that what was translated is given up every few paths; and what they compute must be right when they run longer
# than anybody can step them. What is counted of their traces must be what is in them. One program more has so many
# paths, on so many pages, that the tables of both grow.
. "$(dirname "$0")/shell.sh"
oracle=$(realpath "$2")
sources=$(realpath "$3")
first=${4:-1}
last=${5:-8}
cd "$scratch" || exit 1

"$oracle" list /bin/true 2>err
if [ $? -eq 126 ]; then
  cat err
  exit 77
fi

# build NAME NUMBER [FACTOR]
build() { "$sources/random-program" "${@:2}" >"$1.S" && gcc -nostdlib -static -Wl,--build-id=none -o "$1" "$1.S"; }

# check NAME COMMAND...: what it says if it fails.
check()
{
  name=$1
  shift
  "$@" >out 2>&1
  result=$?
  verdict "$name" $result
  [ $result -eq 0 ] || head -n 30 out
}

# counted FILE, given FILE: each edge of a trace and how often it was taken, as `lbr stat` counts it, many entries at a
# time, and as `lbr script` gives it, branch by branch.
counted()
{
  "$lbr" stat --no-symbols --top all "$1" |
    sed -n '/^Edges/,$ s/^ *\([0-9]\+\) .* \(0x[0-9a-f]\+\)[^>]*-> \(0x[0-9a-f]\+\).*/\1 \2 \3/p' | sort
}
given()
{
  "$lbr" script --no-symbols "$1" | awk '{ n[$3 " " $5]++ } END { for (edge in n) print n[edge], edge }' | sort
}

# check_counts NAME PROGRAM
check_counts()
{
  "$lbr" record --quiet -o counts.lbr "./$2" >/dev/null
  counted counts.lbr >counts
  given counts.lbr >want
  check "$1" diff want counts
  [ -s want ] || verdict "$1: there are edges" 1
}

for number in $(seq "$first" "$last"); do
  build short "$number"
  check "$number: the branches of single steps" "$sources/compare" "$lbr" "$oracle" "$scratch/short"
  check "$number: the same between signals" "$sources/compare" "$lbr" "$oracle" --storm x "$scratch/short"
  check "$number: a small cache" "$sources/compare" "$lbr" "$oracle" --env LBR_CACHE_SIZE=1 "$scratch/short"
  check "$number: a small cache, between signals" \
    "$sources/compare" "$lbr" "$oracle" --env LBR_CACHE_SIZE=10000 --storm x "$scratch/short"
  check "$number: code for other processors, a small cache" "$sources/compare" "$lbr" "$oracle" --env LBR_PLAIN_CODE=1 \
    --env LBR_CACHE_SIZE=10000 "$scratch/short"
  build long "$number" 50
  ./long >want
  "$lbr" run -- ./long x >got 2>&1
  check "$number: what it computes, with signals" diff want got
  LBR_CACHE_SIZE=20000 "$lbr" run -- ./long x >got 2>&1
  check "$number: what it computes, with a small cache" diff want got
  build longer "$number" 1000
  check_counts "$number: the counts are those of its branches" longer
done

# Each indirect jump begins a path; the second round finds them all.
cat >wide.S <<'END'
  .globl _start
_start:
  mov $2, %ebx
again:
  .rept 20000
  lea 1f(%rip), %rax
  jmp *%rax
  .balign 64
1:
  .endr
  dec %ebx
  jnz again
  mov $231, %eax
  xor %edi, %edi
  syscall
END
gcc -nostdlib -static -Wl,--build-id=none -o wide wide.S
check 'twenty thousand paths on three hundred pages' "$sources/compare" "$lbr" "$oracle" "$scratch/wide"
check 'the same with a small cache' "$sources/compare" "$lbr" "$oracle" --env LBR_CACHE_SIZE=2000000 "$scratch/wide"
check_counts 'the counts are those of its branches' wide
exit "$((failures != 0))"
