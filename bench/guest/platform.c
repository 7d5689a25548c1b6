/* SPDX-License-Identifier: Apache-2.0
 *
 * The load's machine: a serial port, the model-specific registers of a CPU with DEBUGCTL and a 64-bit DS area (Core 2
 * and later; SDM vol. 3 chapter 17), and the ports by which emulators are told to end.
 */
#include "load.h"

#define COM1 0x3F8
#define MSR_PERFEVTSEL0 0x186
#define MSR_PERF_GLOBAL_CTRL 0x38F
#define EVENT_INSTRUCTIONS 0x4300C0 /* INST_RETIRED, at every level, enabled */
#define MSR_DEBUGCTL 0x1D9
#define MSR_DS_AREA 0x600
#define DEBUGCTL_LBR 1
#define DEBUGCTL_TR (1 << 6)
#define DEBUGCTL_BTS (1 << 7)
#define BTS_RECORDS 1024

static void out_8(uint16_t port, uint8_t value)
{
  __asm__ volatile("outb %0, %1" ::"a"(value), "Nd"(port));
}

static uint8_t in_8(uint16_t port)
{
  uint8_t value;

  __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
  return value;
}

static void write_msr(uint32_t msr, uint32_t value)
{
  __asm__ volatile("wrmsr" ::"c"(msr), "a"(value), "d"(0));
}

void load_open(void)
{
  static const uint8_t settings[][2] = {{1, 0}, {3, 0x80}, {0, 1}, {1, 0}, {3, 3}, {2, 0}, {4, 3}};

  for (unsigned i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
    out_8(COM1 + settings[i][0], settings[i][1]);
}

void load_print(const char *text)
{
  for (; *text; text++) {
    while (!(in_8(COM1 + 5) & 0x20))
      ;
    out_8(COM1, (uint8_t)*text);
  }
}

void load_print_hex(uint32_t value)
{
  char text[9];

  for (unsigned i = 0; i < 8; i++)
    text[i] = "0123456789abcdef"[value >> (28 - 4 * i) & 15];
  text[8] = 0;
  load_print(text);
}

/* Does the word stand in the text? */
static int has_word(const char *text, const char *word)
{
  for (; *text; text++) {
    unsigned i = 0;

    while (word[i] && text[i] == word[i])
      i++;
    if (!word[i])
      return 1;
  }
  return 0;
}

/* A circular BTS buffer: its threshold lies beyond its end. */
static void bts_open(void)
{
  static struct {
    uint64_t bts_base, bts_index, bts_maximum, bts_threshold, pebs[12];
  } area;
  static uint64_t records[BTS_RECORDS][3];
  area.bts_base = area.bts_index = (uintptr_t)records;
  area.bts_maximum = area.bts_base + sizeof(records);
  area.bts_threshold = area.bts_maximum + sizeof(records[0]);
  write_msr(MSR_DS_AREA, (uint32_t)(uintptr_t)&area);
}

void load_record(const char *command_line)
{
  if (has_word(command_line, "count")) {
    write_msr(MSR_PERFEVTSEL0, EVENT_INSTRUCTIONS);
    write_msr(MSR_PERF_GLOBAL_CTRL, 1);
    load_print("counting\n");
  }
  if (has_word(command_line, "bts")) {
    bts_open();
    write_msr(MSR_DEBUGCTL, DEBUGCTL_LBR | DEBUGCTL_TR | DEBUGCTL_BTS);
    load_print("recording bts\n");
  } else if (has_word(command_line, "lbr")) {
    write_msr(MSR_DEBUGCTL, DEBUGCTL_LBR);
    load_print("recording lbr\n");
  } else {
    load_print("recording off\n");
  }
}

void load_exit(void)
{
  for (const char *letter = "Shutdown"; *letter; letter++)
    out_8(0x8900, (uint8_t)*letter);                              /* Bochs */
  __asm__ volatile("outl %0, %1" ::"a"(0), "Nd"((uint16_t)0xF4)); /* QEMU's isa-debug-exit, and ours */
  for (;;)
    __asm__ volatile("cli; hlt");
}

/* What the compiler may call. */
void *memset(void *to, int value, __SIZE_TYPE__ size);
void *memcpy(void *to, const void *from, __SIZE_TYPE__ size);

void *memset(void *to, int value, __SIZE_TYPE__ size)
{
  uint8_t *at = to;

  while (size--)
    *at++ = (uint8_t)value;
  return to;
}

void *memcpy(void *to, const void *from, __SIZE_TYPE__ size)
{
  uint8_t *at = to;
  const uint8_t *source = from;

  while (size--)
    *at++ = *source++;
  return to;
}
