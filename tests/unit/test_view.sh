#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_view.sh LBR: lbr view. The numbers in its pages must be those that follow from the programs by arithmetic; in a
# browser a page must load without complaints, be zoomed and searched, and show which function crashed; and names that
# want to be a part of the page must stay names. Without Chromium, what needs a browser is skipped.
. "$(dirname "$0")/shell.sh"
here=$(realpath "$(dirname "$0")")
. "$here/view_shell.sh"
cd "$scratch" || exit 1

# ---- what is in a page ----

program fib view_fib.S && make fib fib.lbr
verdict 'a trace of fib(20)' $?
run view fib.lbr
[ $status -eq 0 ] && said 'fib.html: 21892 calls' && ! said merged && [ "$(stat -c %a fib.html)" = 600 ]
verdict 'a page with the name of the trace, for its owner' $?

# fib(20) = 6765. Calls: 2 * fib(21) - 1 = 21891, of which fib(21) = 10946 are of n < 2. Branches: 2 and 3 of each;
# instructions: 4 and 12 of each.
holds fib.html 'f["fib"][2:7] == [21891, 2*10946 + 3*10945, 2*10946 + 3*10945, 4*10946 + 12*10945, 4*10946 + 12*10945]'
verdict 'calls, branches and instructions of fib' $?
holds fib.html 'd["totals"]["taken"] == 2*10946 + 3*10945 + 2 and d["totals"]["passed"] == 10945'
verdict 'branches of all: a call and a system call more' $?
# Depth 1 is fib(20); below it, calls of fib(20 - k) and so on: depth 20 holds the one call of fib(1) that is deepest.
holds fib.html 'len(blocks) == 21892 and max(b[1] for b in blocks) == 20 and sum(b[1] == 1 for b in blocks) == 1 and
  sum(b[1] == 2 for b in blocks) == 2 and sum(b[3] - b[2] for b in blocks if b[1] == 1) == 2*10946 + 3*10945'
verdict 'every call is a block of the timeline' $?
# The base case ends with a branch that was taken and a return: a block of two branches and four instructions.
holds fib.html 'sum(b[5] - b[4] == 4 for b in blocks) == 10946 and all(b[7] == 1 for b in blocks)'
verdict 'blocks of four instructions: the calls of n < 2' $?
python3 -c 'import re, sys
want = {"cmp $2, %edi": 21891, "push %rdi": 10945, "dec %edi": 10945, "add %rcx, %rax": 10945, "mov %edi, %eax": 10946}
text = open(sys.argv[1]).read()
for line, count in want.items():
    assert re.search(r"\[\d+,%d,\"  %s\"\]" % (count, re.escape(line)), text), line' fib.html
verdict 'source with execution counts' $?
holds fib.html '["fib+0x3", "fib+0x1c", "jcc", 10946, 10945] in [e[:5] for e in d["edges"]] and
  sum(e[3] for e in d["edges"]) == d["totals"]["taken"]'
verdict 'edges, taken and not' $?
holds fib.html 'd["streams"][0]["end"]["how"] == "exit" and d["streams"][0]["branches"] == d["totals"]["taken"]'
verdict 'its end was no death' $?
python3 -c 'import base64, hashlib, re, sys
page = open(sys.argv[1]).read()
for name, text in (("script", re.findall(r"<script>(.*?)</script>", page, re.S)), ("style", re.findall(r"<style>(.*?)</style>", page, re.S))):
    digest = base64.b64encode(hashlib.sha256(text[0].encode()).digest()).decode()
    assert len(text) == 1 and f"{name}-src \x27sha256-{digest}\x27;" in page, name
assert "default-src \x27none\x27" in page' fib.html
verdict 'the policy names the one script, and no other' $?
! grep -qE '(src|href)=|https?:|@import|url\(' fib.html
verdict 'nothing is loaded from elsewhere' $?

# _start calls `outer` (1), which takes a jump (1) and calls `last` (1), which takes a jump (1) and exits (1).
cat >open.S <<'END'
  .globl _start
  .type _start, @function
_start:
  call outer
  .size _start, . - _start
  .type outer, @function
outer:
  jmp 1f
  nop
1:
  call last
  .size outer, . - outer
  .type last, @function
