/* SPDX-License-Identifier: Apache-2.0
 *
 * From branches to calls, with branches made by hand. Two worlds: a file with symbols, for which this program itself
 * serves (the linker knows where its functions are), and code of which nothing is known.
 */
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

static uint64_t at(void (*function)(void), unsigned offset)
{
  return (uint64_t)(uintptr_t)function + offset;
}

/* ---- this program as a file ---- */

static int self_open(void *data, const char *name, const void **ret_bytes, size_t *ret_size)
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

static void self_close(void *data, const void *bytes, size_t size)
{
  (void)data;
  munmap((void *)(uintptr_t)bytes, size);
}

static void self_warn(void *data, const char *name, const char *why)
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
static int tell(void *data, const struct analysis_call *call)
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

static void record(struct world *world, const struct lb_trace_record *record)
{
  assert_int_equal(analysis_calls_record(world->calls, record), 0);
}

static void streams_put(struct world *world)
{
  for (uint32_t i = 0; i < 2; i++)
    record(world, &(struct lb_trace_record){.type = LB_TRACE_STREAM, .stream = {.number = i, .name = "t"}});
}

/* All that is mapped of this program, as modules. */
static void self_map(struct world *world)
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

static struct world *world_new(bool has_symbols)
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

static int go_in(struct world *world, uint32_t stream, unsigned kind, uint64_t from, uint64_t to)
{
  struct lb_branch branch = {.from = from, .to = to, .kind = (uint8_t)kind, .from_cpl = 3, .to_cpl = 3};
  struct lb_trace_record batch = {
    .type = LB_TRACE_BRANCHES,
    .branches = {.stream = stream, .first = world->number[stream]++, .count = 1, .branches = &branch},
  };

  return analysis_calls_record(world->calls, &batch);
}

static void go(struct world *world, unsigned kind, uint64_t from, uint64_t to)
{
  assert_int_equal(go_in(world, 0, kind, from, to), 0);
}

static void call(struct world *world, uint64_t from, uint64_t to)
{
  go(world, LB_BRANCH_NEAR_REL_CALL, from, to);
}

static void ret(struct world *world, uint64_t from, uint64_t to)
{
  go(world, LB_BRANCH_NEAR_RET, from, to);
}

/* What was told since the last time. */
static void expect(struct world *world, const char *told)
{
  world->told[world->length] = '\0';
  assert_string_equal(world->told, told);
  world->length = 0;
}

/* Ends it; nothing but the outermost function may be open. */
static void world_end(struct world *world, const char *told)
{
  assert_int_equal(analysis_calls_end(world->calls), 0);
  expect(world, told);
  analysis_calls_free(world->calls);
  analysis_names_free(world->names);
  free(world);
}

/* ---- calls and returns ---- */

static void test_call(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 4), at(two, 0));
  expect(world, "+0 one start, +1 two call");
  go(world, LB_BRANCH_JCC, at(two, 3), at(two, 9)); /* stays */
  go(world, LB_BRANCH_NEAR_REL_JMP, at(two, 12), at(two, 0));
  expect(world, "");
  call(world, at(two, 3), at(two, 0)); /* recursion */
  ret(world, at(two, 20), at(two, 8));
  ret(world, at(two, 20), at(one, 9));
  expect(world, "+2 two call, -2 two return, -1 two return");
  world_end(world, "-0 one end");
}

/* call to the next instruction, to know where it is: not a function. */
static void test_call_next(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 4), at(one, 9));
  expect(world, "+0 one start");
  call(world, at(one, 10), at(two, 0));
  ret(world, at(two, 1), at(one, 15));
  expect(world, "+1 two call, -1 two return");
  world_end(world, "-0 one end");
}

static void test_return_outside(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  ret(world, at(two, 4), at(one, 9)); /* who called two was not seen */
  expect(world, "+0 two start, -0 two return, +0 one start");
  world_end(world, "-0 one end");
}

