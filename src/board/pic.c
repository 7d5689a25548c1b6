/* SPDX-License-Identifier: Apache-2.0
 *
 * Two 8259A interrupt controllers at 0x20 and 0xA0. Intel's data sheet 231468: initialisation words ICW1-4, operation
 * words OCW1-3, fully nested mode and its special variant, rotation, special mask mode, automatic EOI, polling. Edge or
 * level is chosen per input by the chipset's ELCR (0x4D0, 0x4D1), which replaces the LTIM bit of ICW1.
 */
#include "base/base.h"
#include "board/state.h"

#define CASCADE 2u
#define ICW1 0x10
#define ICW1_ICW4 0x01
#define ICW1_SINGLE 0x02
#define ICW4_AUTO_EOI 0x02
#define ICW4_SPECIAL_NESTED 0x10
#define OCW3 0x08
#define ELCR_MASTER 0xF8 /* 0, 1 and 2 are always edges */
#define ELCR_SLAVE 0xDE  /* so are 8 and 13 */

/* ---- priorities ---- */

/* The input of highest priority among these; -1 for none. */
static int chip_highest(const struct pic_chip *chip, uint8_t inputs)
{
  for (unsigned i = 1; inputs && i <= 8; i++) {
    unsigned input = (chip->lowest + i) & 7;

    if (inputs >> input & 1)
      return (int)input;
  }
  return -1;
}

/* The distance of an input from the one with the highest priority. */
static unsigned chip_rank(const struct pic_chip *chip, int input)
{
  return input < 0 ? 8 : ((unsigned)input - chip->lowest - 1) & 7;
}

/* The request that INT stands for; -1 for none. In special mask mode a masked level in service holds nothing up; in
 * special fully nested mode the slave may interrupt its own service. */
static int chip_request(const struct pic_chip *chip)
{
  uint8_t service = chip->isr;

  if (!chip->is_ready || chip->step)
    return -1;
  if (chip->has_special_mask)
    service &= (uint8_t)~chip->imr;
  if (chip->has_special_nesting)
    service &= (uint8_t) ~(1u << CASCADE);
  int request = chip_highest(chip, chip->irr & (uint8_t)~chip->imr);
  return chip_rank(chip, request) < chip_rank(chip, chip_highest(chip, service)) ? request : -1;
}

/* ---- inputs ---- */

/* A request in edge mode is dropped when its input falls before it is acknowledged (data sheet, "edge triggered"). */
static void chip_set(struct pic_chip *chip, unsigned input, bool is_high)
{
  uint8_t bit = (uint8_t)(1u << input);
  bool was_high = chip->lines & bit;

  if (is_high) {
    chip->lines |= bit;
    if (!was_high || (chip->level & bit))
      chip->irr |= bit;
  } else {
    chip->lines &= (uint8_t)~bit;
    chip->irr &= (uint8_t)~bit;
  }
}

/* The slave's INT is the master's input 2, taken as a level: an edge could get lost while the master serves it. */
static void pic_cascade(struct pic *pic)
{
  struct pic_chip *master = &pic->chip[0];
  bool is_high = chip_request(&pic->chip[1]) >= 0;

  master->lines = (uint8_t)((master->lines & ~(1u << CASCADE)) | (unsigned)is_high << CASCADE);
  master->irr = (uint8_t)((master->irr & ~(1u << CASCADE)) | (unsigned)is_high << CASCADE);
}

void pic_set(struct pic *pic, unsigned irq, bool is_high)
{
  if (irq == CASCADE || irq > 15)
    return;
  chip_set(&pic->chip[irq >> 3], irq & 7, is_high);
  pic_cascade(pic);
}

bool pic_output(const struct pic *pic)
{
  return chip_request(&pic->chip[0]) >= 0;
}

bool pic_reaches(const struct pic *pic, unsigned irq)
{
  const struct pic_chip *chip = &pic->chip[irq >> 3 & 1];
  bool is_open = chip->is_ready && !(chip->imr >> (irq & 7) & 1);

  return irq < 8 ? is_open : is_open && pic->chip[0].is_ready && !(pic->chip[0].imr >> CASCADE & 1);
}

/* ---- acknowledging ---- */

static void chip_take(struct pic_chip *chip, unsigned input)
{
  uint8_t bit = (uint8_t)(1u << input);

  if (!(chip->level & bit))
    chip->irr &= (uint8_t)~bit;
  if (!chip->is_auto_eoi)
    chip->isr |= bit;
  else if (chip->rotates_on_auto_eoi)
    chip->lowest = (uint8_t)input;
}

uint8_t pic_acknowledge(struct pic *pic)
{
  struct pic_chip *master = &pic->chip[0], *slave = &pic->chip[1];
  int input = chip_request(master);
  uint8_t vector = (uint8_t)(master->base + 7);

  if (input >= 0) {
    chip_take(master, (unsigned)input);
    vector = (uint8_t)(master->base + input);
  }
  if (input == (int)CASCADE && !master->is_single) {
    int second = chip_request(slave);

    if (second >= 0)
      chip_take(slave, (unsigned)second);
    vector = (uint8_t)(slave->base + (second >= 0 ? second : 7));
  }
  pic_cascade(pic);
  return vector;
}

/* A read after OCW3 with P: an acknowledge without a vector. */
static uint8_t chip_poll(struct pic_chip *chip)
{
  int input = chip_request(chip);

  chip->polls = false;
  if (input < 0)
    return 0;
  chip_take(chip, (unsigned)input);
  return (uint8_t)(0x80 | input);
}

/* ---- words ---- */

