#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_predict.sh LBR: lbr report --sort flips and --predictor, against a model in Python that was written from the
# definition and goes through the branches that lbr script prints and the code that objdump does.
. "$(dirname "$0")/shell.sh"
here=$(realpath "$(dirname "$0")")
cd "$scratch" || exit 1

# A program without libraries: branches that are always, never, in turn, every fifth time and at random taken.
cat >ways.c <<'END'
static volatile unsigned seven = 7;
static int work(unsigned n)
{
  int sum = 0;
  for (unsigned i = 0; i < n; i++) {
    seven = seven * 1103515245 + 12345;
    if (i % 2)
      sum += 3;
    if (i % 5 == 0)
      sum ^= i;
    if (seven >> 16 & 1)
      sum -= 7;
    if (i > n)
      sum = 1;
  }
  return sum;
}
void _start(void)
{
  int status = work(20000) == 0x12345;
  __asm__ volatile("syscall" : : "a"(231), "D"(status) : "rcx", "r11", "memory");
  __builtin_unreachable();
}
END
gcc -g -O0 -fno-stack-protector -fcf-protection=none -static -no-pie -nostdlib -o ways ways.c &&
  "$lbr" record -q -o ways.lbr ./ways && objdump -d ways >listing && "$lbr" script -F from,to,kind ways.lbr >branches
[ "$(wc -l <branches)" -gt 20000 ]
verdict 'a trace of branches of all sorts' $?

for model in bimodal gshare; do
  python3 "$here/test_predict.py" listing branches $model >wanted
  "$lbr" report --predictor $model --top all --json ways.lbr >json && python3 - >found <<'END'
import json
rows = json.load(open("json"))["branches"]
for row in sorted(rows, key=lambda row: int(row["from"]["address"], 16)):
    print(row["from"]["address"], row["taken"], row["not_taken"], row["flips"], row["mispredicted"])
END
  [ "$(wc -l <wanted)" -ge 4 ] && cmp wanted found
  verdict "lbr report --predictor $model: each number is that of the model in Python" $?
  python3 -c 'import json
m = [row["mispredicted"] for row in json.load(open("json"))["branches"]]
assert m == sorted(m, reverse=True) and m[0] > 1000, m'
  verdict "the most mispredicted comes first: $model" $?
done
run report --sort flips --top all --json ways.lbr
python3 -c 'import json
j = json.load(open("out"))
f = [row["flips"] for row in j["branches"]]
assert f == sorted(f, reverse=True) and f[0] == 19999, f  # in turn
assert all(row["mispredicted"] is None for row in j["branches"]) and j["predictor"] is None'
verdict 'lbr report --sort flips: the one that is taken in turn is first, and mispredictions are not known' $?
run report --sort flips ways.lbr
[ $status -eq 0 ] && said 'mispredicted: not in the trace' && said 'flips'
verdict 'that mispredictions are not known is said' $?
run stat ways.lbr
[ $status -eq 0 ] && grep -qE '^  mispredicted +not known$' out
verdict 'lbr stat says so, too' $?
run stat --json ways.lbr
[ $status -eq 0 ] && grep -q '"mispredicted": null' out
verdict 'lbr stat --json: null' $?
run report --predictor 2bit ways.lbr
[ $status -eq 0 ] && said "according to the model 'bimodal'"
verdict '2bit is bimodal' $?
run report --predictor help
[ $status -eq 0 ] && said bimodal && said gshare
verdict '--predictor help lists the models' $?
run report --by branch ways.lbr
[ $status -eq 0 ] && ! said flips
verdict 'without them the table is as it was' $?
for words in '--predictor nonsense' '--by line --predictor gshare' '--by edge --sort flips'; do
  # shellcheck disable=SC2086
  run report $words ways.lbr
  [ $status -eq 2 ] && silent
  verdict "lbr report $words is a usage error" $?
done

exit $((failures > 0))
