/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr decode ds|bts FILE: the debug-store management area, or the records of a BTS buffer, out of a file (a memory
 * dump). Records are read one at a time, so that the file may be of any length, or a pipe. decode_pebs.c has PEBS.
 * Intel SDM vol. 3 (June 2016) 17.4.9, figures 17-5 to 17-10.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/cpu_page.h"
#include "cli/decode.h"
#include "cli/decode_area.h"
#include "cli/register.h"
#include "lastbranch/recorder.h"

bool decode_is_area(const char *word)
{
  return strcmp(word, "ds") == 0 || strcmp(word, "bts") == 0 || strcmp(word, "pebs") == 0;
}

/* ---- the file ---- */

/* Passes over the first bytes; a pipe must be read for that. Returns 0, -errno, or LB_E_TRUNCATED. */
static int file_skip(FILE *file, uint64_t offset)
{
  char buffer[4096];

  if (offset > INT64_MAX)
    return LB_E_TRUNCATED;
  if (fseeko(file, (off_t)offset, SEEK_SET) == 0)
    return 0;
  if (errno != ESPIPE)
    return -errno;
  while (offset > 0) {
    size_t want = offset < sizeof(buffer) ? (size_t)offset : sizeof(buffer);

    if (fread(buffer, 1, want, file) != want)
      return ferror(file) ? -EIO : LB_E_TRUNCATED;
    offset -= want;
  }
  return 0;
}

int decode_area_get(struct decode_area *area, unsigned char *bytes, size_t size)
{
  size_t got;

  errno = 0;
  got = fread(bytes, 1, size, area->file);
  if (ferror(area->file))
    return errno ? -errno : -EIO;
  return (int)got;
}

static int file_open(struct decode_area *area)
{
  const char *path = area->arguments->value;

  area->file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
  if (!area->file)
    return -errno;
  return area->arguments->offset ? file_skip(area->file, area->arguments->offset) : 0;
}

static void file_close(struct decode_area *area)
{
  if (area->file && area->file != stdin)
    fclose(area->file);
}

int decode_area_begin(struct decode_area *area)
{
  struct text cpu = {0};
  int r;

  r = register_describe_cpu(&cpu, &area->choice);
  if (r < 0)
    return r;
  page_open(&area->page, area->arguments->wants_json, cli_wants_color());
  area->is_open = true;
  if (area->page.is_json) {
    page_put(&area->page, "cpu", area->choice.cpu->name);
    page_put(&area->page, "cpu_chosen_by", area->choice.chosen_by);
  } else {
    page_put(&area->page, "cpu", text_string(&cpu));
  }
  page_put(&area->page, "layout", area->is_64 ? "64-bit" : "32-bit");
  text_done(&cpu);
  return 0;
}

/* ---- the management area ---- */

/* `size` is that of a record, 0 if it varies: then only addresses are shown. */
static void put_buffer(struct page *page, const char *key, const char *title, const uint64_t addresses[4], size_t size)
{
  uint64_t base = addresses[0], index = addresses[1], maximum = addresses[2], threshold = addresses[3];

  page_section(page, key, title);
  page_put_hex(page, "base", base);
  page_put_hex(page, "index", index);
  page_put_hex(page, "absolute_maximum", maximum);
  page_put_hex(page, "threshold", threshold);
  if (size && index >= base && maximum >= base && threshold >= base) {
    page_put_number(page, "record_size", size);
    page_put_number(page, "records", (index - base) / size);
    page_put_number(page, "capacity", (maximum - base) / size);
    page_put_number(page, "interrupt_after", (threshold - base) / size);
  }
  page_section_end(page);
}

/* A recorder looks at the area where nothing else is likely to be: where it really lies, the file does not say. */
struct ds_memory {
  const unsigned char *bytes;
  size_t size;
  uint64_t address;
};

static int memory_read(void *data, uint64_t linear, void *bytes, size_t size)
{
  const struct ds_memory *memory = data;
  uint64_t offset = linear - memory->address;

  if (offset > memory->size || size > memory->size - offset)
    return LB_E_DS_MEMORY;
  memcpy(bytes, memory->bytes + offset, size);
  return 0;
}

