/* SPDX-License-Identifier: Apache-2.0
 *
 * A recorder of a processor, switched on as an operating system would, with the fields of its filter register that the
 * user names, or with a BTS buffer.
 */
#include "hardware/lbr_setup.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cpudb/cpudb.h"

/* The addresses of the DS area and its BTS buffer, as the recorder sees them; 32-bit processors can address them,
 * too. */
#define AREA_ADDRESS UINT64_C(0x10000000)
#define BUFFER_ADDRESS UINT64_C(0x10001000)

/* The register with the filters; in architectural LBR it also has the enable bit. */
static bool filter_register(const struct lb_cpu *cpu, enum lb_register *ret_id)
{
  *ret_id = lb_cpu_register(cpu, LB_REG_LBR_CTL).count ? LB_REG_LBR_CTL : LB_REG_LBR_SELECT;
  return lb_cpu_register(cpu, *ret_id).count;
}

static uint64_t field_bits(const struct lb_cpu *cpu, enum lb_register id, const char *name)
{
  const struct cpudb_field_question question = {.id = id, .name = name, .bit = -1};
  struct lb_field field;

  return cpudb_field_find(cpu, &question, &field) < 0 ? 0 : cpudb_field_mask(&field);
}

static uint64_t fields_bits(const struct lb_cpu *cpu, enum lb_register id, const char *const *names)
{
  uint64_t bits = 0;

  for (; *names; names++)
    bits |= field_bits(cpu, id, *names);
  return bits;
}

/* ---- the filter ---- */

static void filter_complain(const struct lb_cpu *cpu, enum lb_register id, const char *word)
{
  struct text fields = {0};
  struct lb_field field;

  for (unsigned i = 0; lb_cpu_field(cpu, id, i, &field) >= 0; i++)
    text_addf(&fields, "%s%s", i ? ", " : "", field.name);
  message("no filter '%s' on %s; it has: %s", word, cpu->title, text_string(&fields));
  text_done(&fields);
}

/* The value of a list of one-bit fields. */
static int filter_parse(const struct lb_cpu *cpu, enum lb_register id, const char *list, uint64_t *ret_value)
{
  char *copy = strdup(list), *rest = copy, *word;
  uint64_t value = 0;
  int r = copy ? 0 : -1;

  while (r >= 0 && (word = strsep(&rest, ","))) {
    uint64_t bits = field_bits(cpu, id, word);

    if (!bits || (bits & (bits - 1))) {
      filter_complain(cpu, id, word);
      r = LB_E_NO_FIELD;
    }
    value |= bits;
  }
  free(copy);
  if (r >= 0)
    *ret_value = value;
  return r;
}

/* Without a filter everything is recorded: architectural LBR needs a 1 for each kind. */
static uint64_t filter_of_all(const struct lb_cpu *cpu, enum lb_register id)
{
  static const char *const kinds[] = {"COND",          "NEAR_REL_JMP", "NEAR_IND_JMP", "NEAR_REL_CALL",
                                      "NEAR_IND_CALL", "NEAR_RET",     "OTHER_BRANCH", NULL};

  return id == LB_REG_LBR_CTL ? fields_bits(cpu, id, kinds) : 0;
}

/* Call-stack mode: only calls and returns are recorded, and returns remove records (SDM vol. 3, June 2016, 17.8). 0 if
 * there is no such mode. */
static uint64_t filter_of_call_stack(const struct lb_cpu *cpu, enum lb_register id)
{
  static const char *const left_out[] = {"JCC", "NEAR_IND_JMP", "NEAR_REL_JMP", "FAR_BRANCH", NULL};
  static const char *const recorded[] = {"NEAR_REL_CALL", "NEAR_IND_CALL", "NEAR_RET", NULL};
  uint64_t mode = field_bits(cpu, id, id == LB_REG_LBR_CTL ? "CALL_STACK" : "EN_CALLSTACK");

  return mode ? mode | fields_bits(cpu, id, id == LB_REG_LBR_CTL ? recorded : left_out) : 0;
}

/* The value of the filter register. Returns 0, or negative after a message. */
static int filter_value(const struct lbr_setup *setup, enum lb_register id, uint64_t *ret_value)
{
  uint64_t value;

  if (setup->has_call_stack) {
    *ret_value = filter_of_call_stack(setup->cpu, id);
    if (!*ret_value)
      message("%s has no call-stack mode", setup->cpu->title);
    return *ret_value ? 0 : LB_E_NO_FIELD;
  }
  if (!setup->filter)
    *ret_value = filter_of_all(setup->cpu, id);
  else if (number_parse(setup->filter, &value) >= 0)
    *ret_value = value;
  else
    return filter_parse(setup->cpu, id, setup->filter, ret_value);
  return 0;
}

