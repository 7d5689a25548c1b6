#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_main.sh LBR: what lbr does before and after its commands: finding them, help, version, exit status, and whether
# the output was really written; lbr sim as a command (its rules are tests/recorder); completion.
. "$(dirname "$0")/shell.sh"
root=$(realpath "$(dirname "$0")/../..")

run
[ $status -eq 2 ] && complained "'lbr help' lists the commands" && ! [ -s "$scratch/out" ]
verdict 'no command is a usage error' $?

run --version
[ $status -eq 0 ] && grep -qE '^lbr [0-9]+\.[0-9]+\.[0-9]+$' "$scratch/out"
verdict 'version' $?

run help
[ $status -eq 0 ] && said 'lbr cpu' && said 'lbr decode' && said 'lbr encode' && said 'lbr sim' && said 'lbr machine' && said 'lbr run' && said 'lbr record' && said 'lbr script' && said 'lbr stat' && said 'lbr lab' && said 'lbr help'
verdict 'help lists every command' $?
cp "$scratch/out" "$scratch/list"

for word in --help -h; do
  run $word
  [ $status -eq 0 ] && cmp -s "$scratch/list" "$scratch/out"
  verdict "$word is help" $?
done

for command in cpu decode encode sim machine script stat lab help; do
  run $command --help
  [ $status -eq 0 ] && said "Usage: lbr $command"
  verdict "$command --help" $?
  cp "$scratch/out" "$scratch/usage"
  run $command -h
  [ $status -eq 0 ] && cmp -s "$scratch/usage" "$scratch/out"
  verdict "$command -h" $?
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
[ $status -eq 2 ] && complained 'name one command'
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

# ---- lbr sim ----

cat >"$scratch/good.rec" <<'END'
title One jump
cpu westmere
wrmsr DEBUGCTL 1
branch jmp 0x1000 0x2000
expect used 1
END
sed 's/used 1/used 2/' "$scratch/good.rec" >"$scratch/bad.rec"
grep -v '^cpu' "$scratch/good.rec" >"$scratch/any.rec"

run sim "$scratch/good.rec"
[ $status -eq 0 ] && [ "$(head -n 1 "$scratch/out")" = 'One jump' ] && said 'on westmere:' &&
  said 'expectations: 1, all hold'
verdict 'sim: a rule that holds' $?

run sim "$scratch/bad.rec"
[ $status -eq 1 ] && said "$scratch/bad.rec:5: expected: used 2" &&
  [ "$(grep -o '^.*expected:' "$scratch/out" | wc -c)" -eq "$(grep -o '^ *got:' "$scratch/out" | wc -c)" ]
verdict 'sim: a rule that does not hold' $?

run sim --check "$scratch/good.rec" "$scratch/bad.rec" "$scratch/none.rec"
[ $status -eq 1 ] && said "ok $scratch/good.rec" && said "FAIL $scratch/none.rec: No such file" &&
  said "FAIL $scratch/bad.rec: line 5: on westmere, expected: used 2; got: 1" && ! [ -s "$scratch/err" ]
verdict 'sim --check: a line for each file' $?

run sim "$scratch/good.rec" "$scratch/any.rec" "$scratch/good.rec"
[ $status -eq 1 ] && [ "$(grep -cx "$scratch/good.rec: One jump" "$scratch/out")" -eq 2 ] && complained 'name one with --cpu' &&
  ! said "$scratch/any.rec"
verdict 'sim: several files say which is which' $?

run sim --cpu skylake "$scratch/any.rec"
[ $status -eq 0 ] && said 'on skylake:' && ! said 'written for other CPUs'
verdict 'sim --cpu: a file without CPUs' $?

run sim --cpu skylake "$scratch/bad.rec"
[ $status -eq 0 ] && said 'written for other CPUs' && said 'expected: used 2'
verdict 'sim --cpu: a difference on another CPU is no failure' $?

run sim --cpu skylake --check "$scratch/bad.rec"
[ $status -eq 1 ] && said 'FAIL'
verdict 'sim --cpu --check: there it is' $?

run sim --json "$scratch/good.rec" "$scratch/good.rec"
cp "$scratch/out" "$scratch/json"
python3 -c 'import json, sys
text = sys.stdin.read()
one, end = json.JSONDecoder().raw_decode(text)
assert one == json.loads(text[end:]) and one["entries"][0]["to"] == "0x2000"' <"$scratch/json" && [ $status -eq 0 ] &&
  complained 'One jump' && run sim --format json "$scratch/good.rec" "$scratch/good.rec" && cmp -s "$scratch/json" "$scratch/out"
