/* SPDX-License-Identifier: Apache-2.0
 *
 * Branch trace messages: to the bus, or into the BTS buffer of the DS area, circular or with an interrupt. Intel SDM
 * vol. 3 (June 2016) 17.4.4 to 17.4.6, 17.4.9; Deng Zhi, chapter 14; Zhang Yinkui 5.3. The management area is read and
 * written in guest memory for each record, as the CPU does it: software moves the index during recording.
 */
#include <string.h>

#include "base/base.h"
#include "recorder/unit.h"

/* The four words at the head of the management area. */
struct bts_header {
  uint64_t base, index, maximum, threshold;
};

/* A pointer to the header, if the host can give one. It is kept until lb_recorder_flush. */
static unsigned char *header_pointer(struct lb_recorder *r)
{
  if (!r->ds.header && r->host.map && r->ds.area % DS_PAGE + 32 <= DS_PAGE) {
    r->ds.header = r->host.map(r->host.data, r->ds.area, 32);
    if (r->ds.header)
      bts_update(r);
  }
  return r->ds.header;
}

static int header_read(struct lb_recorder *r, bool is_64, struct bts_header *header)
{
  unsigned char bytes[32];
  unsigned char *at = header_pointer(r);

  if (!at) {
    int result = ds_access(r, r->ds.area, bytes, ds_layout(is_64)->word * 4u, false);

    if (result < 0)
      return result;
    at = bytes;
  }
  header->base = ds_word(is_64, at, 0);
  header->index = ds_word(is_64, at, 1);
  header->maximum = ds_word(is_64, at, 2);
  header->threshold = ds_word(is_64, at, 3);
  return 0;
}

static int index_write(struct lb_recorder *r, bool is_64, uint64_t index)
{
  unsigned char bytes[8];
  unsigned char *at = header_pointer(r) ? r->ds.header + ds_layout(is_64)->word : bytes;

  if (is_64)
    bytes_put_u64(at, index);
  else
    bytes_put_u32(at, (uint32_t)index);
  if (at != bytes)
    return 0;
  return ds_access(r, r->ds.area + ds_layout(is_64)->word, bytes, ds_layout(is_64)->word, true);
}

/* Host memory for a record at `linear`, or NULL if it crosses a page or the host gives no pointers. */
static unsigned char *record_pointer(struct lb_recorder *r, uint64_t linear, unsigned size)
{
  uint64_t page = linear & ~(uint64_t)(DS_PAGE - 1);

  if (linear - page + size > DS_PAGE || !r->host.map)
    return NULL;
  if (!r->ds.page || r->ds.page_address != page) {
    r->ds.page = r->host.map(r->host.data, page, DS_PAGE);
    r->ds.page_address = page;
    r->ds.page_limit = r->ds.page ? DS_PAGE - 24 + 1 : 0;
  }
  return r->ds.page ? r->ds.page + (linear - page) : NULL;
}

struct bts_entry {
  uint64_t from, to, flags;
};

static void entry_pack(unsigned char *bytes, const struct bts_entry *entry, bool is_64)
{
  if (is_64) {
    bytes_put_u64(bytes, entry->from);
    bytes_put_u64(bytes + 8, entry->to);
    bytes_put_u64(bytes + 16, entry->flags);
  } else {
    bytes_put_u32(bytes, (uint32_t)entry->from);
    bytes_put_u32(bytes + 4, (uint32_t)entry->to);
    bytes_put_u32(bytes + 8, (uint32_t)entry->flags);
  }
}

static int entry_write(struct lb_recorder *r, uint64_t linear, const struct bts_entry *entry, bool is_64)
{
  unsigned char bytes[24];
  unsigned char *at = record_pointer(r, linear, ds_layout(is_64)->bts);

  entry_pack(at ? at : bytes, entry, is_64);
  return at ? 0 : ds_access(r, linear, bytes, ds_layout(is_64)->bts, true);
}

/* Whether a whole record fits at `index`. True for a maximum of n * size (Linux) and of n * size + 1 (SDM). */
static bool record_fits(const struct bts_header *header, uint64_t index, unsigned size)
{
  return index >= header->base && index <= header->maximum && header->maximum - index >= size;
}

/* Whether the threshold was reached. Clearing BTINT alone does not prevent the interrupt: SDM 17.4.9.3, note. */
static bool threshold_interrupts(const struct lb_recorder *r, const struct bts_header *header, uint64_t index)
{
  if (index < header->threshold)
    return false;
  if (!r->ds.is_circular)
    return true;
  return header->threshold <= header->maximum && !unit_option(r, LB_OPTION_BTINT_ALONE);
}

