#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_machine_cli.sh LBR: lbr machine as a command: its options, what it prints, keeps and returns, and what it says of
# files and numbers that are wrong. Guests are a few instructions each, assembled here. What guests do is tests/machine's.
. "$(dirname "$0")/shell.sh"
content() { ! [ -s "$scratch/err" ]; }
cd "$scratch" || exit 1

# guest NAME ADDRESS: assembles standard input: NAME.elf, NAME.bin and NAME.map.
guest()
{
  as --32 -o "$1.o" - && ld -m elf_i386 -e 0 -Ttext "$2" --no-warn-rwx-segments -o "$1.elf" "$1.o" &&
    objcopy -O binary -j .text "$1.elf" "$1.bin" && nm "$1.elf" >"$1.map"
}

# Prints to the screen and to the serial line, with LBR on, and ends.
guest hello 0x7c00 <<'END'
.code16
  xor %ax, %ax
  mov %ax, %ds
  mov %ax, %ss
  mov $0x7c00, %sp
  mov $0x1d9, %ecx
  mov $1, %eax
  xor %edx, %edx
  wrmsr
  mov $text, %si
next:
  lodsb
  test %al, %al
  jz stop
  mov $0xe, %ah
  int $0x10
  mov $0x3f8, %dx
  out %al, %dx
  jmp next
stop:
  cli
  hlt
text: .asciz "Hello \204 machine\r\n"
.org 510
.word 0xaa55
END
# Says so on the serial line when it runs, and does not end.
guest endless 0x7c00 <<'END'
.code16
  mov $0x3f8, %dx
  mov $'R', %al
  out %al, %dx
1: jmp 2f
2: jmp 1b
END
guest busy 0x7c00 <<'END'
.code16
1: inc %ax
  jmp 1b
END
# Starts a second processor, which records one branch, and waits for it.
guest pair 0x7c00 <<'END'
.code16
  xor %ax, %ax
  mov %ax, %ds
  mov $0x1b, %ecx
  rdmsr
  or $0xc00, %eax
  wrmsr
  mov $0x830, %ecx
  xor %edx, %edx
  mov $0xc4500, %eax
  wrmsr
  mov $0xc4608, %eax
  wrmsr
first: pause
  cmpb $0, flag
  je first
  cli
  hlt
flag: .byte 0
.org 0x400
  xor %ax, %ax
  mov %ax, %ds
  mov $0x1d9, %ecx
  mov $1, %eax
  xor %edx, %edx
  wrmsr
  jmp second
.org 0x420
second:
  incb flag
  cli
  hlt
END
guest exit 0x7c00 <<'END'
.code16
  mov $0x21, %al
  out %al, $0xf4
1: jmp 1b
END
guest triple 0x7c00 <<'END'
.code16
  jmp 1f
1: lidt %cs:nothing - 0x7c00
  int3
nothing: .word 0, 0, 0
END
# Branch trace messages to the bus.
guest bus 0x7c00 <<'END'
.code16
  mov $0x1d9, %ecx
  mov $0x40, %eax
  xor %edx, %edx
  wrmsr
  jmp 1f
1: jmp 2f
2: xor %eax, %eax
  wrmsr
  cli
  hlt
END
# Branches into a circular BTS buffer of eight records, in 32-bit code.
guest bts 0x100000 <<'END'
.code32
  mov $0x200000, %esp
  mov $0x600, %ecx
  mov $area, %eax
  xor %edx, %edx
  wrmsr
  mov $0x1d9, %ecx
  mov $0xc0, %eax
  wrmsr
  mov $5, %ebx
again:
  call work
  dec %ebx
  jnz again
  mov $0x1d9, %ecx
  xor %eax, %eax
  wrmsr
  cli
  hlt
work: ret
.p2align 4
area: .long buffer, 0, buffer, 0, buffer + 24 * 8, 0, buffer + 24 * 100, 0
.fill 16, 4, 0
.p2align 4
buffer: .fill 24 * 8, 1, 0
END
# Waits for a byte of the serial line and sends it back, until it is q; and types keys on the screen.
guest echo 0x7c00 <<'END'
.code16
1: mov $0x3fd, %dx
  in %dx, %al
  test $1, %al
  jz 1b
  mov $0x3f8, %dx
  in %dx, %al
  out %al, %dx
  cmp $'q', %al
  jne 1b
  cli
  hlt
