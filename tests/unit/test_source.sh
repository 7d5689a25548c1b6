#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_source.sh LBR FOLDER SOURCES: the other sources of lbr record. Made-up hardware (FOLDER/hardware_record), which says
# as BTS and as Intel PT what the oracle steps, and the block-step source with single steps in its place
# (FOLDER/step_record), must come to the oracle's lists; the real ones, if this machine has them, too; and what cannot be
# used says why.
. "$(dirname "$0")/shell.sh"
folder=$(realpath "$2")
compare=$(realpath "$3")/compare

"$folder/oracle" "$scratch/list" /bin/true 2>"$scratch/err"
if [ $? -eq 126 ]; then
  cat "$scratch/err"
  exit 77
fi

ln -s "$folder/hardware_record" "$scratch/record-bts"
ln -s "$folder/hardware_record" "$scratch/record-pt"
ln -s "$folder/hardware_record" "$scratch/record-quiet"
ln -s "$folder/step_record" "$scratch/record-step"

# one RECORDER PROGRAM: as the oracle lists it.
one()
{
  if "$compare" "$scratch/record-$1" "$folder/oracle" --by-path "$folder/$2" >"$scratch/out" 2>&1; then
    echo "ok $1: $2"
  else
    sed 's/^/  /' "$scratch/out"
    echo "FAIL $1: $2"
    touch "$scratch/failed"
  fi
}

recorders='bts step'
if "$lbr" record --source pt -o "$scratch/trace" /bin/true 2>&1 | grep -q 'without libipt'; then
  echo "ok pt: not looked at, since this lbr was built without libipt"
else
  recorders="$recorders pt"
fi
for recorder in $recorders; do
  for program in kinds process; do
    one "$recorder" "$program"
  done
done
for program in thread modify die; do
  one step "$program"
done
for program in table thread signal; do
  case $recorders in *pt*) one pt "$program" ;; esac
done
one step hello-static
one quiet kinds # BTS as under Linux, which does not show the ways out of the kernel

# ---- lbr run: the report of stepping is that of the software source ----

cd "$scratch" || exit 1
# report SOURCE ARGUMENT...: without what differs between two runs, and the command line, which stepping does not look for.
report()
{
  "$lbr" run --source "$1" --json --always --tail 20 -- "$folder/die" "${@:2}" 2>&1 |
    sed 's/"process": [0-9]*/"process": P/; s/"thread": [0-9]*/"thread": T/; s/"rsp": "[^"]*"/"rsp": S/
      s/"command": [^,]*/"command": C/'
}
export LBR_SINGLE_STEPS=1
for words in '' '1' '1 2 3' '1 2 3 4 5 6 7 8' '1 2 3 4 5 6 7 8 9'; do
  # shellcheck disable=SC2086
  report block-step $words >stepped && report software $words >cached && [ -s cached ] && cmp stepped cached
  verdict "run --source block-step die $words: the same report" $?
done
run record --source block-step -o steps.lbr "$folder/kinds"
[ $status -eq 0 ] && complained 'by block-step' && [ "$("$lbr" stat steps.lbr | sed -n 's/^  recorder *//p')" = block-step ] &&
  "$lbr" report steps.lbr | grep -q 'exact counts, not samples' && "$lbr" script --no-symbols steps.lbr >script &&
  [ "$(wc -l <script)" -eq 31 ]
verdict 'record --source block-step: which source it was, and every branch' $?
run record --source block-step --limit 1 -o limit.lbr "$folder/kinds"
[ $status -eq 0 ] && complained 'reached its size limit' && "$lbr" script limit.lbr | grep -q '^gap: .*(lost)'
verdict 'record --source block-step --limit: the program runs on' $?
run record --source block-step -o none.lbr "$folder/compare-nothing"
[ $status -eq 127 ] && ! [ -e none.lbr ]
verdict 'record --source block-step: no such program' $?
unset LBR_SINGLE_STEPS

# ---- what this machine has ----

run record --source auto -o auto.lbr "$folder/kinds"
[ $status -eq 0 ] && complained 'source: ' && "$lbr" stat auto.lbr | grep -qE '^  recorder *(pt|software)$'
verdict 'record --source auto says which it is, and the trace, too' $?
run record --source auto --quiet -o auto.lbr "$folder/kinds"
[ $status -eq 0 ] && ! [ -s err ]
verdict 'record --source auto --quiet' $?
"$lbr" cpu --json >cpu.json 2>/dev/null
for source in lbr bts pt block-step; do
  if python3 -c 'import json, sys; sys.exit(not [1 for row in json.load(open("cpu.json"))["recording"]["sources"]
    if row["name"] == sys.argv[1] and row["usable"]])' $source; then
    run record --source $source -o real.lbr "$folder/kinds"
    [ $status -eq 0 ] && "$lbr" stat real.lbr >stat && { [ $source = lbr ] || grep -q '^  branches *31$' stat; }
    verdict "$source: the real one" $?
  else
    rm -f real.lbr
    run record --source $source -o real.lbr "$folder/kinds"
    [ $status -eq 125 ] && complained "--source $source is not usable here: " && ! [ -e real.lbr ] && ! [ -e real.lbr.incomplete ] &&
      run run --source $source "$folder/kinds" && [ $status -eq 125 ] && complained "--source $source is not usable here: "
    verdict "$source: it is not here, and nothing is recorded in its place" $?
  fi
done
run record --source lbR /bin/true
[ $status -eq 2 ] && complained "no source 'lbR'"
verdict 'record --source lbR' $?
run record --period 1000 /bin/true
[ $status -eq 2 ] && complained 'are for --source lbr'
verdict 'record --period without --source lbr' $?
run record --source lbr --period 5 /bin/true
[ $status -eq 2 ] && complained '--period wants a number from 100'
verdict 'record --period 5' $?

[ ! -e "$scratch/failed" ] && [ "$failures" -eq 0 ]
