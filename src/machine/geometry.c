/* SPDX-License-Identifier: Apache-2.0
 *
 * Drives: how many cylinders, heads and sectors an image has. A floppy's follow from its size; a disk's from its
 * partition table, if the addresses in it agree with each other, else from its size as BIOSes translate it.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "machine/state.h"

#define DISK_SIZE_MAX (UINT64_C(8) << 30)

/* Formats of floppies, smallest first. */
static const struct {
  uint32_t kib;
  uint8_t cylinders, heads, sectors, type;
} floppies[] = {
  {160, 40, 1, 8, 1}, {180, 40, 1, 9, 1},   {320, 40, 2, 8, 1},   {360, 40, 2, 9, 1},   {640, 80, 2, 8, 3},
  {720, 80, 2, 9, 3}, {1200, 80, 2, 15, 2}, {1440, 80, 2, 18, 4}, {1680, 80, 2, 21, 4}, {2880, 80, 2, 36, 6},
};

#define FLOPPIES (sizeof(floppies) / sizeof(floppies[0]))
#define FLOPPY_USUAL 7 /* 1.44 MB: a smaller image of odd size is padded to it */

/* The drive gets a copy of the image, filled up with zeros to `size`. */
static int drive_copy(struct drive *drive, const struct machine_image *image, uint64_t size)
{
  drive->bytes = calloc(1, size);
  if (!drive->bytes)
    return -ENOMEM;
  memcpy(drive->bytes, image->bytes, image->size);
  drive->size = size;
  return 0;
}

int drive_init_floppy(struct drive *drive, const struct machine_image *image)
{
  if (image->size == 0)
    return LB_E_BAD_IMAGE;
  size_t format = 0;
  while (format < FLOPPIES && image->size != floppies[format].kib * UINT64_C(1024))
    format++;
  if (format == FLOPPIES)
    format = FLOPPY_USUAL;
  while (format < FLOPPIES && image->size > floppies[format].kib * UINT64_C(1024))
    format++;
  if (format == FLOPPIES)
    return LB_E_TOO_BIG;
  *drive = (struct drive){.cylinders = floppies[format].cylinders,
                          .heads = floppies[format].heads,
                          .sectors = floppies[format].sectors,
                          .type = floppies[format].type};
  return drive_copy(drive, image, floppies[format].kib * UINT64_C(1024));
}

/* ---- disks ---- */

/* A partition's first or last sector in the table: head, sector and cylinder in three bytes. */
struct place {
  uint32_t cylinder, head, sector;
};

static struct place place_decode(const uint8_t *bytes)
{
  return (struct place){bytes[2] | (uint32_t)(bytes[1] & 0xC0) << 2, bytes[0], bytes[1] & 0x3F};
}

/* Does this address mean this sector? For a sector beyond the range of the three bytes, any address is accepted. */
static bool place_agrees(struct place place, uint64_t sector, uint32_t heads, uint32_t sectors)
{
  if (sector >= UINT64_C(1024) * heads * sectors)
    return true;
  return place.sector >= 1 &&
         (place.cylinder * UINT64_C(1) * heads + place.head) * sectors + place.sector - 1 == sector;
}

/* Heads and sectors from the partition table. A partition ends at the end of a cylinder, so its last head and sector
 * are also the disk's. Every first and last sector must agree with them. */
static bool table_geometry(const struct machine_image *image, uint32_t *ret_heads, uint32_t *ret_sectors)
{
  uint32_t heads = 0, sectors = 0;

  if (image->size < SECTOR_SIZE || image->bytes[510] != 0x55 || image->bytes[511] != 0xAA)
    return false;
  for (unsigned pass = 0; pass < 2; pass++)
    for (const uint8_t *entry = image->bytes + 446; entry < image->bytes + 510; entry += 16) {
      struct place first = place_decode(entry + 1), last = place_decode(entry + 5);
      uint64_t start = bytes_get_u32(entry + 8), count = bytes_get_u32(entry + 12);

      if (entry[0] & 0x7F) /* neither active nor inactive: code or text, not a table */
        return false;
      if (entry[4] == 0 || count == 0)
        continue;
      if (pass == 0 && heads == 0) {
        heads = last.head + 1;
        sectors = last.sector;
      }
      if (pass == 1 &&
          (!place_agrees(first, start, heads, sectors) || !place_agrees(last, start + count - 1, heads, sectors)))
        return false;
    }
  if (heads < 1 || heads > 255 || sectors < 1)
    return false;
  *ret_heads = heads;
  *ret_sectors = sectors;
  return true;
}

int drive_init_disk(struct drive *drive, const struct machine_image *image)
{
  uint32_t heads = 16, sectors = 63;

  if (image->size == 0)
    return LB_E_BAD_IMAGE;
  if (image->size > DISK_SIZE_MAX)
    return LB_E_TOO_BIG;
  if (!table_geometry(image, &heads, &sectors)) /* double the heads until 1024 cylinders are enough */
    while (heads < 255 && image->size > UINT64_C(1024) * heads * sectors * SECTOR_SIZE)
      heads = heads == 128 ? 255 : heads * 2;
  uint64_t cylinder = UINT64_C(1) * heads * sectors * SECTOR_SIZE;
  uint64_t size = image->size < cylinder ? cylinder : (image->size + SECTOR_SIZE - 1) / SECTOR_SIZE * SECTOR_SIZE;
  uint64_t cylinders = size / cylinder;
  *drive =
    (struct drive){.cylinders = cylinders > 1024 ? 1024 : (uint32_t)cylinders, .heads = heads, .sectors = sectors};
  return drive_copy(drive, image, size);
}

void drive_done(struct drive *drive)
{
  free(drive->bytes);
  *drive = (struct drive){0};
}

struct board_disk drive_as_board_disk(const struct drive *drive)
{
  struct board_disk disk = {.bytes = drive->bytes, .size = drive->size};

  if (!drive->bytes)
    return disk;
  disk.heads = drive->heads > 16 ? 16 : drive->heads;
  disk.sectors = drive->heads > 16 ? 63 : drive->sectors;
  uint64_t cylinders = drive->size / SECTOR_SIZE / (disk.heads * disk.sectors);
  disk.cylinders = cylinders > 16383 ? 16383 : (uint32_t)cylinders;
  return disk;
}