END
guest keys 0x7c00 <<'END'
.code16
1: xor %ah, %ah
  int $0x16
  mov $0xe, %ah
  int $0x10
  cmp $'q', %al
  jne 1b
  cli
  hlt
END
guest kernel 0x100000 <<'END'
.code32
  .long 0x1badb002, 0, -0x1badb002
.globl entry
entry:
  mov $0x1d9, %ecx # IA32_DEBUGCTL.LBR
  mov $1, %eax
  xor %edx, %edx
  wrmsr
  mov $0x3f8, %dx
  mov 16(%ebx), %esi # command line
1: lodsb
  out %al, %dx
  test %al, %al
  jnz 1b
  mov 20(%ebx), %eax # modules
  add $0x30, %al
  out %al, %dx
  cli
  hlt
END
ld -m elf_i386 -N --no-warn-rwx-segments -e entry -Ttext 0x100000 -o kernel.elf kernel.o
truncate -s 1474560 floppy.img && dd if=hello.bin of=floppy.img conv=notrunc status=none

# ---- running ----

run machine hello.bin
[ $status -eq 0 ] && content && [ "$(grep -c 'Hello ä machine' out)" -eq 1 ] && [ "$(wc -l <out)" -eq 2 ]
verdict 'a boot sector: serial line and screen' $?

run machine --serial none floppy.img
[ $status -eq 0 ] && content && [ "$(cat out)" = 'Hello ä machine' ]
verdict 'a floppy: the screen as text' $?

for option in '--hda hello.bin' '--fda hello.bin' '--flat hello.bin@0x7c00 --cpu westmere'; do
  # shellcheck disable=SC2086 # several words
  run machine --serial none $option
  [ $status -eq 0 ] && content && said 'Hello ä machine' || [ "$option" != "${option#--flat}" ]
  verdict "start with $option" $?
done

run machine --serial none --screen none hello.bin
[ $status -eq 0 ] && content && silent
verdict 'nothing is shown if nothing is wanted' $?

run machine --serial serial.txt hello.bin
[ $status -eq 0 ] && content && [ "$(stat -c %a serial.txt)" = 600 ] && grep -q Hello serial.txt && [ "$(wc -l <out)" -eq 1 ]
verdict 'the serial line in a file' $?

run machine --kernel kernel.elf --append 'one two' --initrd hello.bin --initrd bus.bin
[ $status -eq 0 ] && content && said 'kernel.elf one two' && said 2
verdict 'a kernel with command line and modules' $?

gzip -9 <kernel.elf >kernel.gz
gzip <hello.bin >hello.gz
run machine --kernel kernel.gz --append 'one two' --initrd hello.gz --initrd bus.bin --dump lbr
[ $status -eq 0 ] && content && said 'kernel.gz one two' && said 2 && said 'entry+0x'
verdict 'a kernel, with its symbols, and a module that are compressed with gzip' $?
packed=$(stat -c %s kernel.gz)
head -c $((packed - 9)) kernel.gz >short.gz
{ head -c $((packed / 2)) kernel.gz; printf 'damage'; tail -c +$((packed / 2 + 7)) kernel.gz; } >damaged.gz
head -c 64M /dev/zero | gzip -1 >zeros.gz
for _ in {1..16}; do cat zeros.gz; done >bomb.gz
# packed_refused FILE SENTENCE: as a kernel and as a module. bomb.gz holds 1 GiB of zeros.
packed_refused()
{
  run machine --ram 32 --kernel "$1"
  [ $status -eq 1 ] && silent && complained "$1: $2"
  verdict "a compressed kernel: $1" $?
  run machine --ram 32 --kernel kernel.elf --initrd "$1"
  [ $status -eq 1 ] && silent && complained "kernel.elf: module $1: $2"
  verdict "a compressed module: $1" $?
}
packed_refused short.gz 'its gzip data ends too early'
packed_refused damaged.gz 'its gzip data is damaged'
packed_refused bomb.gz "unpacked, it is larger than the guest's memory"

run machine kernel.elf
[ $status -eq 0 ] && content && said kernel.elf
verdict 'an image that is a kernel' $?

