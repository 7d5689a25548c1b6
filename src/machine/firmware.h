/* SPDX-License-Identifier: Apache-2.0
 *
 * The firmware: services of a PC BIOS that run as host code, reached through stubs in ROM (rom.c) that execute 0F 3F
 * nn. A service reads and writes the guest's registers and memory; it returns flags by editing the frame that INT
 * pushed.
 */
#ifndef MACHINE_FIRMWARE_H
#define MACHINE_FIRMWARE_H

#include "machine/state.h"

/* Offsets in the ROM. */
enum {
  ROM_SIZE = 0x10000,
  ROM_RSDP = 0x0040,
  ROM_STUBS = 0x0100,
  ROM_MP = 0xD000, /* pointer and table: in the ROM, because systems read them while little memory is mapped */
  ROM_MP_SIZE = 0x1000,
  ROM_DISK_TABLE = 0xE401,     /* vector 41h */
  ROM_CONFIG_TABLE = 0xE6F5,   /* INT 15h AH=C0h */
  ROM_DISKETTE_TABLE = 0xEFC7, /* vector 1Eh */
  ROM_FONT = 0xFA6E,           /* where a font would be: INT 10h AX=1130h; zeros */
  ROM_IRET = 0xFF53,
  ROM_RESET = 0xFFF0,
};

/* The BIOS data area, from 0x400 on. */
enum {
  BDA_COM1 = 0x400,
  BDA_EBDA = 0x40E,
  BDA_EQUIPMENT = 0x410,
  BDA_MEMORY = 0x413,
  BDA_SHIFT = 0x417, /* and 0x418 */
  BDA_KEY_HEAD = 0x41A,
  BDA_KEY_TAIL = 0x41C,
  BDA_KEY_BUFFER = 0x41E,
  BDA_FLOPPY_STATUS = 0x441,
  BDA_MODE = 0x449,
  BDA_COLUMNS = 0x44A,
  BDA_PAGE_SIZE = 0x44C,
  BDA_PAGE_START = 0x44E,
  BDA_CURSOR = 0x450, /* column and row of eight pages */
  BDA_CURSOR_SHAPE = 0x460,
  BDA_PAGE = 0x462,
  BDA_CRTC = 0x463,
  BDA_RESET_VECTOR = 0x467,
  BDA_TICKS = 0x46C,
  BDA_MIDNIGHT = 0x470,
  BDA_DISK_STATUS = 0x474,
  BDA_DISKS = 0x475,
  BDA_KEY_START = 0x480,
  BDA_KEY_END = 0x482,
  BDA_ROWS = 0x484, /* less one */
  BDA_CHARACTER_HEIGHT = 0x485,
  BDA_VIDEO_CONTROL = 0x487,
  BDA_DISPLAY_CODE = 0x48A,
  BDA_KEY_MODE = 0x496, /* bit 1: E0 came last; bit 0: E1 */
};

/* Numbers of services; those below 0x80 are the numbers of their interrupts. */
enum {
  SERVICE_TICK = 0x08,
  SERVICE_KEY = 0x09,
  SERVICE_EOI = 0x80,      /* to the first 8259A */
  SERVICE_EOI_BOTH = 0x81, /* to both */
  SERVICE_RESET = 0x82,
};

#define SERVICE_SIZE 3u /* bytes of the firmware's instruction */
#define TICKS_PER_DAY 0x1800B0u

/* A service. Returns true if it must be called again because its result is not there yet (the stub loops). */
typedef bool firmware_service(struct machine *machine);

/* bus.service: 0F 3F nn was executed. */
void firmware_call(struct machine *machine, uint8_t number);

/* Sets up ROM, vectors, data areas, tables and devices, as they are when the boot sector is loaded. */
void firmware_install(struct machine *machine);
/* Called after S3: sets up processors and devices as firmware does, and leaves memory alone. */
void firmware_resume(struct machine *machine);

/* ---- rom.c ---- */

/* Writes the ROM, and stores the offsets of the stubs of the 256 vectors. Returns the offset after the HLT that waits
 * for a key. */
unsigned rom_build(uint8_t rom[ROM_SIZE], const struct drive *disk, uint16_t ret_entries[256]);

/* ---- memory_map.c ---- */

