/* SPDX-License-Identifier: Apache-2.0
 *
 * Snippets on the host's own CPU: low memory that holds them, a stub behind them that comes back, and signal handlers
 * for those that trap. The way in and out is host_enter.S.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "host_run.h"

struct host_context {
  uint64_t r[16];
  uint64_t flags, rip, host_rsp;
  void (*exit)(void);
  uint32_t far_offset;
  uint16_t far_selector, unused;
  uint16_t segments[4];
};

void host_enter_64(void);
void host_enter_32(void);
void host_leave_64(void);
void host_leave_32(void);
void host_trapped_64(void);
void host_trapped_32(void);

static volatile bool is_inside, is_inside_32;
static struct host_state trapped;
static bool has_32;
static struct sigaction previous[32];

static const int trap_signals[] = {SIGFPE, SIGSEGV, SIGILL, SIGBUS, SIGTRAP};

/* Low addresses are ours by MAP_FIXED; the compiler must not reason about them. */
static struct host_context *context(void)
{
  uintptr_t address = HOST_CONTEXT;

  __asm__("" : "+r"(address));
  return (struct host_context *)address;
}

uint8_t *host_memory(uint32_t address)
{
  uintptr_t at = address;

  __asm__("" : "+r"(at));
  return (uint8_t *)at;
}

/* ---- traps ---- */

static void trap_save(const greg_t *saved)
{
  static const uint8_t order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

  for (unsigned i = 0; i < 16; i++)
    trapped.r[i] = (uint64_t)saved[order[i]];
  trapped.flags = (uint64_t)saved[REG_EFL];
  trapped.rip = (uint64_t)saved[REG_RIP];
  trapped.trap = (int)saved[REG_TRAPNO];
  trapped.error = (uint64_t)saved[REG_ERR];
  trapped.address = (uint64_t)saved[REG_CR2];
}

static void on_trap(int signal, siginfo_t *info, void *data)
{
  greg_t *saved = ((ucontext_t *)data)->uc_mcontext.gregs;

  (void)info;
  if (!is_inside) { /* a bug of the test: let it crash as it would without us */
    sigaction(signal, &previous[signal], NULL);
    return;
  }
  trap_save(saved);
  saved[REG_RIP] = (greg_t)(uintptr_t)(is_inside_32 ? host_trapped_32 : host_trapped_64);
  saved[REG_CSGSFS] = (saved[REG_CSGSFS] & ~(greg_t)0xFFFF) | HOST_CS_64;
  saved[REG_EFL] = 0x202;
}

int host_catch(void)
{
  static uint8_t stack[65536];
  const stack_t alternative = {.ss_sp = stack, .ss_size = sizeof(stack)};
  struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK};

  if (sigaltstack(&alternative, NULL) < 0)
    return -errno;
  for (size_t i = 0; i < sizeof(trap_signals) / sizeof(trap_signals[0]); i++)
    if (sigaction(trap_signals[i], &action, &previous[trap_signals[i]]) < 0)
      return -errno;
  return 0;
}

/* ---- memory ---- */

static int area_map(uintptr_t address, size_t size)
{
  void *at = mmap(host_memory((uint32_t)address), size, PROT_READ | PROT_WRITE | PROT_EXEC,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

  if (at == MAP_FAILED)
    return -errno;
  return (uintptr_t)at == address ? 0 : -EEXIST;
}

static int areas_map(const char **ret_why)
{
  static const uintptr_t areas[][2] = {{HOST_CODE, HOST_CODE_SIZE},
                                       {HOST_DATA, HOST_DATA_SIZE},
                                       {HOST_STACK, HOST_STACK_SIZE},
                                       {HOST_TABLE, HOST_TABLE_SIZE},
                                       {HOST_CONTEXT, 4096}};

  *ret_why = "no memory that is writable and executable at the address the test wants";
  for (size_t i = 0; i < sizeof(areas) / sizeof(areas[0]); i++) {
    int r = area_map(areas[i][0], areas[i][1]);

    if (r < 0)
      return r;
  }
  return 0;
}

/* Behind a snippet: a jump through HOST_EXIT, from 32-bit code first a far jump to a 64-bit jump of that kind. */
static void stub_put(uint8_t *at, unsigned bits)
{
  static const uint8_t jump[] = {0xFF, 0x24, 0x25};
  static const uint8_t far_jump[] = {0xEA};
  const uint32_t slot = HOST_EXIT, stub = HOST_STUB;
  const uint16_t selector = HOST_CS_64;

  if (bits == 32) {
    memcpy(at, far_jump, 1);
    memcpy(at + 1, &stub, 4);
    memcpy(at + 5, &selector, 2);
    return;
  }
  memcpy(at, jump, 3);
  memcpy(at + 3, &slot, 4);
}

void host_run(const uint8_t *code, size_t size, unsigned offset, unsigned bits, struct host_state *state)
{
  struct host_context *c = context();

  memcpy(host_memory(HOST_CODE + offset), code, size);
  stub_put(host_memory((uint32_t)(HOST_CODE + offset + size)), bits);
  memcpy(c->r, state->r, sizeof(c->r));
  c->flags = state->flags;
  c->rip = c->far_offset = HOST_CODE + offset;
  c->far_selector = HOST_CS_32;
  c->exit = bits == 32 ? host_leave_32 : host_leave_64;
  trapped.trap = HOST_NO_TRAP;
  is_inside_32 = bits == 32;
  is_inside = true;
  (bits == 32 ? host_enter_32 : host_enter_64)();
  is_inside = false;
  if (trapped.trap != HOST_NO_TRAP) {
    *state = trapped;
    return;
  }
  memcpy(state->r, c->r, sizeof(c->r));
  state->flags = c->flags;
  state->rip = HOST_CODE + offset + size;
  state->trap = HOST_NO_TRAP;
}

/* MOV EAX, 1234 in a 32-bit segment: does it come back? Only signals can tell that it does not. */
static bool try_32(void)
{
  static const uint8_t code[] = {0xB8, 0x34, 0x12, 0, 0};
  struct host_state state = {.flags = 2};

  state.r[4] = HOST_STACK + HOST_STACK_SIZE / 2;
  host_run(code, sizeof(code), 0, 32, &state);
  return state.trap == HOST_NO_TRAP && (uint32_t)state.r[0] == 0x1234;
}

bool host_has_32(void)
{
  return has_32;
}

int host_init(const char **ret_why)
{
  int r = areas_map(ret_why);

  if (r < 0)
    return r;
  r = host_catch();
  *ret_why = "no signal handler";
  if (r < 0)
    return r;
  stub_put(host_memory(HOST_STUB), 64);
  has_32 = try_32();
  return 0;
}
