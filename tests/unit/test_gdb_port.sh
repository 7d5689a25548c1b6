#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_gdb_port.sh LBR GUESTS: the ports that lbr opens for gdb, when others come. What does not begin as gdb's protocol does is
# refused and does nothing; a client that does not read keeps nothing from ending.
here=$(dirname "$(realpath "$0")")
. "$here/shell.sh"
guests=$(realpath "$2")
cd "$scratch" || exit 1
ulimit -c 0

echo 'int main(int argc, char **argv) { return argv[argc + 5000][0]; }' >die.c
gcc -g -O1 -w -o die die.c || exit 1
"$lbr" record --quiet -o die.lbr ./die >/dev/null 2>&1

machine=("$lbr" machine --gdb 0 --kernel "$guests/kernel64.elf" --wait)
for seconds in 3 12 48; do # until all buffers between lbr and the client are full within this time
  python3 "$here/gdb_port.py" deaf SIGCONT "${machine[@]}" --until seconds=$seconds
  ended=$?
  [ $ended -ne 3 ] && break
done
[ $ended -eq 0 ]
verdict 'lbr machine --gdb: a deaf client does not outlast --until' $?
for way in stranger 'deaf SIGTERM' 'deaf SIGINT'; do
  # shellcheck disable=SC2086 # several words
  {
    python3 "$here/gdb_port.py" $way "${machine[@]}"
    verdict "lbr machine --gdb: $way" $?
    python3 "$here/gdb_port.py" $way "$lbr" gdb --listen 0 die.lbr
    verdict "lbr gdb --listen: $way" $?
    python3 "$here/gdb_port.py" $way "$lbr" run --gdb=0 ./die
    verdict "lbr run --gdb: $way" $?
  }
done
exit $((failures > 0))
