#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_export_binary.sh LBR: lbr export, the profiles of one binary: bolt, fdata, autofdo, gcov, profgen. Each is given to the tool
# that it is for; its numbers must be those of gcov, or follow from a program whose loops are written out. Ways in which programs are
# linked, stripped and debugged: a profile that is right, or a message and no file.
. "$(dirname "$0")/shell.sh"
cd "$scratch" || exit 1
llvm=/usr/lib/llvm-19/bin

if [ "$(uname -m)" != x86_64 ]; then
  exit 77
fi

# record NAME PROGRAM...: makes NAME.lbr.
record() { "$lbr" record --quiet -o "$1.lbr" "${@:2}" >"$1.native" 2>&1; }

# export FORMAT NAME ARGUMENT...: makes NAME.FORMAT of NAME.lbr.
export_to() { "$lbr" export --quiet --to "$1" -o "$2.$1" "${@:3}" "$2.lbr" 2>err; }

# python EXPRESSION: must be true. Functions that read the files are in profiles.py.
python() { python3 -B -c "import sys; sys.path.insert(0, '.'); from profiles import *; sys.exit(0 if ($1) else 1)"; }

cat >profiles.py <<'END'
import re, struct, subprocess, sys
from collections import Counter

sys.dont_write_bytecode = True

def symbols(program):
    out = subprocess.run(["nm", program], capture_output=True, text=True).stdout
    return {words[2]: int(words[0], 16) for words in map(str.split, out.splitlines()) if len(words) == 3}

def bolt(name):
    """(B or F, from, to): count; an end elsewhere is None."""
    lines = [line.split() for line in open(name).read().splitlines()]
    assert all(len(line) == (5 if line[0] == "B" else 4) for line in lines)
    counts = Counter()
    for line in lines:
        counts[line[0], *(None if end == "X:0" else int(end, 16) for end in line[1:3])] += int(line[3])
    return counts

def fdata(name):
    return sorted(open(name).read().splitlines())

def entered(name, function):
    """How often a function was entered, by an fdata file."""
    lines = [line.split() for line in open(name)]
    name = lambda symbol: re.sub(r"(\.(constprop|isra|part)\.\d+)*(/\d+)?$", "", symbol)
    return sum(int(l[7]) for l in lines if name(l[4]) == function and l[5] == "0" and name(l[1]) != function)

def measured(source):
    """gcov's own counts: of lines, and of functions."""
    lines, functions, entered = {}, {}, {}
    for line in open(source + ".gcov"):
        if line.startswith("function "):
            words = line.split()
            functions[words[1]] = int(words[3])
        match = re.match(r" *([0-9]+|#####)\*?: *([0-9]+):(.*)", line)
        if match:
            lines[int(match[2])] = 0 if match[1] == "#####" else int(match[1])
    return lines, functions

def plain(source):
    """The lines with one simple statement: there a line's count is that of its instructions."""
    return {number for number, line in enumerate(open(source), 1) if line.rstrip().endswith("; //")}

def starts(source):
    """The line of each function: those that begin at the left."""
    return {re.match(r".*?(\w+)\([^(]*$", line)[1]: number for number, line in enumerate(open(source), 1)
            if re.match(r"[a-z_].*\)$", line)}

class Gcov:
    """The file as gcc 12 reads it."""
    def __init__(self, name):
        self.bytes, self.at = open(name, "rb").read(), 0
        assert (self.word(), self.word(), self.word()) == (0x67636461, 2, 0)
        assert self.word() == 0xaa000000 and self.word() == 0
        self.strings = [self.string() for _ in range(self.word())]
        assert self.word() == 0xac000000 and self.word() == 0
        self.functions = {}
        for _ in range(self.word()):
            head = self.counter()
            function = self.function()
            function["head"] = head
            self.functions[function["name"]] = function
        assert [self.word() for _ in range(3)] == [0xae000000, 0, 0] and self.at == len(self.bytes)

    def word(self):
        self.at += 4
        return struct.unpack_from("<I", self.bytes, self.at - 4)[0]

    def counter(self):
        return self.word() | self.word() << 32

    def string(self):
        size = self.word()
        self.at += size
        assert self.bytes[self.at - 1] == 0
        return self.bytes[self.at - size:self.at - 1].decode()

    def function(self):
        name, lines, calls = self.strings[self.word()], self.word(), self.word()
        result = {"name": name, "lines": {}, "targets": {}, "calls": {}}
        for _ in range(lines):
            offset, targets = self.word(), self.word()
            assert offset & 0xffff == 0
            result["lines"][offset >> 16] = self.counter()
            for _ in range(targets):
                self.word()
                target = self.strings[self.counter()]
                result["targets"][offset >> 16, target] = self.counter()
        for _ in range(calls):
            offset = self.word() >> 16
            callee = self.function()
            result["calls"][offset, callee["name"]] = callee
        return result

