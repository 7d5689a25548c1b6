#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_diff.sh LBR PROGRAMS: lbr diff. Where two runs of a program part, and what their functions ran, must be what follows
# from its source (test_script_scan.S); runs that differ in nothing but their addresses must be the same. PROGRAMS is the folder with the
# programs of tests/process.
. "$(dirname "$0")/shell.sh"
here=$(realpath "$(dirname "$0")")
programs=$(realpath "$2")
cd "$scratch" || exit 1

# record NAME PROGRAM ARGUMENT...: a trace of that name, with random addresses.
record()
{
  name=$1
  shift
  "$lbr" record --quiet --aslr -o "$name.lbr" "$@" >/dev/null
}

# finds STATUS NAME PYTHON: the exit status, and what is true of the JSON in out; `part` is the first difference of the first
# pair of threads.
finds()
{
  [ "$status" -eq "$1" ] && python3 - "$3" <<'END'
import json, sys
page = json.load(open("out"))
pair = page["threads"][0]
part = (pair["differences"] or [None])[0]

def places(branches):
    return [(b["from"]["symbol"], int(b["from"]["offset"], 16), b["to"]["symbol"], int(b["to"]["offset"], 16), b["kind"]) for b in branches]

def function(name):
    return next((f for f in page["counts"]["functions"] if f["function"] == name), None)

sys.exit(not eval("(" + sys.argv[1] + ")"))
END
  verdict "$2" $?
}

# ---- one letter ----

gcc -nostdlib -static-pie -o scan "$here/test_script_scan.S" || exit 1
record one ./scan xyz
record same ./scan xyz
record other ./scan xaz
record longer ./scan xyzz
objdump -d --no-show-raw-insn scan >code
# offset FUNCTION INSTRUCTION N: of the Nth such instruction of a function.
offset()
{
  python3 - "$@" <<'END'
import re, sys
name, what, number = sys.argv[1:]
start, body = re.search(rf"^(\w+) <{name}>:\n(.*?)(?:\n\n|\Z)", open("code").read(), re.M | re.S).groups()
found = [line.split(":")[0] for line in body.splitlines() if line.split(":")[1].split()[0].startswith(what)]
print(int(found[int(number) - 1], 16) - int(start, 16))
END
}
je=$(offset vowel je 1) no=$(offset vowel ret 1) yes=$(offset vowel ret 2) call=$(offset scan call 1)
[ -n "$je" ] && [ -n "$no" ] && [ -n "$yes" ] && [ -n "$call" ]
verdict 'offsets in the program' $?

run diff one.lbr same.lbr
[ $status -eq 0 ] && said equal && ! said part && ! [ -s err ] &&
  [ "$("$lbr" script --top 1 -F from one.lbr)" != "$("$lbr" script --top 1 -F from same.lbr)" ]
verdict 'the same run at other addresses: equal' $?
run diff --json one.lbr same.lbr
finds 0 'the same, as JSON' 'page["verdict"] == "equal" and pair["same_branches"] == pair["branches_a"] == 13 and "counts" not in page'

# A letter takes a call, a return and the jump back, so the second letter is looked at by branch 4, and they part at 5.
run diff --json one.lbr other.lbr
finds 1 'they part at the jump that only one of them takes' \
  "part['number_a'] == part['number_b'] == 5 and part['why'] == 'B takes the jcc at vowel+' + hex($je) + '; A goes past it'"
finds 1 'what both did before' \
  "[b['number'] for b in part['before']] == [0, 1, 2, 3, 4] and places(part['before'])[-1] == ('scan', $call, 'vowel', 0, 'call')"
