#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_trace_cli.sh LBR LABS: lbr script and lbr stat. Traces of the labs' kernels must hold the branches that follow from
# their sources; the trace of a small guest, what the recording unit recorded of it and what QEMU says that it did; and traces
# that are made by hand, good and bad ones, must be read for what they are.
. "$(dirname "$0")/shell.sh"
here=$(realpath "$(dirname "$0")")
labs=$(realpath "$2")
content() { ! [ -s "$scratch/err" ]; }
cd "$scratch" || exit 1

# ---- branches that follow from a source ----

# address SYMBOL: of the kernel that is looked at.
address() { nm "$kernel" | sed -n "s/^0*\([0-9a-f]*\) [A-Za-z] $1\$/0x\1/p" | head -n 1; }
after() { printf '0x%x' $(($(address "$1") + $2)); }

# has_run: the lines of the file want stand in the output, one behind the other, once, not counting thread and number.
has_run()
{
  cut -d ' ' -f 3- out >plain
  python3 -c 'import sys
wanted, got = (open(name).read() for name in ("want", "plain"))
sys.exit(("\n" + got).count("\n" + wanted) != 1)'
}

# lab NAME: makes NAME.trace. The guest must be content: it leaves by port 0xF4 with 0, which comes out as 1.
lab()
{
  kernel=$labs/$1.elf
  run machine --cpu westmere --kernel "$kernel" --screen none --serial none --trace "$1.trace"
  [ $status -eq 1 ] && content
}

lab ex14_2
verdict 'a trace of experiment 14-2' $?
from=first
for to in l1 l2 l3 l4 l5 l6 l7 l8 l9 l10; do
  echo "$(address $from) $from+0x0 -> $(address $to) $to+0x0 jmp"
  from=$to
done >want
run script ex14_2.trace
[ $status -eq 0 ] && content && [ "$(wc -l <want)" -eq 10 ] && has_run
verdict 'experiment 14-2: ten jumps in a chain' $?
cp out all

awk '$2 != NR - 1 || $1 != 0 { exit 1 }' all
verdict 'every branch has its number' $?

for count in 0 1 7 100000000; do
  run script --tail $count ex14_2.trace
  [ $status -eq 0 ] && content && tail -n $count all | cmp -s - out
  verdict "script --tail $count" $?
  run script --top $count ex14_2.trace
  [ $status -eq 0 ] && content && head -n $count all | cmp -s - out
  verdict "script --top $count" $?
done
run script --tail 10 --top 3 --thread 0 ex14_2.trace
[ $status -eq 0 ] && tail -n 10 all | head -n 3 | cmp -s - out
verdict 'script --tail --top --thread' $?
run script --no-symbols ex14_2.trace
[ $status -eq 0 ] && content && sed 's/ [^ ]*+0x[0-9a-f]*//g' all | cmp -s - out
verdict 'script --no-symbols' $?