/* What lb_ds_check has against the area. A buffer that is not set up at all is not meant to be used. Returns false when
 * this CPU cannot be asked: it never has this layout. */
static bool violations_find(const struct decode_area *area, struct ds_memory *memory, const struct lb_ds_area *ds,
                            uint32_t *ret_broken)
{
  struct lb_host host = {.data = memory, .read = memory_read};
  uint32_t msr = lb_cpu_register(area->choice.cpu, LB_REG_DS_AREA).first;
  struct lb_register_range enable = lb_cpu_register(area->choice.cpu, LB_REG_PEBS_ENABLE);
  struct lb_recorder recorder;
  uint32_t broken;

  if (lb_recorder_init(&recorder, area->choice.cpu, &host, 0) < 0)
    return false;
  lb_recorder_long_mode(&recorder, area->is_64);
  if (lb_recorder_ds_is_64(&recorder) != area->is_64 || lb_recorder_wrmsr(&recorder, msr, memory->address) != LB_MSR_OK)
    return false;
  if (enable.count && (ds->pebs_base || ds->pebs_index || ds->pebs_maximum) &&
      lb_recorder_wrmsr(&recorder, enable.first, 1) != LB_MSR_OK)
    lb_recorder_wrmsr(&recorder, enable.first, UINT64_C(1) << 24); /* Pentium 4: SDM table 35-41 */
  broken = lb_ds_check(&recorder, NULL);
  if (!ds->bts_base && !ds->bts_index && !ds->bts_maximum)
    broken &= ~(1u << LB_DS_BTS_TOO_SMALL);
  *ret_broken = broken;
  return true;
}

static void put_violations(struct decode_area *area, const struct lb_ds_area *ds, const unsigned char *bytes,
                           size_t size)
{
  static const struct page_column columns[] = {{"rule", 18}, {"what is wrong", 0}, {NULL, 0}};
  struct ds_memory memory = {bytes, size, area->is_64 ? UINT64_C(0xfffffe5a5a5a5000) : 0xfa5a5000};
  struct page *page = &area->page;
  uint32_t broken = 0;

  if (!violations_find(area, &memory, ds, &broken)) {
    page_absent(page, "broken_rules");
    return;
  }
  if (!broken && !page->is_json)
    return;
  if (!page->is_json)
    page_section(page, NULL, "Requirements that it breaks");
  page_table(page, "broken_rules", columns);
  for (unsigned i = 0; i < LB_DS_RULES; i++)
    if (broken >> i & 1) {
      page_row(page, false);
      page_put(page, "rule", lb_ds_rule_name(i));
      page_put(page, "text", lb_ds_rule_text(i));
      page_put_note(page, "source", lb_ds_rule_source(i));
      page_row_end(page);
    }
  page_table_end(page);
}

static int ds_show(struct decode_area *area)
{
  unsigned char bytes[0x80];
  struct page *page = &area->page;
  unsigned resets = area->is_64 ? 8 : 1;
  struct lb_ds_area ds;
  int size, r;

  size = decode_area_get(area, bytes, area->is_64 ? sizeof(bytes) : 0x30);
  if (size < 0)
    return size;
  r = lb_ds_decode(area->is_64, bytes, (size_t)size, &ds);
  if (r >= 0)
    r = decode_area_begin(area);
  if (r < 0)
    return r;
  put_buffer(page, "bts", "BTS buffer", (const uint64_t[]){ds.bts_base, ds.bts_index, ds.bts_maximum, ds.bts_threshold},
             area->is_64 ? 24 : 12);
  put_buffer(page, "pebs", "PEBS buffer",
             (const uint64_t[]){ds.pebs_base, ds.pebs_index, ds.pebs_maximum, ds.pebs_threshold},
             lb_pebs_size(decode_pebs_format(area)));
  page_section(page, "resets", "PEBS counter resets");
  for (unsigned i = 0; i < resets; i++) {
    char key[24];

    snprintf(key, sizeof(key), "counter_%u", i);
    page_put_hex(page, key, ds.pebs_reset[i]);
  }
  page_section_end(page);
  put_violations(area, &ds, bytes, (size_t)size);
  return 0;
}

