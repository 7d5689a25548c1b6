#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_store.sh LBR ORACLE SOURCES FOLDER: translations that a recording keeps for later ones. What is recorded with them
# must be what is recorded without, and what single steps show (SOURCES/compare). A file that is not the user's own, not
# whole, or of something else must not be used.
. "$(dirname "$0")/shell.sh"
oracle=$(realpath "$2")
sources=$(realpath "$3")
folder=$(realpath "$4")
cd "$scratch" || exit 1

if ! setarch -R true 2>/dev/null; then
  echo 'the kernel refuses to switch address randomisation off'
  exit 77
fi

export XDG_CACHE_HOME=$scratch/cache
mkdir cache
store=cache/lastbranch

# files: how many programs have translations in the store.
files() { find "$store" -name '*.code' 2>/dev/null | wc -l; }

# list TRACE: its branches, thread by thread.
list() { "$lbr" script --no-symbols "$1" | sort -s -n -k 1,1; }

# same NAME TRACE OTHER: the two have the same branches.
same()
{
  cmp <(list "$2") <(list "$3")
  verdict "$1" $?
}

# same_children NAME TRACE OTHER: the same without the first thread, that of a shell, in which signals come at any time.
same_children()
{
  cmp <(list "$2" | grep -v '^0 ') <(list "$3" | grep -v '^0 ')
  verdict "$1" $?
}

# change-file FILE ACTION: changes a file of the store so that its use shows: "steps". The other actions change more of it. The sum
# of its bytes is made right again, except by "sum".
cat >change-file <<'END'
import struct
import sys

START, HEADER, KNOWN, MASK = 36864, 33088, 32, (1 << 64) - 1
path, action = sys.argv[1:]
data = bytearray(open(path, "rb").read())


def file_sum():
    lanes = [0] * 4
    for words in list(struct.iter_unpack("<4Q", data[START:])) + list(struct.iter_unpack("<4Q", data[KNOWN:HEADER])):
        lanes = [((lane ^ word) * 0x9E3779B97F4A7C15 & MASK) ^ lane >> 29 for lane, word in zip(lanes, words)]
    total = 0
    for lane in lanes:
        total = ((total ^ lane) * 0x9E3779B97F4A7C15 & MASK) ^ total >> 29
    return total


def move_steps():
    """Each branch that is no head seems to come from elsewhere."""
    count = struct.unpack_from("<I", data, 288)[0]
    size = sum(struct.unpack_from("<2Q", data, 296 + 16 * i)[1] for i in range(count))
    for at in range(len(data) - size, len(data), 32):
        source, _, head, _, _, flags = struct.unpack_from("<QQIIBB", data, at)
        if head and source:
            struct.pack_into("<Q", data, at, source ^ 0x10000000)


if struct.unpack_from("<Q", data, 0)[0] != file_sum():
    sys.exit("the sum is not what this script computes")
move_steps()
if action == "epoch":
    struct.pack_into("<Q", data, 24, struct.unpack_from("<Q", data, 24)[0] ^ 1)
elif action == "numbers":
    struct.pack_into("<I", data, 32, 0x7FFFFFFF)
elif action == "short":
    del data[-4096:]
if action != "sum":
    struct.pack_into("<Q", data, 0, file_sum())
open(path, "wb").write(data)
END

# ---- a file is written, and used ----

run record --quiet -o none.lbr --no-cache /bin/true
[ "$(files)" -eq 0 ] && [ ! -e "$store" ]
verdict '--no-cache: nothing is kept' $?
run record --quiet -o cold.lbr /bin/true
code=$(find "$store" -name '*.code')
[ "$(files)" -eq 1 ] && [ "$(stat -c %a "$code" "$store" "$(dirname "$code")" | tr '\n' ' ')" = '600 700 700 ' ]
verdict 'a file that only the user can read' $?
[ "$(find "$store" -name '*.new' | wc -l)" -eq 0 ]
verdict 'no other file is left' $?
cp "$code" whole
run record --quiet -o warm.lbr /bin/true
same 'cold: the branches of a recording without a cache' none.lbr cold.lbr
same 'warm: the same branches' none.lbr warm.lbr
cmp <("$lbr" script none.lbr) <("$lbr" script warm.lbr)
verdict 'warm: the same symbols' $?
cmp "$code" whole
verdict 'nothing is written if little is new' $?

