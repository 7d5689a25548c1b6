/* SPDX-License-Identifier: Apache-2.0
 *
 * State to and from bytes. See base.h. Input is hostile: every size and every value is checked before anything is
 * changed.
 */
#include "base/base.h"

void archive_refuse(struct archive *archive)
{
  if (archive_is_reading(archive) && archive->error == 0)
    archive->error = LB_E_DAMAGED;
}

int archive_end(struct archive *archive)
{
  if (archive_is_reading(archive) && archive->at != archive->size)
    archive_refuse(archive);
  return archive->error;
}

/* The next bytes of the input, NULL if there are too few. */
static const uint8_t *archive_take(struct archive *archive, size_t size)
{
  const uint8_t *bytes = archive->from + archive->at;

  if (archive->error == 0 && archive->size - archive->at < size)
    archive->error = LB_E_TRUNCATED;
  if (archive->error < 0)
    return NULL;
  archive->at += size;
  return bytes;
}

static void archive_put(struct archive *archive, const void *bytes, size_t size)
{
  if (archive->at <= archive->size && archive->size - archive->at >= size && size)
    memcpy(archive->to + archive->at, bytes, size);
  archive->at += size;
}

void archive_bytes(struct archive *archive, void *bytes, size_t size)
{
  const uint8_t *from;

  if (!archive_is_reading(archive)) {
    archive_put(archive, bytes, size);
    return;
  }
  from = archive_take(archive, size);
  if (from && size)
    memcpy(bytes, from, size);
}

static uint64_t number_get(const void *place, size_t size)
{
  uint64_t value = 0;

  for (size_t i = 0; i < size; i++)
    value |= (uint64_t)((const uint8_t *)place)[i] << 8 * i;
  return value;
}

/* Numbers have the same form in memory as in the file: hosts are little-endian, as everywhere where guest memory is
 * accessed. */
void archive_number(struct archive *archive, void *place, size_t size, uint64_t most)
{
  const uint8_t *from;

  if (!archive_is_reading(archive)) {
    archive_put(archive, place, size);
    return;
  }
  from = archive_take(archive, size);
  if (!from)
    return;
  if (number_get(from, size) > most)
    archive_refuse(archive);
  else
    memcpy(place, from, size);
}

void archive_numbers(struct archive *archive, void *places, size_t size, size_t count, uint64_t most)
{
  if (most == UINT64_MAX) {
    archive_bytes(archive, places, size * count);
    return;
  }
  for (size_t i = 0; i < count; i++)
    archive_number(archive, (uint8_t *)places + i * size, size, most);
}