lab ex14_3
verdict 'a trace of experiment 14-3' $?
# What leads where, from ex14_3.S, jumps.inc, service.S and print.S. The copied function lies in no file.
cat >want <<END
$(address call_func) call_func+0x0 -> $(address COPY) call_ind
$(address COPY_JUMP) -> $(address COPY_NEXT) jmp_ind
$(address COPY_NEXT) -> $(address COPY_EIP) call
$(address COPY_INT) -> $(address service_stub) service_stub+0x0 int
$(address service_stub) service_stub+0x0 -> $(address service_entry) service_entry+0x0 jmp
$(address service_entry) service_entry+0x0 -> $(address system_service) system_service+0x0 jmp
$(address service_call) service_call+0x0 -> $(address __puts) __puts+0x0 call_ind
$(after __puts_jz 4) __puts_jz+0x4 -> $(address __putc) __putc+0x0 call
$(after __putc 1) __putc+0x1 -> $(address __write_char) __write_char+0x0 call
$(address __write_char) __write_char+0x0 -> $(address get_cursor) get_cursor+0x0 call
$(after get_cursor 5) get_cursor+0x5 -> $(after __write_char 5) __write_char+0x5 ret
$(address __write_char_jump) __write_char_jump+0x0 -> $(address __write_char_line) __write_char_line+0x0 jcc
$(after __write_char_line 22) __write_char_line+0x16 -> $(address set_cursor) set_cursor+0x0 call
$(after set_cursor 5) set_cursor+0x5 -> $(after __write_char_line 27) __write_char_line+0x1b ret
$(after __write_char_line 27) __write_char_line+0x1b -> $(after __putc 6) __putc+0x6 ret
$(after __putc 7) __putc+0x7 -> $(after __puts_jz 9) __puts_jz+0x9 ret
$(address __puts_jump) __puts_jump+0x0 -> $(address __puts_loop) __puts_loop+0x0 jmp
$(address __puts_jz) __puts_jz+0x0 -> $(address __puts_done) __puts_done+0x0 jcc
$(address __puts_done) __puts_done+0x0 -> $(after service_call 2) service_call+0x2 ret
$(address service_iret) service_iret+0x0 -> $(address COPY_BACK) iret
$(address COPY_BACK) -> $(after call_func 2) call_func+0x2 ret
END
run script ex14_3.trace
[ $status -eq 0 ] && content && has_run
verdict 'experiment 14-3: every branch of the copied function and of the service' $?
cp out all

run stat --json --top 10000 ex14_3.trace
[ $status -eq 0 ] && content && python3 "$here/trace_numbers.py" out all
verdict 'stat counts what script prints' $?
run stat ex14_3.trace
[ $status -eq 0 ] && content && said 'complete              yes' && said '__putc' && said 'call_ind' && ! grep -q ' $' out &&
  ! grep -vF "$labs" out | grep -qE '.{121}' # where a file lies may be a long name
verdict 'stat as text' $?
run stat --top 0 --no-symbols ex14_3.trace
[ $status -eq 0 ] && content && ! said __putc && said ex14_3.elf
verdict 'stat --top 0 --no-symbols' $?

# ---- a guest whose branches others know, too ----

# guest_link OPTION...: links the guest; the first time only to see where its handlers lie.
guest_link()
{
  ld -m elf_i386 -N --no-warn-rwx-segments -e entry -Ttext 0x100000 --section-start .note.gnu.build-id=0x101000 --build-id "$@" \
    -o guest.elf guest.o
}
low() { echo $(($(address "$1") & 0xffff)); }
kernel=guest.elf
as --32 -o guest.o "$here/trace_guest.s" && guest_link --unresolved-symbols=ignore-all &&
  guest_link --defsym undefined_low="$(low undefined)" --defsym software_low="$(low software)" \
    --defsym from_user_low="$(low from_user)"

run machine --cpu skylake --kernel guest.elf --trace guest.trace --dump lbr --format json
[ $status -eq 1 ] && content && cp out lbr.json && "$lbr" script --json --tail 32 guest.trace >tail.json
verdict 'a trace of a small guest' $?
python3 -c 'import json
entries = json.load(open("lbr.json"))["entries"]
branches = [json.loads(line) for line in open("tail.json")]
assert len(entries) == len(branches) == 32
for entry, branch in zip(entries, reversed(branches)):
    assert (entry["from"], entry["to"]) == (branch["from"]["address"], branch["to"]["address"]), (entry, branch)'
verdict 'its last branches are those that LBR holds' $?

run script guest.trace
[ $status -eq 0 ] && content && [ "$(grep -c 'cpl:0->3$' out)" -eq 1 ] && [ "$(grep -c 'cpl:3->0$' out)" -eq 1 ] &&
  grep -q 'user+0x7 -> .* from_user+0x0 int cpl:3->0$' out && grep -q 'undefined+0x0 fault$' out
verdict 'changes of the CPL' $?

