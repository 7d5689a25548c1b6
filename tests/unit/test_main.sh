#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_main.sh LBR: what lbr does before and after its commands: finding them, help, version, exit status, and whether
# the output was really written.
set -u
lbr=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# verdict NAME STATUS: prints the result of one test.
verdict()
{
  if [ "$2" -eq 0 ]; then
    echo "ok $1"
  else
    echo "FAIL $1"
    failures=$((failures + 1))
  fi
}

# run ARGUMENT...: leaves the exit status in $status, the output in the files out and err.
run()
{
  "$lbr" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
  status=$?
}

said() { grep -qF -- "$1" "$scratch/out"; }
complained() { grep -qF -- "$1" "$scratch/err"; }

run
[ $status -eq 2 ] && complained "'lbr help' lists the commands" && ! [ -s "$scratch/out" ]
verdict 'no command is a usage error' $?

run --version
[ $status -eq 0 ] && grep -qE '^lbr [0-9]+\.[0-9]+\.[0-9]+$' "$scratch/out"
verdict 'version' $?

run help
[ $status -eq 0 ] && said 'lbr cpu' && said 'lbr decode' && said 'lbr encode' && said 'lbr sim' && said 'lbr help'
verdict 'help lists every command' $?
cp "$scratch/out" "$scratch/list"

for word in --help -h; do
  run $word
  [ $status -eq 0 ] && cmp -s "$scratch/list" "$scratch/out"
  verdict "$word is help" $?
done

for command in cpu decode encode sim help; do
  run $command --help
  [ $status -eq 0 ] && said "Usage: lbr $command"
  verdict "$command --help" $?
  cp "$scratch/out" "$scratch/usage"
  run help $command
  [ $status -eq 0 ] && cmp -s "$scratch/usage" "$scratch/out"
  verdict "help $command is $command --help" $?
  run $command --no-such-option
  [ $status -eq 2 ] && complained "lbr $command" && ! [ -s "$scratch/out" ]
  verdict "$command --no-such-option is a usage error" $?
done

run dcode
[ $status -eq 2 ] && complained "did you mean 'lbr decode'?"
verdict 'a typo gets a suggestion' $?

run dec
[ $status -eq 2 ] && complained "did you mean 'lbr decode'?"
verdict 'the beginning of a command gets the whole' $?

run help smi
[ $status -eq 2 ] && complained "did you mean 'lbr sim'?"
verdict 'a typo behind help gets a suggestion' $?

run xyzzy
[ $status -eq 2 ] && complained "no command 'xyzzy'" && ! complained 'did you mean'
verdict 'nonsense gets none' $?

run help cpu sim
[ $status -eq 2 ] && complained 'one command at a time'
verdict 'help takes one command' $?

run --no-such-option
[ $status -eq 2 ] && complained "no option '--no-such-option'"
verdict 'an unknown option is a usage error' $?

run cpu sandybrigde
[ $status -ne 0 ] && complained 'sandybridge' && complained 'lbr cpu --list'
verdict 'a mistyped CPU gets near names' $?

run cpu sandy_
[ $status -ne 0 ] && complained 'sandybridge'
verdict 'part of a CPU name gets the whole' $?

run cpu 'no such thing at all'
[ $status -ne 0 ] && complained 'lbr cpu --list' && ! complained 'near'
verdict 'a far-off CPU name gets the list' $?

if [ -w /dev/full ]; then
  for arguments in help --version 'cpu --list' 'sim --help'; do
    # shellcheck disable=SC2086 # several words
    "$lbr" $arguments >/dev/full 2>"$scratch/err" </dev/null
    [ $? -eq 1 ] && complained 'cannot write the output: No space left on device'
    verdict "a full disk is noticed: $arguments" $?
  done
else
  echo 'skip a full disk is noticed: there is no /dev/full here'
fi

exit $((failures > 0))
