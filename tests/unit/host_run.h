/* SPDX-License-Identifier: Apache-2.0
 *
 * The same instructions on the host's own CPU (host_native.c) and in the interpreter (host_guest.c), so that a test can
 * compare. Both sides see code, data, stack and tables at the addresses of host_layout.h.
 */
#ifndef HOST_RUN_H
#define HOST_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host_layout.h"

/* A row of the table that the .S files make. `body` is the part of an exhaustive snippet that is being tested. */
struct host_snippet {
  const char *name;
  const uint8_t *start, *end;
  const uint8_t *body, *body_end;
  uint32_t bits; /* 64 or 32 */
  uint32_t sort; /* HOST_RANDOM, HOST_EXHAUSTIVE, HOST_TABULAR */
};

extern const struct host_snippet __start_snippets[], __stop_snippets[];

/* Registers before and after. */
struct host_state {
  uint64_t r[16];
  uint64_t flags;
  uint64_t rip;            /* after: of a trap the one that was saved */
  int trap;                /* vector of the exception that ended it, -1 for none */
  uint64_t error, address; /* of #PF */
};

#define HOST_NO_TRAP (-1)

/* Maps the window and installs signal handlers. Returns 0 or -errno; `ret_why` then says what did not work. */
int host_init(const char **ret_why);
/* Catches the signals of traps, again if somebody else (cmocka) took them. Returns 0 or -errno. */
int host_catch(void);
/* False when the kernel does not let 64-bit programs jump into 32-bit code segments. */
bool host_has_32(void);

/* Runs `size` bytes of code at HOST_CODE + offset natively. Data, stack and table are used as they lie. */
void host_run(const uint8_t *code, size_t size, unsigned offset, unsigned bits, struct host_state *state);

/* The window of this process by its address: the memory that native code sees. */
uint8_t *host_memory(uint32_t address);

/* ---- the interpreter's side ---- */

struct host_guest;

/* NULL when there is no memory. */
struct host_guest *host_guest_new(const char *cpu_name);
void host_guest_free(struct host_guest *guest);

/* As host_run. Returns false when the run ended in another way than by an exception or by the end of the code;
 * `ret_why` then says how. */
bool host_guest_run(struct host_guest *guest, const uint8_t *code, size_t size, unsigned offset, unsigned bits,
                    struct host_state *state, const char **ret_why);
/* The window of the guest by its address. */
uint8_t *host_guest_memory(struct host_guest *guest, uint32_t address);
uint64_t host_guest_retired(const struct host_guest *guest);

#endif
