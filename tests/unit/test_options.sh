#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_options.sh LBR: options that several commands have are spelled the same and mean the same in all of them.
. "$(dirname "$0")/shell.sh"
root=$(realpath "$(dirname "$0")/../..")
commands=$(cd "$root" && tests/tools/list-commands)
cd "$scratch" || exit 1

# ---- spelling ----

for command in $commands; do
  "$lbr" "$command" --help >"$command.help" 2>/dev/null
done

# Each option has one letter and one word for its argument, and a letter stands for one option everywhere.
# shellcheck disable=SC2086
python3 - $commands <<'END'
import re, sys

# Letters and arguments that differ for a reason.
ARGUMENTS = {"thread": {"=THREAD", "=N[:M]"}, "to": {"=PLACE", "=FORMAT"}, "gdb": {"=PORT|unix:PATH", "[=PORT|unix:PATH]"},
             "around": {"=PLACE", "=WHERE"}, "predictor": {"=KIND", "=MODEL"},
             "before": {"=N", "=TIME"}, "after": {"=N", "=TIME"},  # diff: lines; record: around a trigger
             "interval": {"=SECONDS", "=TIME"}, "pid": {"=PID", "=PID[,PID...]"},
             "kernel": {"", "=FILE"}}  # live: a CPL; machine: a file
LETTERS = {"n": {"names", "cpu-number", "tail"}}
ROWS = {"stat", "report", "calls", "script", "diff", "decode", "top"}
SIZES = {"record", "view"}
FILES = {"cache", "cpu", "sim", "run", "record", "script", "calls", "stat", "view", "report", "annotate", "export", "diff", "replay",
         "lab"}
JSON = {"cache", "cpu", "decode", "sim", "machine", "run", "script", "calls", "stat", "report", "annotate", "diff", "replay", "live",
        "lab", "top"}
wrong = []
letters, arguments, of = {}, {}, {}
for command in sys.argv[1:]:
    text = open(command + ".help", encoding="utf-8").read()
    rows = re.findall(r"^ +(?:-(.), )?--([a-z0-9-]+)(\[?=\S+)?(?= |$)", text, re.M)
    of[command] = {name: argument for letter, name, argument in rows}
    for letter, name, argument in rows:
        arguments.setdefault(name, set()).add(argument)
        if letter:
            letters.setdefault(letter, set()).add(name)
for name, found in sorted(arguments.items()):
    if len(found) > 1 and not found <= ARGUMENTS.get(name, set()):
        wrong.append(f"--{name} takes {found}")
for letter, names in sorted(letters.items()):
    if len(names) > 1 and not names <= LETTERS.get(letter, set()):
        wrong.append(f"-{letter} is {names}")
for command, options in of.items():
    for name in ("color", "quiet", "help", "usage", "version"):
        if name not in options:
            wrong.append(f"lbr {command} has no --{name}")
    for name, users, argument in (("top", ROWS, "=N"), ("limit", SIZES, "=SIZE"), ("output", FILES, "=FILE"), ("json", JSON, "")):
        if (name in options) != (command in users) or options.get(name, argument) != argument:
            wrong.append(f"lbr {command}: --{name} {options.get(name)}")
    for name in ("filter", "last", "size", "no-color", "rows", "lines"):
        if name in options:
            wrong.append(f"lbr {command} has --{name}, which is called otherwise elsewhere")
for command in SIZES:
    if "suffix K, M, G or T" not in re.sub(r"\s+", " ", open(command + ".help", encoding="utf-8").read()):
        wrong.append(f"lbr {command} --help does not list the suffixes of --limit")
print("\n".join(wrong))
sys.exit(1 if wrong or len(of) < 20 else 0)
END
verdict 'shared options are spelled the same in every --help' $?

# The list of commands has the usage lines of --help.
"$lbr" help >list
for command in $commands; do
  sed -n '/^Usage: /,/^[A-Z]/ { s/^Usage: /  /p; s/^ *or:  */  /p; }' "$command.help" >usages
  [ -s usages ] && [ "$(grep -cxFf usages list)" -eq "$(wc -l <usages)" ]
  verdict "lbr help has the usage line of lbr $command" $?
done

# ---- a trace to read ----

cat >work.c <<'END'
static int odd(int n) { return n % 2; }
int main(void)
{
  int sum = 0;
  for (int i = 0; i < 12345; i++)
    sum += odd(i);
  return sum == 0;
}
END
gcc -g -O0 -o work work.c && run record -q -o work.lbr ./work
[ $status -eq 0 ] && silent && ! [ -s err ]
verdict 'record -q says nothing' $?

