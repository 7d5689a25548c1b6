/* SPDX-License-Identifier: Apache-2.0
 *
 * The ROM at 0xF0000, made at start-up: for every vector a few bytes of real-mode code, most of them the firmware's
 * instruction 0F 3F nn (bus.service) and IRET, and the tables that software finds through vectors and fixed addresses.
 */
#include <string.h>

#include "machine/firmware.h"

struct rom {
  uint8_t *bytes;
  unsigned at; /* next free byte */
};

static void rom_add(struct rom *rom, const void *bytes, size_t size)
{
  memcpy(rom->bytes + rom->at, bytes, size);
  rom->at += (unsigned)size;
}

#define ROM_ADD(rom, ...) rom_add(rom, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))
#define SERVICE_BYTES(number) 0x0F, 0x3F, (number)

enum {
  X86_IRET = 0xCF,
  X86_STI = 0xFB,
  X86_CLI = 0xFA,
  X86_HLT = 0xF4,
  X86_NOP = 0x90,
  X86_INT = 0xCD,
  X86_STC = 0xF9,
  X86_JC = 0x72,
  X86_JNC = 0x73,
  X86_JMP = 0xEB,
  X86_JMP_FAR = 0xEA,
  X86_PUSH_AX = 0x50,
  X86_POP_AX = 0x58,
  X86_PUSH_DX = 0x52,
  X86_POP_DX = 0x5A,
  X86_PUSH_DS = 0x1E,
  X86_POP_DS = 0x1F,
};

/* ---- stubs; each returns its offset ---- */

static uint16_t stub_service(struct rom *rom, uint8_t number)
{
  uint16_t start = (uint16_t)rom->at;

  ROM_ADD(rom, SERVICE_BYTES(number), X86_IRET);
  return start;
}

/* A stub for a service that waits. The service sets CF to be called again; the stub enables interrupts first. `pause`
 * is HLT or NOP. Returns the offset of the stub; the instruction after `pause` is WAIT_RESUME bytes further. */
enum { WAIT_RESUME = 8 };
static uint16_t stub_wait(struct rom *rom, uint8_t number, uint8_t pause)
{
  uint16_t start = (uint16_t)rom->at;

  ROM_ADD(rom, SERVICE_BYTES(number), X86_JC, 1, X86_IRET, X86_STI, pause, X86_JMP, (uint8_t)-10);
  return start;
}

/* A stub for a service that never returns. */
static uint16_t stub_end(struct rom *rom, uint8_t number)
{
  uint16_t start = (uint16_t)rom->at;

  ROM_ADD(rom, SERVICE_BYTES(number), X86_CLI, X86_HLT, X86_JMP, (uint8_t)-3);
  return start;
}

/* IRQ 0. The vector 1Ch may change AX, DX and DS: programs rely on it. */
static uint16_t stub_tick(struct rom *rom)
{
  uint16_t start = (uint16_t)rom->at;

  ROM_ADD(rom, X86_PUSH_DS, X86_PUSH_AX, X86_PUSH_DX, SERVICE_BYTES(SERVICE_TICK), X86_INT, 0x1C,
          SERVICE_BYTES(SERVICE_EOI), X86_POP_DX, X86_POP_AX, X86_POP_DS, X86_IRET);
  return start;
}

/* IRQ 1. INT 15h AH=4Fh may change the scan code in AL, or swallow it by clearing CF. */
static uint16_t stub_key(struct rom *rom)
{
  uint16_t start = (uint16_t)rom->at;

  ROM_ADD(rom, X86_PUSH_AX, 0xE4, 0x60, 0xB4, 0x4F, X86_STC, X86_INT, 0x15); /* IN AL, 60h; MOV AH, 4Fh */
  ROM_ADD(rom, X86_JNC, 3, SERVICE_BYTES(SERVICE_KEY), SERVICE_BYTES(SERVICE_EOI), X86_POP_AX, X86_IRET);
  return start;
}

static uint16_t stub_alarm(struct rom *rom)
{
  uint16_t start = (uint16_t)rom->at;

  ROM_ADD(rom, SERVICE_BYTES(0x70), SERVICE_BYTES(SERVICE_EOI_BOTH), X86_IRET);
  return start;
}