sed -nE 's/^0 [0-9]+ (0x[0-9a-f]+) [^ ]* -> (0x[0-9a-f]+) [^ ]* ([a-z_]+).*/\1 \2 \3/p' out >ours
if command -v qemu-system-i386 >/dev/null; then
  timeout 60 qemu-system-i386 -accel tcg -nodefaults -display none -m 16 -device isa-debug-exit,iobase=0xf4,iosize=4 \
    -d exec,nochain -singlestep -dfilter 0x100000..0x10ffff -D qemu.log -kernel guest.elf >qemu.out 2>&1 </dev/null
  [ $? -eq 1 ] && python3 "$here/trace_qemu.py" qemu.log guest.elf >theirs && [ "$(wc -l <theirs)" -gt 70 ] && diff theirs ours
  verdict 'every branch, in its order, is one that QEMU took' $?
else
  echo 'skip every branch, in its order, is one that QEMU took: qemu-system-i386 is not installed (Debian: qemu-system-x86)'
fi

# ---- symbols of a file that changed ----

mkdir elsewhere
cd elsewhere && run script --top 1 ../guest.trace && cd .. && said 'entry+0x' && content
verdict 'the kernel is found from another folder' $?
mv guest.elf guest.kept
objcopy --remove-section .note.gnu.build-id guest.kept guest.elf 2>/dev/null
run script --top 1 guest.trace
[ $status -eq 0 ] && complained "warning: $PWD/guest.elf: not the file that ran: its build-id is none" && ! said entry &&
  said 'guest.elf+0x'
verdict 'a file with another build-id is not used' $?
run stat guest.trace
[ $status -eq 0 ] && said '[not the file that ran' && [ "$(grep -c 'not the file' err)" -eq 1 ]
verdict 'stat says so, too' $?
rm guest.elf
run script --top 1 guest.trace
[ $status -eq 0 ] && complained 'guest.elf: No such file' && said 'guest.elf+0x'
verdict 'a file that is gone' $?
mkfifo guest.elf
run script --top 1 guest.trace
[ $status -eq 0 ] && complained 'guest.elf: ' && said 'guest.elf+0x'
verdict 'a pipe in its place' $?
cp "$labs/ex14_2.elf" bare.elf
run machine --cpu westmere --kernel bare.elf --screen none --serial none --trace bare.trace
touch -d '+1 hour' bare.elf
run script --top 1 bare.trace
[ $status -eq 0 ] && complained 'changed since the recording began' && said 'start+0x'
verdict 'a file without build-id that is newer than the trace' $?

# ---- traces made by hand ----

# `work` at offset 0x1000 of the file and `other` 16 bytes behind it.
printf 'work: nop\n.p2align 4\nother: ret\n.size other, 1\n.type other, @function\n' | as --32 -o module.o - &&
  ld -m elf_i386 -e 0 -Ttext 0x40001000 --build-id -z separate-code -o module.elf module.o &&
  readelf -lW module.elf | grep -q '^ *LOAD *0x001000 0x40001000' && python3 "$here/trace_make.py" . "$PWD/module.elf"
verdict 'traces by hand' $?