# ---- -o ----

# written COMMAND...: the same comes out on standard output, with -o - and in the file of -o FILE.
written()
{
  rm -f file
  run "$@" -o - && [ $status -eq 0 ] && [ -s out ] && cp out plain && run "$@" -q -o file && [ $status -eq 0 ] && silent && cmp -s plain file
  verdict "lbr $* -o -, and -o FILE" $?
}
written stat --json work.lbr
written stat work.lbr
written report --json work.lbr
written script --top 5 work.lbr
written calls --summary work.lbr
written annotate work.lbr odd
written replay --cpu haswell work.lbr
written diff work.lbr work.lbr
written export --to fdata work.lbr
written view work.lbr
written cpu haswell
written sim "$root/examples/filter-jumps.rec"
"$lbr" script work.lbr >whole && run script -o - work.lbr && cmp -s whole out
verdict 'script is the same with -o -' $?

cp work.lbr kept.lbr
for command in 'stat -o kept.lbr kept.lbr' 'export --to fdata -o kept.lbr kept.lbr' 'view -o kept.lbr kept.lbr'; do
  # shellcheck disable=SC2086
  run $command
  [ $status -eq 1 ] && complained 'kept.lbr: refusing to overwrite a trace' && cmp -s work.lbr kept.lbr
  verdict "lbr $command does not overwrite the trace" $?
done
run stat -o nothing/file work.lbr
[ $status -eq 1 ] && complained 'nothing/file: No such file' && silent
verdict '-o in a folder that is not there' $?
run stat -o left missing.lbr
[ $status -eq 1 ] && [ -z "$(find . -name 'left*')" ]
verdict '-o leaves no file if nothing was written' $?
run stat -o /dev/full work.lbr
[ $status -eq 1 ] && complained '/dev/full'
verdict '-o to a full disk is a failure' $?
run run --always -o - ./work
[ $status -eq 0 ] && said 'last 32 branches' && ! [ -s err ]
verdict 'run -o - writes the report to standard output' $?

# ---- old names ----

# renamed OLD NEW: both do the same, and the old one says what it is called now.
renamed()
{
  # shellcheck disable=SC2086
  run $2 && cp out new && cp err before && new=$status && ! complained 'is now called'
  # shellcheck disable=SC2086
  [ $? -eq 0 ] && run $1 && [ "$status" -eq "$new" ] && complained 'is now called' && cmp -s new out
  verdict "lbr $1 is lbr $2, with a hint" $?
}
renamed 'script --limit 7 work.lbr' 'script --top 7 work.lbr'
renamed 'calls --limit 7 work.lbr' 'calls --top 7 work.lbr'
renamed 'calls --limit 0 work.lbr' 'calls --top all work.lbr'
renamed 'view --size 2 -o - work.lbr' 'view --limit 2M -o - work.lbr'
renamed 'view --from 10 --to 100 -o - work.lbr' 'view --between 10..99 -o - work.lbr'
renamed 'diff --resync --limit 1 work.lbr work.lbr' 'diff --resync --differences 1 work.lbr work.lbr'
head -c 240 /dev/zero >bts
renamed 'decode --cpu skylake -o 24 --count 2 bts bts' 'decode --cpu skylake --offset 24 --top 2 bts bts'
run script -q --limit 7 work.lbr
[ $status -eq 0 ] && ! [ -s err ] && [ "$(wc -l <out)" -eq 7 ]
verdict 'no hint with --quiet' $?
run run --cpu haswell --filter jcc --always ./work
[ $status -eq 0 ] && complained '--filter is now called --select' && complained 'Intel Haswell'
verdict 'run --filter works, with a hint' $?
run run --last 3 --always ./work
[ $status -eq 0 ] && complained '--last is now called --tail' && complained 'last 3 branches'
verdict 'run --last works, with a hint' $?

# ---- values ----

for words in 'stat --top x' 'script --top -1' 'calls --top 1x' 'view --limit 3X' 'view --limit 512K' 'record --limit 0' 'stat --color=blue' 'script --tail x' \
  'gdb --tail 0' 'view --between 9' 'calls --between 9..3'; do
  # shellcheck disable=SC2086
  run $words work.lbr
  [ $status -eq 2 ] && silent && grep -qE 'wants|greater' err
  verdict "lbr $words is a usage error" $?