/* IRQ 13 becomes NMI's vector, as on the AT. */
static uint16_t stub_coprocessor(struct rom *rom)
{
  uint16_t start = (uint16_t)rom->at;

  ROM_ADD(rom, SERVICE_BYTES(0x75), SERVICE_BYTES(SERVICE_EOI_BOTH), X86_INT, 0x02, X86_IRET);
  return start;
}

static void stubs_build(struct rom *rom, uint16_t entries[256], uint16_t *ret_key_wait)
{
  for (unsigned i = 0; i < 256; i++)
    entries[i] = ROM_IRET;
  rom->bytes[ROM_IRET] = X86_IRET;
  rom->at = ROM_STUBS;
  uint16_t eoi = stub_service(rom, SERVICE_EOI), eoi_both = stub_service(rom, SERVICE_EOI_BOTH);
  for (unsigned i = 0; i < 8; i++) {
    entries[0x08 + i] = eoi;
    entries[0x70 + i] = eoi_both;
  }
  static const uint8_t plain[] = {0x10, 0x11, 0x12, 0x13, 0x14, 0x17, 0x1A};
  for (size_t i = 0; i < sizeof(plain); i++)
    entries[plain[i]] = stub_service(rom, plain[i]);
  entries[0x08] = stub_tick(rom);
  entries[0x09] = stub_key(rom);
  entries[0x15] = stub_wait(rom, 0x15, X86_NOP);
  entries[0x16] = stub_wait(rom, 0x16, X86_HLT);
  entries[0x18] = stub_end(rom, 0x18);
  entries[0x19] = stub_end(rom, 0x19);
  entries[0x40] = entries[0x13]; /* handles INT 13h of floppies once there is a disk */
  entries[0x42] = entries[0x10];
  entries[0x70] = stub_alarm(rom);
  entries[0x75] = stub_coprocessor(rom);
  *ret_key_wait = (uint16_t)(entries[0x16] + WAIT_RESUME);
}

/* ---- tables ---- */

/* INT 15h AH=C0h: length, model, submodel, revision, features (second 8259A, clock, 4Fh is called). */
static const uint8_t config_table[] = {8, 0, 0xFC, 0x01, 0, 0x74, 0x40, 0, 0, 0};
/* Parameters of a 1.44 MB diskette: vector 1Eh. */
static const uint8_t diskette_table[] = {0xAF, 0x02, 0x25, 0x02, 18, 0x1B, 0xFF, 0x6C, 0xF6, 0x0F, 0x08};

/* Parameters of the disk: vector 41h. */
static void disk_table(uint8_t *bytes, const struct drive *disk)
{
  bytes[0] = (uint8_t)disk->cylinders;
  bytes[1] = (uint8_t)(disk->cylinders >> 8);
  bytes[2] = (uint8_t)disk->heads;
  bytes[8] = disk->heads > 8 ? 8 : 0;
  bytes[14] = (uint8_t)disk->sectors;
}

unsigned rom_build(uint8_t rom[ROM_SIZE], const struct drive *disk, uint16_t ret_entries[256])
{
  struct rom builder = {.bytes = rom};
  uint16_t key_wait;

  memset(rom, 0, ROM_SIZE);
  stubs_build(&builder, ret_entries, &key_wait);
  uint16_t reset = stub_end(&builder, SERVICE_RESET);
  builder.at = ROM_RESET;
  ROM_ADD(&builder, X86_JMP_FAR, (uint8_t)reset, (uint8_t)(reset >> 8), FIRMWARE_SEGMENT & 0xFF, FIRMWARE_SEGMENT >> 8);
  rom_add(&builder, "01/01/26", 8); /* F000:FFF5: the date of the firmware */
  rom[0xFFFE] = 0xFC;               /* an AT */
  memcpy(rom + ROM_CONFIG_TABLE, config_table, sizeof(config_table));
  memcpy(rom + ROM_DISKETTE_TABLE, diskette_table, sizeof(diskette_table));
  disk_table(rom + ROM_DISK_TABLE, disk);
  ret_entries[0x1E] = ROM_DISKETTE_TABLE;
  ret_entries[0x41] = ret_entries[0x46] = ROM_DISK_TABLE;
  ret_entries[0x1F] = ret_entries[0x43] = ROM_FONT;
  return key_wait;
}