static void chip_write_icw1(struct pic_chip *chip, uint8_t value)
{
  chip->irr = chip->lines & chip->level; /* an edge must come anew */
  chip->imr = chip->isr = 0;
  chip->lowest = 7;
  chip->has_special_mask = chip->reads_isr = chip->polls = false;
  chip->is_auto_eoi = chip->rotates_on_auto_eoi = chip->has_special_nesting = false;
  chip->is_single = value & ICW1_SINGLE;
  chip->needs_icw4 = value & ICW1_ICW4;
  chip->step = 2;
}

static void chip_write_icw(struct pic_chip *chip, uint8_t value, bool is_master)
{
  if (chip->step == 2) {
    chip->base = value & 0xF8;
    chip->step = chip->is_single ? 4 : 3;
  } else if (chip->step == 3)
    chip->step = 4; /* the cascade is hard-wired: ICW3 is ignored */
  else {
    chip->is_auto_eoi = value & ICW4_AUTO_EOI;
    chip->has_special_nesting = is_master && (value & ICW4_SPECIAL_NESTED);
    chip->step = 0;
  }
  if (chip->step == 4 && !chip->needs_icw4)
    chip->step = 0;
  chip->is_ready = chip->is_ready || chip->step == 0;
}

/* OCW2: R, SL and EOI in bits 7-5. */
static void chip_write_ocw2(struct pic_chip *chip, uint8_t value)
{
  uint8_t service = chip->isr;
  bool rotates = value & 0x80, is_specific = value & 0x40, is_eoi = value & 0x20;

  if (!is_eoi) {
    if (!is_specific)
      chip->rotates_on_auto_eoi = rotates;
    else if (rotates)
      chip->lowest = value & 7;
    return;
  }
  if (chip->has_special_mask) /* masked inputs then stay in service */
    service &= (uint8_t)~chip->imr;
  int input = is_specific ? value & 7 : chip_highest(chip, service);
  if (input < 0)
    return;
  chip->isr &= (uint8_t) ~(1u << input);
  if (rotates)
    chip->lowest = (uint8_t)input;
}

static void chip_write_ocw3(struct pic_chip *chip, uint8_t value)
{
  if (value & 0x40)
    chip->has_special_mask = value & 0x20;
  if (value & 0x04)
    chip->polls = true;
  else if (value & 0x02)
    chip->reads_isr = value & 0x01;
}

/* ---- ports ---- */

static uint32_t pic_in(struct board *board, uint16_t port, unsigned size)
{
  struct pic_chip *chip = &board->pic.chip[port >> 7 & 1];
  uint8_t value;

  (void)size;
  board_catch_up(board);
  if (chip->polls) {
    value = chip_poll(chip);
    pic_cascade(&board->pic);
    board->is_touched = true;
    return value;
  }
  if (port & 1)
    return chip->imr;
  return chip->reads_isr ? chip->isr : chip->irr;
}

static void pic_out(struct board *board, uint16_t port, unsigned size, uint32_t value)
{
  struct pic_chip *chip = &board->pic.chip[port >> 7 & 1];
  uint8_t byte = (uint8_t)value;

  (void)size;
  board_catch_up(board);
  if (port & 1) {
    if (chip->step)
      chip_write_icw(chip, byte, chip == &board->pic.chip[0]);
    else
      chip->imr = byte;
  } else if (byte & ICW1)
    chip_write_icw1(chip, byte);
  else if (byte & OCW3)
    chip_write_ocw3(chip, byte);
  else
    chip_write_ocw2(chip, byte);
  pic_cascade(&board->pic);
}

static uint32_t pic_elcr_in(struct board *board, uint16_t port, unsigned size)
{
  (void)size;
  return board->pic.chip[port & 1].level;
}

static void pic_elcr_out(struct board *board, uint16_t port, unsigned size, uint32_t value)
{
  struct pic_chip *chip = &board->pic.chip[port & 1];

  (void)size;
  board_catch_up(board);
  chip->level = (uint8_t)(value & (port & 1 ? ELCR_SLAVE : ELCR_MASTER));
  chip->irr |= chip->lines & chip->level;
  pic_cascade(&board->pic);
}

static void pic_reset(struct board *board)
{
  for (unsigned i = 0; i < 2; i++)
    board->pic.chip[i] = (struct pic_chip){.lowest = 7};
}

/* ---- saving ---- */

static void chip_archive(struct archive *archive, struct pic_chip *chip)
{
  bool *const flags[] = {&chip->is_ready,    &chip->is_single,        &chip->needs_icw4,
                         &chip->is_auto_eoi, &chip->reads_isr,        &chip->rotates_on_auto_eoi,
                         &chip->polls,       &chip->has_special_mask, &chip->has_special_nesting};

  archive_value(archive, &chip->irr);
  archive_value(archive, &chip->isr);
  archive_value(archive, &chip->imr);
  archive_value(archive, &chip->lines);
  archive_value(archive, &chip->level);
  archive_value(archive, &chip->base);
  archive_most(archive, &chip->lowest, 7);
  archive_most(archive, &chip->step, 4);
  for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
    archive_flag(archive, flags[i]);
}

static void pic_archive(struct archive *archive, struct board *board)
{
  chip_archive(archive, &board->pic.chip[0]);
  chip_archive(archive, &board->pic.chip[1]);
}

static const struct port_range pic_ports[] = {
  {0x020, 0x021, 0, pic_in, pic_out},
  {0x0A0, 0x0A1, 0, pic_in, pic_out},
  {0x4D0, 0x4D1, 0, pic_elcr_in, pic_elcr_out},
  {0},
};

const struct device device_pic = {
  .ports = pic_ports,
  .reset = pic_reset,
  .archive = pic_archive,
};
