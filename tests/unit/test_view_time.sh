#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_view_time.sh LBR: the times in the pages of lbr view. A program of two threads (view_time.c) tells by the system's
# clock when it slept and spun; its calls and system calls must be where it saw them, on one clock for both threads.
. "$(dirname "$0")/shell.sh"
here=$(realpath "$(dirname "$0")")
. "$here/view_shell.sh"
cd "$scratch" || exit 1

gcc -g -O1 -pthread -o timed "$here/view_time.c" && "$lbr" record --quiet -o timed.lbr ./timed >told &&
  grep -q '^signals 1' told
verdict 'a trace of two threads that sleep and spin' $?
run view timed.lbr
[ $status -eq 0 ] && said 'timed.html: '
verdict 'its page' $?

# compare NAME WHAT [PAGE]: what view_time.py says about the page, or about the page of a part.
compare()
{
  python3 "$here/view_time.py" "$2" told timed.html "${3-}" >why 2>&1
  status=$?
  verdict "$1" $status
  [ $status -eq 0 ] || excerpt why
}
compare 'system calls of both threads lie where the program slept, on one clock' naps
compare 'calls of spin enclose what it measured, and lie within what was measured around them' spins
compare 'naps wait, and take as long as was asked for' waits
compare 'times of functions are those of their calls' functions
holds timed.html '[e[8][:7] for e in d["times"]["signals"]["events"]] == ["SIGUSR1"] and
  d["times"]["lasted"] == max(s["time"][1] for s in d["streams"]) and d["times"]["part"] is None'
verdict 'the signal, and how long the recording lasted' $?
holds timed.html 'all(a[2] <= b[2] and a[9] <= b[9] and a[8] <= a[9] for a, b in zip(blocks, blocks[1:]) if a[:2] == b[:2]) and
  len([b for b in blocks if b[8]]) == len(blocks)'
verdict 'every call has its times, in order' $?

# ---- a part ----

# From the middle of the worker's first nap to the middle of its second one: it is then in both of them.
part=$(python3 "$here/view_time.py" part told timed.html)
run view --time "$part" -o part.html timed.lbr
[ $status -eq 0 ] && compare 'view --time: calls are cut at both ends, and are those of that time' cut part.html
run view --time "${part%,*}," --thread 1 -o rest.html timed.lbr
[ $status -eq 0 ] && holds rest.html "d['times']['part'][0] == round(float('${part%s,*}') * 1e9) and {b[0] for b in blocks} == {1} and
  min(b[8] for b in blocks) == d['times']['part'][0]"
verdict 'view --time without an end, of one thread' $?
# A trace of an early version has no times.
echo 'int work(void) { return 0; } int main(void) { return work(); }' >brief.c && gcc -Wl,--build-id -o brief brief.c &&
  python3 "$here/trace_make.py" . "$PWD/brief" && cp threads brief.lbr || exit 1
run view brief.lbr
[ $status -eq 0 ] && holds brief.html 'd["times"] is None and all("time" not in s for s in d["streams"]) and all(len(s) == 7 for s in d["stacks"])'
verdict 'a trace without times' $?
run view --time ,1s -o none.html brief.lbr
[ $status -eq 1 ] && complained 'brief.lbr: the trace has no times; record it again' && ! [ -e none.html ]
verdict 'view --time of a trace without times' $?
for wrong in '--time 5 timed.lbr' '--time 2s,1s timed.lbr' '--time ,1s --between 3.. timed.lbr' '--time ,1s --around main timed.lbr'; do
  run view $wrong
  [ $status -eq 2 ] && silent
  verdict "usage: view $wrong" $?
done

# ---- less of it ----

# Of 30,000 system calls, most are left out; the sleep among them is the longest, and stays.
cat >calls.c <<'END2'
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int main(void)
{
  for (int i = 0; i < 30000; i++) {
    syscall(SYS_getppid);
    if (i == 15000)
      nanosleep(&(struct timespec){0, 50000000}, NULL);
  }
}
END2
gcc -O1 -o calls calls.c && make calls calls.lbr && run view --limit 1M calls.lbr
[ $status -eq 0 ] && [ "$(stat -c %s calls.html)" -le 1048576 ] &&
  holds calls.html 'len(d["times"]["calls"]["events"]) < 2000 and
    len(d["times"]["calls"]["events"]) + d["times"]["calls"]["left"] > 30000 and
    "nanosleep(" in d["times"]["calls"]["events"][0][8] and d["times"]["calls"]["events"][0][3] >= 50000000 and
    [e[3] for e in d["times"]["calls"]["events"]] == sorted((e[3] for e in d["times"]["calls"]["events"]), reverse=True)'
verdict 'of very many system calls, the longest' $?
# The call that sleeps has few branches, and is not merged.
run view --detail 1000 -o merged.html calls.lbr
[ $status -eq 0 ] && holds merged.html '[b[7] for b in blocks if d["functions"][b[6]][0] == "nanosleep" and b[9] - b[8] >= 50000000] == [1] and
  any(b[7] > 1 for b in blocks)'
verdict 'a short call in which the thread waits is not merged' $?

# ---- in a browser ----

without_browser && exit $((failures > 0))
lasted=$(python3 "$here/view_time.py" lasted told timed.html)
browse 'timed.html#x=all' 'a["axis"] == "time" and "recorded for" in text and int(a["drawn"]) > 50 and
  abs(int(a["to"]) - '"$lasted"') < 2 and "waiting" not in a["selected"]'
verdict 'browser: the axis of time' $?
browse 'timed.html#x=10000000-20000000&keys=wd' '[a["from"], a["to"]] == ["12550000", "19550000"] and "12.550 ms – 19.550 ms (7.00 ms)" in text'
verdict 'browser: keys zoom and move in time' $?
browse 'timed.html#x=all&function=nap&hit=1' 'a["hits"] == "3" and a["selected"] == "nap" and
  all(word in text for word in ("duration", "running", "waiting", " ms")) and int(a["to"]) - int(a["from"]) < '"$lasted"' * 2'
verdict 'browser: search, and the duration of a call' $?
read -r x y <<<"$(python3 "$here/view_time.py" point told timed.html)"
browse "timed.html#x=all&point=$x,$y" '"nanosleep(ptr, NULL) = 0" in text and "system call" in text and "made by" in text'
verdict 'browser: a system call under the mouse' $?
browse 'timed.html#axis=branches&x=all' 'a["axis"] == "branches" and a["from"] == "0" and "branches)" in text'
verdict 'browser: the axis of branches of the same page' $?
browse 'timed.html#order=heavy' 'a["order"] == "heavy" and a["axis"] == "time" and "ms)" in text'
verdict 'browser: left-heavy by time' $?
browse 'timed.html#tab=functions&function=nap' '"Own time" in text and "Own waiting" in text and " ms" in text'
verdict 'browser: functions with their times' $?
browse 'part.html#x=all' 'a["axis"] == "time" and "timeline: 0.0" in text'
verdict 'browser: a part of the time' $?
place=$(python3 "$here/view_time.py" merged told timed.html merged.html)
browse "merged.html#x=$place" '"Merged here. Every call: lbr view --time 0." in text and "1,000 branches and 1.00 ms" in text'
verdict 'browser: merged calls say how to see them by time' $?
browse 'calls.html#x=all' '"system calls, none of them longer than" in text'
verdict 'browser: system calls that are left out' $?
browse 'brief.html#' 'a["axis"] == "branches" and "recorded for" not in text and "waiting" not in text' && ! grep -q 'id="axis-time"' dump
verdict 'browser: a page without times' $?

exit $((failures > 0))