finds 1 'what each did after' "places(part['a'])[0][:2] == ('vowel', $no) and [p[:2] for p in places(part['b'])[:2]] == [('vowel', $je), ('vowel', $yes)]"
# A runs cmp, je, xor, ret for each letter, B cmp, je, mov, ret for the a: as many instructions, one more branch.
finds 1 'counts' "page['counts']['branches_b'] - page['counts']['branches_a'] == 1 and
  (lambda f: (f['instructions_a'], f['instructions_b'], f['branches_a'], f['branches_b'], f['entered_a'], f['entered_b']))(function('vowel')) == (12, 12, 3, 4, 3, 3)
  and function('scan') is None"
run diff one.lbr other.lbr
[ $status -eq 1 ] && said 'They part' && said "B takes the jcc at vowel+0x$(printf %x "$je"); A goes past it" && said 'Functions whose counts'
verdict 'the same as text' $?
run diff --before 2 --after 3 --no-counts --json one.lbr other.lbr
finds 1 '--before, --after, --no-counts' 'len(part["before"]) == 2 and len(part["a"]) == len(part["b"]) == 3 and "counts" not in page'

run diff one.lbr same.lbr
[[ $(head -n 1 out) =~ ^\ *verdict\ +equal:\ 13\ branches$ ]]
verdict 'the first line: equal' $?
run diff one.lbr other.lbr
[[ $(head -n 1 out) =~ ^\ *verdict\ +different:\ thread\ 0:\ they\ part\ at\ branch\ 5\ in\ vowel$ ]] && [ "$(grep -c verdict out)" -eq 1 ]
verdict 'the first line: where they part' $?

# One letter more: the loop goes on where the other ends: at the test at its head. 3 letters: 1 + 3 * 3 branches before.
run diff --json one.lbr longer.lbr
finds 1 'a longer run' "part['number_a'] == 10 and part['why'].startswith('A takes the jcc at scan+') and
  (pair['branches_a'], pair['branches_b']) == (13, 16) and function('vowel')['entered_a'] == 3 and function('vowel')['entered_b'] == 4
  and function('vowel')['instructions_b'] - function('vowel')['instructions_a'] == 4 and function('scan')['instructions_b'] - function('scan')['instructions_a'] == 7"

# ---- together again ----

text=$(printf 'xyz%.0s' $(seq 40))
record base ./scan "${text}xyzxyz$text"
record changed ./scan "${text}xazxyz$text"
record twice ./scan "${text}xazxaz$text"
record grown ./scan "${text}xyzxyz$text$text"
run diff --resync --json base.lbr changed.lbr
finds 1 '--resync: one difference' "len(pair['differences']) == 1 and (part['branches_of_a_alone'], part['branches_of_b_alone']) == (1, 2)
  and pair['same_branches'] == pair['branches_a'] - 1 == pair['branches_b'] - 2"
run diff --resync --json base.lbr twice.lbr
finds 1 '--resync: two close to each other' "sum(d['branches_of_b_alone'] - d['branches_of_a_alone'] for d in pair['differences']) == 2"
run diff --resync --differences 1 --json base.lbr twice.lbr
finds 1 '--resync --differences' 'len(pair["differences"]) == 1'
run diff --resync --json base.lbr grown.lbr
finds 1 '--resync: 120 letters more' "part['branches_of_a_alone'] == 0 and part['branches_of_b_alone'] == 360"

# ---- filters ----

run diff --kind call --json one.lbr other.lbr
finds 0 '--kind: they differ in nothing else' 'pair["same_branches"] == 4'
run diff --function vowel --kind jcc --json one.lbr other.lbr
finds 1 '--function --kind' "part['number_a'] is None and part['number_b'] == 5 and part['why'] == 'A has no more such branches; B takes the jcc at vowel+' + hex($je)"

# Both are at the head of vowel: all branches there are compared, so the first in the code is the one that parts them.
for filter in '--function vowel' '--module scan'; do
  # shellcheck disable=SC2086
  run diff $filter --json one.lbr other.lbr
  finds 1 "$filter: why" "part['number_b'] == 5 and part['why'] == 'B takes the jcc at vowel+' + hex($je) + '; A goes past it'"
