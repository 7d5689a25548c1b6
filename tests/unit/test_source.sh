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

[ ! -e "$scratch/failed" ]
