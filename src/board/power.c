/* SPDX-License-Identifier: Apache-2.0
 *
 * Ports that are wires rather than devices: 0x61 and 0x92 (system control), 0x80 (power-on codes), 0xB2/0xB3 (APM,
 * which raises SMI), 0xE9 (debug console), 0xF4 (exit), 0xF0 (clears FERR#), and ACPI's PM1 block and timer at 0x600.
 * ACPI specification 4.8.3: the timer counts 24 bits at 3.579545 MHz; TMR_STS is set when its top bit changes. S3 ends
 * when the RTC's alarm sets RTC_STS with RTC_EN on, or from outside; the timer has no power then.
 */
#include "base/base.h"
#include "board/state.h"

enum {
  CONTROL_GATE2 = 0x01,
  CONTROL_REFRESH = 0x10,
  CONTROL_OUT2 = 0x20,
};

#define REFRESH_TIME UINT64_C(15085) /* bit 4 of port 0x61 changes at every refresh */
#define IRQ_FERR 13
#define IRQ_SCI 9

#define PM_START 0x600
#define PM_HERTZ UINT64_C(3579545)
#define PM_TIMER_MASK UINT32_C(0xFFFFFF)
#define PM_HALF (UINT64_C(1) << 23) /* ticks between two changes of the top bit */
#define PM_TIMER 0x0001             /* in status and enable */
#define PM_GLOBAL 0x0020
#define PM_POWER_BUTTON 0x0100
#define PM_SLEEP_BUTTON 0x0200
#define PM_RTC 0x0400
#define PM_WAKE 0x8000
#define PM_SCI_ENABLED 0x0001 /* in control */
#define PM_SLEEP_ENABLE 0x2000
#define PM_SLEEP_TYPE(control) ((control) >> 10 & 7)
#define PM_S3 1 /* as \_S3 and \_S5 of tables.c say; QEMU has the same 1 */
#define PM_S5 5

/* ---- 0x61, 0x92, 0xB2, 0xF0 ---- */

static uint8_t system_read_61(const struct board *board)
{
  uint8_t value = board->power.control_61;

  if (board_now(board) / REFRESH_TIME & 1)
    value |= CONTROL_REFRESH;
  if (pit_speaker(board))
    value |= CONTROL_OUT2;
  return value;
}

static uint32_t system_in(struct board *board, uint16_t port, unsigned size)
{
  (void)size;
  switch (port) {
  case 0x61:
    return system_read_61(board);
  case 0x92:
    return (board->a20_is_open ? 0x02 : 0) | (board->power.control_92 & 0x01);
  case 0xB2:
  case 0xB3:
    return board->power.apm[port & 1];
  default:
    return 0xFF;
  }
}

static void system_out(struct board *board, uint16_t port, unsigned size, uint32_t value)
{
  struct power *power = &board->power;

  (void)size;
  switch (port) {
  case 0x61:
    power->control_61 = value & 0x0F;
    pit_set_gate(board, value & CONTROL_GATE2);
    break;
  case 0x92:
    board_set_a20(board, value & 0x02);
    if (value & ~power->control_92 & 0x01)
      power_init_signal(board);
    power->control_92 = (uint8_t)value;
    break;
  case 0xB2:
    power->apm[0] = (uint8_t)value;
    board->host.smi(board->host.data, lapic_number(board, board->asking)); /* SMBASE may still be the same for all */
    break;
  case 0xB3:
    power->apm[1] = (uint8_t)value;
    break;
  default: /* 0xF0: the coprocessor's error has been seen */
    line_set(board, IRQ_FERR, false);
    break;
  }
}

void board_ferr(struct board *board)
{
  board_catch_up(board);
  line_set(board, IRQ_FERR, true);
  board_settle(board);
}

void board_set_a20(struct board *board, bool is_open)
{
  if (board->a20_is_open == is_open)
    return;
  board->a20_is_open = is_open;
  board->host.a20(board->host.data, is_open);
}

/* ---- 0x80, 0xE9, 0xF4 ---- */

static uint32_t debug_in(struct board *board, uint16_t port, unsigned size)
{
  if (port == 0xE9)
    return size == 1 ? 0xE9 : 0xFFFFFFE9; /* a guest detects the console by this value */
  return port == 0x80 ? board->power.post | 0xFFFFFF00 : UINT32_MAX;
}