last:
  jmp 1f
  nop
1:
  mov $60, %eax
  xor %edi, %edi
  syscall
  .size last, . - last
END
gcc -c -o object.o open.S && ld -o open object.o && make open open.lbr && run view open.lbr
holds open.html 'f["_start"][2:5] == [1, 1, 5] and f["outer"][2:5] == [1, 2, 4] and f["last"][2:5] == [1, 2, 2]'
verdict 'branches of calls that are open at the end' $?

# The stacks: each level of fib's recursion is one, with as many calls as the timeline has blocks at that depth; what ran in
# all of them is what ran in all.
holds fib.html '[s[2] for s in d["stacks"]] == [sum(b[1] == depth for b in blocks) for depth in range(21)] and
  sum(s[3] for s in d["stacks"]) == d["totals"]["taken"] and d["stacksLeftOut"] == 0 and
  all(s[5] == s[6] == 0 for s in d["stacks"])'
verdict 'stacks, for left-heavy and sandwich' $?

# ---- a part, and less of it ----

run view --between 1000..2999 -o part.html fib.lbr
[ $status -eq 0 ] && holds part.html 'd["range"] == [1000, 3000] and min(b[2] for b in blocks) == 1000 and
  max(b[3] for b in blocks) == 3000'
verdict 'view --between: a part of the timeline' $?
# The calls of a part are those of the whole that are left by branch 1000 or later and entered before 3000, and its 2,000 branches are all that is counted.
python3 - "$here" fib.html part.html <<'END'
import sys
sys.argv = [sys.argv[1] + "/view_page.py", "data", sys.argv[2], "True", sys.argv[3]]
exec(open(sys.argv[0]).read())
whole, part = data_names(text), data_names(open(sys.argv[4]).read())
want = sorted((b[1], max(1000, b[2]), min(3000, b[3])) for b in whole["blocks"] if b[3] >= 1000 and b[2] < 3000)
got = sorted((b[1], b[2], b[3]) for b in part["blocks"])
assert got == want, (len(got), len(want))
assert part["f"]["fib"][2] == sum(b[1] > 0 for b in part["blocks"])
assert part["d"]["totals"]["taken"] == sum(s[3] for s in part["d"]["stacks"]) == 2000
assert sum(row[3] for row in part["d"]["functions"]) == 2000
END
verdict 'view --between: calls, stacks and counts are those of the part' $?
run view --around fib --span 100 -o part.html fib.lbr
[ $status -eq 0 ] && holds part.html 'd["range"] == [0, 50]'
verdict 'view --around: the first call of a function' $?
run view --around nobody fib.lbr
[ $status -eq 1 ] && complained "no call of 'nobody'"
verdict 'view --around a function that was not called' $?
run view --detail 100 -o merged.html fib.lbr
[ $status -eq 0 ] && said 'are merged' && holds merged.html 'd["merge"] == 100 and sum(b[7] for b in blocks) == 21892 and
  len(blocks) < 10000 and sum(b[7] for b in blocks if b[7] > 1) == d["merged"] and f["fib"][2] == 21891 and
  all(b[3] - b[2] < 100 for b in blocks if b[7] > 1)'
verdict 'view --detail: short calls are merged, and none is lost' $?

program many view_fib.S -DNUMBER=27 && make many many.lbr && run view --limit 1M many.lbr
# 2 * fib(28) - 1 = 635621
[ $status -eq 0 ] && said 'many.html: 635622 calls' && said 'are merged' && [ "$(stat -c %s many.html)" -le 1048576 ] &&
  holds many.html 'f["fib"][2] == 635621 and sum(b[7] for b in blocks) == 635622'