/* ---- records ---- */

static int bts_show(struct decode_area *area)
{
  static const struct page_column columns[] = {{"record", 8}, {"from", 18}, {"to", 18}, {"predicted", 0}, {NULL, 0}};
  const struct decode_arguments *arguments = area->arguments;
  unsigned char bytes[24];
  size_t size = area->is_64 ? 24 : 12;
  struct lb_bts_record record;
  int r;

  r = decode_area_begin(area);
  if (r < 0)
    return r;
  page_table(&area->page, "records", columns);
  for (uint64_t i = 0; !arguments->has_count || i < arguments->count; i++) {
    r = decode_area_get(area, bytes, size);
    if (r <= 0)
      break;
    r = lb_bts_decode(area->is_64, bytes, (size_t)r, &record);
    if (r < 0)
      break;
    page_row(&area->page, false);
    page_put_number(&area->page, "record", i);
    page_put_hex(&area->page, "from", record.from);
    page_put_hex(&area->page, "to", record.to);
    if (area->choice.cpu->ds->has_predicted)
      page_put_flag(&area->page, "predicted", record.is_predicted);
    else
      page_put(&area->page, "predicted", NULL);
    page_row_end(&area->page);
  }
  page_table_end(&area->page);
  return r;
}

/* ---- the command ---- */

static bool cpu_has_bts(const struct lb_cpu *cpu, const void *data)
{
  (void)data;
  return cpu->ds->has_bts;
}

static bool cpu_has_pebs(const struct lb_cpu *cpu, const void *data)
{
  (void)data;
  return cpu->ds->pebs != LB_PEBS_NONE;
}

/* Chooses the CPU and refuses one that has no such buffer. */
static int cpu_choose(struct decode_area *area)
{
  bool is_pebs = strcmp(area->arguments->what, "pebs") == 0;
  bool (*fits)(const struct lb_cpu *, const void *) = is_pebs ? cpu_has_pebs : cpu_has_bts;
  const struct lb_cpu *cpu;
  struct text others = {0};
  int r;

  r = register_choose_cpu(area->arguments->cpu, fits, NULL, &area->choice);
  if (r < 0)
    return r;
  cpu = area->choice.cpu;
  if (!fits(cpu, NULL)) {
    cpus_list(&others, fits, NULL);
    cli_error("%s has no %s; %s have", cpu->title, is_pebs ? "PEBS" : "debug store", text_string(&others));
    text_done(&others);
    return LB_E_NO_CPU;
  }
  area->is_64 = area->arguments->wants_64 ||
                (!area->arguments->wants_32 && (cpu->ds->is_64 || lb_cpu_has(cpu, LB_FEATURE_LONG_MODE)));
  return 0;
}

/* Records before a broken one have been shown: what was begun is ended, so that JSON stays JSON. */
static int area_show(struct decode_area *area)
{
  int r, closed = 0;

  if (strcmp(area->arguments->what, "ds") == 0)
    r = ds_show(area);
  else if (strcmp(area->arguments->what, "bts") == 0)
    r = bts_show(area);
  else
    r = decode_pebs(area);
  if (area->is_open)
    closed = page_close(&area->page);
  return r < 0 ? r : closed;
}

int decode_area(const struct decode_arguments *arguments)
{
  struct decode_area area = {.arguments = arguments};
  int r;

  if (cpu_choose(&area) < 0)
    return CLI_FAILURE;
  r = file_open(&area);
  if (r >= 0)
    r = area_show(&area);
  file_close(&area);
  if (r < 0) {
    cli_error("%s: %s", arguments->value,
              r == LB_E_NO_FIELD ? "a record's size does not fit what it holds" : lb_strerror(r));
    return CLI_FAILURE;
  }
  return CLI_OK;
}
