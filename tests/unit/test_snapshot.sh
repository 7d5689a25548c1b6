#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_snapshot.sh LBR ORACLE SOURCES FOLDER: processes that begin with the translations of an earlier process of the same
# recording. Their branches must be those of single steps (SOURCES/compare --again), and they must not notice: not when a
# file has changed meanwhile, nor when other code, or none, lies where the earlier process had a library.
. "$(dirname "$0")/shell.sh"
oracle=$(realpath "$2")
sources=$(realpath "$3")
folder=$(realpath "$4")
cd "$scratch" || exit 1
again=$folder/again-static

if ! setarch -R true 2>/dev/null; then
  echo 'the kernel refuses to switch address randomisation off'
  exit 77
fi

# expect NAME WANT COMMAND...: its output under `lbr run` and `lbr record` must be WANT, as natively.
expect()
{
  name=$1
  want=$2
  shift 2
  for how in 'run' 'record --quiet -o expect.lbr'; do
    # shellcheck disable=SC2086 # words
    run $how -- "$@"
    [ "$(cat out)" = "$want" ]
    verdict "$name: ${how%% *}" $?
  done
}

# ---- it is used ----

run record --quiet -o one.lbr "$again" 1 /bin/true
run record --quiet -o many.lbr "$again" 8 /bin/true
run record --quiet --aslr -o random.lbr "$again" 8 /bin/true
read -r one many random < <(stat -c %s one.lbr many.lbr random.lbr | tr '\n' ' ')
echo "traces of one process, of eight, of eight with --aslr: $one, $many, $random bytes"
[ "$many" -lt "$((3 * one))" ] && [ "$many" -lt "$((random * 2 / 3))" ]
verdict 'eight processes of a program share its paths' $?

# ---- the branches of single steps ----

"$oracle" list /bin/true 2>err
if [ $? -ne 126 ]; then
  {
    for name in kinds signal modify process thread hello-dynamic signals-static 'cases/code-static replaced' \
      'cases/code-static two-mappings' 'cases/fault-static jump' 'cases/process-static fork'; do
      echo "$folder/$name"
    done
    for name in kinds jit-static 'cases/signal-static nested'; do
      echo "--env LBR_CACHE_SIZE=30000 $folder/$name"
    done
    for number in 1 2 3; do
      "$sources/random-program" "$number" >"random$number.S" &&
        gcc -nostdlib -static -Wl,--build-id=none -o "random$number" "random$number.S"
      echo "$scratch/random$number"
      echo "--storm x $scratch/random$number"
      echo "--env LBR_CACHE_SIZE=60000 $scratch/random$number"
    done
  } >runs
  xargs -P 2 -L 1 "$sources/compare" "$lbr" "$oracle" --again "$again" <runs
  failures=$((failures + ($? != 0)))
fi

# ---- files that change ----

for version in 1 2; do
  echo "int answer(void) { return $version; }" >"answer$version.c"
  gcc -shared -fPIC -O1 -o "answer$version.so" "answer$version.c" || exit 1
done
# In a library, since a path goes on only in what is near.
cat >often.c <<'END'
static int zero(void)
{
  return 0;
}

static int nought(void)
{
  return 0;
}

/* So often that the recorder learns where the second call goes. One path then begins where the first call went, which
 * nobody can know, and goes on in the other library. */
int often(int (*function)(void), unsigned count)
{
  static int (*const one_of[])(void) = {zero, nought};
  unsigned number = 1;
  int answer = 0;

  for (unsigned i = 0; i < count; i++) {
    number = number * 1664525 + 1013904223;
    answer = one_of[number >> 31]();
    answer += function();
  }
  return answer;
}
END
cat >ask.c <<'END'
#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static sigjmp_buf back;

static void caught(int number)
{
  siglongjmp(back, number);
}

int often(int (*function)(void), unsigned count);

/* Calls the code there, or says which signal came. */
static void call(int (*function)(void), unsigned count)
{
  int number = sigsetjmp(back, 1);

  if (number)
    printf("signal %d\n", number);
  else
    printf("answer %d\n", often(function, count));
}

__attribute__((noinline)) int own(void)
{
  __asm__("");
  return 1;
}

