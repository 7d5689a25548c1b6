#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_export_lines.sh LBR: lbr export --to lcov and drcov. What is expected comes from gcc's own coverage of the same
# program, captured by lcov; test_export_lines.py compares.
. "$(dirname "$0")/shell.sh"
compare=$(realpath "$(dirname "$0")/test_export_lines.py")
cd "$scratch" || exit 1

if [ "$(uname -m)" != x86_64 ]; then
  exit 77
fi
for program in lcov genhtml; do
  command -v $program >/dev/null || { echo "$program is not here: skipped"; exit 77; }
done

record() { "$lbr" record --quiet -o "$1.lbr" "${@:2}" >/dev/null 2>record.err; }

cat >part.h <<'END'
static inline int clamp(int value, int most) {
  if (value > most)
    return most;
  return value;
}
END
cat >part.c <<'END'
#include "part.h"
int part(int n) {
  int sum = 0;
  while (n > 0) {
    sum += clamp(n, 40);
    n -= 7;
  }
  return sum;
}
END
cat >main.c <<'END'
#include <stdlib.h>
#include "part.h"
int part(int n);
static int odd(int i) {
  if (i & 1)
    return 1;
  return 0;
}
static long walk(int n) {
  long sum = 0;
  for (int i = 0; i < n; i++) {
    if (i % 3 == 0 || odd(i))
      sum += i;
    else if (i > 500 && i < 600)
      sum -= 2 * i;
    else
      sum -= i;
  }
  return sum;
}
static int never(int x) {
  if (x > 3)
    return 1;
  return x ? 2 : 3;
}
static unsigned deep(unsigned n) {
  return n < 2 ? n : deep(n - 1) + deep(n - 2);
}
int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1000;
  long sum;
  if (n == 77)
    return never(n);
  do {
    sum = walk(n) + part(n);
    n -= 100;
  } while (n > 700);
  for (unsigned i = 0; i < 5; i++)
    sum += deep(10 + i) + (unsigned)clamp((int)i, 3);
  if (sum == 0)
    abort();
  return (sum & 1) != 0;
}
END

# ---- gcc's own ----