def llvm_text(name):
    """Functions of a text profile: total, head, lines (of the function itself)."""
    functions, current = {}, None
    for line in open(name, errors="replace"):
        match = re.match(r"([^ :]+):(\d+):(\d+)$", line)
        if match:
            current = functions[match[1]] = {"total": int(match[2]), "head": int(match[3]), "lines": {}}
        match = re.match(r" (\d+)(\.\d+)?: (\d+)( |$)", line)
        if match and current:
            lines = current["lines"]
            lines[int(match[1])] = max(lines.get(int(match[1]), 0), int(match[3]))
    return functions
END

# ---- arithmetic: a program of which every branch is known ----

cat >known.S <<'END'
  .intel_syntax noprefix
  .globl _start
  .type _start, @function
_start:
  mov ebx, 300
outer:
  call inner                    # 300
back:
  dec ebx
again:
  jnz outer                     # 299 taken, 1 passed
  mov ecx, 7
spin:
  dec ecx
spun:
  jz over                       # 1 taken, 6 passed
leap:
  jmp spin                      # 6: right behind a conditional one
over:
  mov eax, 231
  xor edi, edi
  syscall
  .size _start, . - _start
  .type inner, @function
inner:
  test ebx, 1
even:
  jz deeper                     # 150 taken, 150 passed
  nop
  .size inner, . - inner
  .type next, @function
next:                           # inner goes on into it
  nop
leave1:
  ret                           # 150
  .size next, . - next
  .type deeper, @function
deeper:
  nop
leave2:
  ret                           # 150
  .size deeper, . - deeper
END
gcc -nostdlib -static-pie -Wl,-q -o known known.S && gcc -nostdlib -static -Wl,-q -o fixed known.S || exit 1
for name in known fixed; do
  record $name ./$name && export_to bolt $name && export_to fdata $name
  verdict "a bolt profile of $name is written" $?
  cat >>profiles.py <<'END'
def branches(program):
    at, counts = symbols(program), bolt(program + ".bolt")
    wanted = {("outer", "inner"): 300, ("again", "outer"): 299, ("spun", "over"): 1, ("leap", "spin"): 6,
              ("even", "deeper"): 150, ("leave1", "back"): 150, ("leave2", "back"): 150}
    return {(a, b): counts.get(("B", at[a], at[b])) for a, b in wanted} == wanted and \
        sum(key[0] == "B" and None not in key for key in counts) == len(wanted)
def passes(program):
    at, counts = symbols(program), bolt(program + ".bolt")
    wanted = {("outer", "back"): 300, ("spun", "leap"): 6, ("spin", "spun"): 6, ("back", "again"): 300, ("next", "leave1"): 150,
              ("inner", "even"): 300, ("deeper", "leave2"): 150, ("even", "next"): None, ("leap", "over"): None}
    return {(a, b): counts.get(("F", at[a], at[b])) for a, b in wanted} == wanted and counts["F", at["again"] + 2, at["spun"]] == 1
END
  python "branches('$name')"
  verdict "its branches are those of the source" $?
  python "passes('$name')"
  verdict "its straight pieces are those of the source, none in two functions" $?
done

# ---- a program in C ----

cat >work.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile int sink;

static int odd(int x)
{
  if (x % 3 == 0)
    return 3 * x; //
  return x / 2; //
}

__attribute__((noinline)) static int work(int n)
{
  int sum = sink; //
  for (int i = 0; i < n; i++) {
    if (i % 8 == 3)
      sum += odd(i); //
    else
      sum ^= i; //
    if (sum > 100000)
      sum -= 99999; //
  }
  sink = sum; //
  return sum; //
}

static int plus(int a)
{
  return a + sink; //
}

static int minus(int a)
{
  return a - sink; //
}

