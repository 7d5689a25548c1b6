/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime's replacement for libc: system calls, memory of its own, bytes and strings.
 */
#ifndef PROCESS_RUNTIME_KERNEL_H
#define PROCESS_RUNTIME_KERNEL_H

#include <asm/errno.h>
#include <asm/unistd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/shared.h"

#pragma GCC visibility push(hidden) /* declarations too: nothing may need the table of global offsets */

/* ---- system calls ---- */

/* Returns the kernel's result: -errno if it failed. For the static analyzer it is a function that may write where its
 * arguments point. */
#ifdef __clang_analyzer__
int64_t kernel_call(uint64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f);
#else
static inline int64_t kernel_call(uint64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                                  uint64_t f)
{
  register uint64_t r10 __asm__("r10") = d;
  register uint64_t r8 __asm__("r8") = e;
  register uint64_t r9 __asm__("r9") = f;
  int64_t result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
#endif

static inline int64_t kernel_map(uint64_t address, uint64_t size, unsigned protection, unsigned flags, int fd,
                                 uint64_t offset)
{
  return kernel_call(__NR_mmap, address, size, protection, flags, (uint64_t)fd, offset);
}

static inline bool is_failure(int64_t result)
{
  return result < 0 && result >= -4095;
}

/* ---- memory (memory.c) ---- */

/* Addresses of the runtime's memory: below what the kernel maps by itself, and outside the shadow memory of the
 * sanitizers. */
#define PLACE_START 0x7E8000000000
#define PLACE_REGIONS 0x7EA000000000
#define PLACE_NOWHERE 0x7FFFFFFFF000 /* above all addresses that can be mapped */

/* Maps memory of the runtime's own, at its next free place; `fd` -1: private, else shared. Returns the kernel's result.
 * To be called at the start, or with the lock held. */
int64_t place_map(uint64_t size, int fd, uint64_t offset);
uint64_t place_keep(uint64_t size); /* reserves only the place: nothing is mapped there yet. Returns its address */
uint64_t place_end(void);           /* the address after all of these */

static inline uint64_t page_down(uint64_t address)
{
  return address & ~(uint64_t)(PROCESS_PAGE - 1);
}

static inline uint64_t page_up(uint64_t address)
{
  return page_down(address + PROCESS_PAGE - 1);
}

/* ---- bytes and strings (memory.c) ---- */

/* The compiler may call these two by itself. */
__attribute__((visibility("default"))) void *memcpy(void *to, const void *from, size_t size);
__attribute__((visibility("default"))) void *memset(void *to, int byte, size_t size);

size_t text_length(const char *text);
bool text_is(const char *text, const char *other);
bool text_begins(const char *text, const char *begin);

/* Return the address of the zero after the text; the number's digits and the zero are at most 21 bytes. */
char *text_put(char *at, const char *text);
char *text_put_number(char *at, uint64_t number);

#pragma GCC visibility pop

#endif