enum { MAP_USABLE = 1, MAP_RESERVED = 2, MAP_ACPI = 3 };
#define MAP_MAX 9
struct map_range {
  uint64_t start, size;
  uint32_t type;
};

/* Fills in the ranges in ascending order; returns how many. */
unsigned memory_map(const struct machine *machine, struct map_range ret_ranges[MAP_MAX]);

/* ---- one file for each group of services ---- */

firmware_service firmware_tick, firmware_key, firmware_eoi, firmware_eoi_both, firmware_reset;
firmware_service firmware_video, firmware_equipment, firmware_memory_size, firmware_disk, firmware_serial;
firmware_service firmware_system, firmware_keyboard, firmware_printer, firmware_no_boot, firmware_boot;
firmware_service firmware_clock, firmware_alarm, firmware_coprocessor, firmware_pci;

void video_install(struct machine *machine);
void video_print(struct machine *machine, const char *text);
void clock_install(struct machine *machine);
bool keyboard_buffer_is_full(struct machine *machine);

/* INT 13h of one drive: the functions of disk_lba.c and declarations that both files share. */
bool disk_is_extension(uint8_t function);
uint8_t disk_extension(struct machine *machine, struct drive *drive);
/* Copies sectors between drive and memory. Returns INT 13h's status. */
enum { DISK_READ, DISK_WRITE, DISK_VERIFY };
uint8_t disk_transfer(struct machine *machine, struct drive *drive, int direction, uint64_t sector, uint32_t count,
                      uint64_t linear);
enum {
  DISK_OK = 0,
  DISK_BAD_COMMAND = 1, /* or parameter */
  DISK_NO_SECTOR = 4,
  DISK_TIMEOUT = 0x80,
};

/* INT 15h: E820h, E801h, 88h and 87h. */
void memory_map_e820(struct machine *machine);
void memory_map_e801(struct machine *machine);
void memory_map_88(struct machine *machine);
void memory_map_move(struct machine *machine);

/* ---- guest.c: the guest's memory, by linear address. Memory that is not there reads as 0 and ignores writes. ---- */

void guest_read(struct machine *machine, uint64_t linear, void *bytes, size_t size);
void guest_write(struct machine *machine, uint64_t linear, const void *bytes, size_t size);
uint32_t guest_get(struct machine *machine, uint64_t linear, unsigned size);
void guest_put(struct machine *machine, uint64_t linear, unsigned size, uint32_t value);
/* Linear address of segment:offset. */
uint64_t guest_at(const struct machine *machine, enum cpu_segment_number segment, uint16_t offset);
/* FLAGS in the frame that INT pushed at SS:SP. */
void guest_set_flag(struct machine *machine, uint32_t flag, bool is_set);
/* CF in that frame, and AH. */
void guest_succeed(struct machine *machine, uint8_t ah);
void guest_fail(struct machine *machine, uint8_t ah);
/* Does this real-mode vector lead into the ROM? */
bool guest_vector_is_rom(struct machine *machine, uint8_t vector);

/* ---- registers: words and bytes, the rest stays ---- */

static inline uint16_t get16(const struct machine *machine, enum cpu_register number)
{
  return (uint16_t)machine->cpu->r[number];
}

static inline void set16(struct machine *machine, enum cpu_register number, uint16_t value)
{
  machine->cpu->r[number] = (machine->cpu->r[number] & ~UINT64_C(0xFFFF)) | value;
}

static inline uint32_t get32(const struct machine *machine, enum cpu_register number)
{
  return (uint32_t)machine->cpu->r[number];
}

static inline void set32(struct machine *machine, enum cpu_register number, uint32_t value)
{
  machine->cpu->r[number] = value;
}

static inline uint8_t get_low(const struct machine *machine, enum cpu_register number)
{
  return (uint8_t)machine->cpu->r[number];
}

static inline void set_low(struct machine *machine, enum cpu_register number, uint8_t value)
{
  machine->cpu->r[number] = (machine->cpu->r[number] & ~UINT64_C(0xFF)) | value;
}

static inline uint8_t get_high(const struct machine *machine, enum cpu_register number)
{
  return (uint8_t)(machine->cpu->r[number] >> 8);
}

static inline void set_high(struct machine *machine, enum cpu_register number, uint8_t value)
{
  machine->cpu->r[number] = (machine->cpu->r[number] & ~UINT64_C(0xFF00)) | (uint64_t)value << 8;
}

#endif
