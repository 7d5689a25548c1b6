# SPDX-License-Identifier: Apache-2.0
# What the tests of the command line share; to be sourced. $1 is the program under test.
set -u
lbr=$(realpath "$1")
export LBR=$lbr
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
export TERM=xterm
unset NO_COLOR DEBUGINFOD_URLS

# excerpt FILE: the beginning of an output, indented.
excerpt()
{
  [ -s "$1" ] || { echo "  | (empty)" && return; }
  head -n 15 "$1" | cut -c 1-300 | sed 's/^/  | /'
  [ "$(wc -l <"$1")" -le 15 ] || echo "  | ..."
}

# What the last command was that run() ran, and what came of it.
last_command=
explain()
{
  [ -n "$last_command" ] || return 0
  echo "  last: lbr $last_command"
  echo "  status $status, standard output:"
  excerpt "$scratch/out"
  echo "  standard error:"
  excerpt "$scratch/err"
}

# verdict NAME STATUS: prints the result of one test.
verdict()
{
  if [ "$2" -eq 0 ]; then
    echo "ok $1"
  else
    echo "FAIL $1"
    explain
    failures=$((failures + 1))
  fi
}

# run ARGUMENT...: leaves the exit status in $status, the output in the files out and err. Input comes from the file in.
: >"$scratch/in"
run()
{
  last_command="$*"
  "$lbr" "$@" >"$scratch/out" 2>"$scratch/err" <"$scratch/in"
  status=$?
}

said() { grep -qF -- "$1" "$scratch/out"; }
complained() { grep -qF -- "$1" "$scratch/err"; }
silent() { ! [ -s "$scratch/out" ]; }

# settled FILE: waits until its last change is a while ago. The recorder takes only such a file for unchanged.
settled() { until [ "$(find "$1" -newerct '-0.1 seconds' | wc -l)" -eq 0 ]; do sleep 0.02; done; }

# await COMMAND...: until it succeeds, for a minute at least, since the machine may be busy.
await()
{
  for _ in $(seq 1200); do
    "$@" && return 0
    sleep 0.05
  done
  return 1
}