static void threshold_reached(struct lb_recorder *r)
{
  if (!unit_option(r, LB_OPTION_BTS_NO_STATUS))
    pmi_buffer_overflow(r);
  pmi_request(r, PMI_BTS);
}

static void bts_store(struct lb_recorder *r, const struct bts_entry *entry)
{
  bool is_64 = r->ds.is_64;
  bool is_circular = r->ds.is_circular;
  unsigned size = ds_layout(is_64)->bts;
  struct bts_header header;

  if (header_read(r, is_64, &header) < 0)
    goto lost;
  uint64_t index = header.index;
  if (is_circular && !record_fits(&header, index, size))
    index = header.base;
  if (!record_fits(&header, index, size) || entry_write(r, index, entry, is_64) < 0)
    goto lost;
  index += size;
  bool interrupts = threshold_interrupts(r, &header, index);
  if (is_circular && !record_fits(&header, index, size))
    index = header.base;
  if (index_write(r, is_64, index) < 0)
    goto lost;
  r->stored++;
  if (interrupts)
    threshold_reached(r);
  return;
lost:
  r->lost++;
}

static bool cpl_is_off(const struct lb_recorder *r, const struct lb_branch *branch)
{
  bool target = unit_option(r, LB_OPTION_BTS_CPL_OF_TARGET);

  return r->ds.off[(target ? branch->to_cpl : branch->from_cpl) != 0];
}

static bool bts_is_on(const struct lb_recorder *r)
{
  bool exists = r->cpu->ds->has_bts && !(r->misc_enable & MISC_ENABLE_BTS_UNAVAILABLE);

  return exists && unit_debugctl(r, LB_DEBUGCTL_BTS);
}

/* Whether the fast path works: 64-bit layout, no filter, a host of the guest's byte order. */
static bool is_quick(const struct lb_recorder *r)
{
  bool is_little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
  bool is_wide = r->ds.is_64 && lb_cpu_has(r->cpu, LB_FEATURE_LONG_MODE);

  return is_little && is_wide && r->ds.stores && r->ds.is_open && !r->ds.off[0] && !r->ds.off[1];
}

void bts_update(struct lb_recorder *r)
{
  bool has_cpl = r->cpu->ds->has_cpl; /* BTS_OFF_OS and _USR exist with DS-CPL only: SDM 17.4.1 */

  r->ds.stores = bts_is_on(r);
  r->ds.is_open = ds_is_available(r);
  r->ds.is_64 = lb_recorder_ds_is_64(r);
  r->ds.is_circular = !unit_debugctl(r, LB_DEBUGCTL_BTINT);
  r->ds.off[0] = has_cpl && unit_debugctl(r, LB_DEBUGCTL_BTS_OFF_OS);
  r->ds.off[1] = has_cpl && unit_debugctl(r, LB_DEBUGCTL_BTS_OFF_USR);
  r->ds.quick = (r->armed & ARMED_TR) && is_quick(r) ? r->ds.header : NULL;
}

static uint64_t linear_address(const struct lb_recorder *r, uint64_t offset, uint64_t base, bool is_32)
{
  if (is_32)
    return (offset + base) & UINT32_MAX;
  return lb_cpu_has(r->cpu, LB_FEATURE_LONG_MODE) ? offset : offset & UINT32_MAX;
}

/* One branch trace message. With BTS=1 it goes to the buffer, otherwise to the bus; never to both. BTS_OFF_OS and _USR
 * keep a message out of the buffer, but the message is still generated. SDM table 17-6. */
void bts_message(struct lb_recorder *r, const struct lb_branch *b)
{
  if (lb_recorder_bts_quick(r, b))
    return;
  struct lb_message message = {linear_address(r, b->from, b->from_base, b->flags & LB_BRANCH_FROM_32),
                               linear_address(r, b->to, b->to_base, b->flags & LB_BRANCH_TO_32)};
  if (!r->ds.stores) {
    r->unstored++;
    bool skipped = unit_option(r, LB_OPTION_CPL_FILTERS_BUS) && cpl_is_off(r, b);
    if (r->host.bus && !skipped)
      r->host.bus(r->host.data, &message);
    return;
  }
  if (cpl_is_off(r, b) || !r->ds.is_open) {
    r->unstored++;
    return;
  }
  struct bts_entry entry = {message.from, message.to, r->ds.flags[b->flags & LB_BRANCH_MISPREDICTED]};
  bts_store(r, &entry);
}

struct lb_messages lb_recorder_messages(const struct lb_recorder *r)
{
  return (struct lb_messages){r->unstored + r->stored + r->lost, r->stored, r->lost};
}