python3 change-file "$code" steps
verdict 'the sum is as documented' $?
run record --quiet -o changed.lbr /bin/true
! cmp -s <(list none.lbr) <(list changed.lbr)
verdict 'the file is used' $?
for action in sum epoch numbers short; do
  cp whole "$code"
  python3 change-file "$code" "$action"
  run record --quiet -o changed.lbr /bin/true
  same "not used: $action" none.lbr changed.lbr
done

# ---- whose file it is ----

# refuse NAME COMMAND...: after the command, the file, which would show, is not used.
refuse()
{
  name=$1
  shift
  rm -rf "$code"
  cp whole "$code"
  python3 change-file "$code" steps
  "$@"
  run record --quiet -o refused.lbr /bin/true
  same "not used: $name" none.lbr refused.lbr
  rm -rf "$code"
  cp whole "$code"
}
link_away() { mv "$code" elsewhere && ln -s "$scratch/elsewhere" "$code"; }
pipe_there() { rm "$code" && mkfifo "$code"; }
folder_there() { rm "$code" && mkdir "$code"; }
empty_there() { : >"$code"; }
refuse 'a file that others can write to' chmod 622 "$code"
refuse 'a symbolic link' link_away
refuse 'a pipe' pipe_there
refuse 'a folder' folder_there
refuse 'an empty file' empty_there
refuse 'a folder that others can write to' chmod 720 "$(dirname "$code")"
chmod 700 "$(dirname "$code")"
refuse 'a store that others can write to' chmod 702 "$store"
chmod 700 "$store"
refuse 'a cache folder that others can write to' chmod 777 cache
chmod 755 cache
if [ "$(id -u)" -eq 0 ]; then
  refuse 'the file of another user' chown 65534 "$code"
  refuse 'the store of another user' chown 65534 "$store"
  chown 0 "$store"
  refuse 'the cache folder of another user' chown 65534 cache
  chown 0 cache
fi
refuse 'a disabled cache' "$lbr" cache disable
"$lbr" cache enable

# ---- run and record share it ----

rm -rf "$store"
run run /bin/true
[ "$(files)" -eq 1 ]
verdict 'run keeps translations' $?
run record --quiet -o warm.lbr /bin/true
same 'record uses what run has kept' none.lbr warm.lbr

# ---- the branches of single steps, the first and the second time ----

"$oracle" list /bin/true 2>err
if [ $? -ne 126 ]; then
  {
    for name in kinds signal modify process thread hello-dynamic signals-static 'cases/code-static replaced' \
      'cases/code-static two-mappings' 'cases/fault-static jump' 'cases/process-static fork'; do
      echo "$folder/$name"
    done
    echo "--env LBR_CACHE_SIZE=300000 $folder/kinds"
    for number in 11 12 13; do
      "$sources/random-program" "$number" >"random$number.S" &&
        gcc -nostdlib -static -Wl,--build-id=none -o "random$number" "random$number.S"
      echo "$scratch/random$number"
      echo "--storm x $scratch/random$number"
    done
  } >runs
  settled random13
  for time in first second third; do
    echo "the $time time:"
    xargs -P 2 -L 1 "$sources/compare" "$lbr" "$oracle" --env "XDG_CACHE_HOME=$XDG_CACHE_HOME" <runs
    failures=$((failures + ($? != 0)))
  done
  [ "$(files)" -ge 10 ]
  verdict 'the programs have left translations' $?
