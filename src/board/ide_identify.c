/* SPDX-License-Identifier: Apache-2.0
 *
 * The disk's description of itself: the 256 words of IDENTIFY DEVICE. ATA-6 (T13/1410D) 8.15.
 */
#include "board/state.h"

uint64_t ide_sectors(const struct board *board)
{
  uint64_t sectors = board->config.hda.size / IDE_SECTOR;

  return sectors < IDE_LBA48_MAX ? sectors : IDE_LBA48_MAX;
}

static void word_put(struct ide *ide, unsigned word, uint64_t value)
{
  ide->buffer[2 * word] = (uint8_t)value;
  ide->buffer[2 * word + 1] = (uint8_t)(value >> 8);
}

/* Text is stored in words, each with its first letter in the upper byte, and padded with blanks. */
static void text_put(struct ide *ide, unsigned word, unsigned words, const char *text)
{
  for (unsigned i = 0; i < 2 * words; i++)
    ide->buffer[2 * word + (i ^ 1)] = *text ? (uint8_t)*text++ : ' ';
}

static void number_put(struct ide *ide, unsigned word, unsigned words, uint64_t value)
{
  for (unsigned i = 0; i < words; i++)
    word_put(ide, word + i, value >> 16 * i);
}

static void ide_identify_geometry(struct board *board)
{
  struct ide *ide = &board->ide;
  const struct board_disk *disk = &board->config.hda;
  uint64_t sectors = ide_sectors(board), cylinders = sectors / (ide->heads * ide->sectors);

  cylinders = cylinders > 65535 ? 65535 : cylinders;
  word_put(ide, 1, disk->cylinders);
  word_put(ide, 3, disk->heads);
  word_put(ide, 6, disk->sectors);
  word_put(ide, 54, cylinders);
  word_put(ide, 55, ide->heads);
  word_put(ide, 56, ide->sectors);
  number_put(ide, 57, 2, cylinders * ide->heads * ide->sectors);
  number_put(ide, 60, 2, sectors > IDE_LBA28_MAX ? IDE_LBA28_MAX : sectors);
  number_put(ide, 100, 4, sectors);
}

void ide_identify(struct board *board)
{
  struct ide *ide = &board->ide;

  memset(ide->buffer, 0, IDE_SECTOR);
  word_put(ide, 0, 0x0040); /* a fixed disk */
  text_put(ide, 10, 10, "LB00000001");
  text_put(ide, 23, 4, LB_VERSION);
  text_put(ide, 27, 20, "LASTBRANCH DISK");
  word_put(ide, 47, 0x8000 | IDE_MULTIPLE_MAX);
  word_put(ide, 49, 0x0A00); /* LBA, IORDY; no DMA */
  word_put(ide, 50, 0x4000);
  word_put(ide, 51, 0x0200);
  word_put(ide, 53, 0x0003);
  word_put(ide, 59, ide->multiple ? 0x0100 | ide->multiple : 0);
  word_put(ide, 64, 0x0003); /* PIO 3 and 4 */
  word_put(ide, 67, 120);
  word_put(ide, 68, 120);
  word_put(ide, 80, 0x007E); /* ATA-1 to ATA-6 */
  word_put(ide, 83, 0x7400); /* 48-bit addresses, FLUSH CACHE and its EXT */
  word_put(ide, 84, 0x4000);
  word_put(ide, 86, 0x3400);
  word_put(ide, 87, 0x4000);
  word_put(ide, 93, 0x600B); /* this is device 0 */
  ide_identify_geometry(board);
}