/* A return to a frame further up, of which those above know nothing. */
static void test_return_skips(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 0), at(two, 0));
  call(world, at(two, 1), at(three, 0));
  call(world, at(three, 1), at(handler, 0));
  expect(world, "+0 one start, +1 two call, +2 three call, +3 handler call");
  ret(world, at(handler, 1), at(one, 5));
  expect(world, "-3 handler unwind, -2 three unwind, -1 two return");
  world_end(world, "-0 one end");
}

/* ---- jumps ---- */

static void test_tail(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 0), at(two, 0));
  go(world, LB_BRANCH_NEAR_REL_JMP, at(two, 1), at(three, 0));
  go(world, LB_BRANCH_JCC, at(three, 1), at(handler, 0)); /* conditional tail calls exist, too */
  expect(world, "+0 one start, +1 two call, +2 three tail, +3 handler tail");
  ret(world, at(handler, 1), at(one, 5));
  expect(world, "-3 handler return, -2 three return, -1 two return");
  world_end(world, "-0 one end");
}

/* Two functions that jump to each other for ever: the stack does not grow. */
static void test_tail_loop(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 0), at(two, 0));
  go(world, LB_BRANCH_NEAR_REL_JMP, at(two, 1), at(three, 0));
  expect(world, "+0 one start, +1 two call, +2 three tail");
  for (unsigned i = 0; i < 1000; i++) {
    go(world, LB_BRANCH_NEAR_REL_JMP, at(three, 1), at(two, 0));
    expect(world, "-2 three return, -1 two return, +1 two tail");
    go(world, LB_BRANCH_NEAR_REL_JMP, at(two, 1), at(three, 0));
    expect(world, "+2 three tail");
  }
  ret(world, at(three, 9), at(one, 5));
  expect(world, "-2 three return, -1 two return");
  world_end(world, "-0 one end");
}

static void test_cold(void **state)
{
  struct world *world = world_new(true);
  uint64_t cold = at(part, 0);

  (void)state;
  call(world, at(one, 0), at(three, 0));
  go(world, LB_BRANCH_JCC, at(three, 1), cold);
  call(world, cold + 2, at(two, 0));
  ret(world, at(two, 1), cold + 7);
  go(world, LB_BRANCH_NEAR_REL_JMP, cold + 8, at(three, 9));
  ret(world, at(three, 10), at(one, 5));
  expect(world, "+0 one start, +1 three call, +2 two call, -2 two return, -1 three return");
  world_end(world, "-0 one end");
}

/* A landing pad in the part of a function that lies elsewhere. */
static void test_cold_landing(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 0), at(three, 0));
  call(world, at(three, 1), at(two, 0));
  call(world, at(two, 1), at(handler, 0)); /* as _Unwind_RaiseException */
  ret(world, at(handler, 5), at(part, 4));
  expect(world, "+0 one start, +1 three call, +2 two call, +3 handler call, -3 handler unwind, -2 two unwind");
  world_end(world, "-1 three end, -0 one end");
}

static void test_fall(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 0), at(upper, 0));
  go(world, LB_BRANCH_JCC, at(lower, 4), at(lower, 8)); /* came to it without a branch */
  ret(world, at(lower, 12), at(one, 5));
  expect(world, "+0 one start, +1 upper call, +2 lower tail, -2 lower return, -1 upper return");
  world_end(world, "-0 one end");
}

/* The dynamic linker finds a function and jumps to it: the function was called, not the linker. */
static void test_resolver(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 0), at(_dl_runtime_resolve_here, 0));
  call(world, at(_dl_runtime_resolve_here, 3), at(three, 0));
  ret(world, at(three, 3), at(_dl_runtime_resolve_here, 8));
  go(world, LB_BRANCH_NEAR_IND_JMP, at(_dl_runtime_resolve_here, 9), at(two, 0));
  ret(world, at(two, 9), at(one, 5));
  expect(world, "+0 one start, +1 _dl_runtime_resolve_here call, +2 three call, -2 three return, "
                "-1 _dl_runtime_resolve_here return, +1 two call, -1 two return");
  world_end(world, "-0 one end");
}