fi

# ---- numbers ----

# Two recordings at a time: the steps of their programs must not get the same numbers.
rm -rf "$store"
mkfifo begun goes
run record --quiet -o both-cold.lbr --no-cache sh -c 'expr 1 + 2 >/dev/null; uname >/dev/null'
"$lbr" record --quiet -o first.lbr sh -c 'expr 1 + 2 >/dev/null; echo >begun; read -r line <goes' &
read -r line <begun
run record --quiet -o second.lbr uname
echo >goes
wait $!
run record --quiet -o both.lbr sh -c 'expr 1 + 2 >/dev/null; uname >/dev/null'
[ "$(files)" -ge 3 ]
verdict 'two recordings at a time keep translations' $?
same_children 'two recordings at a time give out different numbers' both-cold.lbr both.lbr

# A recording whose lbr is killed gives nothing back.
rm -rf "$store"
"$lbr" record --quiet -o killed.lbr sh -c 'expr 1 + 2 >/dev/null; echo >begun; read -r line <goes' &
read -r line <begun
kill -KILL $!
wait $! 2>/dev/null
echo >goes
run record --quiet -o second.lbr uname
run record --quiet -o both.lbr sh -c 'expr 1 + 2 >/dev/null; uname >/dev/null'
same_children 'after an lbr that was killed' both-cold.lbr both.lbr

# The numbers come to their end: a new epoch.
numbers=$(find "$store" -name numbers)
python3 - "$numbers" <<'END'
import struct
import sys
with open(sys.argv[1], "r+b") as file:
    magic, epoch, _ = struct.unpack("<3Q", file.read(24))
    file.seek(0)
    file.write(struct.pack("<3Q", magic, epoch, (1 << 26) - 256))
END
run record --quiet -o warm.lbr /bin/true
same 'a new epoch' none.lbr warm.lbr
[ "$(files)" -eq 1 ]
verdict 'a new epoch: the old files are gone' $?
for bytes in '' garbage; do
  printf '%s' "$bytes" >"$numbers"
  run record --quiet -o warm.lbr /bin/true
  same "numbers that are '$bytes'" none.lbr warm.lbr
done
exec 9<"$numbers"
flock 9
run record --quiet -o warm.lbr /bin/true
exec 9<&-
same 'numbers that another process holds' none.lbr warm.lbr

# ---- files that change ----

for version in 1 2; do
  echo "#include <stdio.h>