done
run diff --kind ret --json one.lbr other.lbr
finds 1 '--kind: why' "part['why'].startswith('the next such branch is the ret at vowel+' + hex($no)) and ' in A, and the ret at vowel+' + hex($yes) in part['why']"

# ---- another build ----

sed 's/^_start:/  .skip 64, 0x90\n_start:/' "$here/test_script_scan.S" >moved.S
mkdir -p new && gcc -nostdlib -static-pie -o new/scan moved.S && record moved ./new/scan xyz && record moved_other ./new/scan xaz
run diff one.lbr moved.lbr
[ $status -eq 0 ] && said 'were compared by symbol and offset' && said equal
verdict 'a build in which functions lie elsewhere: equal, by symbols' $?
run diff --json one.lbr moved_other.lbr
finds 1 'another build and another letter' "part['number_a'] == 5 and part['why'].startswith('B takes the jcc at vowel+') and page['by_symbol_a'].endswith('/scan')"

# ---- programs with a C library ----

if "$programs/hello-static" >/dev/null; then
  setarch -R true 2>/dev/null && for name in first second; do setarch -R "$lbr" record --quiet -o $name.lbr "$programs/hello-static" >/dev/null; done
  run diff first.lbr second.lbr
  [ $status -eq 0 ]
  verdict 'hello-static without randomisation: equal' $?
  for name in first second; do record $name "$programs/hello-dynamic"; done
  run diff --json --module hello-dynamic first.lbr second.lbr
  finds 0 'hello-dynamic with randomisation, itself: equal' 'pair["same_branches"] > 0'
fi

# ---- string functions ----

# Where its strings lie is up to the first letter: at the start of a page, or across the end of one. It looks for an x in the rest.
cat >align.c <<'END'
#include <string.h>
static char pages[8192] __attribute__((aligned(4096)));
static volatile int found;
int main(int argc, char **argv)
{
  char *text = pages + (argv[1][0] - '0') * 4093;
  memcpy(text, argv[1] + 1, 6);
  found = (int)strlen(text) + argc;
  if (strchr(text, 'x'))
    found++;
  return 0;
}
END
gcc -O1 -fno-builtin -o align align.c && record low ./align 0hello && record high ./align 1hello && record letter ./align 1hexlo
objdump -d --no-show-raw-insn align >code
branch=$(offset main j 1)
run diff --json low.lbr high.lbr
finds 0 'string functions that take other branches for other addresses: equal' 'pair["skipped"] >= 1 and page["summary"].startswith("equal: ")'
run diff low.lbr high.lbr
[ $status -eq 0 ] && said 'in string functions of the C library' && said -- '--strict'
verdict 'the same as text' $?
run diff --strict --json low.lbr high.lbr
finds 1 '--strict: they part there' 'pair["skipped"] == 0 and any(name in part["why"] for name in ("str", "mem"))'
run diff --json low.lbr letter.lbr
finds 1 'a string function that returns something else: they part in its caller' \
  "part['why'].endswith('; B goes past it') and part['why'].startswith('A takes the jcc at main+' + hex($branch)) and page['summary'].endswith(' in main')"
run diff --module align --json low.lbr letter.lbr
finds 1 'the same with --module' \
  "part['why'].endswith('; B goes past it') and part['why'].startswith('A takes the jcc at main+' + hex($branch)) and pair['skipped'] == 0"
run diff --module align --strict --json low.lbr high.lbr
finds 0 '--module: where a library returns from does not matter' 'pair["same_branches"] > 0'
# A C library of which no debug file is found (its build-id and the file's name are changed): its versions have no names.
# shellcheck disable=SC2046 # several words
mkdir -p bare && python3 - $(ldd align | grep -o '/[^ ]*') <<'END'
import os, re, struct, sys
for path in sys.argv[1:]:
    data = bytearray(open(path, "rb").read())
    note = data.find(struct.pack("<III", 4, 20, 3) + b"GNU\0")
    data[note + 16] ^= 0xFF
    for name in re.finditer(rb"[0-9a-f]{38}\.debug\0", bytes(data)):
        data[name.start()] = ord("z")
    copy = "bare/" + os.path.basename(path)
    open(copy, "wb").write(data)
    os.chmod(copy, 0o755)