/* An indirect jump into the middle of a function further up, and an exception's return to there. */
static void test_unwind(void **state)
{
  static const unsigned kinds[] = {LB_BRANCH_NEAR_IND_JMP, LB_BRANCH_NEAR_RET};

  (void)state;
  for (unsigned i = 0; i < 2; i++) {
    struct world *world = world_new(true);

    call(world, at(handler, 0), at(one, 0));
    call(world, at(one, 0), at(two, 0));
    call(world, at(two, 0), at(three, 0));
    go(world, kinds[i], at(three, 1), at(one, 20));
    expect(world, "+0 handler start, +1 one call, +2 two call, +3 three call, -3 three unwind, -2 two unwind");
    ret(world, at(one, 22), at(handler, 5));
    expect(world, "-1 one return");
    world_end(world, "-0 handler end");
  }
}

/* Of a function that is there several times, longjmp leads to the one that called setjmp. */
static void test_longjmp(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 0), at(two, 0));
  call(world, at(two, 1), at(point, 0));
  ret(world, at(point, 3), at(two, 6));
  call(world, at(two, 7), at(two, 0));
  call(world, at(two, 7), at(two, 0));
  call(world, at(two, 7), at(three, 0));
  expect(world,
         "+0 one start, +1 two call, +2 __setjmp call, -2 __setjmp return, +2 two call, +3 two call, +4 three call");
  go(world, LB_BRANCH_NEAR_IND_JMP, at(three, 9), at(two, 6));
  expect(world, "-4 three unwind, -3 two unwind, -2 two unwind");
  ret(world, at(two, 9), at(one, 5));
  expect(world, "-1 two return");
  world_end(world, "-0 one end");
}

/* A direct jump is never one: hand-written code that shares its end with another function. */
static void test_shared_end(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 0), at(two, 0));
  call(world, at(two, 0), at(three, 0));
  go(world, LB_BRANCH_NEAR_REL_JMP, at(three, 1), at(one, 20));
  ret(world, at(one, 22), at(two, 5));
  expect(world, "+0 one start, +1 two call, +2 three call, +3 one tail, -3 one return, -2 three return");
  world_end(world, "-1 two end, -0 one end");
}

/* ---- signals, threads, gaps ---- */

static void test_signal(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 0), at(two, 0));
  go(world, LB_BRANCH_INTERRUPT, at(two, 7), at(handler, 0));
  call(world, at(handler, 2), at(three, 0));
  ret(world, at(three, 3), at(handler, 7));
  expect(world, "+0 one start, +1 two call, +2 handler signal, +3 three call, -3 three return");
  ret(world, at(handler, 8), at(upper, 3)); /* to what makes the system call */
  go(world, LB_BRANCH_IRET, at(upper, 5), at(two, 7));
  expect(world, "-2 handler return");
  go(world, LB_BRANCH_SYSCALL, at(two, 9), at(two, 11)); /* system calls are none */
  ret(world, at(two, 12), at(one, 5));
  expect(world, "-1 two return");
  world_end(world, "-0 one end");
}

/* The handler changed where the program goes on. */
static void test_signal_elsewhere(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 0), at(two, 0));
  go(world, LB_BRANCH_FAULT, at(two, 7), at(handler, 0));
  ret(world, at(handler, 8), at(upper, 3));
  go(world, LB_BRANCH_IRET, at(upper, 5), at(one, 24));
  expect(world, "+0 one start, +1 two call, +2 handler signal, -2 handler return, -1 two unwind");
  world_end(world, "-0 one end");
}

static void test_threads(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  call(world, at(one, 0), at(two, 0));
  assert_int_equal(go_in(world, 1, LB_BRANCH_NEAR_REL_CALL, at(three, 0), at(two, 0)), 0);
  assert_int_equal(go_in(world, 1, LB_BRANCH_NEAR_RET, at(two, 1), at(three, 5)), 0);
  ret(world, at(two, 1), at(one, 5));
  expect(world, "+0 one start, +1 two call, +0 three start, +1 two call, -1 two return, -1 two return");
  world_end(world, "-0 one end, -0 three end");
}

