#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_compare.sh LBR ORACLE SOURCES FOLDER NAME...: `lbr record` against single steps, branch by branch and thread by
# thread (SOURCES/compare): programs without libc (NAME.S in SOURCES, in all the ways they are run), programs with libc,
# and cases of the programs in FOLDER/cases that take the same way in every run. Two at a time.
. "$(dirname "$0")/shell.sh"
oracle=$(realpath "$2")
sources=$(realpath "$3")
folder=$(realpath "$4")
shift 4

"$oracle" "$scratch/list" /bin/true 2>"$scratch/err"
if [ $? -eq 126 ]; then
  cat "$scratch/err"
  exit 77
fi

# One line for each run: what compare gets.
{
  for name in "$@"; do
    sed -n 's|^/\* Run\([^:]*\): status .*|\1|p' "$sources/$name.S" | sed "s|^|$folder/$name|"
  done
  for name in kinds-pie signal-pie table-pie crash-static dispatch-static hello-dynamic hello-dynamic-no-pie \
    hello-static hello-static-pie jit-static jump-static recursion-static-pie signals-static spawn-static; do
    echo "$folder/$name"
  done
  while read -r program names; do
    for name in $names; do
      echo "$folder/cases/$program-static $name"
    done
  done <<'END'
code protect in-place two-mappings by-kernel ahead loop replaced moved taken-away dropped trampolines boundary called few-phases
death abort jump-to-data in-handler reported bad-return
fault memory string bus registers illegal breakpoint privileged jump noncanonical float trap-flag
process fork deep-forks wide-numbers
signal nested resethand pending frame-mask realtime onstack restart-alarm suspend-blocked wait leave
state frame flags alignment
END
  # A cache that is full every few paths.
  for words in kinds signal thread process modify jit-static signals-static 'cases/code-static in-place' \
    'cases/signal-static nested' 'cases/process-static fork'; do
    echo "--env LBR_CACHE_SIZE=4000 $folder/$words"
  done
  # The code for processors without the instructions that the runtime uses where it can.
  for words in kinds kinds-pie signal-pie table-pie hello-dynamic jit-static recursion-static-pie signals-static \
    'cases/code-static trampolines' 'cases/signal-static nested'; do
    echo "--env LBR_PLAIN_CODE=1 $folder/$words"
  done
  # The recorder does not register restartable sequences: libc goes another way.
  for words in 'state-static cpu-number' 'thread-static in-order' \
    'signal-static pending-thread'; do
    echo "--env GLIBC_TUNABLES=glibc.pthread.rseq=0 $folder/cases/$words"
  done
} >"$scratch/runs"

xargs -P 2 -L 1 "$sources/compare" "$lbr" "$oracle" <"$scratch/runs"
failures=$?
exit "$((failures != 0))"
