/* SPDX-License-Identifier: Apache-2.0
 *
 * Ways to die, by name: crash smash | return | abort | divide | illegal | pointer | overflow | exit. Without a libc:
 * die.S.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static volatile int zero;

/* Too much for the buffer; the stack protector finds out. */
static void smash(const char *text)
{
  char buffer[8];
  volatile char *end = buffer;
  for (size_t i = 0; i < 64; i++)
    end[i] = text[i % 5];
}

/* The same without a protector: it returns to 0x4141414141. */
__attribute__((no_stack_protector, naked)) static void smash_return(void)
{
  __asm__("movabs $0x4141414141, %rax\n mov %rax, (%rsp)\n ret");
}

static int divide(int number)
{
  return number / zero;
}

static void pointer(void)
{
  *(volatile char *)(uintptr_t)zero = 1;
}

/* Until the stack is full: 128 calls. */
static int overflow(int depth)
{
  volatile char much[65536];
  much[0] = (char)depth;
  return depth < 0 ? 0 : overflow(depth + 1) + much[0];
}

int main(int argc, char **argv)
{
  const char *way = argc > 1 ? argv[1] : "exit";
  if (!strcmp(way, "smash"))
    smash("smash");
  else if (!strcmp(way, "return"))
    smash_return();
  else if (!strcmp(way, "abort"))
    abort();
  else if (!strcmp(way, "divide"))
    return divide(argc);
  else if (!strcmp(way, "illegal"))
    __builtin_trap();
  else if (!strcmp(way, "pointer"))
    pointer();
  else if (!strcmp(way, "overflow"))
    return overflow(0);
  return 42;
}