mkdir own && cp ./*.[ch] own && (cd own && gcc -O0 -g --coverage -o own main.c part.c && ./own
  lcov --quiet --capture --directory . --rc lcov_branch_coverage=1 --output-file ../own.info >/dev/null 2>&1)
sed -i "s|^SF:$PWD/own/|SF:$PWD/|" own.info
grep -q '^DA:' own.info && grep -q '^BRDA:' own.info
verdict "gcc's coverage is there" $?

# ---- the same program, in all shapes ----

gcc -O0 -gdwarf-5 -fPIE -pie -o pie main.c part.c && gcc -O0 -gdwarf-4 -fPIE -pie -o four main.c part.c &&
  gcc -O0 -gdwarf-4 -fno-pie -no-pie -o exec main.c part.c && gcc -O0 -gdwarf-4 -shared -fPIC -o libpart.so part.c &&
  gcc -O0 -gdwarf-4 -o shared main.c -L. -lpart -Wl,-rpath,"$PWD" &&
  cp pie separate && objcopy --only-keep-debug separate separate.debug && strip separate &&
  objcopy --add-gnu-debuglink=separate.debug separate && cp four stripped && strip stripped || exit 1
for name in pie four exec shared separate; do
  record $name ./$name
  "$lbr" export -q --to lcov -o $name.info $name.lbr && python3 "$compare" lcov own.info $name.info
  verdict "$name: lines, functions and branches are counted as gcc counts them" $?
  ! grep '^SF:' $name.info | grep -v "SF:$PWD/"
  verdict "$name: only the program's own sources" $?
done
record stripped ./stripped
run export --to lcov -o stripped.info stripped.lbr
[ $status -eq 1 ] && complained 'debug information' && [ ! -e stripped.info ]
verdict "without debug information: no file, status 1" $?
"$lbr" export -q --to lcov --module libpart.so -o part.info shared.lbr && grep -q 'SF:.*part.c' part.info &&
  ! grep -q 'SF:.*main.c' part.info
verdict "one module" $?
run export --to lcov --module nosuch -o none.info shared.lbr
[ $status -eq 1 ] && complained 'nosuch' && [ ! -e none.info ]
verdict "a module that is none" $?

genhtml --quiet --branch-coverage --output-directory html pie.info >html.out 2>&1 && [ -s html/index.html ] &&
  lines=$(awk -F: '/^LH/ { h += $2 } /^LF/ { f += $2 } END { print h " of " f " lines" }' pie.info) &&
  genhtml --branch-coverage --output-directory html pie.info | grep -q "lines.*($lines)"
verdict "genhtml accepts it and finds as many lines" $?

# ---- sources of the system, and those that are gone ----

cat >header.cc <<'END'
#include <vector>
int main() {
  std::vector<int> v;
  for (int i = 0; i < 10; i++)
    v.push_back(i);
  return v.size() != 10;
}
END
g++ -O0 -g -o header header.cc && record header ./header && "$lbr" export -q --to lcov -o header.info header.lbr &&
  "$lbr" export -q --all-sources --to lcov -o all.info header.lbr && grep -q 'DA:5,10' header.info &&
  ! grep -q 'SF:/usr/' header.info && grep -q 'SF:/usr/include' all.info
verdict "headers of the system are left out, unless they are wanted" $?
mkdir gone && cp main.c part.c part.h gone && (cd gone && gcc -O0 -g -o ../gone.program main.c part.c) && rm gone/part.c
record gone ./gone.program
run export --to lcov -o gone.info gone.lbr
[ $status -eq 0 ] && complained 'cannot be read' && grep -q gone/main.c gone.info && ! grep -q gone/part.c gone.info
verdict "sources that cannot be read are left out, and it is said" $?

# ---- drcov ----

# Debian 12's addr2line takes files of DWARF 5 for others.
for name in four exec shared; do
  "$lbr" export -q --to drcov -o $name.drcov $name.lbr && python3 "$compare" drcov own.info $name.drcov $name
  verdict "$name: every field of drcov, and its blocks are the lines that ran" $?
done
"$lbr" export -q --to drcov -o stripped.drcov stripped.lbr &&
  python3 "$compare" drcov own.info stripped.drcov stripped four
verdict "drcov of a stripped program" $?
"$lbr" export -q --to drcov --module libpart.so -o part.drcov shared.lbr &&
  [ "$(strings part.drcov | grep -c '^ *[0-9]*, .*/')" = 1 ]
verdict "drcov of one module" $?

# ---- a part of it ----

for function in walk deep never; do
  "$lbr" export -q --to lcov --function $function -o part.info pie.lbr &&
    python3 "$compare" lcov-function own.info part.info $function
  verdict "lcov --function $function: its lines and branches, as gcc counts them, and no others" $?
done
for function in walk deep; do
  "$lbr" export -q --to drcov --function $function -o part.drcov four.lbr &&
    python3 "$compare" drcov-function four.drcov part.drcov four $function
  verdict "drcov --function $function: the blocks in it" $?
done
"$lbr" export -q --to lcov --module shared --module libpart.so -o part.info shared.lbr &&
  python3 "$compare" lcov own.info part.info && "$lbr" export -q --to drcov --module shared --module libpart.so -o part.drcov shared.lbr &&
  strings part.drcov | sed -n 's/^ *[0-9]*, .*\///p' | sort -u | tr '\n' ' ' | grep -qx 'libpart.so shared '
verdict "several modules" $?
"$lbr" export -q --to lcov --kind call -o part.info pie.lbr && cmp -s <(grep '^DA' part.info) <(grep '^DA' pie.info) &&
  grep -q '^BRDA.*,[1-9][0-9]*$' pie.info && ! grep -q '^BRDA.*,[1-9][0-9]*$' part.info
verdict "lcov --kind is about branches, not lines" $?
printf 'static int one(int i) { return i + 1; }\nint main(void) { return one(1) + one(2) - 5; }\n' >short.c
gcc -O0 -g -o short short.c && record short ./short && "$lbr" export -q --to lcov --function one -o short.info short.lbr &&
  [ "$(grep '^DA\|^FNDA' short.info | tr '\n' ' ')" = 'FNDA:2,one DA:1,2 ' ]
verdict "lcov --function: a function of one line" $?
for format in lcov drcov; do
  run export --to $format --function nosuch -o none.$format pie.lbr
  [ $status -eq 1 ] && complained 'that matches the options' && [ ! -e none.$format ]
  verdict "$format: a function that is none" $?
done

[ $failures -eq 0 ]