done
run stat --top all --json work.lbr
[ $status -eq 0 ] && python3 -c 'import json; assert len(json.load(open("out"))["functions"]) > 10'
verdict '--top all' $?

# ---- colours ----

escape=$(printf '\033')
# coloured COMMAND...: only with --color=always there are colours in a pipe.
coloured()
{
  run "$@" --color=always && said "$escape[" && run "$@" && ! said "$escape["
  verdict "lbr $1 --color=always colours a pipe" $?
}
coloured stat work.lbr
coloured report work.lbr
coloured annotate work.lbr odd
coloured cpu haswell
command script -qec "'$lbr' stat --color=never work.lbr" /dev/null </dev/null >typed && ! grep -q "$escape\[" typed && grep -q Functions typed
verdict '--color=never on a terminal' $?
NO_COLOR=1 "$lbr" stat --color=always work.lbr | grep -q "$escape\["
verdict '--color=always is stronger than NO_COLOR' $?

# ---- what people see ----

cat >names.cc <<'END'
#include <map>
#include <string>
#include <vector>
namespace shop {
template <typename Key, typename Value> struct Store {
  std::map<Key, std::vector<Value>> all;
  __attribute__((noinline)) void add(const Key &key, const Value &value) { all[key].push_back(value); }
  __attribute__((noinline)) bool operator<(const Store &other) const { return all.size() < other.all.size(); }
};
}
namespace {
__attribute__((noinline)) int hidden(const std::map<std::string, std::vector<std::string>> &map) { return (int)map.size(); }
}
int main()
{
  shop::Store<std::string, std::pair<std::string, std::vector<int>>> one, other;
  std::map<std::string, std::vector<std::string>> map;
  for (int i = 0; i < 2000; i++)
    one.add(std::to_string(i % 50), {"x", {i}});
  return hidden(map) + (one < other);
}
END
g++ -g -O1 -o names names.cc && "$lbr" record -q -o names.lbr ./names || exit 1
nm -C names | sed -n 's/^[0-9a-f]* [tTwW] //p' | grep -F 'Store<' | grep -F '::add(' >full
name=$(cat full)
[ ${#name} -gt 200 ]
verdict 'the program has a long name' $?

# typed COLUMNS WORD...: what a terminal of that width shows, in the file typed.
typed()
{
  command script -qec "stty cols $1; NO_COLOR=1 '$lbr' ${*:2} 2>/dev/null" /dev/null </dev/null | tr -d '\r' >typed
}
for columns in 80 132; do
  for command in stat report 'report --by line' 'calls --top 100' 'calls --summary' 'calls --all --top 500' 'script --top 500' 'annotate names.lbr main' \
    'diff work.lbr' 'cpu haswell' 'decode debugctl 1'; do
    case $command in annotate* | cpu* | decode*) trace= ;; *) trace=names.lbr ;; esac
    typed $columns "$command" $trace
    [ "$(wc -l <typed)" -gt 3 ] && [ "$(LC_ALL=C.UTF-8 wc -L <typed)" -le $columns ]
    verdict "lbr $command: no line is wider than a terminal of $columns columns" $?
  done
done
typed 100 report --by function names.lbr
grep -qE '^ +[0-9.]+% .* [0-9,]+ +2,000 shop::Store<\.\.\.>::add\(\.\.\.\)  \[names\]$' typed
verdict 'a row keeps its numbers, and of a long name what tells most' $?
typed 132 report --by function --top all names.lbr
grep -qF 'hidden(' typed && grep -qF '(anonymous namespace)::hidden(' typed && grep -qF '::operator<(' typed
verdict 'operators and anonymous namespaces keep their names' $?
typed 100 report --by function --long-names names.lbr
grep -qF "$name" typed
verdict '--long-names on a terminal' $?
run report --by function names.lbr
said "$name" && run stat names.lbr && said "$name" && run calls --summary names.lbr && said "$name"
verdict 'names are whole in a pipe' $?
branches=$("$lbr" stat --json names.lbr | python3 -c 'import json, sys; print(json.load(sys.stdin)["branches"])')
typed 100 stat names.lbr
grep -qE "^  branches +$(python3 -c "print(f'{$branches:,}')")\$" typed && run stat names.lbr && grep -qE "^  branches +$branches\$" out
verdict 'thousands separators on a terminal, plain digits in a pipe' $?

exit $((failures > 0))