run script threads
cat >want <<'END'
0 0 0x10000 work+0x0 -> 0x10010 other+0x0 jmp
0 1 0x10010 other+0x0 -> 0x10000 work+0x0 jcc mispredicted
0 2 0x10000 work+0x0 -> 0x10010 other+0x0 jmp
1 0 0x555000 work+0x0 -> 0x555010 other+0x0 jmp
1 1 0x555020 module.elf+0x1020 -> 0x777000 call cpl:3->0
gap: 7 branches lost (lost), thread 0 from number 3 on
gap: an unknown number of branches lost (paused), thread 0 from number 10 on
0 10 0x10010 other+0x0 -> 0x20000 ret tsx
0 11 0x10000 work+0x0 -> 0x10010 other+0x0 jmp
END
[ $status -eq 0 ] && content && diff want out
verdict 'two threads, two address spaces, gaps' $?
run script --thread 1 threads
[ $status -eq 0 ] && grep '^1 ' want | diff - out
verdict 'script --thread 1' $?
run script --thread 0 threads
[ $status -eq 0 ] && grep -v '^1 ' want | diff - out
verdict 'script --thread 0: its gaps, too' $?
run script --tail 1 threads
[ $status -eq 0 ] && grep -E '^(0 11|1 1) ' want | sort | diff - out
verdict 'script --tail: of each thread' $?
run script --tail 1 --thread 1 threads
[ $status -eq 0 ] && grep '^1 1 ' want | diff - out
verdict 'script --tail --thread' $?
run script --thread 2 threads
[ $status -eq 1 ] && silent && complained 'no thread 2'
verdict 'a thread that is not there' $?
run script --json threads
[ $status -eq 0 ] && content && python3 -c 'import json
lines = [json.loads(line) for line in open("out")]
assert [line["type"] for line in lines] == ["branch"] * 5 + ["gap"] * 2 + ["branch"] * 2
assert lines[1]["mispredicted"] and not lines[0]["mispredicted"] and lines[7]["in_tsx"]
assert lines[0]["from"] == {"address": "0x10000", "symbol": "work", "module": "module.elf", "offset": "0x0"}
assert lines[4]["from"] == {"address": "0x555020", "symbol": None, "module": "module.elf", "offset": "0x1020"}
assert lines[4]["to"] == {"address": "0x777000", "symbol": None, "module": None, "offset": None}
assert (lines[4]["from_cpl"], lines[4]["to_cpl"], lines[4]["from_base"]) == (3, 0, None)
assert lines[5] == {"type": "gap", "thread": 0, "number": 3, "lost": 7, "reason": "lost"}
assert lines[6]["lost"] is None and lines[6]["reason"] == "paused"'
verdict 'script --json' $?
run stat --json threads
[ $status -eq 0 ] && content && python3 -c 'import json
stat = json.load(open("out"))
assert stat["complete"] and stat["branches"] == 7 and stat["mispredicted"] == 1 and stat["cpl_changes"] == 1
assert stat["taken_per_instruction"] is None and stat["time"].startswith("2096-10-02")
assert [t["branches"] for t in stat["threads"]] == [5, 2] and stat["threads"][1]["system_thread"] == 201
assert [t["lost"] for t in stat["threads"]] == [7, 0]
assert {g["reason"]: (g["gaps"], g["lost"]) for g in stat["gaps"]} == {"lost": (1, 7), "paused": (1, 0)}
functions = {}
for f in stat["functions"]:
    key = f["symbol"], f["module"]
    functions[key] = functions.get(key, 0) + f["branches"]
assert functions == {("other", "module.elf"): 4, ("work", "module.elf"): 1, (None, None): 2}, functions
assert len(stat["modules"]) == 1 and len(stat["modules"][0]["build_id"]) == 40'
verdict 'stat --json: both processes are one program' $?

run script modules
cat >want <<'END'
0 0 0x10000 work+0x0 -> 0x10010 other+0x0 jmp
0 1 0x10000 -> 0x10010 jmp
0 2 0x10000 file+0x40 -> 0x11010 module.elf+0x1010 jmp
0 3 0x12000 file+0x2040 -> 0x10010 file+0x50 jmp
END
[ $status -eq 0 ] && diff want out && complained '/no/such/file: No such file' && complained 'the trace has aaaaaaaaaaaaaaaa'
verdict 'modules that come, go and lie over others' $?
run stat --json modules
[ $status -eq 0 ] && python3 -c 'import json
functions = {(f["symbol"], f["module"]): f["branches"] for f in json.load(open("out"))["functions"]}
assert functions == {("other", "module.elf"): 1, (None, None): 1, (None, "module.elf"): 1, (None, "file"): 1}, functions'
verdict 'stat counts by the modules of the time' $?

for command in script stat 'script --json' 'stat --json'; do
  # shellcheck disable=SC2086 # several words
  run $command strangers
  [ $status -eq 0 ] && [ -s out ] && ! LC_ALL=C grep -qP '[\x00-\x09\x0b-\x1f\x7f]|\xc2\x9b' out err &&
    iconv -f utf-8 -t utf-8 out >/dev/null
  verdict "names from a stranger: $command" $?