run machine --flat exit.bin@0x7c00
[ $status -eq 67 ] && content && silent
verdict 'the exit status of port 0xF4' $?

run machine --flat triple.bin@0x7c00
[ $status -eq 3 ] && complained 'triple fault' && complained 'bytes at CS:RIP cc' && complained int3 && complained 'real mode'
verdict 'a triple fault' $?

run machine --flat triple.bin@0x7c00 --trace triple.trace
[ $status -eq 3 ] && complained 'branches, newest first' && complained '0x7c00 -> 0x7c02  jmp'
verdict 'a triple fault with a trace: the last branches' $?

# mov $0x186, %ecx; mov $0x430151, %eax (L1D.REPLACEMENT, which is not modelled); xor %edx, %edx; wrmsr; the same of
# 0x187 with $0x4320c4 (BR_INST_RETIRED.NEAR_TAKEN, which is); cli; hlt
printf '\146\271\206\1\0\0\146\270\121\1\103\0\146\61\322\17\60\146\271\207\1\0\0\146\270\304\40\103\0\17\60\372\364' >events.bin
run machine --cpu skylake --flat events.bin@0x7c00
[ $status -eq 0 ] && complained 'counter events programmed but not modelled: 51H/01H;' && complained 'lbr cpu skylake' && ! complained C4H
verdict 'counter events that are not modelled' $?

run machine --cpu skylake --flat events.bin@0x7c00 --json
[ $status -eq 0 ] && content && said '"51H/01H"' && said unmodelled_events
verdict 'counter events that are not modelled, in JSON' $?

# ---- until ----

run machine --flat busy.bin@0x7c00 --until insns=1000001 --json
[ $status -eq 0 ] && content && said '"end": "instructions"' && said '"instructions": 1000001'
verdict 'until insns' $?

run machine --flat busy.bin@0x7c00 --until seconds=0.2 --json
[ $status -eq 0 ] && content && said '"end": "seconds"'
verdict 'until seconds' $?

run machine hello.bin --until text=machine --until insns=100000000 --json
[ $status -eq 0 ] && content && said '"end": "text"'
verdict 'until text' $?

run machine hello.bin --serial none --until 'text=ä mach'
[ $status -eq 0 ] && content
verdict 'until text that is not ASCII' $?

run machine hello.bin --until text=nonesuch
[ $status -eq 1 ] && complained "'nonesuch' was not seen" && said Hello
verdict 'until text that does not come' $?

# Sleeps (ACPI's S3) with no event that wakes.
guest sleeper 0x7c00 <<'END'
.code16
  mov $0x604, %dx
  mov $0x2400, %ax
  out %ax, %dx
  hlt
.org 510
.word 0xaa55
END
run machine sleeper.bin --json
[ $status -eq 1 ] && complained 'nothing will wake it' && said '"end": "asleep"'
verdict 'asleep for ever' $?
run machine sleeper.bin --screen none --save asleep.lbm
[ $status -eq 1 ] && run machine --load asleep.lbm --json && [ $status -eq 1 ] && said '"end": "asleep"'
verdict 'asleep, saved and loaded' $?

run machine hello.bin --until halt --json
[ $status -eq 0 ] && content && said '"end": "halted"'
verdict 'until halt' $?

echo abcq >in
run machine --flat echo.bin@0x7c00 --serial stdio
: >in
[ $status -eq 0 ] && content && said abcq
verdict 'the serial line reads standard input' $?

# As a driver does: much to do first, the FIFO cleared, then waiting for bytes.
guest driver 0x7c00 <<'END'
.code16
  mov $0x3fa, %dx
  mov $1, %al
  out %al, %dx
  mov $8000000, %ecx
1: addr32 loop 1b
  mov $7, %al
  out %al, %dx
1: mov $0x3fd, %dx
  in %dx, %al
  test $1, %al
  jz 1b
  mov $0x3f8, %dx
  in %dx, %al
  out %al, %dx
  cmp $'q', %al
  jne 1b
  cli
  hlt
