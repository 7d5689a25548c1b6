/* SPDX-License-Identifier: Apache-2.0
 *
 * A processor that lies: whatever its registers hold, and whatever the files of --arm and /proc/PID/maps say, reading
 * and switching on end with an answer, nothing stays changed, and what was read can be printed. The first byte chooses
 * the CPU, the second what is done, then come the values that reads give; or the text of a file.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "report/report.h"
#include "session/session.h"
#include "symbol/symbol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_true, const char *what)
{
  if (is_true)
    return;
  fprintf(stderr, "fuzz_live: %s does not hold\n", what);
  abort();
}

/* ---- a processor ---- */

struct liar {
  const uint8_t *values;
  size_t size, at;
  unsigned reads, writes;
};

/* A byte says of which sort the value is: an error, small, an address, or eight bytes of the input. */
static int liar_read(void *data, uint32_t msr, uint64_t *ret_value)
{
  struct liar *liar = data;
  uint64_t value = 0;
  uint8_t sort;

  (void)msr;
  liar->reads++;
  if (!liar->size) {
    *ret_value = 0;
    return 0;
  }
  sort = liar->values[liar->at++ % liar->size];
  if (sort == 0xFF)
    return -EIO;
  for (unsigned i = 0; i < (sort & 7) + 1u; i++)
    value |= (uint64_t)liar->values[liar->at++ % liar->size] << (8 * i);
  *ret_value = sort & 8 ? ~value : value;
  return 0;
}

static int liar_write(void *data, uint32_t msr, uint64_t value)
{
  struct liar *liar = data;

  (void)msr, (void)value;
  liar->writes++;
  return liar->size && liar->values[liar->at++ % liar->size] == 0xFE ? -EIO : 0;
}

static bool name_find(void *data, uint64_t address, const char **ret_name, uint64_t *ret_offset)
{
  (void)data;
  if (address & 1)
    return false;
  *ret_name = "name";
  *ret_offset = address;
  return true;
}

static void recorder_print(const struct lb_recorder *recorder)
{
  static const char *const notes[] = {"a \"note\""};
  const struct report_live live = {.number = 3, .notes = notes, .note_count = 1};
  const struct report_symbols symbols = {.find = name_find};
  const struct report_options options = {.symbols = &symbols, .live = &live};
  struct text text = {0};

  for (unsigned format = 0; format < REPORT_FORMATS; format++)
    check(report_print(&text, recorder, (enum report_format)format, &options) == 0, "it can be printed");
  check(lb_recorder_used(recorder) <= lb_cpu_depth(lb_recorder_cpu(recorder)), "no more records than entries");
  text_done(&text);
}

/* What CPUID says is as little to be trusted. */
static void row_choose(const uint8_t *data, size_t size, uint8_t choice, struct hardware_row *row)
{
  struct hardware_host host = {.family = 6, .model = 0xFF, .hypervisor_name = "?"};
  const struct lb_cpu *cpu = lb_cpu_at(choice);

  if (!cpu || !cpu->lbr)
    lb_cpu_find("skylake", &cpu);
  hardware_row_of(cpu, row);
  if (choice < 200)
    return;
  for (size_t i = 0; i < HARDWARE_CPUID_FIELDS && size; i++) {
    const struct hardware_cpuid_place *place = hardware_cpuid_place((unsigned)i);

    host.cpuid[i] = data[i % size] & ((1u << (place->high - place->low + 1)) - 1);
  }
  if (hardware_row_find(&host, row) < 0)
    hardware_row_of(cpu, row);
}

static void processor_try(const uint8_t *data, size_t size, uint8_t choice, uint8_t mode)
{
  struct liar liar = {.values = data, .size = size};
  const struct hardware_registers registers = {.data = &liar, .read = liar_read, .write = liar_write};
  const struct hardware_filter filter = {mode};
  struct hardware_reading reading;
  struct hardware_row row;
  struct hardware_live live;
  static struct lb_recorder recorder;
  unsigned writes;

  row_choose(data, size, choice, &row);
  hardware_live_begin(&live, &row, &registers);
  live.is_ours = mode & 1;
  if (mode & 2 && hardware_live_arm(&live, &filter) < 0)
    check(live.undo.count == 0, "what could not be switched on is as before");
  writes = liar.writes;
  if (hardware_live_read(&live, mode & 4, &recorder, &reading) == 0)
    recorder_print(&recorder);
  check(!(mode & 4) || liar.writes == writes, "reading along writes nothing");
  hardware_live_counters(&live);
  hardware_live_end(&live);
  check(live.undo.count == 0, "the end takes everything back");
  check(liar.reads < 4 * 3 * LB_DEPTH_MAX + 400, "an end is near");
}

/* ---- files ---- */

static void state_try(const char *text)
{
  struct hardware_change changes[HARDWARE_CHANGES_MAX];
  int count = live_state_parse(text, "b", changes);

  check(count <= HARDWARE_CHANGES_MAX, "no more changes than fit");
  for (int i = 0; i < count; i++)
    check(!(changes[i].before & ~changes[i].mask), "only bits that were changed");
}

static void maps_try(const char *text, size_t size)
{
  struct symbol_cache *cache = NULL;
  struct symbol_space *space = NULL;
  struct symbol_place place;

  if (symbol_cache_new("/nowhere", &cache) >= 0 && symbol_space_new(cache, &space) >= 0 &&
      symbol_space_add_maps(space, text, size, "/nowhere") >= 0)
    for (unsigned shift = 12; shift < 64; shift++)
      if (symbol_space_find(space, UINT64_C(1) << shift, false, &place))
        check(place.module && *place.module && utf8_size(place.module), "a place has a module");
  symbol_space_free(space);
  symbol_cache_free(cache);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  char *text;

  if (size < 2 || size > 1 << 16)
    return 0;
  if (data[1] < 0x80) {
    processor_try(data + 2, size - 2, data[0], data[1]);
    return 0;
  }
  text = malloc(size - 1);
  if (!text)
    return 0;
  memcpy(text, data + 2, size - 2);
  text[size - 2] = '\0';
  state_try(text);
  maps_try(text, size - 2);
  free(text);
  return 0;
}
