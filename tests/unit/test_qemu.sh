#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_qemu.sh LBR GUEST_RUN FOLDER: each guest of FOLDER (*.elf kernels, *.img floppies) runs in QEMU and in our machine;
# what it logged and its text screen must be the same, byte for byte. Then `lbr machine` must show the screen that QEMU had.
# Guests named bochs-* test what QEMU does not do: their logs are compared with Bochs'.
. "$(dirname "$0")/shell.sh"
guest_run=$(realpath "$2")
folder=$(realpath "$3")
here=$(realpath "$(dirname "$0")/../guest")

log_size=$((0x8000))
cpu=skylake
screen_size=4000

# difference ORACLE: where the two dumps part, in the words of the log.
difference()
{
  python3 - "$1" "$scratch/theirs" "$scratch/ours" <<'END'
import struct
import sys
dumps = [open(name, "rb").read() for name in sys.argv[2:]]
first = next((i for i in range(min(map(len, dumps))) if dumps[0][i] != dumps[1][i]), None)
if first is None:
    sys.exit("one is shorter than the other")
print(f"differs at byte {first:#x} of log and screen; words from 12 before:")
start = max(0, first // 4 - 12) * 4
for name, dump in zip((sys.argv[1], "ours"), dumps):
    print(f"  {name}:", *(f"{word:x}" for word, in struct.iter_unpack("<I", dump[start:start + 96])))
END
}

# compare ORACLE NAME KIND IMAGE ADDRESS SIZE...: runs the guest in our machine; the same memory must look as in the file theirs.
compare()
{
  oracle=$1 name=$2 kind=$3 image=$4
  shift 4
  if ! "$guest_run" "$scratch/ours" "$@" -- "$kind" "$image" "$cpu"; then
    verdict "$oracle: $name: our machine runs it" 1
    return
  fi
  cmp -s "$scratch/theirs" "$scratch/ours"
  agrees=$?
  [ $agrees -eq 0 ] || difference "$oracle"
  verdict "$oracle: $name: memory" $agrees
}

for image in "$folder"/bochs-*.elf; do
  name=$(basename "${image%.*}")
  "$here/run-bochs" "$scratch/theirs" 0x200000 $log_size "$image" >"$scratch/log" 2>&1
  case $? in
  0) compare bochs "${name#bochs-}" kernel "$image" 0x200000 $log_size ;;
  77) echo "skip bochs: ${name#bochs-}: $(tail -n 1 "$scratch/log")" ;;
  *)
    cat "$scratch/log"
    verdict "bochs: ${name#bochs-}: Bochs runs it" 1
    ;;
  esac
done

if ! command -v qemu-system-x86_64 >/dev/null; then
  echo 'skip qemu: qemu-system-x86_64 is not installed (Debian: qemu-system-x86)'
  exit $((failures > 0))
fi

# screen FILE: the text screen at the end of a dump, rows without the blanks at their ends.
screen()
{
  tail -c $screen_size "$1" | python3 -c 'import sys
cells = sys.stdin.buffer.read()[::2]
rows = [cells[i:i + 80].decode("cp437").rstrip() for i in range(0, 2000, 80)]
print("\n".join(rows).rstrip("\n"))'
}

for image in "$folder"/*.elf "$folder"/*.img; do
  name=$(basename "${image%.*}")
  case $name in bochs-*) continue ;; esac
  case $image in
  *.elf) log=0x200000 kind=kernel options="-kernel $image" ours="--kernel=$image" ;;
  *) log=0x20000 kind=floppy options="-drive if=floppy,format=raw,file=$image" ours="--fda=$image" ;;
  esac
  cpu=skylake
  [ "$name" != long-keys ] || cpu=sapphirerapids
  # shellcheck disable=SC2086 # several words
  if ! "$here/run-qemu" "$scratch/theirs" $log $log_size 0xB8000 $screen_size -- $options; then
    verdict "qemu: $name: QEMU runs it" 1
    continue
  fi
  compare qemu "$name" $kind "$image" $log $log_size 0xB8000 $screen_size
  run machine --cpu="$cpu" --screen=final --serial=none "$ours"
  screen "$scratch/theirs" >"$scratch/want"
  sed -e 's/ *$//' "$scratch/out" | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' | diff "$scratch/want" - >"$scratch/difference"
  shows=$?
  [ $shows -eq 0 ] || cat "$scratch/difference"
  verdict "qemu: $name: lbr machine shows the same" $shows
done
exit $((failures > 0))