END
echo 'all of a line that is longer than the FIFO. q' >in
run machine --flat driver.bin@0x7c00 --serial stdio --screen none
[ $status -eq 0 ] && content && [ "$(cat out)" = 'all of a line that is longer than the FIFO. q' ]
verdict 'standard input waits for the driver of the serial line' $?
run machine hello.bin --serial stdio --screen none
: >in
[ $status -eq 0 ] && content && said Hello
verdict 'standard input that the guest never reads' $?

# A hostile guest: a title for the terminal, CSI as two kinds of C1, a character that is cut, one that is overlong.
guest escape 0x7c00 <<'END'
.code16
  xor %ax, %ax
  mov %ax, %ds
  mov $text, %si
  mov $0x3f8, %dx
1: lodsb
  test %al, %al
  jz 2f
  out %al, %dx
  jmp 1b
2: cli
  hlt
text: .asciz "\033]0;title\007a\tb\r\n\303\244 \302\2332J \2332J \177 \342\202\254 \300\233 \b\f\303"
END
run machine --flat escape.bin@0x7c00 --screen none
printf '?]0;title?a\tb\r\n\303\244 ?2J ?2J ? \342\202\254 ?? ???\n' >wanted
[ $status -eq 0 ] && content && cmp -s out wanted
verdict 'the serial line, unasked for: text only' $?
run machine --flat escape.bin@0x7c00 --screen none --serial stdio
printf '\033]0;title\007a\tb\r\n\303\244 \302\2332J \2332J \177 \342\202\254 \300\233 \b\f\303\n' >wanted
[ $status -eq 0 ] && content && cmp -s out wanted
verdict 'the serial line, asked for: raw' $?

truncate -s 1474560 empty.img
for option in empty.img '--hda empty.img' '--fda empty.img --until seconds=0.1 --until idle'; do
  # shellcheck disable=SC2086 # several words
  run machine $option
  [ $status -eq 1 ] && complained 'no bootable device' && said 'No bootable device'
  verdict "nothing to boot: $option" $?
done
run machine empty.img --until 'text=No bootable'
[ $status -eq 0 ] && content
verdict 'nothing to boot, as was wanted' $?

: >out
"$lbr" machine --flat endless.bin@0x7c00 --until seconds=60 --dump regs >out 2>err </dev/null &
pid=$!
await grep -q R out
kill -INT $pid
wait $pid
[ $? -eq 130 ] && said 'real mode'
verdict 'SIGINT ends the run, and everything is printed' $?

# ---- what is shown ----

run machine hello.bin --dump lbr,regs,msrs --symbols hello.map --serial none
[ $status -eq 0 ] && content && said 'recording on' && said 'jcc' && said IA32_DEBUGCTL && said 'real mode' && said 'next+0x'
verdict 'dump lbr, regs and msrs, with symbols of a map' $?

run machine --flat bts.bin@0x100000 --dump bts,ds --symbols bts.elf
[ $status -eq 0 ] && content && tr -s ' ' <out | grep -qF '7 0x100037 0x100029 yes work+0x0 again+0x5' &&
  said 'Requirements that the DS area breaks' && said 'messages stored       14'
verdict 'dump bts and ds, with symbols of an ELF file' $?

run machine --flat bts.bin@0x100000 --cpu zen2 --dump bts
[ $status -eq 3 ] || said 'no debug store'
verdict 'dump bts of a CPU that has none' $?

run machine hello.bin --dump lbr --format windbg --serial none
[ $status -eq 0 ] && content && said 'MSR_LASTBRANCH_0 (from)'
verdict 'dump lbr as windbg' $?

run machine hello.bin --dump lbr --format json
[ $status -eq 0 ] && content && python3 -c 'import json; assert json.load(open("out"))["cpu"] == "skylake"'
verdict 'dump lbr as JSON, and nothing else' $?

run machine --flat bus.bin@0x7c00 --bus -
[ $status -eq 0 ] && content && [ "$(grep -c 'branch trace message' out)" -eq 2 ]
verdict 'bus messages' $?

cat >page.py <<'END'
import json
page = json.load(open("out"))
assert page["cpu"] == "skylake" and page["end"] == "idle" and page["exit_value"] is None
assert page["screen"] == ["Hello ä machine"] and page["serial"][0].endswith("machine")
assert page["registers"]["rcx"] == "0x1d9" and page["registers"]["segments"]["cs"]["selector"] == "0x0"
assert page["records"]["recording"] and len(page["records"]["entries"]) == 32
assert page["records"]["entries"][0]["from_symbol"]["name"] == "next"
assert page["ds"] is None and any(msr["name"] == "IA32_DEBUGCTL" for msr in page["msrs"])
END
run machine hello.bin --json --dump msrs,ds --symbols hello.map
[ $status -eq 0 ] && content && python3 page.py
verdict 'json: one object' $?

