/* SPDX-License-Identifier: Apache-2.0
 *
 * The debug-store area in guest memory: access to it, and the layouts of its management area and records. Intel SDM
 * vol. 3 (June 2016) 17.4.9, figures 17-5 to 17-10; Zhang Yinkui 5.3.1.
 */
#include <string.h>

#include "base/base.h"
#include "recorder/unit.h"

static const struct ds_layout layouts[] = {
  {.word = 4, .bts = 12, .resets = 0x20},
  {.word = 8, .bts = 24, .resets = 0x40},
};

const struct ds_layout *ds_layout(bool is_64)
{
  return &layouts[is_64];
}

/* SDM 17.4.9.1: with DTES64 the layout is always the 64-bit one; otherwise the mode decides. */
bool lb_recorder_ds_is_64(const struct lb_recorder *r)
{
  return r->cpu->ds->is_64 || r->is_long_mode;
}

/* SDM 17.4.9 */
bool ds_is_available(const struct lb_recorder *r)
{
  return !r->smm.is_inside && !r->ds.is_stopped;
}

static int ds_piece(const struct lb_recorder *r, uint64_t linear, unsigned char *bytes, size_t size, bool is_write)
{
  const struct lb_host *host = &r->host;
  unsigned char *mapped = host->map ? host->map(host->data, linear, size) : NULL;

  if (mapped && is_write)
    memcpy(mapped, bytes, size);
  else if (mapped)
    memcpy(bytes, mapped, size);
  else if (is_write)
    return host->write ? host->write(host->data, linear, bytes, size) : LB_E_DS_MEMORY;
  else
    return host->read ? host->read(host->data, linear, bytes, size) : LB_E_DS_MEMORY;
  return 0;
}

/* Reads or writes guest memory, in pieces that stay within a page. Returns 0, or negative when the host cannot. */
int ds_access(const struct lb_recorder *r, uint64_t linear, void *bytes, size_t size, bool is_write)
{
  unsigned char *next = bytes;

  while (size) {
    size_t piece = DS_PAGE - linear % DS_PAGE;

    if (piece > size)
      piece = size;
    int result = ds_piece(r, linear, next, piece, is_write);
    if (result < 0)
      return result;
    linear += piece;
    next += piece;
    size -= piece;
  }
  return 0;
}

uint64_t ds_word(bool is_64, const unsigned char *bytes, unsigned index)
{
  return is_64 ? bytes_get_u64(bytes + 8 * index) : bytes_get_u32(bytes + 4 * index);
}

int lb_ds_decode(bool is_64, const void *bytes, size_t size, struct lb_ds_area *ret_area)
{
  const unsigned char *at = bytes;
  struct lb_ds_area area = {.is_64 = is_64};
  uint64_t *fields[] = {&area.bts_base,  &area.bts_index,  &area.bts_maximum,  &area.bts_threshold,
                        &area.pebs_base, &area.pebs_index, &area.pebs_maximum, &area.pebs_threshold};

  if (size < (is_64 ? 0x40 : 0x30))
    return LB_E_TRUNCATED;
  for (unsigned i = 0; i < 8; i++)
    *fields[i] = ds_word(is_64, at, i);
  unsigned resets = is_64 ? 8 : 1; /* the 32-bit layout has one, of 8 bytes */
  for (unsigned i = 0; i < resets && layouts[is_64].resets + 8 * (i + 1) <= size; i++)
    area.pebs_reset[i] = bytes_get_u64(at + layouts[is_64].resets + 8 * i);
  *ret_area = area;
  return 0;
}

int ds_area_read(const struct lb_recorder *r, struct lb_ds_area *ret_area)
{
  unsigned char bytes[0x40];
  bool is_64 = lb_recorder_ds_is_64(r);
  size_t size = is_64 ? 0x40 : 0x30;
  int result = ds_access(r, r->ds.area, bytes, size, false);

  return result < 0 ? result : lb_ds_decode(is_64, bytes, size, ret_area);
}

int lb_bts_decode(bool is_64, const void *bytes, size_t size, struct lb_bts_record *ret_record)
{
  if (size < layouts[is_64].bts)
    return LB_E_TRUNCATED;
  ret_record->from = ds_word(is_64, bytes, 0);
  ret_record->to = ds_word(is_64, bytes, 1);
  ret_record->is_predicted = ds_word(is_64, bytes, 2) >> 4 & 1;
  return layouts[is_64].bts;
}

void lb_recorder_long_mode(struct lb_recorder *r, bool is_active)
{
  r->is_long_mode = is_active;
  unit_update(r);
}

void lb_recorder_flush(struct lb_recorder *r)
{
  r->ds.page = NULL;
  r->ds.page_limit = 0;
  r->ds.header = NULL;
  r->ds.quick = NULL;
}
