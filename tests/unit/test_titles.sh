#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_titles.sh LBR: what processes are called in traces and reports. The expected titles are those that the kernel shows in
# /proc/PID/cmdline while the processes run.
. "$(dirname "$0")/shell.sh"
cd "$scratch" || exit 1

if [ "$(uname -m)" != x86_64 ]; then
  exit 77
fi

# Three children write over the words of the command line, as setproctitle(3) does, one past its end; one executes a program;
# one thread has a name of its own. Each writes what the kernel says to standard output.
cat >titles.c <<'END'
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char *room;
static size_t room_size;

static void title_set(const char *title)
{
  memset(room, 0, room_size);
  strncpy(room, title, room_size - 1);
}

static void tell(void)
{
  char words[4096] = "", name[32] = "";
  FILE *file = fopen("/proc/self/cmdline", "r");
  size_t size = fread(words, 1, sizeof(words) - 1, file);

  fclose(file);
  while (size && !words[size - 1])
    size--;
  for (size_t i = 0; i < size; i++)
    words[i] = words[i] ? words[i] : ' ';
  words[size] = 0;
  prctl(PR_GET_NAME, name);
  printf("%d|%s|%s\n", (int)getpid(), name, words);
  fflush(stdout);
}

static void *thread_run(void *unused)
{
  prctl(PR_SET_NAME, "helper");
  return unused;
}

__attribute__((noinline)) static void child_run(int i)
{
  static const char *const names[] = {"first", "second", "third"};
  char title[200] = "titles: worker 3 ";

  memset(title + 17, 'x', 100);
  if (i < 2)
    snprintf(title, sizeof(title), "titles: worker %d", i + 1);
  prctl(PR_SET_NAME, names[i]);
  title_set(title);
  tell();
  exit(0);
}

int main(int argc, char **argv, char **environment)
{
  pthread_t thread;
  char *end = argv[argc - 1] + strlen(argv[argc - 1]) + 1;

  for (char **word = environment; *word; word++)
    if (*word == end)
      end += strlen(*word) + 1;
  room = argv[0];
  room_size = (size_t)(end - room);
  if (argc > 1 && !strcmp(argv[1], "die")) {
    title_set("titles: dies");
    abort();
  }
  if (argc > 1 && !strcmp(argv[1], "wait")) {
    title_set("titles: waits");
    tell();
    pause();
  }
  if (argc > 1 && !strcmp(argv[1], "words")) {
    tell();
    return 0;
  }
  pthread_create(&thread, NULL, thread_run, NULL);
  pthread_join(thread, NULL);
  for (int i = 0; i < 3; i++) {
    pid_t child = fork();
    if (!child)
      child_run(i);
    waitpid(child, NULL, 0);
  }
  pid_t child = fork();
  if (!child)
    execl(argv[0], "other", "words", "two words", (char *)NULL);
  waitpid(child, NULL, 0);
  tell();
  return 0;
}
END
gcc -O1 -pthread -static -o titles titles.c || exit 1 # less is stepped

# threads FILE: "process|name|command" of the threads that begin or end a process, from lbr stat.
cat >threads.py <<'END'
import json, sys
for thread in json.load(sys.stdin)["threads"]:
    if thread["process"] == thread["system_thread"]:
        print(f'{thread["process"]}|{thread["name"]}|{thread["command"]}')
END

# agree NAME TRACE: each process that has told of itself is called so in the trace.
agree()
{
  "$lbr" stat --json "$2" | python3 threads.py >got
  [ "$(wc -l <told)" -eq 5 ] && ! sort told | comm -23 - <(sort got) | grep -q .
  verdict "$1" $?
}

"$lbr" record -q -o titles.lbr ./titles paddingpaddingpaddingpadding >told
agree 'titles and names of processes in a trace' titles.lbr
[ "$(cut -d '|' -f 3 told | sort -u | wc -l)" -eq 5 ]
verdict 'the titles are different ones' $?
grep -qF 'worker 3 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' told
verdict 'the third title is longer than the command line was' $?
"$lbr" stat --json titles.lbr | python3 -c '
import json, sys
threads = json.load(sys.stdin)["threads"]
helper = [thread for thread in threads if thread["name"] == "helper"]
first = threads[0]["command"]
sys.exit(not (len(helper) == 1 and helper[0]["command"] == first == "./titles paddingpaddingpaddingpadding"))'
verdict 'a thread has its name, and the command of its process' $?
LBR_SINGLE_STEPS=1 "$lbr" record -q --source block-step -o steps.lbr ./titles paddingpaddingpaddingpadding >told
agree 'titles and names of processes that are stepped' steps.lbr

# ---- the other pages ----

run report --by thread --json titles.lbr
python3 -c '
import json, sys
sys.exit(not any(row["command"] == "titles: worker 2" and row["name"] == "second" for row in json.load(open("out"))["threads"]))'
verdict 'report --by thread' $?
run calls --depth 1 titles.lbr
grep -q '^thread .*, second, titles: worker 2$' out
verdict 'calls' $?
run view -q -o page.html titles.lbr
grep -q '"name":"second","command":"titles: worker 2"' page.html
verdict 'view' $?
worker=$("$lbr" stat --json titles.lbr | python3 -c '
import json, sys
print(*[thread["thread"] for thread in json.load(sys.stdin)["threads"] if thread["command"] == "titles: worker 2"])')
for command in 'script --top 3' 'report --json' 'calls --json' 'export --to folded -o -' 'annotate --json' 'replay --cpu haswell --json'; do
  function=
  [ "${command%% *}" = annotate ] && function=child_run
  run $command --thread "$worker" titles.lbr $function
  cp out want
  run $command --thread 'worker 2' titles.lbr $function
  [ $status -eq 0 ] && ! silent && cmp -s want out
  verdict "${command%% *} --thread with a part of the title" $?
done
run script --thread worker titles.lbr
[ $status -eq 1 ] && silent && complained "'worker' fits 3 threads: " && complained '(titles: worker 2)'
verdict '--thread: several are called so' $?
run report --thread nobody titles.lbr
[ $status -eq 1 ] && silent && complained "no thread is called 'nobody'"
verdict '--thread: none is called so' $?
run calls --json --thread first titles.lbr
[ $status -eq 0 ]
verdict '--thread with a name' $?

# ---- how it died ----

for source in software block-step; do
  LBR_SINGLE_STEPS=1 run run --json --source $source ./titles die padding
  python3 -c 'import json, sys; sys.exit(json.load(open("err"))["command"] != "titles: dies")'
  verdict "run --source $source: the title of what died" $?
done

# A process that SIGKILL ends cannot say anything any more: its title was read while it lived. It is in the file by then, and
# the process has said its number, which may come later.
"$lbr" record -q -o killed.lbr ./titles wait padding >told &
recorder=$!
waits() { [ -s told ] && grep -qaF 'titles: waits' killed.lbr.incomplete 2>/dev/null; }
await waits
kill -KILL "$(cut -d '|' -f 1 told)"
wait $recorder
"$lbr" stat --json killed.lbr | python3 threads.py >got
cmp -s told got
verdict 'a process that SIGKILL ended' $?

exit $((failures > 0))
