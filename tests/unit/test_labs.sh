#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_labs.sh LBR: every lab on the two CPUs that it names, and all of them on every CPU of the catalogue: there a lab may
# say that the CPU lacks what it shows, but never find something else than it expects. What they expect stands in labs/*.S
# and follows from the books and the manuals.
. "$(dirname "$0")/shell.sh"

run lab list
[ $status -eq 0 ] && said '14-2' && said 'westmere'
verdict 'list' $?
cp "$scratch/out" "$scratch/list"
run lab
[ $status -eq 0 ] && cmp -s "$scratch/list" "$scratch/out"
verdict 'no name is the list' $?
run lab list --json
[ $status -eq 0 ] && python3 -m json.tool "$scratch/out" >"$scratch/json"
verdict 'list as JSON' $?

python3 -c '
import json, sys
for lab in json.load(sys.stdin)["labs"]:
    print(lab["name"], lab["cpu"])
    print(lab["name"], lab["also"])
' <"$scratch/out" >"$scratch/pairs"
[ "$(wc -l <"$scratch/pairs")" -eq $((2 * $(wc -l <"$scratch/list"))) ] && [ "$(wc -l <"$scratch/pairs")" -ge 34 ]
verdict 'every lab names two CPUs' $?
while read -r name cpu; do
  run lab "$name" --cpu "$cpu"
  [ $status -eq 0 ] && said 'Result: as expected' && ! said WRONG
  verdict "$name on $cpu" $?
  [ $status -eq 0 ] || cat "$scratch/out" "$scratch/err"
done <"$scratch/pairs"

for cpu in $("$lbr" cpu --names); do
  run lab all --cpu "$cpu"
  if complained 'no branch-recording unit'; then
    [ $status -eq 1 ]
  else
    [ $status -eq 0 ] && grep -qE '^[0-9]+ as expected, 0 different, [0-9]+ not on this CPU$' "$scratch/out"
  fi
  verdict "all on $cpu" $?
  [ $status -eq 0 ] || grep -E 'WRONG|NG$|^----|unexpected' "$scratch/out" | grep -B1 -vE '^----'
done

# The book's own figures (experiments 14-1 and 14-4 on Westmere).
run lab 14-1 --cpu westmere
grep -q '^ 9: 0x00000000000090CD  0x0000000000009083  <== TOP' "$scratch/out"
verdict '14-1: the newest record is entry 9, 0x90CD to 0x9083' $?
run lab 14-4 --cpu westmere
grep -q '^ 1: 0x00000000000090A7  0x0000000000400000$' "$scratch/out" &&
  grep -q '^ 2: 0x0000000000400017  0x000000000000D8E0$' "$scratch/out" &&
  grep -q '^ 3: 0x000000000000E883  0x0000000000400019  <== TOP$' "$scratch/out"
verdict '14-4: three records, as printed' $?

run lab 14-3 --cpu core2
[ $status -eq 1 ] && said 'this CPU has no MSR_LBR_SELECT' && said 'Result: this CPU cannot show it'
verdict 'a CPU that lacks it: the lab says so' $?
run lab 14-2 --json
[ $status -eq 0 ] && python3 -m json.tool "$scratch/out" >"$scratch/json" && grep -q '"verdict": "as expected"' "$scratch/json"
verdict 'a result as JSON' $?
run lab nosuch
[ $status -eq 2 ] && complained "no lab 'nosuch'" && complained 'lbr lab list' && silent
verdict 'no such lab' $?
run lab 14-1 14-2
[ $status -eq 2 ] && complained 'name one lab'
verdict 'one lab at a time' $?
run lab 14-1 --cpu nosuch
[ $status -eq 2 ] && complained 'nosuch'
verdict 'no such CPU' $?

exit $((failures > 0))