static int compare(const void *a, const void *b)
{
  int one = *(const int *)a; //
  int other = *(const int *)b; //
  return one - other; //
}

__attribute__((noinline)) static int choose(int x)
{
  switch (x % 9) {
  case 0:
    return sink; //
  case 1:
    return x + 5; //
  case 2:
    sink++; //
    return 9; //
  case 3:
    return x ^ sink; //
  case 4:
    sink--; //
    return 8; //
  case 5:
    return 4 * sink; //
  default:
    return x; //
  }
}

int main(int argc, char **argv)
{
  int (*volatile go[2])(int) = {plus, minus};
  int numbers[200];
  unsigned total = (unsigned)argc;
  (void)argv;
  for (int i = 0; i < 1000; i++)
    total += (unsigned)work(80); //
  for (int i = 0; i < 500; i++)
    total += (unsigned)go[i % 5 == 0](i); //
  for (int i = 0; i < 200; i++)
    numbers[i] = (int)(total * (unsigned)i % 977); //
  qsort(numbers, 200, sizeof(*numbers), compare);
  for (int i = 0; i < 200; i++)
    total += (unsigned)choose(numbers[i]); //
  printf("%u\n", total); //
  return 0; //
}
END

mkdir measured && (cd measured && gcc -O0 --coverage -o work ../work.c && ./work >/dev/null && gcov -b work-work.gcda work.gcda) >/dev/null 2>&1
cp measured/work.c.gcov . 2>/dev/null && python "measured('work.c')[1]['work'] == 1000"
verdict "gcov counts the program" $?

# bolts NAME PROGRAM FILE: perf2bolt takes NAME.bolt for FILE without complaint and makes of it what NAME.fdata is; llvm-bolt takes
# that, and PROGRAM runs as before with what it makes.
bolts()
{
  "$llvm/perf2bolt" -pa -p "$1.bolt" -o "$1.theirs" "./$3" >log 2>&1 &&
    grep -q 'mismatching disassembled function contents: 0 (0.0%)' log &&
    grep -q 'Out of range traces involving unknown regions: 0 (0.0%)' log &&
    python "fdata('$1.theirs') == fdata('$1.fdata') and len(fdata('$1.fdata')) > 5" &&
    merge-fdata-19 "$1.fdata" "$1.fdata" >"$1.twice" 2>/dev/null &&
    python "entered('$1.twice', 'work') == 2 * entered('$1.fdata', 'work')" &&
    llvm-bolt-19 "./$3" -data="$1.fdata" -o "$3.bolted" -reorder-blocks=ext-tsp -reorder-functions=hfsort -split-functions >log 2>&1 &&
    ! grep -q BOLT-ERROR log && mv "$3.bolted" "$3" && "./$2" >again && cmp -s again "$1.native"
}

for way in '-O2' '-O2 -no-pie -fno-pie' '-O0' '-O3 -fno-plt -Wl,-z,now -gdwarf-4'; do
  gcc $way -g -Wl,-q -o work work.c && record work ./work && export_to bolt work && export_to fdata work &&
    python "all(entered('work.fdata', f) == measured('work.c')[1][f] for f in ('work', 'choose', 'plus', 'minus', 'compare', 'main'))"
  verdict "$way: functions are entered as often as gcov says" $?
  bolts work work work
  verdict "$way: BOLT takes both profiles as the same, and what it makes runs" $?
done

cat >throws.cpp <<'END'
#include <algorithm>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace shop {
struct Guard {
  int *count;
  ~Guard() { ++*count; }
};
class Till {
  std::map<std::string, int> sums;

public:
  int add(const std::string &word, int *count)
  {
    Guard guard{count};
    int value = std::stoi(word);
    if (value % 3 == 0)
      throw std::runtime_error("no " + word);
    return sums[word] += value;
  }
};
}

int main()
{
  shop::Till till;
  std::vector<int> values;
  int count = 0;
  for (int i = 0; i < 300; i++)
    try {
      values.push_back(till.add(std::to_string(i * 7 % 101), &count));
    } catch (const std::exception &error) {
      count += error.what()[0];
    }
  std::sort(values.begin(), values.end(), [](int a, int b) { return a > b; });
  std::printf("%d %d\n", count, values[3]);
}
END
g++ -O2 -g -Wl,-q -o throws throws.cpp && record throws ./throws && export_to bolt throws && export_to fdata throws && export_to gcov throws &&
  bolts throws throws throws
