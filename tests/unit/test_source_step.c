/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables and blocks that the sources share: items by number, conditions, and blocks to step over.
 */
#include "source/id_table.h"
#include "source/step_block.h"
#include "source_rig.h"

/* ---- items by number ---- */

#define ITEMS 1000u

static void test_id_table(void **state)
{
  struct id_table table = {0};

  (void)state;
  assert_null(id_table_find(&table, 7));
  id_table_drop(&table, 7);
  for (uint32_t i = 0; i < ITEMS; i++) {
    uint32_t *item = id_table_get(&table, i * 4096, sizeof(*item));

    assert_non_null(item);
    assert_int_equal(*item, 0);
    *item = i + 1;
  }
  for (uint32_t i = 0; i < ITEMS; i += 3)
    id_table_drop(&table, i * 4096);
  for (uint32_t i = 0; i < ITEMS; i++) {
    const uint32_t *item = id_table_find(&table, i * 4096);

    assert_int_equal(item ? *item : 0, i % 3 ? i + 1 : 0);
    if (item)
      assert_ptr_equal(id_table_get(&table, i * 4096, sizeof(*item)), item);
  }
  assert_int_equal(table.count, ITEMS - (ITEMS + 2) / 3);
  id_table_done(&table);
  assert_null(id_table_find(&table, 4096));
}

/* ---- blocks ---- */

static void test_conditions(void **state)
{
  static const uint8_t jz[] = {0x74, 0}, ja[] = {0x0F, 0x87, 0, 0, 0, 0}, jle[] = {0x3E, 0x7E, 0}, loop[] = {0xE2, 0},
                       loopne[] = {0xE0, 0}, jecxz[] = {0x67, 0xE3, 0}, jrcxz[] = {0xE3, 0};

  (void)state;
  assert_true(step_is_taken(jz, 2, 0x40, 0));
  assert_false(step_is_taken(jz, 2, 0x1, 0));
  assert_true(step_is_taken(ja, 6, 0, 0));
  assert_false(step_is_taken(ja, 6, 0x1, 0));
  assert_false(step_is_taken(ja, 6, 0x40, 0));
  assert_true(step_is_taken(jle, 3, 0x80, 0));
  assert_false(step_is_taken(jle, 3, 0x880, 0));
  assert_true(step_is_taken(jle, 3, 0x8C0, 0));
  assert_true(step_is_taken(loop, 2, 0, 2));
  assert_false(step_is_taken(loop, 2, 0, 1));
  assert_true(step_is_taken(loopne, 2, 0, 2));
  assert_false(step_is_taken(loopne, 2, 0x40, 2));
  assert_true(step_is_taken(jrcxz, 2, 0, 0));
  assert_false(step_is_taken(jrcxz, 2, 0, UINT64_C(1) << 32));
  assert_true(step_is_taken(jecxz, 3, 0, UINT64_C(1) << 32));
  assert_false(step_is_taken(jz, 0, 0x40, 0));
}

static uint8_t block_bytes[64];

static size_t block_memory(void *data, uint32_t process, uint64_t address, void *buffer, size_t size)
{
  (void)data, (void)process;
  if (address < CODE || address - CODE >= sizeof(block_bytes))
    return 0;
  if (size > sizeof(block_bytes) - (address - CODE))
    size = sizeof(block_bytes) - (size_t)(address - CODE);
  memcpy(buffer, block_bytes + (address - CODE), size);
  return size;
}

/* Which ways out of code there are; by the bytes of Jcc (74), JMP (EB), JMP RAX (FF E0), RET and SYSCALL. */
static void test_blocks(void **state)
{
  static const struct {
    uint8_t bytes[16];
    unsigned count;
    bool is_ambiguous;
  } cases[] = {
    {{0x90, 0x74, 0x10, 0xEB, 0x20}, 2, false},
    {{0x90, 0x74, 0x10, 0x90, 0x74, 0x0D, 0xEB, 0x20}, 3, true}, /* both to 13 */
    {{0x74, 0x02, 0x0F, 0x05}, 2, true},                         /* over SYSCALL, to where it returns */
    {{0x74, 0x10, 0x0F, 0x05}, 2, false},
    {{0x74, 0x10, 0xFF, 0xE0}, 2, true}, /* an indirect jump may go there, too */
    {{0x90, 0xFF, 0xE0}, 1, false},
    {{0x74, 0x10, 0xC3}, 2, false},
    {{0xCC}, 1, true},
  };
  struct log log = {0};
  struct source_sink sink = log_sink(&log);
  struct task_thread *thread;
  struct tasks *tasks;
  struct step_block block;

  (void)state;
  assert_int_equal(tasks_new(&sink, block_memory, NULL, &tasks), 0);
  tasks_live(tasks);
  thread = tasks_thread(tasks, 1, 1);
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    memset(block_bytes, 0x90, sizeof(block_bytes));
    memcpy(block_bytes, cases[i].bytes, sizeof(cases[i].bytes));
    tasks_live_again(tasks);
    step_block_read(tasks, thread, CODE, &block);
    if (block.count != cases[i].count || block.is_ambiguous != cases[i].is_ambiguous)
      fail_msg("case %zu: %zu exits, %d", i, block.count, block.is_ambiguous);
  }
  memcpy(block_bytes, cases[0].bytes, sizeof(cases[0].bytes));
  tasks_live_again(tasks);
  step_block_read(tasks, thread, CODE, &block);
  assert_int_equal(step_block_find(&block, CODE + 0x13)->from, CODE + 1);
  assert_int_equal(step_block_find(&block, CODE + 0x25)->from, CODE + 3);
  assert_null(step_block_find(&block, CODE + 7));
  step_block_read(tasks, thread, CODE + 1000, &block); /* nothing there */
  assert_true(block.is_ambiguous);
  tasks_free(tasks);
}

PART(cmocka_unit_test(test_id_table), cmocka_unit_test(test_conditions), cmocka_unit_test(test_blocks));