verdict 'view --limit: the page fits, and every call is in it' $?
run view -o - --thread 0 fib.lbr
[ $status -eq 0 ] && holds out 'd["only"] == 0 and len(blocks) == 21892' && ! [ -s err ]
verdict 'view -o -' $?
run view --no-source -o plain.html fib.lbr
[ $status -eq 0 ] && holds plain.html 'all(c["lines"] is None and c["instructions"] for c in d["code"]) and len(d["code"]) == 2'
verdict 'view --no-source: instructions only' $?
run view --no-symbols -o plain.html fib.lbr
[ $status -eq 0 ] && holds plain.html '"fib" not in f and d["totals"]["taken"] == 2*10946 + 3*10945 + 2'
verdict 'view --no-symbols' $?
run view --thread 7 fib.lbr
[ $status -eq 1 ] && complained 'no thread 7'
verdict 'view --thread that is not there' $?
run view -o /nowhere/page.html fib.lbr
[ $status -eq 1 ] && complained '/nowhere/page.html: No such file'
verdict 'a page that cannot be written' $?
for wrong in '' '--between 5..4 fib.lbr' '--limit 0 fib.lbr' '--around fib --between 3.. fib.lbr' 'fib.lbr many.lbr' '--span x fib.lbr'; do
  run view $wrong
  [ $status -eq 2 ] && silent
  verdict "usage: view $wrong" $?
done

# ---- deaths ----

program crash view_fib.S -DCRASH -DNUMBER=5 && { make crash crash.lbr; } 2>/dev/null
run view crash.lbr
[ $status -eq 0 ] && holds crash.html 'd["streams"][0]["end"]["how"] == "died" and d["streams"][0]["end"]["signal"] == 11 and
  d["streams"][0]["end"]["in"] == "culprit" and
  [d["functions"][i][0] for i in d["streams"][0]["end"]["stack"]] == ["culprit", "outer", "_start"]'
verdict 'a fault: the signal, the function and its callers' $?
cat >threads.c <<'END'
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
static atomic_int is_running;
static void *spin(void *data)
{
  for (is_running = 1; is_running;)
    ;
  return data;
}
static void *culprit(void *data)
{
  while (!is_running)
    ;
  abort();
  return data;
}
int main(void)
{
  pthread_t one, other;
  pthread_create(&one, NULL, spin, NULL);
  pthread_create(&other, NULL, culprit, NULL);
  pthread_join(one, NULL);
}
END
gcc -g -pthread threads.c -o threads && { make threads threads.lbr; } 2>/dev/null
run view threads.lbr
# The second thread may begin before the first.
[ $status -eq 0 ] && holds threads.html 'sorted(s["end"]["how"] for s in d["streams"][1:]) == ["died", "stopped"] and
  [(s["end"]["signal"], "culprit" in [d["functions"][i][0] for i in s["end"]["stack"]]) for s in d["streams"] if s["end"]["how"] == "died"] ==
  [(6, True)]'
verdict 'abort: of three threads, the one that called it' $?
head -c $(($(stat -c %s fib.lbr) - 40)) fib.lbr >cut.lbr
run view cut.lbr
[ $status -eq 1 ] && complained 'truncated: ' && holds cut.html 'd["unfinished"] and d["streams"][0]["end"]["how"] != "died"'
verdict 'a trace that is cut is no death' $?

# ---- names that want to be a part of the page ----

name='<img src=x onerror=alert(1)>'
program "$name" view_hostile.S && make "$name" 'bad</script>.lbr' 2>/dev/null || make "$name" 'bad<b>.lbr'
run view -o bad.html bad*.lbr
[ $status -eq 0 ] && [ "$(grep -c '</script>' bad.html)" -eq 3 ] && ! grep -q '<img' bad.html && ! grep -q '<!--<' bad.html &&
  holds bad.html '"<!--<script>document.title='"'pwned'"'</script>" in f and d["streams"][0]["name"] in ("</script><b>&#", "<img src=x oner")'
verdict 'strange names are data' $?

# ---- in a browser ----

without_browser && exit $((failures > 0))

browse 'fib.html#axis=branches' 'a["blocks"] == "21892" and int(a["drawn"]) > 500 and a["from"] == "0" and a["to"] == "54729" and a["crash"] == ""'
verdict 'browser: the timeline is drawn' $?
# Each w shows 0.7 of what was there, around the middle; d goes 0.15 of it to the right.
browse 'fib.html#axis=branches&x=10000-20000&keys=wd' '[a["from"], a["to"]] == ["12550", "19550"] and "12,550 – 19,550" in text'
verdict 'browser: keys zoom and move' $?
# The wheel keeps the place under the mouse where it is: at the left edge, the left end. exp(-240 * 0.0022) = 0.5898
browse 'fib.html#axis=branches&x=10000-20000&wheel=-240@0' 'a["from"] == "10000" and a["to"] == "15898"'
verdict 'browser: the wheel zooms' $?
browse 'fib.html#search=FIB&hit=2' 'a["hits"] == a["calls"] == "21891" and a["selected"] == "fib" and "2 of 21,891; 21,891 calls" in text and
  int(a["to"]) - int(a["from"]) > 0'