static void debug_out(struct board *board, uint16_t port, unsigned size, uint32_t value)
{
  const struct board_host *host = &board->host;

  (void)size;
  if (port == 0xE9)
    host->debug(host->data, (uint8_t)value);
  else if (port == 0xF4)
    host->exit(host->data, value);
  else {
    board->power.post = (uint8_t)value;
    host->post(host->data, (uint8_t)value);
  }
}

/* ---- PM1 and the PM timer ---- */

static void power_signal(struct board *board)
{
  struct power *power = &board->power;
  uint16_t events = power->status & power->enable;

  line_set(board, IRQ_SCI, events & (PM_TIMER | PM_GLOBAL | PM_RTC));
  board->is_touched = true; /* the line may have been high; an event that has come has no deadline any more */
  if (power->sleep == POWER_ASLEEP && (events & PM_RTC))
    power->sleep = POWER_WAKING;
}

void power_alarm(struct board *board)
{
  board->power.status |= PM_RTC;
  power_signal(board);
}

static void power_advance(struct board *board, uint64_t now)
{
  struct power *power = &board->power;
  uint64_t ticks = clock_ticks(now, PM_HERTZ), seen = power->seen;

  if (ticks <= seen)
    return;
  power->seen = ticks;
  if (ticks / PM_HALF == seen / PM_HALF || (power->status & PM_TIMER))
    return;
  power->status |= PM_TIMER;
  power_signal(board);
}

uint64_t power_deadline(const struct board *board)
{
  const struct power *power = &board->power;
  uint16_t awaited = power->enable & (uint16_t)~power->status;
  uint64_t alarm = awaited & PM_RTC ? rtc_alarm_time(board) : CLOCK_NEVER;

  if (board_is_asleep(board))
    return alarm;
  if (!line_reaches(board, IRQ_SCI))
    return CLOCK_NEVER;
  uint64_t timer = awaited & PM_TIMER ? clock_time((power->seen / PM_HALF + 1) * PM_HALF, PM_HERTZ) : CLOCK_NEVER;
  return clock_earlier(alarm, timer);
}

static void power_set_control(struct board *board, uint16_t value)
{
  struct power *power = &board->power;

  power->control = (uint16_t)((value & 0x1C02) | PM_SCI_ENABLED); /* ACPI mode cannot be switched off */
  if (!(value & PM_SLEEP_ENABLE))
    return;
  if (PM_SLEEP_TYPE(value) == PM_S5)
    board->host.power_off(board->host.data);
  if (PM_SLEEP_TYPE(value) == PM_S3) {
    power->sleep = POWER_ASLEEP;
    board->host.sleep(board->host.data);
  }
}

/* Status bits as they are now. */
static void power_catch_up(struct board *board, uint64_t now)
{
  rtc_advance(board, now);
  power_advance(board, now);
}

/* The block as 12 bytes. */
static void power_block(struct board *board, uint8_t ret_bytes[12])
{
  const struct power *power = &board->power;
  uint64_t now = board_now(board);

  power_catch_up(board, now);
  uint32_t words[3] = {power->status | (uint32_t)power->enable << 16, power->control,
                       (uint32_t)clock_ticks(now, PM_HERTZ) & PM_TIMER_MASK};
  for (unsigned i = 0; i < 12; i++)
    ret_bytes[i] = (uint8_t)(words[i / 4] >> 8 * (i % 4));
}

static uint32_t power_in(struct board *board, uint16_t port, unsigned size)
{
  uint8_t bytes[12];
  uint32_t value = 0;
  unsigned offset = port - PM_START;

  power_block(board, bytes);
  for (unsigned i = 0; i < size; i++)
    value |= (uint32_t)(offset + i < sizeof(bytes) ? bytes[offset + i] : 0xFF) << 8 * i;
  return value;
}

