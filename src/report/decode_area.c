/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr decode ds|bts FILE: the debug-store management area, or the records of a BTS buffer, from a file (a memory dump).
 * Records are read one at a time, so that the file may be of any length, or a pipe. decode_pebs.c has PEBS. Intel SDM
 * vol. 3 (June 2016) 17.4.9, figures 17-5 to 17-10.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "lastbranch/recorder.h"
#include "report/cpu_page.h"
#include "report/decode.h"
#include "report/decode_area.h"
#include "report/register.h"

/* ---- the file ---- */

/* Skips the first bytes; a pipe must be read for that. Returns 0, -errno, or LB_E_TRUNCATED. */
static int file_skip(FILE *file, uint64_t offset)
{
  char buffer[4096];

  if (fseeko(file, (off_t)offset, SEEK_SET) == 0)
    return 0;
  if (errno == EINVAL || errno == EOVERFLOW)
    return LB_E_TRUNCATED; /* no file is that long */
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

/* Opens the file and reads its first byte, so that errors are known before anything is printed. */
static int file_open(struct decode_area *area)
{
  const struct decode_arguments *arguments = area->arguments;
  unsigned char byte;
  int r = 0;

  area->file = strcmp(arguments->value, "-") == 0 ? stdin : fopen(arguments->value, "rbe");
  if (!area->file)
    return -errno;
  if (arguments->offset)
    r = file_skip(area->file, arguments->offset);
  if (r >= 0)
    r = decode_area_get(area, &byte, 1);
  if (r == 0 && arguments->offset)
    return LB_E_TRUNCATED;
  if (r > 0)
    ungetc(byte, area->file);
  return r;
}

static void file_close(struct decode_area *area)
{
  if (area->file && area->file != stdin)
    fclose(area->file);
}

void decode_area_begin(struct decode_area *area)
{
  page_open(&area->page, area->output, area->arguments->wants_json);
  area->is_open = true;
  register_put_cpu(&area->page, &area->choice);
  page_put(&area->page, "layout", area->is_64 ? "64-bit" : "32-bit");
}

/* ---- the management area ---- */

/* `size` is the size of a record, 0 if it varies: then only addresses are shown. */
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
  } else {
    page_absent(page, "record_size");
    page_absent(page, "records");
    page_absent(page, "capacity");
    page_absent(page, "interrupt_after");
  }
  page_section_end(page);
}

/* The area is given to a recorder at an unlikely address, because the file does not say where it really was. */
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

/* The violations that lb_ds_check finds in the area. A buffer that is not set up is not checked. Returns false if this
 * CPU never has this layout. */
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

void decode_area_put_broken(struct page *page, uint32_t broken)
{
  static const struct page_column columns[] = {{"rule", 18}, {"what is wrong", 0}, {NULL, 0}};

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

static void put_violations(struct decode_area *area, const struct lb_ds_area *ds, const unsigned char *bytes,
                           size_t size)
{
  struct ds_memory memory = {bytes, size, area->is_64 ? UINT64_C(0xfffffe5a5a5a5000) : 0xfa5a5000};
  struct page *page = &area->page;
  uint32_t broken = 0;

  if (!violations_find(area, &memory, ds, &broken)) {
    page_absent(page, "broken_rules");
    return;
  }
  page_heading(page, "Requirements that it breaks");
  decode_area_put_broken(page, broken);
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
  if (r < 0)
    return r;
  decode_area_begin(area);
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

bool decode_area_wants(const struct decode_area *area)
{
  return !area->arguments->has_count || area->records < area->arguments->count;
}

static void put_bts_record(struct decode_area *area, const struct lb_bts_record *record)
{
  page_row(&area->page, false);
  page_put_number(&area->page, "record", area->records);
  page_put_hex(&area->page, "from", record->from);
  page_put_hex(&area->page, "to", record->to);
  if (area->choice.cpu->ds->has_predicted)
    page_put_flag(&area->page, "predicted", record->is_predicted);
  else
    page_put(&area->page, "predicted", NULL);
  page_row_end(&area->page);
}

static int bts_show(struct decode_area *area)
{
  static const struct page_column columns[] = {{"record", 8}, {"from", 18}, {"to", 18}, {"predicted", 0}, {NULL, 0}};
  unsigned char bytes[24];
  struct lb_bts_record record;
  int r = 0;

  decode_area_begin(area);
  page_table(&area->page, "records", columns);
  for (; decode_area_wants(area); area->records++) {
    r = decode_area_get(area, bytes, area->is_64 ? 24 : 12);
    if (r <= 0)
      break;
    r = lb_bts_decode(area->is_64, bytes, (size_t)r, &record);
    if (r < 0)
      break;
    put_bts_record(area, &record);
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
  bool is_pebs = area->arguments->what == DECODE_PEBS;
  bool (*fits)(const struct lb_cpu *, const void *) = is_pebs ? cpu_has_pebs : cpu_has_bts;
  const struct lb_cpu *cpu;
  struct text others = {0};

  register_choose_cpu(area->arguments->cpu, fits, NULL, &area->choice);
  cpu = area->choice.cpu;
  if (!fits(cpu, NULL)) {
    register_list_cpus(&others, fits, NULL);
    message("%s has no %s; these CPUs have it: %s", cpu->title, is_pebs ? "PEBS" : "debug store", text_string(&others));
    text_done(&others);
    return LB_E_NO_CPU;
  }
  area->is_64 = area->arguments->wants_64 ||
                (!area->arguments->wants_32 && (cpu->ds->is_64 || lb_cpu_has(cpu, LB_FEATURE_LONG_MODE)));
  return 0;
}

/* Records before an invalid one have been shown: the page is completed, so that JSON stays valid. */
static int area_show(struct decode_area *area)
{
  int r;

  if (area->arguments->what == DECODE_DS)
    r = ds_show(area);
  else if (area->arguments->what == DECODE_BTS)
    r = bts_show(area);
  else
    r = decode_pebs(area);
  if (!area->is_open)
    return r;
  if (r >= 0 && area->arguments->what != DECODE_DS && !area->records)
    page_remark(&area->page, "no records");
  page_close(&area->page);
  return r;
}

/* Reports the error in the file, and at which record. */
static void area_complain(const struct decode_area *area, int error)
{
  const char *file = strcmp(area->arguments->value, "-") == 0 ? "stdin" : area->arguments->value;
  const char *text = error == LB_E_NO_FIELD ? "its size does not match its contents" : lb_strerror(error);

  if (area->is_open)
    message("%s: record %llu: %s", file, (unsigned long long)area->records, text);
  else
    message("%s: %s", file, text);
}

int decode_area(const struct decode_arguments *arguments, const struct report_output *output)
{
  struct decode_area area = {.arguments = arguments, .output = output};
  int r = cpu_choose(&area);

  if (r < 0)
    return r;
  r = file_open(&area);
  if (r >= 0)
    r = area_show(&area);
  file_close(&area);
  if (r < 0)
    area_complain(&area, r);
  return r < 0 ? r : 0;
}