verdict "C++ with exceptions: BOLT takes both profiles as the same, and what it makes runs" $?

cat >library.c <<'END'
static int helper(int x)
{
  return x % 3 ? x * 5 : x + 1;
}
int work(int n)
{
  int sum = 0;
  for (int i = 0; i < n; i++)
    sum += helper(i ^ sum) & 0xff;
  return sum;
}
END
printf '#include <stdio.h>\nint work(int n);\nint main(void) { int t = 0; for (int i = 0; i < 50; i++) t += work(i * 10); printf("%%d\\n", t); }\n' >user.c
gcc -O2 -g -fPIC -shared -Wl,-q -o libwork.so library.c && gcc -O2 -o user user.c -L. -lwork "-Wl,-rpath,\$ORIGIN" && record user ./user &&
  export_to bolt user --module libwork.so && export_to fdata user --module libwork.so && python "entered('user.fdata', 'work') == 50" &&
  export_to profgen user --module libwork.so && export_to gcov user --module libwork.so &&
  python "Gcov('user.gcov').functions['work']['head'] == 50" && bolts user user libwork.so
verdict "a shared library is profiled with --module" $?

# ---- by lines ----

for version in 4 5; do
  gcc -O0 "-gdwarf-$version" -o lines work.c && record lines ./lines && export_to gcov lines &&
    cat >>profiles.py <<'END'
def lines_are_right():
    gcov, (lines, functions), first, checked = Gcov("lines.gcov"), measured("work.c"), starts("work.c"), 0
    for function, line in first.items():
        mine = gcov.functions[function]
        if mine["head"] != functions[function] or mine["calls"]:
            return print(function, mine)
        for number in plain("work.c"):
            if line < number < min([n for n in first.values() if n > line], default=1 << 30):
                checked += 1
                if mine["lines"].get(number - line, 0) != lines[number]:
                    return print(function, number, mine["lines"], lines[number])
    return checked == len(plain("work.c")) > 25
END
  python 'lines_are_right()'
  verdict "gcov, DWARF $version: every line and every function as gcov itself counts them" $?
done
python "{t: c for (l, t), c in Gcov('lines.gcov').functions['main']['targets'].items()} == {'plus': 400, 'minus': 100}"
verdict "gcov: where indirect calls led" $?

gcc -O2 -g -o lines work.c && record lines ./lines && export_to gcov lines &&
  python "[c['name'] for c in Gcov('lines.gcov').functions['work']['calls'].values()] == ['odd']" &&
  python "set(Gcov('lines.gcov').functions['work']['calls'][5, 'odd']['lines'].values()) == {10000}"
verdict "gcov: what is inlined has its own lines" $?
gcc -O2 -g -fauto-profile=lines.gcov -fdump-tree-optimized-blocks -c -o lines.o work.c 2>log && [ ! -s log ] &&
  sed -n '/^;; Function work /,/^;; Function [^w]/p' work.c.*optimized lines.c.*optimized lines.*optimized 2>/dev/null >dump
for count in 1000 80000 10000 70000; do
  grep -q "basic block.* count $count (auto FDO" dump || break
done
verdict "gcc -fauto-profile takes it, and its dump has our counts" $?
g++ -O2 -g -fauto-profile=throws.gcov -o throws throws.cpp && ./throws >again && cmp -s again throws.native
verdict "g++ takes a profile of C++" $?

# ---- AutoFDO, llvm-profgen ----

gcc -O0 -gdwarf-4 -o lines work.c && record lines ./lines && export_to autofdo lines && ! [ -s err ] &&
  create_llvm_prof --profiler=text --profile=lines.autofdo --binary=lines --out=lines.prof --format=text >/dev/null 2>&1
verdict "autofdo: create_llvm_prof takes it" $?
cat >>profiles.py <<'END'
def text_is_right(name, has_heads):
    theirs, (lines, functions), first = llvm_text(name), measured("work.c"), starts("work.c")
    for function, line in first.items():
        if has_heads and theirs[function]["head"] != functions[function]:
            return print(function, theirs[function])
        for number in plain("work.c"):
            if line < number < min([n for n in first.values() if n > line], default=1 << 30) and \
                    theirs[function]["lines"].get(number - line, 0) != lines[number]:
                return print(function, number, theirs[function], lines[number])
    return True