/* Adds the rings that are recorded: a 1 in LBR_CTL includes a ring, a 1 in LBR_SELECT excludes it. */
static int filter_add_rings(const struct lb_cpu *cpu, enum lb_register id, enum lbr_rings rings, uint64_t *value)
{
  bool is_ctl = id == LB_REG_LBR_CTL;
  uint64_t kernel = field_bits(cpu, id, is_ctl ? "OS" : "CPL_EQ_0");
  uint64_t user = field_bits(cpu, id, is_ctl ? "USR" : "CPL_NEQ_0");
  bool wants_user = rings != LBR_RINGS_KERNEL, wants_kernel = rings != LBR_RINGS_USER;

  if (rings != LBR_RINGS_ALL && (!kernel || !user)) {
    message("%s cannot tell kernel and user branches apart", cpu->title);
    return LB_E_NO_FIELD;
  }
  if (!(*value & (kernel | user)))
    *value |= (wants_user == is_ctl ? user : 0) | (wants_kernel == is_ctl ? kernel : 0);
  return 0;
}

int lbr_setup_filter(const struct lbr_setup *setup, enum lbr_rings rings, uint64_t *ret_value)
{
  enum lb_register id;
  bool has_filter = filter_register(setup->cpu, &id);
  uint64_t value = 0;
  int r = 0;

  if (!has_filter && (setup->filter || setup->has_call_stack)) {
    message("%s has no filter for its branch records", setup->cpu->title);
    return LB_E_NO_REGISTER;
  }
  if (has_filter)
    r = filter_value(setup, id, &value);
  if (r >= 0)
    r = filter_add_rings(setup->cpu, id, rings, &value);
  if (r >= 0)
    *ret_value = value & ~(id == LB_REG_LBR_CTL ? field_bits(setup->cpu, id, "LBREN") : 0);
  return r;
}

/* ---- switching on ---- */

/* Returns 0 or negative. */
static int register_write(struct lb_recorder *recorder, enum lb_register id, uint64_t value)
{
  struct lb_register_range range = lb_cpu_register(lb_recorder_cpu(recorder), id);

  return range.count && lb_recorder_wrmsr(recorder, range.first, value) == LB_MSR_OK ? 0 : LB_E_NO_REGISTER;
}

static int enable_complain(const struct lb_cpu *cpu)
{
  message("the branch records of %s cannot be switched on", cpu->title);
  return LB_E_NO_REGISTER;
}

/* Writes the filter; in architectural LBR with the enable bit. */
static int filter_write(struct lb_recorder *recorder, const struct lbr_setup *setup, enum lb_register id,
                        uint64_t value)
{
  if (id == LB_REG_LBR_CTL) {
    value |= field_bits(setup->cpu, id, "LBREN");
    if (!(value & (field_bits(setup->cpu, id, "USR") | field_bits(setup->cpu, id, "OS"))))
      value |= field_bits(setup->cpu, id, "USR") | (setup->has_kernel ? field_bits(setup->cpu, id, "OS") : 0);
  }
  if (register_write(recorder, id, value) >= 0)
    return 0;
  if (!setup->filter)
    return enable_complain(setup->cpu);
  message("%s does not accept the filter value 0x%llx", setup->cpu->title, (unsigned long long)value);
  return LB_E_NO_REGISTER;
}

static int lbr_enable(struct lb_recorder *recorder, const struct lbr_setup *setup)
{
  const struct lb_cpu *cpu = setup->cpu;
  enum lb_register id;
  bool has_filter = filter_register(cpu, &id), wants_filter = setup->filter || setup->has_call_stack;
  uint64_t value = 0, version_2 = field_bits(cpu, LB_REG_AMD_DBG_EXTN_CFG, "LBRV2EN");
  int r;

  if (wants_filter && !has_filter) {
    message("%s has no filter for its branch records", cpu->title);
    return LB_E_NO_REGISTER;
  }
  r = filter_value(setup, id, &value);
  if (r >= 0 && (wants_filter || id == LB_REG_LBR_CTL))
    r = filter_write(recorder, setup, id, value);
  if (r < 0 || id == LB_REG_LBR_CTL)
    return r;
  if (version_2)
    r = register_write(recorder, LB_REG_AMD_DBG_EXTN_CFG, version_2);
  else
    r = register_write(recorder, LB_REG_DEBUGCTL, lb_cpu_debugctl(cpu, LB_DEBUGCTL_LBR));
  return r < 0 ? enable_complain(cpu) : 0;
}

/* Creates a recorder that is off. Returns 0, or negative after a message. */
static int recorder_new(const struct lbr_setup *setup, const struct lb_host *host, struct lb_recorder **ret_recorder)
{
  struct lb_recorder *recorder = aligned_alloc(_Alignof(struct lb_recorder), sizeof(*recorder));
  int r = recorder ? lb_recorder_init(recorder, setup->cpu, host, 0) : -1;

  if (r < 0) {
    if (recorder)
      message("%s has no branch-recording unit; 'lbr cpu --list' shows those that have one", setup->cpu->title);
    else
      message("no memory");
    free(recorder);
    return r;
  }
  lb_recorder_long_mode(recorder, lb_cpu_has(setup->cpu, LB_FEATURE_LONG_MODE));
  *ret_recorder = recorder;
  return 0;
}