static int (*load(const char *path))(void)
{
  void *library = dlopen(path, RTLD_NOW);

  if (!library)
    exit(3);
  int (*answer)(void) = (int (*)(void))dlsym(library, "answer");
  FILE *file = fopen("address", "w");
  fprintf(file, "%lx\n", (unsigned long)answer);
  fclose(file);
  return answer;
}

static int (*there(void))(void)
{
  unsigned long address = 0;
  FILE *file = fopen("address", "r");

  if (!file || fscanf(file, "%lx", &address) != 1)
    exit(4);
  fclose(file);
  return (int (*)(void))address;
}

int main(int argc, char **argv)
{
  static const unsigned char returns_7[] = {0xB8, 7, 0, 0, 0, 0xC3};

  signal(SIGSEGV, caught);
  if (argc > 2 && !strcmp(argv[1], "load")) {
    call(load(argv[2]), argc > 3 ? 5000000 : 1);
  } else if (!strcmp(argv[1], "jump")) { /* where the library was, and nothing is now */
    call(there(), 1);
  } else if (!strcmp(argv[1], "other")) { /* other code there */
    char *page = (char *)((unsigned long)there() & -4096ul);

    if (mmap(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != page)
      return 5;
    memcpy((void *)there(), returns_7, sizeof(returns_7));
    call(there(), 1);
  } else if (!strcmp(argv[1], "own")) {
    if (argc > 2) { /* changes its own code behind the kernel's protection */
      int memory = open("/proc/self/mem", O_RDWR);

      if (pwrite(memory, returns_7, sizeof(returns_7), (off_t)(unsigned long)own) != sizeof(returns_7))
        return 6;
    }
    call(own, 1);
  }
  return 0;
}
END
gcc -no-pie -O1 -o ask-low ask.c often.c || exit 1 # near all libraries
gcc -shared -fPIC -O1 -o liboften.so often.c && gcc -O1 -o ask ask.c -L. -loften -Wl,-rpath,"$scratch" || exit 1
cp answer1.so answer.so
settled answer.so

# reload COMMAND: runs it between two uses of the library; both must see the file as it is.
reload()
{
  cat <<END
cp answer1.so answer.so; sleep 0.05
./ask load ./answer.so; ./ask load ./answer.so
$1
./ask load ./answer.so; sleep 0.05; ./ask load ./answer.so; ./ask load ./answer.so
END
}
twice_then_two=$(printf 'answer %d\n' 1 1 2 2 2)
expect 'a library that is written over' "$twice_then_two" sh -c "$(reload 'cat answer2.so >answer.so')"
expect 'the same with its old time' "$twice_then_two" \
  sh -c "$(reload 'touch -r answer.so old; cat answer2.so >answer.so; touch -r old answer.so')"
expect 'a library that is replaced' "$twice_then_two" sh -c "$(reload 'cp answer2.so new.so; mv new.so answer.so')"
cp answer1.so answer.so
settled answer.so

# ---- addresses that mean something else ----

expect 'a jump to where a library was' "$(printf 'answer 1\nanswer 1\nsignal 11\nanswer 1')" \
  sh -c './ask load ./answer.so; ./ask load ./answer.so; ./ask jump; ./ask load ./answer.so'
expect 'the same from code that knew the library' "$(printf 'answer 1\nanswer 1\nsignal 11\nanswer 1')" \
  sh -c './ask load ./answer.so often; ./ask load ./answer.so often; ./ask jump; ./ask load ./answer.so'
expect 'the same with a library that was there from the start' "$(printf 'answer 1\nanswer 1\nsignal 11\nanswer 1')" sh -c '
  LD_PRELOAD=./answer.so ./ask-low load ./answer.so often; LD_PRELOAD=./answer.so ./ask-low load ./answer.so often
  ./ask-low jump; LD_PRELOAD=./answer.so ./ask-low load ./answer.so often'
expect 'other code where a library was' "$(printf 'answer 1\nanswer 1\nanswer 7\nanswer 1')" \
  sh -c './ask load ./answer.so; ./ask load ./answer.so; ./ask other; ./ask load ./answer.so'
cp answer2.so another.so
settled another.so
expect 'another library there' "$(printf 'answer 1\nanswer 1\nanswer 2\nanswer 1')" \
  sh -c './ask load ./answer.so; ./ask load ./answer.so; ./ask load ./another.so; ./ask load ./answer.so'
expect 'code that was changed in memory' "$(printf 'answer 7\nanswer 1\nanswer 7\nanswer 1')" \
  sh -c './ask own change; ./ask own; ./ask own change; ./ask own'

# ---- a program that changes ----

for version in 1 2; do
  echo "#include <stdio.h>
int main(void) { printf(\"version $version\\n\"); return 0; }" >version.c
  gcc -O1 -o "version$version" version.c || exit 1
done
expect 'a program that is replaced' "$(printf 'version %d\n' 1 1 2 2)" sh -c '
  cp version1 version; sleep 0.05; ./version; ./version; cp version2 new; mv new version; ./version; sleep 0.05; ./version'

# ---- limits, and processes that are killed ----

# More programs than there is room for.
for number in $(seq 150); do cp version1 "copy$number"; done
settled copy150
expect 'more programs than there is room for' "$(for number in $(seq 300); do echo 'version 1'; done)" sh -c '
  for round in 1 2; do for number in $(seq 150); do ./copy$number; done; done'

cat >brief.sh <<'END'
# Kills each of some processes, each a little later than the last: one or the other while it leaves its translations.
i=0
while [ $i -lt 100 ]; do
  ./version1 >/dev/null &
  j=0
  while [ $j -lt $i ]; do j=$((j + 1)); done
  kill -9 $! 2>/dev/null
  wait $! 2>/dev/null
  i=$((i + 1))
done
./version1
./version1
END
expect 'processes that are killed' "$(printf 'version 1\nversion 1')" sh brief.sh
expect 'little address space' "$(printf 'version %d\n' 1 1 1)" \
  sh -c './version1; (ulimit -f 1; ./version1); (ulimit -v 8000000; ./version1)'
cat >at_once.sh <<'END'
for i in 1 2 3 4 5 6 7 8; do
  (for j in 1 2 3 4 5; do ./version1; done) &
done
wait
END
expect 'many at once' "$(for number in $(seq 40); do echo 'version 1'; done)" sh at_once.sh

# ---- a cache that is full ----

# The library is mapped when the cache that came with the snapshot has been given up. This
# thread stays in the library while another one fills the cache, so that the memory is used again.
cat >spin.c <<'END'
int spin(const volatile int *is_over)
{
  while (!*is_over)
    ;
  return 1;
}
END
cat >full.c <<'END'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Many functions with much code. */
extern const char functions[];
__asm__(".text; .globl functions; .balign 256; functions: .rept 20000;"
        ".rept 18; movabs $0x1122334455667788, %rax; .endr; ret; .balign 256; .endr");

static volatile int is_over;
static int count;

static void call(int first, int end)
{
  for (int i = first; i < end; i++)
    ((void (*)(void))(functions + 256 * i))();
}

static void *run(void *data)
{
  (void)data;
  if (count > 5000)
    call(count, 20000);
  is_over = 1;
  return NULL;
}

int main(int argc, char **argv)
{
  pthread_t thread;

  count = atoi(argv[argc - 1]);
  call(0, count);
  void *library = dlopen("./spin.so", RTLD_NOW);
  int (*spin)(const volatile int *) = library ? (int (*)(const volatile int *))dlsym(library, "spin") : NULL;
  if (!spin || pthread_create(&thread, NULL, run, NULL))
    return 3;
  spin(&is_over);
  pthread_join(thread, NULL);
  puts("over");
  return 0;
}
END
gcc -shared -fPIC -O1 -o spin.so spin.c && gcc -O1 -o full full.c -ldl -lpthread || exit 1
settled full
export LBR_CACHE_SIZE=2000000 # some 4000 paths
expect 'a library that comes when the cache is full' "$(printf 'over\nover\nover')" \
  timeout -s KILL 100 sh -c './full 1000; ./full 1000; ./full 6000'
unset LBR_CACHE_SIZE
exit "$((failures != 0))"