def totals_are_right():
    """create_llvm_prof adds up bytes from the first to the last address of each range."""
    text, at = open("lines.autofdo").read().split("\n"), symbols("lines")
    sums = Counter()
    for line in text[1:1 + int(text[0])]:
        first, last, count = re.match(r"(\w+)-(\w+):(\d+)", line).groups()
        first, last = int(first, 16), int(last, 16)
        sums[max((a, f) for f, a in at.items() if a <= first)[1]] += (last - first + 1) * int(count)
    return all(llvm_text("lines.prof")[f]["total"] == sums[f] for f in starts("work.c"))
END
python "text_is_right('lines.prof', False) and totals_are_right()"
verdict "autofdo: lines as gcov counts them, totals of functions as ours" $?
export_to profgen lines && llvm-profgen-19 --unsymbolized-profile=lines.profgen --binary=lines --format=text -o lines.prof 2>log &&
  python "text_is_right('lines.prof', True)"
verdict "profgen: llvm-profgen takes it; lines and entries as gcov counts them" $?
gcc -O0 -g -no-pie -o lines work.c && record lines ./lines && export_to profgen lines &&
  llvm-profgen-19 --unsymbolized-profile=lines.profgen --binary=lines --format=text -o lines.prof 2>log && python "text_is_right('lines.prof', True)"
verdict "profgen: the same for a program at a fixed address, with DWARF 5" $?
export_to autofdo lines && grep -q 'warning: .*lines has DWARF 5: AutoFDO' err
verdict "autofdo: DWARF 5 is warned about" $?

# ---- a part of it ----

cat >>profiles.py <<'END'
import functools
@functools.cache # it is asked for each line of a profile
def bounds(program, function):
    out = subprocess.run(["nm", "-S", program], capture_output=True, text=True).stdout
    (start, size), = ((int(w[0], 16), int(w[1], 16)) for w in map(str.split, out.splitlines()) if w[-1] == function)
    return range(start, start + size)
def kinds(program, pattern):
    """Where an instruction of this kind is, by objdump."""
    out = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], capture_output=True, text=True).stdout
    return {int(m[1], 16) for m in re.finditer(r"^ *([0-9a-f]+):\t(?:bnd |notrack )*(\w+)", out, re.M) if re.fullmatch(pattern, m[2])}
def part_is(branch, straight=lambda first: True):
    """The part of the profile: branches by both ends, straight pieces by where they begin."""
    whole, part = bolt("whole.bolt"), bolt("part.bolt")
    wanted = {(t, a, b): n for (t, a, b), n in whole.items() if (branch(a, b) if t == "B" else straight(a))}
    return 0 < len(wanted) < len(whole) and (wanted == part or print(set(wanted.items()) ^ set(part.items())))
def listed(name):
    """The two lists of a profile for AutoFDO or llvm-profgen: kind, from, to, count."""
    return {(kind, int(a, 16), int(b, 16), int(n)) for a, kind, b, n in
            re.findall(r"^(\w+)(->|-)(\w+):(\d+)$", open(name).read(), re.M)}
def list_is(format, inside):
    whole, part = listed("whole." + format), listed("part." + format)
    wanted = {l for l in whole if l[1] in inside or l[0] == "->" and l[2] in inside}
    return 0 < len(wanted) < len(whole) and wanted == part
END
gcc -O1 -gdwarf-4 -Wl,-q -o whole work.c && record whole ./whole && cp whole.lbr part.lbr && export_to bolt whole && export_to fdata whole &&
  export_to gcov whole && export_to autofdo whole && export_to profgen whole
verdict "a profile of which parts are taken" $?

# part WORDS EXPRESSION OPTION...: that part of the bolt profile is what the expression keeps of the whole; BOLT makes of it what the
# fdata profile of the same part is.
part()
{
  export_to bolt part "${@:3}" && python "$2"
  verdict "bolt: $1" $?
  export_to fdata part "${@:3}" && "$llvm/perf2bolt" -pa -p part.bolt -o part.theirs ./whole >log 2>&1 &&
    python "fdata('part.theirs') == fdata('part.fdata') and len(fdata('part.fdata')) > 1"
  verdict "fdata: $1" $?
}
inside() { echo "(lambda f: part_is(lambda a, b: a in f or b in f, lambda a: a in f))($1)"; }
for function in work choose main; do
  part "--function $function" "$(inside "bounds('whole', '$function')")" --function $function
