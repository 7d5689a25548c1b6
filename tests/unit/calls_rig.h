/* SPDX-License-Identifier: Apache-2.0
 *
 * Branches made by hand for the tests of calls. Two worlds: a file with symbols, for which the test program itself
 * serves (the linker knows where its functions are), and code of which nothing is known.
 */
#ifndef TESTS_CALLS_RIG_H
#define TESTS_CALLS_RIG_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/analysis.h"

/* ---- functions whose addresses are used; they are never run ---- */

#define FILLER "nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop\n"
#define FUNCTION(name)                                                                                                 \
  void name(void);                                                                                                     \
  __asm__(".text\n.balign 64\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" FILLER FILLER ".size " #name \
          ", .-" #name "\n")

FUNCTION(one);
FUNCTION(two);
FUNCTION(three);
FUNCTION(handler);
FUNCTION(_dl_runtime_resolve_here);

/* A part of `three` that lies elsewhere, as compilers make it; and one function that falls into another. */
void part(void);
__asm__(".text\n.balign 64\npart:\n.type three.cold, @function\nthree.cold:\n" FILLER
        ".size three.cold, .-three.cold\n");
void point(void);
__asm__(".text\n.balign 64\npoint:\n.type __setjmp, @function\n__setjmp:\n" FILLER ".size __setjmp, .-__setjmp\n");
void upper(void);
void lower(void);
__asm__(".text\n.balign 64\n.globl upper\n.type upper, @function\nupper:\n" FILLER ".size upper, .-upper\n"
        ".globl lower\n.type lower, @function\nlower:\n" FILLER ".size lower, .-lower\n");

static inline uint64_t at(void (*function)(void), unsigned offset)
{
  return (uint64_t)(uintptr_t)function + offset;
}

/* ---- this program as a file ---- */

static inline int self_open(void *data, const char *name, const void **ret_bytes, size_t *ret_size)
{
  int fd = open(name, O_RDONLY | O_CLOEXEC);
  struct stat status;
  void *bytes;

  (void)data;
  if (fd < 0 || fstat(fd, &status) < 0)
    return -errno;
  bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (bytes == MAP_FAILED)
    return -errno;
  *ret_bytes = bytes;
  *ret_size = (size_t)status.st_size;
  return 0;
}

static inline void self_close(void *data, const void *bytes, size_t size)
{
  (void)data;
  munmap((void *)(uintptr_t)bytes, size);
}

static inline void self_warn(void *data, const char *name, const char *why)
{
  (void)data;
  print_message("%s: %s\n", name, why);
}

static const struct analysis_files self = {NULL, self_open, self_close, self_warn, NULL};

/* ---- a trace by hand ---- */

struct world {
  struct analysis_names *names;
  struct analysis_calls *calls;
  uint64_t number[4]; /* of the next branch of each stream */
  char told[8192];
  size_t length;
  int stop; /* what the function returns */
};

static const char *const words[] = {"start", "call", "tail", "signal", "return", "unwind", "end", "lost"};

/* "+0 one call" and "-0 one return", a blank between them. */
static inline int tell(void *data, const struct analysis_call *call)
{
  struct world *world = data;
  struct analysis_called called;
  char name[64];

  assert_true(analysis_calls_function(world->calls, call->function, &called));
  if (called.symbol)
    snprintf(name, sizeof(name), "%s", called.symbol);
  else
    snprintf(name, sizeof(name), "0x%llx", (unsigned long long)called.location.address);
  if (world->length < sizeof(world->told) - 128)
    world->length += (size_t)snprintf(world->told + world->length, 128, "%s%c%u %s %s", world->length ? ", " : "",
                                      call->is_enter ? '+' : '-', call->depth, name, words[call->how]);
  return world->stop;
}

static inline void record(struct world *world, const struct lb_trace_record *record)
{
  assert_int_equal(analysis_calls_record(world->calls, record), 0);
}

static inline void streams_put(struct world *world)
{
  for (uint32_t i = 0; i < 2; i++)
    record(world, &(struct lb_trace_record){.type = LB_TRACE_STREAM, .stream = {.number = i, .name = "t"}});
}

/* All that is mapped of this program, as modules. */
static inline void self_map(struct world *world)
{
  FILE *maps = fopen("/proc/self/maps", "re");
  char path[4096], line[8192];
  ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);

  assert_non_null(maps);
  assert_true(size > 0);
  path[size] = '\0';
  while (fgets(line, sizeof(line), maps)) {
    unsigned long long first, end, offset;

    if (sscanf(line, "%llx-%llx %*s %llx", &first, &end, &offset) == 3 && strstr(line, path))
      record(world, &(struct lb_trace_record){
                      .type = LB_TRACE_MODULE,
                      .module = {.address = first, .size = end - first, .offset = offset, .name = path},
                    });
  }
  fclose(maps);
}

static inline struct world *world_new(bool has_symbols)
{
  struct world *world = calloc(1, sizeof(*world));

  assert_non_null(world);
  assert_int_equal(analysis_names_new(has_symbols ? &self : NULL, &world->names), 0);
  assert_int_equal(analysis_calls_new(world->names, NULL, tell, world, &world->calls), 0);
  streams_put(world);
  if (has_symbols)
    self_map(world);
  return world;
}

static inline int go_in(struct world *world, uint32_t stream, unsigned kind, uint64_t from, uint64_t to)
{
  struct lb_branch branch = {.from = from, .to = to, .kind = (uint8_t)kind, .from_cpl = 3, .to_cpl = 3};
  struct lb_trace_record batch = {
    .type = LB_TRACE_BRANCHES,
    .branches = {.stream = stream, .first = world->number[stream]++, .count = 1, .branches = &branch},
  };

  return analysis_calls_record(world->calls, &batch);
}

static inline void go(struct world *world, unsigned kind, uint64_t from, uint64_t to)
{
  assert_int_equal(go_in(world, 0, kind, from, to), 0);
}

static inline void call(struct world *world, uint64_t from, uint64_t to)
{
  go(world, LB_BRANCH_NEAR_REL_CALL, from, to);
}

static inline void ret(struct world *world, uint64_t from, uint64_t to)
{
  go(world, LB_BRANCH_NEAR_RET, from, to);
}

/* What was told since the last time. */
static inline void expect(struct world *world, const char *told)
{
  world->told[world->length] = '\0';
  assert_string_equal(world->told, told);
  world->length = 0;
}

/* Ends it; nothing but the outermost function may be open. */
static inline void world_end(struct world *world, const char *told)
{
  assert_int_equal(analysis_calls_end(world->calls), 0);
  expect(world, told);
  analysis_calls_free(world->calls);
  analysis_names_free(world->names);
  free(world);
}

#endif
