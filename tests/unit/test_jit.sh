#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_jit.sh LBR FOLDER [NAME]...: virtual machines that compile code while several threads run it, each many times under
# `lbr run` and `lbr record`: the same output and end as natively, every time, and a trace that can be read to its end. The
# programs are in FOLDER. Then as many times in one recording, where each begins with the translations of an earlier one.
# With NAME only those. TIMES says how often, MODES="run record" under which commands.
. "$(dirname "$0")/shell.sh"
folder=$(realpath "$2")
shift 2
only=" $* "
times=${TIMES:-10}
modes=${MODES:-run record}
clean=(env -i PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 LC_ALL=C.UTF-8 HOME="$scratch")
cd "$scratch" || exit 1

# outcome COMMAND...: runs it; output and errors in out and err. timeout ends all that it started.
outcome()
{
  ("${clean[@]}" timeout -s KILL 300 "$@" </dev/null >out 2>err) 2>/dev/null
  status=$?
}

# once MODE COMMAND...: sets problem, empty if all was as natively.
once()
{
  mode=$1
  shift
  problem=
  rm -f trace*
  case $mode in
  run) outcome "$lbr" run --output report -- "$@" ;;
  record) outcome "$lbr" record --quiet --output trace -- "$@" ;;
  esac
  [ $status -eq 0 ] || problem="status $status"
  cmp -s out.native out || problem="$problem; other output"
  cmp -s err.native err || problem="$problem; other errors"
}

# all_at_once COMMAND...: all runs in one recording. Sets problem.
all_at_once()
{
  problem=
  rm -f trace*
  # shellcheck disable=SC2016 # for the inner shell
  outcome "$lbr" record --quiet --output trace -- sh -c 'i=$1; shift; while [ $i -gt 0 ]; do "$@" || exit; i=$((i - 1)); done' \
    sh "$times" "$@"
  [ $status -eq 0 ] || problem="status $status"
  for ((i = 1; i <= times; i++)); do cat out.native; done | cmp -s - out || problem="$problem; other output"
  for ((i = 1; i <= times; i++)); do cat err.native; done | cmp -s - err || problem="$problem; other errors"
}

# The trace has all branches. Once is enough: reading takes longer than recording.
whole()
{
  "$lbr" stat --no-symbols --json trace >stat 2>err && grep -q '"gaps": \[\]' stat
}

# same NAME COMMAND...: under all modes, many times.
same()
{
  [[ -z ${only// /} || $only == *" $1 "* ]] || return
  if ! command -v "$2" >/dev/null; then
    echo "skip $1: no $2"
    return
  fi
  outcome "${@:2}"
  if [ $status -ne 0 ]; then
    echo "skip $1: natively its status is $status"
    return
  fi
  cp out out.native
  cp err err.native
  for one in $modes; do
    for ((i = 1; i <= times; i++)); do
      once "$one" "${@:2}"
      [ -z "$problem" ] || break
    done
    [ "$one" = run ] || [ -n "$problem" ] || whole || problem='the trace is not whole'
    [ -z "$problem" ]
    verdict "$one $1${problem:+: run $i: ${problem#; }}" $?
    [ -z "$problem" ] || head -n 12 err | cut -c 1-200 | sed 's/^/  /'
  done
  [ "$times" -gt 1 ] || return
  all_at_once "${@:2}"
  [ -n "$problem" ] || whole || problem='the trace is not whole'
  [ -z "$problem" ]
  verdict "$times times in one recording: $1${problem:+: ${problem#; }}" $?
}

java=(java -Xmx256m -cp .)
command -v javac >/dev/null && javac -d . "$folder/Pool.java"
same java-parallel "${java[@]}" -XX:+UseParallelGC Pool
same java-g1 "${java[@]}" -XX:+UseG1GC Pool
same java-serial "${java[@]}" -XX:+UseSerialGC Pool
same java-z "${java[@]}" -XX:+UseZGC Pool
same java-interpreter "${java[@]}" -Xint Pool
same node node "$folder/workers.js"
same pypy pypy3 "$folder/threads.py"
same luajit luajit "$folder/loops.lua"

# A cache that is full again and again while all of that goes on.
times=1
clean+=(LBR_CACHE_SIZE=8000000)
same java-small-cache "${java[@]}" -XX:+UseParallelGC Pool
same node-small-cache node "$folder/workers.js"
exit "$((failures != 0))"