int lbr_setup_new(const struct lbr_setup *setup, struct lb_recorder **ret_recorder)
{
  struct lb_recorder *recorder;
  int r = recorder_new(setup, NULL, &recorder);

  if (r < 0)
    return r;
  r = lbr_enable(recorder, setup);
  if (r >= 0 && !lb_recorder_is_recording(recorder)) {
    message("%s records branches only when a counter overflows, or not at all: choose another CPU", setup->cpu->title);
    r = LB_E_NO_UNIT;
  }
  if (r < 0) {
    free(recorder);
    return r;
  }
  *ret_recorder = recorder;
  return 0;
}

/* ---- BTS ---- */

/* The memory of the area and the buffer. NULL if the address is outside of both. */
static unsigned char *bts_memory(struct lbr_bts *bts, uint64_t linear, size_t size)
{
  uint64_t in_area = linear - AREA_ADDRESS, in_buffer = linear - BUFFER_ADDRESS, bytes = bts->size * bts->record_size;

  if (in_area < sizeof(bts->area) && size <= sizeof(bts->area) - in_area)
    return bts->area + in_area;
  return bts->bytes && in_buffer < bytes && size <= bytes - in_buffer ? bts->bytes + in_buffer : NULL;
}

static int bts_read(void *data, uint64_t linear, void *bytes, size_t size)
{
  const unsigned char *memory = bts_memory(data, linear, size);

  if (!memory)
    return LB_E_DS_MEMORY;
  memcpy(bytes, memory, size);
  return 0;
}

static int bts_write(void *data, uint64_t linear, const void *bytes, size_t size)
{
  unsigned char *memory = bts_memory(data, linear, size);

  if (!memory)
    return LB_E_DS_MEMORY;
  memcpy(memory, bytes, size);
  return 0;
}

/* Base, index, absolute maximum and a threshold that is never reached: SDM vol. 3 (June 2016) 17.4.9. */
static void bts_lay_out(struct lbr_bts *bts, bool is_64)
{
  uint64_t end = BUFFER_ADDRESS + bts->size * bts->record_size;
  const uint64_t words[] = {BUFFER_ADDRESS, BUFFER_ADDRESS, end, end + bts->record_size};

  for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
    if (is_64)
      bytes_put_u64(bts->area + 8 * i, words[i]);
    else
      bytes_put_u32(bts->area + 4 * i, (uint32_t)words[i]);
}

static int bts_enable(struct lb_recorder *recorder, const struct lbr_setup *setup, struct lbr_bts *bts)
{
  uint64_t bits = lb_cpu_debugctl(setup->cpu, LB_DEBUGCTL_TR) | lb_cpu_debugctl(setup->cpu, LB_DEBUGCTL_BTS);
  bool is_64 = lb_recorder_ds_is_64(recorder);

  if (!lb_cpu_register(setup->cpu, LB_REG_DS_AREA).count || !lb_cpu_debugctl(setup->cpu, LB_DEBUGCTL_BTS)) {
    message("%s has no branch trace store", setup->cpu->title);
    return LB_E_NO_REGISTER;
  }
  bts->record_size = is_64 ? 24 : 12;
  bts->bytes = calloc(bts->size, bts->record_size);
  if (!bts->bytes) {
    message("no memory for the BTS buffer");
    return -1;
  }
  bts_lay_out(bts, is_64);
  if (register_write(recorder, LB_REG_DS_AREA, AREA_ADDRESS) < 0 ||
      register_write(recorder, LB_REG_DEBUGCTL, bits) < 0) {
    message("the branch trace store of %s cannot be switched on", setup->cpu->title);
    return LB_E_NO_REGISTER;
  }
  return 0;
}

int lbr_setup_bts(const struct lbr_setup *setup, struct lbr_bts *bts, struct lb_recorder **ret_recorder)
{
  const struct lb_host host = {.data = bts, .read = bts_read, .write = bts_write};
  struct lb_recorder *recorder;
  int r = recorder_new(setup, &host, &recorder);

  if (r < 0)
    return r;
  r = bts_enable(recorder, setup, bts);
  if (r < 0) {
    free(recorder);
    return r;
  }
  *ret_recorder = recorder;
  return 0;
}

void lbr_bts_done(struct lbr_bts *bts)
{
  free(bts->bytes);
  bts->bytes = NULL;
}

static void bytes_reverse(unsigned char *bytes, size_t size)
{
  for (size_t i = 0; i < size / 2; i++) {
    unsigned char byte = bytes[i];

    bytes[i] = bytes[size - 1 - i];
    bytes[size - 1 - i] = byte;
  }
}

size_t lbr_bts_sort(const struct lb_recorder *recorder, struct lbr_bts *bts)
{
  uint64_t stored = lb_recorder_messages(recorder).stored;
  size_t at = stored % bts->size * bts->record_size, all = bts->size * bts->record_size;

  if (stored < bts->size)
    return (size_t)stored;
  bytes_reverse(bts->bytes, at); /* three reversals rotate the buffer so that the oldest record comes first */
  bytes_reverse(bts->bytes + at, all - at);
  bytes_reverse(bts->bytes, all);
  return bts->size;
}