verdict 'browser: search finds every call and goes to them' $?
browse 'fib.html#x=10-200&axis=instructions&point=600,70' 'a["axis"] == "instructions" and "54,727" in text and "175,124" in text'
verdict 'browser: the other axis, and what is under the mouse' $?
browse 'fib.html#order=heavy&search=fib&hit=3' 'a["order"] == "heavy" and a["hits"] == "20" and a["selected"] == "fib" and
  a["lanes"] == "all threads, left-heavy" and "calls 4 " in text'
verdict 'browser: left-heavy order, the calls of fib(18) and fib(17), fib(17) and fib(16) as one' $?
browse 'fib.html#axis=branches&order=sandwich&of=fib&search=fib&hit=1' 'a["of"] == "fib" and a["lanes"] == "callers of fib; fib and what it called" and
  a["from"] == "0" and a["to"] == "54727" and "calls 1 " in text'
verdict 'browser: sandwich: callers and called of fib' $?
browse 'fib.html#keys=?' 'True' && grep -q '<dialog id="keys-help"[^>]* open' dump
verdict 'browser: ? lists the keys' $?
cat >work.c <<'END'
#include <stdio.h>
int main(void)
{
  for (int i = 0; i < 200; i++)
    printf("%d", i);
}
END
gcc -O1 -o work work.c && make work work.lbr && run view work.lbr
main=$("$lbr" calls --json --function main --depth 1 work.lbr | python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())["branch"] - 1)')
browse 'work.html#axis=branches' "abs(int(a['from']) - $main) <= 1 and $main > 100 and int(a['to']) > $main"
verdict 'browser: the page begins at main' $?
browse 'work.html#axis=branches&x=all' 'a["from"] == "0"'
verdict 'browser: all of it' $?
longest=$("$lbr" stat --json threads.lbr | python3 -c 'import json, sys; print({str(t["thread"]): t["branches"] for t in json.load(sys.stdin)["threads"]})')
browse 'threads.html#' '[lane.split()[0] for lane in a["lanes"].split("; ")][0] == max(("0", "1", "2"), key=lambda n: '"$longest"'.get(n, 0))'
verdict 'browser: threads in the order of their work' $?
browse 'fib.html#tab=functions' 'a["tab"] == "functions" and "fib fib 21,891 175,124" in text'
verdict 'browser: functions' $?
browse 'fib.html#tab=source&function=fib' '"21,891 26 cmp $2, %edi" in text and "10,946 39 mov %edi, %eax" in text'
verdict 'browser: source' $?
# The jump of n < 2 is taken by 10,946 calls; the arrow goes from it to where their code is.
browse 'fib.html#tab=assembly&function=fib' '"taken 10,946 (50.0%), not taken 10,945" in text and "► " in text and "╭─" in text'
verdict 'browser: assembly with arrows, taken and not taken' $?
holds fib.html '[c for c in d["code"] if c["name"] == "fib"][0]["arrows"] == [[1, 12, 10946, 0]]'
verdict 'the arrow of fib is the jump to its end' $?
browse 'crash.html#x=end' 'a["crash"] == "culprit" and "died of SIGSEGV in culprit" in text and "culprit ← outer ← _start" in text'
verdict 'browser: the function that crashed' $?
browse 'merged.html#axis=branches&x=20000-21000' 'a["detail"] == "merged" and "lbr view --between 20000..21000 -o part.html" in text and "are merged" in text'
verdict 'browser: merged calls say how to see them' $?
browse 'bad.html#tab=source' 'title.startswith("bad") and "pwned" not in title and tags["img"] == tags["b"] - 2 == 0 and tags["script"] == 3 and
  "<!--<script>document" in text'
verdict 'browser: strange names are shown, not obeyed' $?

exit $((failures > 0))