int main(void) { for (int i = 0; i < $version; i++) puts(\"version $version\"); }" >"v$version.c"
  gcc -O1 -o "v$version" "v$version.c" || exit 1
done
cp v1 program
touch -d '2020-01-01' program
settled program
run run ./program
run run ./program
[ "$(cat out)" = 'version 1' ]
verdict 'a program' $?
cp v2 program # the same inode and, with touch, the same time
touch -d '2020-01-01' program
settled program
run run ./program
[ "$(cat out)" = 'version 2
version 2' ]
verdict 'another program in its place' $?

# A file that goes away while a recording uses it.
for how in --no-cache '' ''; do
  # shellcheck disable=SC2086 # no word
  run record --quiet -o "gone$how.lbr" $how sh -c 'expr 1 + 2; rm -f "$0"/*/*.code; expr 1 + 2; expr 1 + 2' "$scratch/$store"
  [ "$(cat out)" = '3
3
3' ]
  verdict "a file that goes away: the output $how" $?
done
same_children 'a file that goes away: the branches' gone--no-cache.lbr gone.lbr

# ---- the report of a death ----

cat >die.c <<'END'
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words)
{
  printf("%d\n", atoi(words[0]));
  if (count > 1)
    abort();
}
END
gcc -g -O0 -o die die.c || exit 1
settled die
# report OPTION...: of how it dies, without the numbers of processes.
report() { "$lbr" run "$@" ./die now 2>&1 | sed -E 's/(process|thread) [0-9]+/\1/'; }
run run ./die
before=$(files)
cmp <(report --no-cache) <(report)
verdict 'the report of a death' $?
[ "$(files)" -eq "$before" ] && [ "$before" -gt 0 ] && report | grep -q 'main+.* die.c:8'
verdict 'and its names' $?

# ---- limits ----

rm -rf "$store"
for how in run 'record --quiet -o limit.lbr'; do
  # shellcheck disable=SC2086 # words
  (ulimit -S -f 4 && exec "$lbr" $how -- sh -c 'exit 3') >out 2>err
  [ $? -eq 3 ] && [ "$(files)" -eq 0 ]
  verdict "a limit on the size of files: ${how%% *}" $?
done
LBR_CACHE_LIMIT=1000000 run run ls /
LBR_CACHE_LIMIT=1000000 run run date
[ "$(du -sb "$store" | cut -f 1)" -le 1100000 ]
verdict 'the files that were not used for long are removed' $?
rm -rf "$store"
(unset XDG_CACHE_HOME HOME && exec "$lbr" run true)
verdict 'no home' $?
# shellcheck disable=SC2016 # for the inner shell
if unshare -m sh -c 'mount -t tmpfs -o noexec none cache' 2>/dev/null; then
  unshare -m sh -c 'mount -t tmpfs -o noexec none cache && "$LBR" run true && "$LBR" run true && [ -z "$(find cache -name "*.code")" ]'
  verdict 'a file system where nothing can be executed' $?
fi
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
  chmod 755 "$scratch" cache
  run run setpriv --reuid 65534 --clear-groups sh -c 'ls / >/dev/null'
  verdict 'a program that gives up its rights' $?
  [ "$(find "$store" -user 65534 | wc -l)" -eq 0 ] && [ "$(files)" -le 1 ]
  verdict 'and leaves nothing' $?
fi

# ---- lbr cache ----

rm -rf "$store"
run cache
[ $status -eq 0 ] && grep -q '^ *programs *0$' out
verdict 'cache: nothing' $?
run run ls /
run run date
run cache --json
python3 - "$scratch/$store" <<'END'
import json
import os
import subprocess
import sys
page = json.load(open("out"))
sizes = [os.stat(os.path.join(at, name)).st_blocks * 512 for at, _, names in os.walk(sys.argv[1]) for name in names
         if name.endswith(".code")]
assert page["folder"] == sys.argv[1] and page["enabled"] is True, page
assert sorted(file["bytes"] for file in page["files"]) == sorted(sizes), (page, sizes)
assert page["bytes"] == sum(sizes) and page["programs"] == 2
assert {os.path.realpath(file["program"]) for file in page["files"]} == {os.path.realpath("/bin/ls"), os.path.realpath("/bin/date")}
END
verdict 'cache --json: what the folder has' $?
mkdir "$store/code-0123456789abcdef" && cp "$(find "$store" -name '*.code' | head -n 1)" "$store/code-0123456789abcdef/"
run cache
[ "$(grep -c ' other ' out)" -eq 1 ]
verdict 'cache: a file of another version' $?
run cache clear
[ $status -eq 0 ] && [ "$(find "$store" -type f | wc -l)" -eq 0 ]
verdict 'cache clear' $?
run cache disable
run run ls /
run cache
[ "$(files)" -eq 0 ] && grep -q '^ *enabled *no$' out
verdict 'cache disable' $?
run cache enable
run run ls /
[ "$(files)" -eq 1 ]
verdict 'cache enable' $?
run cache nonsense
[ $status -eq 2 ] && grep -q "unknown action 'nonsense'" err
verdict 'cache: a wrong action' $?
chmod 722 "$store"
run cache clear
[ $status -eq 1 ] && grep -q 'belongs to another user or can be written to by others' err
verdict 'cache: a folder that is not ours alone' $?

exit $((failures > 0))
