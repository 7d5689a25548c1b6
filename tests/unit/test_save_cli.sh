#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_save_cli.sh LBR LABS: lbr machine --save and --load as options: what comes of two halves and of the whole, the files,
# and what is said of those that are wrong. What a saved machine holds is test_save's.
. "$(dirname "$0")/shell.sh"
labs=$(realpath "$2")
cd "$scratch" || exit 1
kernel=$labs/bts_interrupt.elf
machine="--cpu westmere --ram 4 --predictor 2bit --screen final"
show="--dump lbr,ds,bts,regs,msrs"

# ---- two halves are the whole ----

# shellcheck disable=SC2086 # several words, here and below
run machine $machine $show --serial whole.txt --trace whole.lbr "$kernel"
whole=$status
mv out whole
run machine $machine --screen none --serial one.txt --trace one.lbr --until insns=12345 --save half.lbm "$kernel"
[ $status -eq 0 ] && [ ! -s err ] && [ "$(stat -c %a half.lbm)" = 600 ] && [ "$(stat -c %s half.lbm)" -lt 500000 ]
verdict 'a machine is saved, by its owner for its owner, without zeros' $?

run machine --load half.lbm --screen final $show --serial two.txt --trace two.lbr
[ $status -eq $whole ] && [ ! -s err ] && cmp -s out whole
verdict 'it goes on: the same screen, records, buffers and registers' $?

cat one.txt two.txt >both.txt
cmp -s both.txt whole.txt
verdict 'the same serial output' $?

branches() { "$lbr" script --fields from,to,kind "$1"; }
{ branches one.lbr && branches two.lbr; } >both && branches whole.lbr >trace
[ "$(wc -l <trace)" -gt 1000 ] && cmp -s both trace
verdict 'the same trace' $?

run machine --load half.lbm --cpu westmere --ram 4 --predictor 2bit --until insns=20000 --json
[ $status -eq 0 ] && said '"end": "instructions"' && said '"instructions": 20000'
verdict 'options that agree; instructions count from power-on' $?

run machine --load half.lbm --until insns=20000 --save half.lbm --serial none --screen none
[ $status -eq 0 ] && run machine --load half.lbm --until insns=20001 --json && said '"instructions": 20001'
verdict 'a machine is saved over the one that it came from' $?

# ---- what does not agree ----

# refused STATUS WORDS ARGUMENT...: lbr machine complains so, in one line or with a hint, and shows nothing.
refused()
{
  local expected=$1 words=$2
  shift 2
  run machine "$@"
  [ $status -eq "$expected" ] && complained "$words" && silent
  verdict "$words" $?
}
refused 1 '--cpu does not match: the saved machine has westmere' --load half.lbm --cpu skylake
refused 1 '--ram does not match: the saved machine has 4' --load half.lbm --ram 8
refused 1 '--predictor does not match: the saved machine has 2bit' --load half.lbm --predictor none
refused 1 '--test-device does not match' --load half.lbm --test-device
refused 1 '--option does not match' --load half.lbm --option tsx-off
refused 1 '--until insns= counts from power-on' --load half.lbm --until insns=20000
refused 2 '--load excludes images, disks and kernels' --load half.lbm "$kernel"
refused 2 '--load excludes images, disks and kernels' --load half.lbm --hda "$kernel"
refused 1 '--save wants a file' --load half.lbm --save -

# ---- files that are wrong ----

refused 1 'No such file or directory' --load nonesuch.lbm
refused 1 'not a saved machine' --load "$kernel"
head -c 30000 half.lbm >cut.lbm
refused 1 'truncated' --load cut.lbm
{ head -c 30000 half.lbm && printf x && tail -c +30002 half.lbm; } >damaged.lbm
refused 1 'a checksum is wrong' --load damaged.lbm
refused 1 'No such file or directory' --load half.lbm --until insns=20001 --save nonesuch/file --screen none --serial none

printf '\x90\x0f\x01\x1e\x00\x80\xcc' >triple.bin
run machine --flat triple.bin@0x7c00 --save dead.lbm
[ $status -eq 3 ] && complained 'cannot be resumed' && [ ! -e dead.lbm ]
verdict 'a guest that died is not saved' $?

run machine --load half.lbm --until insns=20001 --serial none --screen none --save /dev/full
[ $status -eq 1 ] && complained 'cannot save the machine'
verdict 'a disk that is full' $?

exit $((failures > 0))