run machine --flat bts.bin@0x100000 --json --dump bts
[ $status -eq 0 ] && python3 -c 'import json; b = json.load(open("out"))["bts"]
assert b["count"] == 8 and b["records"][7]["to"] == "0x100029" and b["broken_rules"]'
verdict 'json: bts' $?

run machine hello.bin --trace one.trace --serial none
[ $status -eq 0 ] && content && [ "$(head -c 4 one.trace | tail -c 3)" = LBR ] && ! [ -e one.trace.incomplete ] &&
  [ "$(stat -c %a one.trace)" = 600 ]
verdict 'a trace' $?

run machine hello.bin --predictor gshare --option bts-no-status --ram 16 --screen all --serial none
[ $status -eq 0 ] && content && said Hello
verdict 'predictor, option, ram, all of the screen' $?

# ---- what is wrong ----

# refuses STATUS COMPLAINT ARGUMENT...: the command must fail so, say so, and print nothing else.
refuses()
{
  wanted=$1
  complaint=$2
  shift 2
  run machine "$@"
  [ $status -eq "$wanted" ] && complained "$complaint" && silent
  verdict "refused: $*" $?
}

printf '.code16\n  hlt\n' >source.S
refuses 1 'this is text' --flat source.S@0x7c00
refuses 1 'an ELF file' --flat hello.elf@0x7c00

mkdir folder
: >empty
head -c 100 /dev/zero >zeros
echo 'no map at all' >words
ln -s hello.bin link
mkfifo pipe
refuses 2 'name something to boot'
refuses 2 "no CPU 'z80'" --cpu z80 hello.bin
refuses 2 '--ram wants a number' --ram many hello.bin
refuses 2 'from 2 to 65536' --ram 1 hello.bin
refuses 2 'wants one of none, 2bit, gshare' --predictor oracle hello.bin
refuses 2 "no option 'nonesuch'" --option nonesuch hello.bin
refuses 2 '--until wants' --until tomorrow hello.bin
refuses 2 'wants a number' --until insns=x hello.bin
refuses 2 'number of seconds' --until seconds=-1 hello.bin
refuses 2 '--until wants' --until text= hello.bin
refuses 2 'wants one of live, final, all, none' --screen big hello.bin
refuses 2 'wants one of lbr, ds, bts' --dump lbr,stack hello.bin
refuses 2 "no format 'xml'; the formats are table, windbg, windbg-old, json" --format xml hello.bin
refuses 2 'FILE@ADDRESS' --flat hello.bin
refuses 2 'wants a number' --flat hello.bin@top
refuses 2 '--kernel and --flat exclude each other' --kernel kernel.elf --flat hello.bin@0
refuses 2 'need --kernel' --append x --fda hello.bin
refuses 2 'wants a terminal' --screen live hello.bin
refuses 2 '--json takes standard output' --json --serial stdio hello.bin
refuses 2 '--json takes standard output' --json --bus - hello.bin
refuses 2 'too many arguments' hello.bin hello.bin
refuses 1 'No such file' nonesuch.img
refuses 1 'No such file' --kernel nonesuch
refuses 1 'No such file' --symbols nonesuch hello.bin
refuses 1 'a directory, not an image' folder
refuses 1 'the file is empty' empty
truncate -s 3M big
refuses 1 'a floppy has at most 2.88 MB' --fda big
refuses 1 'not a regular file' pipe
refuses 1 'neither an ELF file nor a map' --symbols zeros hello.bin
refuses 1 'no symbols in it' --symbols words hello.bin
refuses 1 'hello.bin: ' --kernel hello.bin
refuses 1 'is not a kernel' --append x hello.bin
refuses 1 'do not lie in the guest' --flat hello.bin@0xffffffff00
refuses 1 'No such file' --trace nowhere/trace hello.bin
refuses 1 'No such file' --bus nowhere/bus hello.bin
refuses 1 'No such file' --serial nowhere/serial hello.bin
refuses 1 'symbolic link' --serial link hello.bin
: >two.trace.incomplete
refuses 1 'already exists' --trace two.trace hello.bin