done
run script --json strangers
python3 -c 'import json
lines = [json.loads(line) for line in open("out")]
assert lines[0]["to"]["module"] == "[top]" and lines[0]["to"]["offset"] == "0xfff" and lines[1]["from"]["module"] is None
assert lines[0]["from"]["module"] == "?[2J?\"name\""'
verdict 'the end of the address space' $?

# ---- traces that are not whole ----

# reads STATUS COMPLAINT LINES COMMAND... NAME: what can be read is printed, and the rest complained about.
reads()
{
  wanted=$1 complaint=$2 lines=$3
  shift 3
  run "$@"
  [ $status -eq "$wanted" ] && [ "$(grep -c '^0 ' out)" -eq "$lines" ] &&
    if [ -n "$complaint" ]; then complained "$complaint"; else content; fi
  verdict "$*: $complaint" $?
}

reads 0 '' 5 script good
reads 1 'the trace is damaged' 3 script damaged
said 'gap: 2 branches lost (missing), thread 0 from number 2 on' && said 'gap: an unknown number of branches lost (damaged)'
verdict 'a gap where the damage is' $?
reads 1 'the trace is damaged' 3 script --tail 5 damaged
reads 1 'truncated: ' 2 script cut
said 'gap: an unknown number of branches lost (cut)'
verdict 'a gap where it was cut' $?
reads 1 'truncated: ' 2 script --tail 5 cut
reads 1 'truncated: ' 0 script head
reads 1 'truncated: ' 0 script --tail 5 head
reads 0 'warning: finished.incomplete: unfinished trace' 5 script finished.incomplete
reads 0 'warning: finished.incomplete: unfinished trace' 5 script finished
reads 1 'No such file' 0 script nothing
reads 1 'a format version that this program does not read' 0 script newer
: >empty
echo 'some text that is no trace' >words
mkdir folder
for command in script stat; do
  reads 1 'the file is empty' 0 $command empty
  reads 1 'not a trace file' 0 $command words
  reads 1 'Is a directory' 0 $command folder
  reads 1 'not a regular file' 0 $command /dev/null
done
for name in damaged cut head finished; do
  run stat --json $name
  [ $status -eq $([ $name = finished ] && echo 0 || echo 1) ] &&
    python3 -c 'import json; stat = json.load(open("out")); assert not stat["complete"] and stat["gaps"]'
  verdict "stat $name" $?
done
run stat cut
[ $status -eq 1 ] && said 'complete              no' && said 'not every gap says'
verdict 'stat cut, as text' $?

# Every way to cut a trace, and a wrong byte anywhere: it must end without a crash, and a cut never pass for a whole.
size=$(stat -c %s threads)
bad=0
for ((at = 0; at < size; at += 13)); do
  head -c $at threads >some
  run script --no-symbols some
  [ $status -eq 1 ] || bad=$((bad + 1))
  { head -c $at threads && printf '\x5a' && tail -c +$((at + 2)) threads; } >some
  run stat --no-symbols some
  [ $status -le 1 ] || bad=$((bad + 1))
done
[ $bad -eq 0 ]
verdict 'a trace cut anywhere, or with a wrong byte' $?

# ---- the command line, and output that cannot be written ----

for arguments in script stat 'script good good' 'script --tail x good' 'script --tail -1 good' 'script --thread 65536 good' \
  'stat --top x good' 'stat good good'; do
  # shellcheck disable=SC2086
  run $arguments
  [ $status -eq 2 ] && silent
  verdict "a usage error: $arguments" $?
done
if [ -w /dev/full ]; then
  "$lbr" script ex14_3.trace >/dev/full 2>err
  [ $? -eq 1 ] && complained 'cannot write the output'
  verdict 'script: a full disk' $?
fi
"$lbr" script ex14_3.trace 2>err | head -n 1 >out
[ "${PIPESTATUS[0]}" -ne 1 ] && content && [ "$(wc -l <out)" -eq 1 ]
verdict 'script: a reader that leaves' $?

exit $((failures > 0))