/* One byte at a time; the byte with SLP_EN comes last, when the type stands. Ones clear status bits. */
static void power_write_byte(struct board *board, unsigned offset, uint8_t value)
{
  struct power *power = &board->power;
  unsigned shift = 8 * (offset & 1);
  uint16_t word = (uint16_t)(value << shift), others = (uint16_t)(0xFF00 >> shift);

  switch (offset & ~1u) {
  case 0:
    power->status &= (uint16_t)~word;
    break;
  case 2:
    power->enable =
      (uint16_t)((power->enable & others) | word) & (PM_TIMER | PM_GLOBAL | PM_POWER_BUTTON | PM_SLEEP_BUTTON | PM_RTC);
    break;
  case 4:
    power_set_control(board, (uint16_t)((power->control & others) | word));
    break;
  default:
    break;
  }
}

static void power_out(struct board *board, uint16_t port, unsigned size, uint32_t value)
{
  power_catch_up(board, board_now(board));
  for (unsigned i = 0; i < size; i++)
    power_write_byte(board, port - PM_START + i, (uint8_t)(value >> 8 * i));
  power_signal(board);
}

/* ---- S3 ---- */

bool board_is_asleep(const struct board *board)
{
  return board->power.sleep != POWER_AWAKE;
}

bool board_is_waking(const struct board *board)
{
  return board->power.sleep == POWER_WAKING;
}

void board_request_wake(struct board *board)
{
  if (!board_is_asleep(board))
    return;
  board->power.status |= PM_POWER_BUTTON;
  board->power.sleep = POWER_WAKING;
}

void board_wake(struct board *board)
{
  const struct power *power = &board->power;
  uint16_t events = power->status & ((power->enable & PM_RTC) | PM_POWER_BUTTON);

  board_reset(board);
  board->power.status = PM_WAKE | events;
}

/* ---- resets ---- */

/* Chipsets since the 486 raise INIT, which leaves MSRs alone, where AT boards raised the processor's RESET: for bit 0
 * of port 0x92, the 8042, and port 0xCF9 without bit 1 (ICH data sheets: INIT_NOW, RCIN#, soft reset). SDM vol. 3,
 * 10.4.7.3: the local APIC is reset too. The A20 gate is opened, since the processor continues at the top of memory. */
void power_init_processor(struct board *board, struct lapic *lapic)
{
  unsigned number = lapic_number(board, lapic);

  if (number == 0) {
    board->power.was_init = true;
    board_set_a20(board, true);
  }
  lapic_reset(board, lapic, false);
  board->is_touched = true;
  board->host.init(board->host.data, number);
}

void power_init_signal(struct board *board)
{
  for (unsigned i = 0; i < board->config.cpus; i++)
    power_init_processor(board, &board->lapics[i]);
}

/* Bit 0 of port 0x92 survives the restart of the firmware after INIT: software tells INIT from a reset by it. */
static void power_reset(struct board *board)
{
  uint8_t kept = board->power.was_init ? board->power.control_92 & 0x01 : 0;

  board->power =
    (struct power){.control = PM_SCI_ENABLED, .control_92 = kept, .seen = clock_ticks(board_now(board), PM_HERTZ)};
}

/* ---- saving ---- */

static void power_archive(struct archive *archive, struct board *board)
{
  struct power *power = &board->power;

  archive_value(archive, &power->control_61);
  archive_value(archive, &power->control_92);
  archive_flag(archive, &power->was_init);
  archive_value(archive, &power->reset);
  archive_array(archive, power->apm);
  archive_value(archive, &power->post);
  archive_value(archive, &power->status);
  archive_value(archive, &power->enable);
  archive_value(archive, &power->control);
  archive_value(archive, &power->seen);
  archive_most(archive, &power->sleep, POWER_WAKING);
}

static const struct port_range power_ports[] = {
  {0x061, 0x061, 0, system_in, system_out},
  {0x080, 0x080, PORT_WIDE | PORT_QUIET, debug_in, debug_out},
  {0x092, 0x092, 0, system_in, system_out},
  {0x0B2, 0x0B3, 0, system_in, system_out},
  {0x0E9, 0x0E9, PORT_WIDE | PORT_QUIET, debug_in, debug_out},
  {0x0F0, 0x0F1, 0, system_in, system_out},
  {0x0F4, 0x0F4, PORT_WIDE | PORT_QUIET, debug_in, debug_out},
  {0x600, 0x60B, PORT_WIDE, power_in, power_out},
  {0},
};

const struct device device_power = {
  .ports = power_ports,
  .reset = power_reset,
  .advance = power_advance,
  .deadline = power_deadline,
  .archive = power_archive,
};
