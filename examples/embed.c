/* SPDX-License-Identifier: Apache-2.0
 *
 * Branch recording for somebody else's emulator: a toy one of nine instructions, to which four calls were added. They
 * are marked with <--. The guest switches LBR on, calls a loop and halts; then we look at what the CPU remembered.
 */
#include <lastbranch/recorder.h>
#include <stdio.h>
#include <string.h>

static const unsigned char guest[32] = {
  0xB9, 0xD9, 0x01, 0x00, 0x00, /* 1000 mov ecx, 0x1d9   IA32_DEBUGCTL */
  0xB8, 0x01, 0x00, 0x00, 0x00, /* 1005 mov eax, 1       LBR */
  0x0F, 0x30,                   /* 100a wrmsr */
  0xB8, 0x03, 0x00, 0x00, 0x00, /* 100c mov eax, 3 */
  0xE8, 0x01, 0x00, 0x00, 0x00, /* 1011 call 0x1017 */
  0xF4,                         /* 1016 hlt */
  0x48,                         /* 1017 dec eax */
  0x75, 0xFD,                   /* 1018 jnz 0x1017 */
  0xC3,                         /* 101a ret */
};

static struct lb_recorder recorder;

static unsigned branch(unsigned kind, unsigned from, unsigned to)
{
  struct lb_branch taken = {
    .from = from, .to = to, .kind = (uint8_t)kind, .flags = LB_BRANCH_FROM_32 | LB_BRANCH_TO_32};
  lb_recorder_branch(&recorder, &taken); /* <-- every taken branch, after its last check */
  return to;
}

int main(void)
{
  const struct lb_cpu *cpu;
  unsigned ip = 0x1000, eax = 0, ecx = 0, stack[8], sp = 8;
  if (lb_cpu_find("westmere", &cpu) < 0 || lb_recorder_init(&recorder, cpu, NULL, 0) < 0) /* <-- once */
    return 1;
  for (const unsigned char *at = guest; *at != 0xF4; at = guest + (ip - 0x1000)) {
    int immediate = 0;
    memcpy(&immediate, at + 1, at[0] == 0x75 ? 1 : 4);
    if (at[0] == 0xB8)
      eax = (unsigned)immediate, ip += 5;
    else if (at[0] == 0xB9)
      ecx = (unsigned)immediate, ip += 5;
    else if (at[0] == 0x48)
      eax--, ip++;
    else if (at[0] == 0x75)
      ip = eax ? branch(LB_BRANCH_JCC, ip, ip + 2 + (unsigned)(signed char)immediate) : ip + 2;
    else if (at[0] == 0xE8)
      stack[--sp] = ip + 5, ip = branch(LB_BRANCH_NEAR_REL_CALL, ip, ip + 5 + (unsigned)immediate);
    else if (at[0] == 0xC3)
      ip = branch(LB_BRANCH_NEAR_RET, ip, stack[sp++]);
    else if (lb_recorder_wrmsr(&recorder, ecx, eax) == LB_MSR_OK) /* <-- WRMSR, and RDMSR likewise */
      ip += 2;
    else
      return 1; /* a real one raises #GP */
  }
  struct lb_record record;
  for (unsigned age = 0; lb_recorder_entry(&recorder, age, &record) == 0 && !record.is_empty; age++) /* <-- look */
    printf("%u: %#llx -> %#llx %s\n", age, (unsigned long long)record.from, (unsigned long long)record.to,
           lb_branch_kind_name(record.kind));
  return 0;
}