static void test_gap(void **state)
{
  struct world *world = world_new(true);
  struct lb_trace_record gap = {.type = LB_TRACE_GAP, .gap = {.stream = 1, .reason = LB_TRACE_LOST, .count = 5}};

  (void)state;
  call(world, at(one, 0), at(two, 0));
  record(world, &gap); /* another's */
  expect(world, "+0 one start, +1 two call");
  gap.gap.stream = 0;
  record(world, &gap);
  expect(world, "-1 two lost, -0 one lost");
  call(world, at(three, 0), at(two, 0));
  gap.gap.stream = LB_TRACE_ALL;
  record(world, &gap);
  expect(world, "+0 three start, +1 two call, -1 two lost, -0 three lost");
  world_end(world, "");
}

/* ---- numbers ---- */

struct numbers {
  uint64_t enter, leave;
};

static int numbers_take(void *data, const struct analysis_call *call)
{
  struct numbers *numbers = data;

  if (call->depth == 1)
    *(call->is_enter ? &numbers->enter : &numbers->leave) = call->branch;
  assert_int_equal(call->instructions, 0);
  return 0;
}

static void test_numbers(void **state)
{
  struct world *world = world_new(true);
  struct numbers numbers = {0};
  struct analysis_calls *mine = world->calls;
  struct analysis_call now = {.branch = 9, .instructions = 9, .unknown = 9};

  (void)state;
  assert_int_equal(analysis_calls_new(world->names, NULL, numbers_take, &numbers, &world->calls), 0);
  analysis_calls_position(world->calls, 7, &now);
  assert_int_equal(now.branch | now.instructions | now.unknown, 0);
  world->number[0] = 1000;
  go(world, LB_BRANCH_JCC, at(one, 0), at(one, 4));
  call(world, at(one, 5), at(two, 0));
  go(world, LB_BRANCH_JCC, at(two, 3), at(two, 9));
  ret(world, at(two, 20), at(one, 10));
  assert_int_equal(numbers.enter, 1001);
  assert_int_equal(numbers.leave, 1003);
  analysis_calls_position(world->calls, 0, &now);
  assert_int_equal(now.branch, 1004);
  assert_false(analysis_calls_has_unknown(world->calls));
  analysis_calls_free(world->calls);
  world->calls = mine;
  world_end(world, "");
}

static void test_stop(void **state)
{
  struct world *world = world_new(true);

  (void)state;
  world->stop = -ECANCELED;
  assert_int_equal(go_in(world, 0, LB_BRANCH_NEAR_REL_CALL, at(one, 0), at(two, 0)), -ECANCELED);
  world->stop = 0;
  world->length = 0;
  analysis_calls_free(world->calls);
  analysis_names_free(world->names);
  free(world);
}

/* ---- code of which nothing is known ---- */

static void test_stripped(void **state)
{
  struct world *world = world_new(false);

  (void)state;
  call(world, 0x1000, 0x2000);
  go(world, LB_BRANCH_NEAR_REL_JMP, 0x2010, 0x2100); /* within, as far as anybody knows */
  ret(world, 0x2110, 0x1005);
  expect(world, "+0 0x1000 start, +1 0x2000 call, -1 0x2000 return");
  call(world, 0x1010, 0x2100); /* now it is known that a function begins there */
  ret(world, 0x2110, 0x1015);
  call(world, 0x1000, 0x2000);
  go(world, LB_BRANCH_NEAR_REL_JMP, 0x2010, 0x2100);
  ret(world, 0x2110, 0x1005);
  expect(world, "+1 0x2100 call, -1 0x2100 return, +1 0x2000 call, +2 0x2100 tail, -2 0x2100 return, -1 0x2000 return");
  world_end(world, "-0 0x1000 end");
}

