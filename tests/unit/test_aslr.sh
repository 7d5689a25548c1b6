#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_aslr.sh LBR: --aslr and --no-aslr of lbr run and lbr record. Without randomisation, addresses must be the same in
# each run, and those of a program and its heap as setarch -R gives them without lbr.
. "$(dirname "$0")/shell.sh"
cd "$scratch" || exit 1

if [ "$(uname -m)" != x86_64 ]; then
  exit 77
fi

cat >where.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>
int main(int argc, char **argv)
{
  int local;
  printf("local %p\nmain %p\nheap %p\n", (void *)&local, (void *)main, sbrk(0));
  printf("persona %x\n", (unsigned)personality(0xffffffff));
  fflush(stdout);
  if (argc > 1)
    execv(argv[1], argv + 1);
  char *last = NULL;
  for (int i = 0; i < 1000; i++)
    memset(last = malloc(1000), 1, 1000);
  printf("block %p\n", (void *)last);
}
END
gcc -O1 -fPIE -pie -o where where.c || exit 1
# part FILE WORDS: those lines of it.
part() { grep -E "^($2) " "$1"; }

# A filter that refuses personality(2) as containers do: only the query is allowed.
cat >refuse.c <<'END'
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
  struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_personality, 0, 3),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffff, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof(code) / sizeof(*code), code};
  if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
    return 77;
  execv(argv[1], argv + 1);
  return 77;
}
END
gcc -O1 -o refuse refuse.c || exit 1
./refuse "$lbr" record --no-aslr -o refused.lbr ./where >out 2>err
status=$?
[ $status -eq 125 ] && silent && complained 'cannot be started without address randomisation: personality(2): Operation not permitted' &&
  ! [ -e refused.lbr ] && ! [ -e refused.lbr.incomplete ]
verdict 'record --no-aslr where the kernel refuses it: an error, and no trace' $?
./refuse "$lbr" run --no-aslr ./where >out 2>err
status=$?
[ $status -eq 125 ] && silent && complained 'without --no-aslr'
verdict 'run --no-aslr, likewise' $?

setarch -R true 2>/dev/null || exit "$((failures ? 1 : 77))"
setarch -R ./where >native || exit 1

run run --no-aslr ./where
cp out first
run run --no-aslr ./where
[ $status -eq 0 ] && cmp -s out first && [ "$(part out 'main|heap|persona')" = "$(part native 'main|heap|persona')" ]
verdict 'run --no-aslr: the same in each run; program and heap as without lbr' $?
run record --no-aslr --quiet -o where.lbr ./where
[ $status -eq 0 ] && cmp -s out first
verdict 'record --no-aslr' $?
run run --no-aslr ./where ./where
[ $status -eq 0 ] && [ "$(part out main | uniq | wc -l)" -eq 1 ] && [ "$(part out main | wc -l)" -eq 2 ]
verdict 'what the program executes is not randomised either' $?
run run ./where
[ $status -eq 0 ] && cmp -s out first
verdict 'run without an option: the same' $?
run record --quiet -o where.lbr ./where
[ $status -eq 0 ] && cmp -s out first
verdict 'record without an option: the same' $?
run run --aslr ./where
cp out first
run run --aslr ./where
[ $status -eq 0 ] && ! cmp -s out first && [ "$(part out persona)" = "$(./where | grep '^persona')" ]
verdict 'run --aslr: addresses differ' $?
run record --aslr --quiet -o where.lbr ./where
cp out first
run record --aslr --quiet -o where.lbr ./where
[ $status -eq 0 ] && ! cmp -s out first && [ "$(part out persona)" = "$(./where | grep '^persona')" ]
verdict 'record --aslr: addresses differ' $?
./refuse "$lbr" run ./where >out 2>err
status=$?
cp out first
./refuse "$lbr" run ./where >out 2>err
[ $status -eq 0 ] && ! [ -s err ] && ! cmp -s out first && [ "$(part out persona)" = "$(./where | grep '^persona')" ]
verdict 'run where the kernel refuses it: addresses differ' $?

sed 's/i < 1000/i < 1/' where.c >brief.c && gcc -O1 -fPIE -pie -Wl,-z,now -o brief brief.c # single steps take their time
setarch -R ./brief >native
LBR_SINGLE_STEPS=1 run run --no-aslr --source block-step ./brief
if ! complained 'is not usable'; then
  [ $status -eq 0 ] && [ "$(part out 'main|heap|persona')" = "$(part native 'main|heap|persona')" ]
  verdict '--source block-step --no-aslr' $?
fi
exit "$((failures != 0))"