END
gcc -O1 -fno-builtin -o align_bare align.c -Wl,-rpath,"$scratch/bare" -Wl,-dynamic-linker,"$(echo "$scratch"/bare/ld-*)" &&
  record low ./align_bare 0hello && record high ./align_bare 1hello && record letter ./align_bare 1hexlo
run diff --json low.lbr high.lbr
finds 0 'a C library without symbols: equal' 'pair["skipped"] >= 1'
run diff --strict --json low.lbr high.lbr
finds 1 'a C library without symbols, --strict' 'part["a"][0]["from"]["symbol"] is None and part["a"][0]["from"]["module"] in ("libc.so.6", "ld-linux-x86-64.so.2")'
run diff --json low.lbr letter.lbr
finds 1 'a C library without symbols: they part in the caller' "part['why'].startswith('A takes the jcc at main+') and page['summary'].endswith(' in main')"
sed 's/vowel/strchr/g' "$here/test_script_scan.S" >own.S
gcc -nostdlib -static-pie -o own own.S && record own ./own xyz && record own_other ./own xaz
run diff --json own.lbr own_other.lbr
finds 1 "a program's own strchr is compared" "part['why'] == 'B takes the jcc at strchr+' + hex($je) + '; A goes past it'"

# ---- threads ----

cat >workers.c <<'END'
#include <pthread.h>
#include <stdlib.h>
static volatile int sum;
static void *work(void *count)
{
  for (int i = 0; i < *(int *)count; i++)
    sum++;
  return NULL;
}
int main(int argc, char **argv)
{
  for (int i = 1; i < argc; i++) {
    int count = atoi(argv[i]);
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, &count) || pthread_join(thread, NULL))
      return 1;
  }
  return 0;
}
END
gcc -O1 -o workers workers.c -pthread && record three ./workers 5 6 7 && record third ./workers 5 6 8 && record two ./workers 5 6
run diff --module workers --json three.lbr third.lbr
finds 1 'threads: the one that differs' '[t["result"] for t in page["threads"]][1:] == ["equal", "equal", "different"]'
run diff --module workers --thread 1 three.lbr third.lbr
[ $status -eq 0 ]
verdict '--thread: one that does not' $?
run diff --module workers --thread 1:2 --json three.lbr third.lbr
finds 1 '--thread N:M' '(pair["thread_a"], pair["thread_b"]) == (1, 2) and function("work")["branches_b"] - function("work")["branches_a"] == 1'
run diff --module workers --json three.lbr two.lbr
finds 1 'a thread that only one of them has' 'page["threads"][3]["result"] == "only in A" and page["threads"][2]["result"] == "equal"'

# ---- trouble ----

# fails WORDS ARGUMENT...: exit status 2.
fails()
{
  words=$1
  shift
  run diff "$@"
  [ $status -eq 2 ] && complained "$words"
  verdict "diff $*: $words" $?
}
fails 'name two traces' one.lbr
fails 'not more' one.lbr same.lbr other.lbr
fails 'No such file' one.lbr nosuch.lbr
fails 'no thread 7' --thread 7 one.lbr same.lbr
fails '--no-symbols excludes options' --no-symbols --function scan one.lbr same.lbr
head -c -40 same.lbr >cut.lbr
run diff one.lbr cut.lbr
[ $status -eq 2 ] && complained 'truncated: '
verdict 'a trace that is cut: nobody can tell' $?
run diff --no-symbols --no-counts one.lbr other.lbr
[ $status -eq 1 ] && said 'scan+0x'
verdict '--no-symbols: files and offsets' $?
exit "$((failures != 0))"