/* A caller that lies before what it called; an exception is caught in it. */
static void test_stripped_unwind(void **state)
{
  struct world *world = world_new(false);

  (void)state;
  call(world, 0x100, 0x1000);
  call(world, 0x1010, 0x2000);
  call(world, 0x2010, 0x3000);
  ret(world, 0x3010, 0x1040);
  expect(world, "+0 0x100 start, +1 0x1000 call, +2 0x2000 call, +3 0x3000 call, -3 0x3000 unwind, -2 0x2000 unwind");
  ret(world, 0x1050, 0x105);
  expect(world, "-1 0x1000 return");
  world_end(world, "-0 0x100 end");
}

/* Deeper than is given; all comes back. */
static void test_deep(void **state)
{
  enum { DEPTH = 200000 };
  struct world *world = world_new(false);

  (void)state;
  for (unsigned i = 0; i < DEPTH; i++)
    call(world, 0x1010, 0x1000);
  world->length = 0;
  for (unsigned i = 0; i < DEPTH - 1; i++)
    ret(world, 0x1020, 0x1015);
  assert_memory_equal(world->told, "-65535 ", 7); /* ANALYSIS_CALLS_DEPTH_MAX of them are given */
  world->length = 0;
  ret(world, 0x1020, 0x1015);
  expect(world, "-1 0x1000 return");
  world_end(world, "-0 0x1010 end");
}

/* Deeper than can be kept: what is known of the stack is given up, said so, and it goes on. */
static void test_too_deep(void **state)
{
  enum { DEPTH = 3000000 };
  struct world *world = world_new(false);
  unsigned lost = 0;

  (void)state;
  for (unsigned i = 0; i < DEPTH; i++) {
    world->length = 0;
    world->told[0] = '\0';
    call(world, 0x1010, 0x1000);
    lost += strstr(world->told, " lost") != NULL;
  }
  assert_int_equal(lost, 1);
  world->length = 0;
  ret(world, 0x1020, 0x1015);
  ret(world, 0x1020, 0x1015);
  world->length = 0;
  assert_int_equal(analysis_calls_end(world->calls), 0);
  world->length = 0;
  world_end(world, "");
}

/* A trace by a stranger: returns to nowhere, again and again, in a deep stack. It must end, and soon. */
static void test_hostile(void **state)
{
  struct world *world = world_new(false);

  (void)state;
  for (unsigned i = 0; i < 100000; i++)
    call(world, 0x1010, 0x1000);
  for (uint64_t i = 0; i < 100000; i++) {
    ret(world, 0x1020, 0x123456789000 + 64 * i);
    world->length = 0;
  }
  for (unsigned kind = 0; kind < LB_BRANCH_KINDS; kind++)
    for (uint64_t to = UINT64_MAX; to; to >>= 1) {
      go(world, kind, ~to, to);
      go(world, kind, to, to);
      world->length = 0;
    }
  assert_int_equal(analysis_calls_end(world->calls), 0);
  world->length = 0;
  world_end(world, "");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_call),         cmocka_unit_test(test_call_next),    cmocka_unit_test(test_return_outside),
    cmocka_unit_test(test_return_skips), cmocka_unit_test(test_tail),         cmocka_unit_test(test_tail_loop),
    cmocka_unit_test(test_cold),         cmocka_unit_test(test_cold_landing), cmocka_unit_test(test_fall),
    cmocka_unit_test(test_resolver),     cmocka_unit_test(test_unwind),       cmocka_unit_test(test_longjmp),
    cmocka_unit_test(test_shared_end),   cmocka_unit_test(test_signal),       cmocka_unit_test(test_signal_elsewhere),
    cmocka_unit_test(test_threads),      cmocka_unit_test(test_gap),          cmocka_unit_test(test_numbers),
    cmocka_unit_test(test_stop),         cmocka_unit_test(test_stripped),     cmocka_unit_test(test_stripped_unwind),
    cmocka_unit_test(test_deep),         cmocka_unit_test(test_too_deep),     cmocka_unit_test(test_hostile),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