done
part "any of two functions" "$(inside "{*bounds('whole', 'plus'), *bounds('whole', 'choose')}")" --function plus --function choose
part "--kind jcc" "part_is(lambda a, b: a in kinds('whole', 'j(?!mp).*'))" --kind jcc
part "--from, by name" "part_is(lambda a, b: a in bounds('whole', 'choose'))" --from choose
range=$(python3 -c 'from profiles import *; at = bounds("whole", "choose"); print(f"{at[0]:#x}..{at[-1]:#x}")')
part "--from, by addresses as they are linked" "part_is(lambda a, b: a in bounds('whole', 'choose'))" --from "$range"
part "--into a place in a function" "part_is(lambda a, b: b == bounds('whole', 'work')[0])" --into work+0
part "--from and --function" \
  "part_is(lambda a, b: a in bounds('whole', 'main') and b in bounds('whole', 'work'), lambda a: a in bounds('whole', 'work'))" \
  --from main --function work
for format in autofdo profgen; do
  # Offsets in the file, which here are the addresses; and addresses behind the first page of code.
  base=$([ $format = autofdo ] && echo 0 || echo 0x1000)
  export_to $format part --function work && python "list_is('$format', {a - $base for a in bounds('whole', 'work')})"
  verdict "$format: --function" $?
done
export_to gcov part --function work &&
  python "(lambda w, p: set(p) == {'work'} and p['work'] == w['work'] and len(w) > 5)(Gcov('whole.gcov').functions, Gcov('part.gcov').functions)"
verdict "gcov: --function" $?
gcc -O2 -g -fPIC -shared -o libwork.so library.c && record both ./user && export_to gcov both --module libwork.so --module 'libc.so*' &&
  grep -q 'the profile is about .*libwork.so; .*libc.so.*needs a separate profile' err
verdict "two modules: the profile is about one, and it is said" $?

# ---- what cannot be ----

# refused STATUS WORDS ARGUMENT...: an export is refused with these words, and leaves no file.
refused()
{
  rm -f no
  "$lbr" export -o no "${@:3}" >out 2>err
  [ $? -eq "$1" ] && grep -q -- "$2" err && [ ! -e no ] && ! ls | grep -q '^no\.'
}

gcc -O2 -Wl,-q -o bare work.c && strip bare && record bare ./bare
for format in bolt fdata; do
  refused 1 'bare has no symbol table' --to $format bare.lbr
  verdict "$format: a stripped program is refused" $?
done
for format in autofdo gcov profgen; do
  refused 1 'bare has no debug information' --to $format bare.lbr
  verdict "$format: a program without debug information is refused" $?
done
gcc -O0 -g -Wl,-q -o apart work.c && objcopy --only-keep-debug apart apart.debug && strip -g apart && objcopy --add-gnu-debuglink=apart.debug apart &&
  record lines ./apart && sed -i 's/"lines.gcov"/"apart.gcov"/' profiles.py && cp lines.lbr apart.lbr && export_to gcov apart && python 'lines_are_right()'
verdict "gcov: debug information in a separate file" $?
export_to bolt apart && cp apart.native again 2>/dev/null
export_to fdata apart && python "entered('apart.fdata', 'work') == 1000"
verdict "bolt and fdata: the same" $?
export_to autofdo apart && grep -q 'is in a separate file' err && export_to profgen apart && grep -q 'is in a separate file' err
verdict "autofdo and profgen say so" $?
mv apart moved
refused 1 'apart: No such file or directory; this format needs the file' --to bolt apart.lbr
verdict "a program that is gone is refused" $?
gcc -O1 -g -Wl,-q -o apart work.c
for format in bolt fdata autofdo gcov profgen; do
  refused 1 'apart: not the file that ran' --to $format apart.lbr
  verdict "$format: another program of that name is refused" $?
done
refused 1 "no module 'libnone.so' in the trace" --to bolt --module libnone.so user.lbr
verdict "a module that did not run is refused" $?
for format in bolt fdata autofdo gcov profgen; do
  refused 1 'that matches the options ran in this trace' --to $format --function nosuch whole.lbr
  verdict "$format: a function that is none is refused" $?
done

exit $((failures > 0))