run machine --serial none --trace /dev/full hello.bin
[ $status -eq 1 ] && complained 'cannot write the trace: No space left'
verdict 'a trace on a full disk' $?

# 16 KiB, which the trace of branches without a pattern (a shift register with feedback) is beyond soon. What was there before stays.
guest noise 0x7c00 <<'END'
.code16
  mov $1, %ax
1: shr $1, %ax
  jnc 1b
  xor $0xb400, %ax
  jmp 1b
END
echo before >limited.trace
(ulimit -S -f 16 && exec "$lbr" machine --serial none --screen none --until insns=3000000 --trace limited.trace --flat noise.bin@0x7c00) \
  >out 2>err <in
status=$?
[ $status -eq 1 ] && complained 'limited.trace: cannot write the trace: file size limit reached (ulimit -f); limited.trace.incomplete' &&
  [ "$(cat limited.trace)" = before ] && [ "$(stat -c %s limited.trace.incomplete)" -le 16384 ]
verdict 'a trace beyond the limit of file sizes' $?

run machine --serial /dev/full hello.bin
[ $status -eq 1 ] && complained '/dev/full: cannot write'
verdict 'the serial line to a full disk' $?

run machine --flat bus.bin@0x7c00 --bus /dev/full
[ $status -eq 1 ] && complained '/dev/full: cannot write'
verdict 'bus messages to a full disk' $?

# ---- a live screen ----

cat >live.py <<'END'
"""Runs lbr machine in a terminal: live.py TYPED SHOWN ARGUMENT... types, waits until the screen shows it, and leaves by
Ctrl-], or by SIGTERM if nothing is to be typed. The terminal must be as it was before."""
import fcntl, os, pty, re, select, signal, struct, sys, termios, time

def screen_shows(output, text):
    """Is the text in a row of the screen? Of the control sequences, those that move the cursor or clear matter."""
    rows, row, column = {}, 0, 0
    for sequence, final, letter in re.findall(rb"\033\[([0-9;?]*)([A-Za-z])|([^\033])", output, re.S):
        if final == b"H":
            row, column = ([int(number) for number in sequence.split(b";") if number] + [1, 1])[:2]
        elif final == b"J":
            rows = {}
        elif final == b"K":
            rows[row] = {place: cell for place, cell in rows.get(row, {}).items() if place < column}
        elif letter:
            rows.setdefault(row, {})[column] = letter
            column += 1
    return any(text in b"".join(cells.get(i, b" ") for i in range(200)) for cells in rows.values())

typed, shown = sys.argv[1].encode().decode("unicode_escape").encode("latin-1"), sys.argv[2].encode()
go, ready = os.pipe()
pid, fd = pty.fork()
if pid == 0:
    os.read(go, 1)
    os.execv(os.environ["LBR"], ["lbr", "machine"] + sys.argv[3:])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
before = termios.tcgetattr(fd)
os.write(ready, b"x")
output, step, deadline = b"", 0, time.time() + 100
while time.time() < deadline:
    if select.select([fd], [], [], 0.1)[0]:
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        output += data
    if step == 0 and b"Ctrl-]" in output:
        step = 1
        os.write(fd, typed) if typed else os.kill(pid, signal.SIGTERM)
    elif step == 1 and typed and screen_shows(output, shown):
        step = 2
        try:
            os.write(fd, b"\035")
        except OSError:
            pass
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
after = termios.tcgetattr(fd) # only now: the screen is given back before the terminal's settings
live, _, rest = output.partition(b"\033[?1049l")
assert b"\033[?1049h" in live and b"\033[?25h" in live[-12:], output[-300:]
assert shown in rest, (status, output[-600:])
assert after == before, (before, after)
sys.exit(status)
END
python3 live.py 'abc\x1b[AZ' 'abc Z' --flat keys.bin@0x7c00 >out 2>err
[ $? -eq 0 ]
verdict 'live: keys reach the guest, Ctrl-] ends' $?
python3 live.py 'xyq' xyq --flat keys.bin@0x7c00 --until halt >out 2>err
[ $? -eq 0 ]
verdict 'live: until halt' $?
python3 live.py '' interrupted --flat keys.bin@0x7c00 >out 2>err
[ $? -eq 143 ]
verdict 'live: SIGTERM leaves the terminal in order' $?

