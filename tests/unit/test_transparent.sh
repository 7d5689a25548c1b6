#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_transparent.sh LBR FOLDER [PROGRAM [CASE]]: the programs of tests/process/cases, built in FOLDER, must do the
# same under `lbr run` and `lbr record` as natively: output, errors and end. With PROGRAM only that one, with CASE only
# that case; MODES="run record" says under which commands. "again" is `lbr record` of a program (AGAIN) that runs the case
# three times: the second and third begin with what the first has translated. Each case begins with what earlier cases of the
# same program have left in the cache of `lbr cache`.
. "$(dirname "$0")/shell.sh"
folder=$(realpath "$2")
only=${3:-}
only_case=${4:-}
modes=${MODES:-run record}
mkdir "$scratch/cache"
clean=(env -i PATH=/usr/bin:/bin LANG=C HOME=/tmp XDG_CACHE_HOME="$scratch/cache")
cd "$folder" || exit 1

# native COMMAND...: as it is. Leaves the wait status as the shell has it.
native() { "${clean[@]}" timeout -s KILL 120 "$@" </dev/null >"$scratch/out" 2>"$scratch/err"; }

# recorded MODE COMMAND...: under lbr. What lbr itself says is not the program's: it goes to a file.
recorded()
{
  mode=$1
  shift
  case $mode in
  run) set -- run --output "$scratch/report" -- "$@" ;;
  record | again) set -- record --quiet --output "$scratch/trace" -- "$@" ;;
  esac
  rm -f "$scratch/trace"*
  "${clean[@]}" timeout -s KILL 120 "$lbr" "$@" </dev/null >"$scratch/out.lbr" 2>"$scratch/err.lbr"
}

# same NAME COMMAND...: as natively?
same()
{
  name=$1
  shift
  for mode in $modes; do
    [ "$mode" != again ] || set -- "$AGAIN" 3 "$@"
    (native "$@") 2>/dev/null # without the shell's word on a crash
    status=$?
    (recorded "$mode" "$@") 2>/dev/null
    found=$?
    problem=
    [ $found -eq $status ] || problem="status $found instead of $status"
    diff "$scratch/out" "$scratch/out.lbr" >"$scratch/diff" || problem="$problem; other output"
    diff "$scratch/err" "$scratch/err.lbr" >>"$scratch/diff" || problem="$problem; other errors"
    if [ "$mode" != run ] && [ -z "$problem" ]; then
      "$lbr" stat --no-symbols "$scratch/trace" >/dev/null 2>"$scratch/diff" || problem="lbr stat: status $?"
    fi
    [ -z "$problem" ]
    verdict "$mode $name${problem:+: ${problem#; }}" $?
    [ -z "$problem" ] || head -n 12 "$scratch/diff" | cut -c 1-200 | sed 's/^/  /'
  done
}

# Where a program can see the recorder, or the recorder gives up: doc/process.md. Not run unless named.
limits=' state:segment state:segment-instructions state:restartable view:status view:descriptors signal:across-exec '

wanted() { [ -z "$only" ] || [ "$only" = "$1" ]; }

for program in code death fault filter frame fresh memory process signal state storm thread view loader exception; do
  wanted $program && [ -x $program ] || continue
  for name in $(./$program); do
    [ -z "$only_case" ] || [ "$only_case" = "$name" ] || continue
    if [ -z "$only_case" ] && [[ $limits == *" $program:$name "* ]]; then
      echo "skip $program $name: a limit"
      continue
    fi
    same "$program $name" ./$program "$name"
  done
done
[ -z "$only_case" ] || exit "$((failures != 0))"

# Static programs, which set up everything themselves.
if wanted static; then
  same 'static signal nested' ./signal-static nested
  same 'static thread storage' ./thread-static storage
  same 'static process spawn' ./process-static spawn
  same 'static view vector' ./view-static vector
fi

# A cache that is full all the time: what was translated is given up again and again. With the smaller one a path does
# not live long; with the other, threads are in old ones when it is full again.
if wanted small; then
  plain=("${clean[@]}")
  for size in 20000 200000; do
    clean=("${plain[@]}" "LBR_CACHE_SIZE=$size")
    for name in alone signals threads children; do
      same "small cache: fresh $name, $size" ./fresh "$name" 30
    done
    for words in 'code protect' 'code in-place' 'code two-mappings' 'code trampolines' 'fault memory' 'process vfork' \
      'process deep-forks' 'signal nested' 'thread fork' 'thread many-at-once' 'filter usual' 'storm threads'; do
      same "small cache: $words, $size" ./$words # two words
    done
  done
  same 'small cache: memory locked' ./memory locked # with the last size
  clean=("${plain[@]}")
fi

# Every exit status, every signal.
if wanted ends; then
  modes=${MODES:-run}
  for number in 0 1 2 42 99 124 125 126 127 128 200 255; do
    same "exit $number" ./death exit $number
  done
  for number in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 23 24 25 26 27 28 29 30 31 34 64; do
    same "signal $number" ./death signal $number
  done
fi

# A core file shows the program, not the recorder.
gdb_trace() { gdb -nx -nh -batch -iex 'set debuginfod enabled off' -ex bt "$1" "$2" 2>/dev/null; }
if wanted core; then
  if ! command -v gdb >/dev/null; then
    echo 'skip core: no gdb'
  elif [ "$(cat /proc/sys/kernel/core_pattern)" != core ]; then
    echo 'skip core: it goes elsewhere'
  else
    for program in death death-static; do
      rm -f "$scratch"/core*
      (
        ulimit -c unlimited
        cd "$scratch" && "$lbr" run --output report -- "$folder/$program" null
      ) 2>/dev/null
      gdb_trace $program "$(echo "$scratch"/core*)" >"$scratch/trace"
      grep -qF 'in by_null ()' "$scratch/trace" && grep -qF 'in main ()' "$scratch/trace"
      verdict "core of $program" $?
    done
  fi
fi

# Arguments and names.
if wanted arguments; then
  modes=${MODES:-run record}
  same 'arguments' ./view all '' 'two words' "$(printf 'line\nbreak')" -- -x --help "$(printf '\377\001')"
  same 'a long argument' ./view all "$(head -c 100000 /dev/zero | tr '\0' x)"
  same 'many arguments' ./view all $(seq 2000)
  ln -sf "$folder/view" "$scratch/link"
  same 'a symbolic link' "$scratch/link" auxiliary
  same 'its /proc/self/exe' "$scratch/link" executable
  printf '#!/bin/sh\necho script "$@"\n' >"$scratch/script"
  chmod +x "$scratch/script"
  same 'a script' "$scratch/script" one 'two three'
  cat >"$scratch/small.s" <<'END'
  .globl _start
_start:
  mov $4, %eax # write
  mov $1, %ebx
  mov $text, %ecx
  mov $3, %edx
  int $0x80
  mov $1, %eax # exit
  mov $9, %ebx
  int $0x80
text: .ascii "32\n"
END
  as --32 -o "$scratch/small.o" "$scratch/small.s" && ld -m elf_i386 -o "$scratch/small" "$scratch/small.o"
  "$scratch/small" >/dev/null 2>&1
  if [ $? -eq 9 ]; then
    same 'a 32-bit program that is started by another' sh -c "$scratch/small; echo \$?"
  else
    echo 'skip 32-bit programs: they do not run here'
  fi
  printf '#!%s all\n' "$folder/view" >"$scratch/own"
  chmod +x "$scratch/own"
  same 'a script of our own' "$scratch/own" one two
fi
exit "$((failures != 0))"