verdict 'sim --json: one object for each, the rest on stderr' $?

cp "$scratch/good.rec" "$scratch/in"
run sim -
[ $status -eq 0 ] && said 'all hold'
verdict 'sim -: standard input' $?
echo nonsense >"$scratch/in"
run sim -
[ $status -eq 1 ] && silent && complained "stdin: line 1: 'nonsense'"
verdict 'sim -: a line that is not a statement' $?
: >"$scratch/in"

run sim "$scratch"
[ $status -eq 1 ] && silent && complained "$scratch: Is a directory"
verdict 'sim: a directory' $?

for arguments in '' '--cpu nonesuch' '--format xml'; do
  # shellcheck disable=SC2086 # several words
  run sim $arguments ${arguments:+"$scratch/good.rec"}
  [ $status -eq 2 ] && silent
  verdict "sim $arguments: a usage error" $?
done

# ---- completion ----

# offers WORD... -- CHOICE...: completing the words must offer just these.
offers()
{
  COMP_WORDS=()
  while [ "$1" != -- ]; do
    COMP_WORDS+=("$1")
    shift
  done
  shift
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _lbr
  [ "${COMPREPLY[*]}" = "$*" ]
}

# shellcheck source=/dev/null
source "$root/tools/completion/lbr.bash"
PATH=${lbr%/*}:$PATH
offers lbr decode deb -- debugctl && offers lbr encode MSR_LBR_S -- MSR_LBR_SELECT &&
  offers lbr decode -c p6 lastb -- lastbranchfromip lastbranchtoip && offers lbr encode --cpu = p6 debug -- debugctlmsr
verdict 'completion: registers' $?
offers lbr sim -c sandyb -- sandybridge && offers lbr sim --format=w -- --format=windbg --format=windbg-old &&
  offers lbr decode bts "$scratch/goo" -- "$scratch/good.rec" && offers lbr sim --check "$scratch/ba" -- "$scratch/bad.rec" &&
  offers lbr script --tail 3 "$scratch/goo" -- "$scratch/good.rec" && offers lbr stat "$scratch/goo" -- "$scratch/good.rec"
verdict 'completion: CPUs, formats, files' $?
offers lbr decode '' -- "${COMPREPLY[@]}"
for name in "${COMPREPLY[@]:3}"; do
  run decode --cpu skylake "$name" 0
  [ $status -eq 0 ] || break
done
verdict 'completion: lbr decode takes what is offered' $status

# ---- stdout: a pipe, a terminal, a full disk ----

for arguments in 'cpu' 'cpu --list' 'cpu skylake' 'cpu nehalem' 'decode --cpu skylake debugctl 1'; do
  # shellcheck disable=SC2086
  run $arguments
  [ $status -eq 0 ] && ! silent && ! grep -q $'\033' "$scratch/out" && ! grep -q ' $' "$scratch/out"
  verdict "no escape codes in a pipe: $arguments" $?
  [ "$arguments" = 'cpu --list' ] || ! grep -qE '.{121}' "$scratch/out"
  verdict "no line is longer than 120: $arguments" $?
done

# terminal ARGUMENT...: lbr at a terminal of $columns columns.
terminal()
{
  # shellcheck disable=SC2016 # the inner shell expands it
  python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]))' \
    sh -c 'stty cols "$1"; shift; exec "$@"' sh "$columns" "$lbr" "$@" </dev/null | tr -d '\r' >"$scratch/out"
}
columns=100
terminal cpu skylake && grep -q $'\033\[1m' "$scratch/out"
verdict 'escape codes at a terminal' $?
export NO_COLOR=1
terminal cpu skylake && said LBR_SELECT && ! grep -q $'\033' "$scratch/out"
verdict 'no escape codes with NO_COLOR' $?
for columns in 70 80; do
  terminal decode --cpu westmere lbr_select 0x240 && said 'faulting bits' && ! grep -qE ".{$((columns + 1))}" "$scratch/out"
  verdict "lines end at the edge of a terminal of $columns columns" $?
done
columns=60
terminal decode --cpu westmere lbr_select 0 && ! grep -qE '.{61}' "$scratch/out" &&
  tr -s '\n ' '  ' <"$scratch/out" | grep -qF 'leave out far branches, interrupts and exceptions'
verdict 'lines are broken in a terminal that is narrower than the columns of a table, too' $?

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