# ---- a terminal at the serial line ----

# Sends back what comes; q switches the machine off.
guest echo 0x7c00 <<'END'
.code16
wait:
  mov $0x3fd, %dx
  in %dx, %al
  test $1, %al
  jz wait
  mov $0x3f8, %dx
  in %dx, %al
  cmp $'q', %al
  jz off
  out %al, %dx
  jmp wait
off:
  mov $0x604, %dx
  mov $0x3400, %ax
  out %ax, %dx
  hlt
END

cat >serial.py <<'END'
"""serial.py TYPED: runs lbr machine in a terminal, types at its serial line and prints what came back; the status is that of lbr."""
import os, pty, sys, termios

typed = sys.argv[1].encode().decode("unicode_escape").encode("latin-1")
go = os.pipe()
pid, fd = pty.fork()
if pid == 0:
    os.read(go[0], 1) # not before the terminal's settings are known
    os.execv(os.environ["LBR"], ["lbr", "machine", "--flat", "echo.bin@0x7c00", "--screen", "none", "--serial", "stdio"])
before, output = termios.tcgetattr(fd), b""
os.write(go[1], b"!")
while b"Ctrl-]" not in output:
    output += os.read(fd, 4096)
while termios.tcgetattr(fd)[3] & termios.ICANON:
    pass
os.write(fd, typed)
try:
    while data := os.read(fd, 4096):
        output += data
except OSError:
    pass
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert termios.tcgetattr(fd) == before
sys.stdout.write(repr(output.partition(b"ends\r\n")[2]))
sys.exit(status)
END
python3 serial.py 'a\003b\032c\rq' >out 2>err
[ $? -eq 0 ] && said "b'a\x03b\x1ac\r" && said 'power off'
verdict 'serial terminal: every key reaches the guest, which switches off' $?
python3 serial.py 'xy\035' >out 2>err
[ $? -eq 0 ] && said 'interrupted'
verdict 'serial terminal: Ctrl-] ends' $?

# ---- several processors ----

run machine --flat pair.bin@0x7c00 --cpus 2 --dump lbr,regs --screen none
[ $status -eq 0 ] && said 'Processor 0' && said 'recording off, 0 of 32 records' && said 'Processor 1' && said 'recording on, 1 of 32 records' &&
  said '0x15  0x20  jmp' && said 'eip 00000038' && said 'eip 00000026'
verdict '--cpus 2: a dump of each' $?
mv out whole
run machine --flat pair.bin@0x7c00 --cpus 2 --until insns=17 --save pair.lbm --screen none
[ $status -eq 0 ] && run machine --load pair.lbm --dump lbr,regs --screen none && [ $status -eq 0 ] && cmp -s out whole
verdict '--cpus 2: saved in the middle, it goes on' $?
run machine --load pair.lbm --cpus 3
[ $status -eq 1 ] && complained 'the saved machine has 2'
verdict '--load: another number of processors' $?
run machine --flat pair.bin@0x7c00 --cpus 2 --json --trace pair.lbr
[ $status -eq 0 ] && python3 - out <<'END'
import json, sys
machine = json.load(open(sys.argv[1]))
[other] = machine["other_processors"]
assert other["number"] == 1 and 0 < other["instructions"] < machine["instructions"]
assert other["registers"]["rip"] == "0x26" and machine["registers"]["rip"] == "0x38"
END
verdict '--cpus 2: JSON has the other one too' $?
"$lbr" script pair.lbr >out 2>err
said '1 0 0x8015 -> 0x8020 jmp'
verdict '--cpus 2: a stream of the trace for each' $?
run machine --flat pair.bin@0x7c00 --cpus 9
[ $status -eq 2 ] && complained '1 to 8'
verdict '--cpus: too many' $?
run machine --flat pair.bin@0x7c00 --cpus 2 --gdb unix:gdb
[ $status -eq 2 ] && complained 'one processor'
verdict '--cpus 2: no gdb' $?

exit $((failures > 0))
