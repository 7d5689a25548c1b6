/* SPDX-License-Identifier: Apache-2.0
 *
 * The 8254 interval timer at 0x40-0x43, Intel's data sheet 231164. Nothing ticks: a channel keeps the tick at which it
 * began, and count and OUT follow from the ticks since. OUT0 is IRQ 0, OUT2 the speaker; GATE2 is bit 0 of port 0x61.
 */
#include "base/base.h"
#include "board/state.h"

struct pit_channel {
  uint8_t mode;   /* 0 to 5 */
  uint8_t access; /* 1 low byte, 2 high byte, 3 both in turn */
  bool is_bcd;
  bool gate;
  bool has_count;               /* a count was loaded since the control word */
  bool is_started;              /* counts, or has counted: modes 1 and 5 wait for the gate */
  bool writes_high, reads_high; /* the next access is the second of two */
  uint8_t low;                  /* the first byte written */
  uint32_t count;               /* initial count: 1 to 65536 */
  uint32_t next_count;          /* replaces `count` at next_start, 0 for none */
  uint64_t next_start;
  uint64_t start;  /* tick at which counting began */
  bool is_paused;  /* the gate is low, in the modes that it stops */
  uint64_t paused; /* ticks counted by then */
  uint8_t latched; /* bytes of the latched count still to be read */
  uint16_t latch;
  bool has_status;
  uint8_t status;
};

struct pit {
  struct pit_channel channel[3];
  uint64_t seen; /* tick up to which edges of OUT0 have been reported */
};

static struct pit *pit_of(const struct board *board)
{
  return device_state(board, DEVICE_NUMBER_pit);
}

static uint64_t pit_tick(const struct board *board)
{
  return clock_ticks(board_now(board), PIT_HERTZ);
}

static bool is_periodic(const struct pit_channel *channel)
{
  return channel->mode == 2 || channel->mode == 3;
}

static bool is_triggered(const struct pit_channel *channel)
{
  return channel->mode == 1 || channel->mode == 5;
}

/* ---- what a channel shows ---- */

static uint64_t channel_elapsed(const struct pit_channel *channel, uint64_t tick)
{
  return channel->is_paused ? channel->paused : clock_since(channel->start, tick);
}

/* A count written in modes 2 and 3 waits for the end of the cycle. */
static void channel_catch_up(struct pit_channel *channel, uint64_t tick)
{
  if (channel->next_count == 0 || channel->is_paused || tick < channel->next_start)
    return;
  channel->count = channel->next_count;
  channel->start = channel->next_start;
  channel->next_count = 0;
}

static bool channel_output(const struct pit_channel *channel, uint64_t tick)
{
  uint64_t elapsed = channel_elapsed(channel, tick);

  if (!channel->is_started)
    return channel->mode != 0;
  switch (channel->mode) {
  case 0:
  case 1:
    return elapsed >= channel->count;
  case 2:
    return !channel->gate || elapsed % channel->count != channel->count - 1;
  case 3:
    return !channel->gate || elapsed % channel->count < (channel->count + 1) / 2;
  default:
    return elapsed != channel->count;
  }
}

/* The counting element, as a number. Mode 3 counts by two (data sheet: an odd count loses one first). */
static uint32_t channel_number(const struct pit_channel *channel, uint64_t tick)
{
  uint64_t elapsed = channel_elapsed(channel, tick);
  uint32_t span = channel->is_bcd ? 10000 : 65536, phase;

  if (!channel->is_started)
    return channel->count % span;
  switch (channel->mode) {
  case 2:
    return (channel->count - (uint32_t)(elapsed % channel->count)) % span;
  case 3:
    phase = (uint32_t)(elapsed % channel->count);
    if (phase >= (channel->count + 1) / 2)
      phase -= (channel->count + 1) / 2;
    return ((channel->count & ~1u) - 2 * phase) % span;
  default:
    return (uint32_t)((channel->count + span - elapsed % span) % span);
  }
}

static uint16_t channel_count(const struct pit_channel *channel, uint64_t tick)
{
  uint32_t number = channel_number(channel, tick);

  if (!channel->is_bcd)
    return (uint16_t)number;
  return (uint16_t)(number % 10 | number / 10 % 10 << 4 | number / 100 % 10 << 8 | number / 1000 % 10 << 12);
}

static uint32_t count_of_word(const struct pit_channel *channel, uint16_t word)
{
  if (!channel->is_bcd)
    return word ? word : 65536;
  uint32_t number = (word & 15u) + (word >> 4 & 15u) * 10 + (word >> 8 & 15u) * 100 + (word >> 12 & 15u) * 1000;
  return number ? number : 10000;
}

/* ---- OUT0 ---- */

/* The tick of the first rising edge of OUT after `tick`; CLOCK_NEVER for none. */
static uint64_t channel_next_edge(const struct pit_channel *channel, uint64_t tick)
{
  uint64_t elapsed = channel_elapsed(channel, tick), edge;

  if (!channel->is_started || channel->is_paused)
    return CLOCK_NEVER;
  if (is_periodic(channel)) {
    edge = channel->start + (elapsed / channel->count + 1) * channel->count;
    return channel->next_count && edge > channel->next_start ? channel->next_start : edge;
  }
  edge = channel->count + (channel->mode >= 4 ? 1 : 0);
  return elapsed < edge ? channel->start + edge : CLOCK_NEVER;
}

/* The line stays high from one edge to the next: a request is not lost however late it is seen. */
static void pit_advance(struct board *board, uint64_t now)
{
  struct pit *pit = pit_of(board);
  uint64_t tick = clock_ticks(now, PIT_HERTZ);
  uint64_t edge = channel_next_edge(&pit->channel[0], pit->seen);

  if (tick <= pit->seen)
    return;
  for (unsigned i = 0; i < 3; i++)
    channel_catch_up(&pit->channel[i], tick);
  pit->seen = tick;
  if (edge > tick || hpet_replaces_legacy(board))
    return;
  line_set(board, 0, false);
  line_set(board, 0, true);
}

static uint64_t pit_deadline(const struct board *board)
{
  uint64_t edge = channel_next_edge(&pit_of(board)->channel[0], pit_of(board)->seen);

  if (edge == CLOCK_NEVER || hpet_replaces_legacy(board) || !line_reaches(board, 0))
    return CLOCK_NEVER;
  return clock_time(edge, PIT_HERTZ);
}

/* ---- counting ---- */

static void channel_start(struct pit_channel *channel, uint64_t tick)
{
  channel->start = tick;
  channel->next_count = 0;
  channel->is_started = true;
  channel->is_paused = !channel->gate && !is_triggered(channel);
  channel->paused = 0;
}

/* A whole count has been written. */
static void channel_load(struct pit_channel *channel, uint16_t word, uint64_t tick)
{
  uint32_t count = count_of_word(channel, word);

  if (is_periodic(channel) && count < 2)
    count = 2; /* the data sheet forbids 1 here */
  channel->has_count = true;
  if (is_periodic(channel) && channel->is_started && !channel->is_paused) {
    channel->next_count = count;
    channel->next_start = channel->start + (channel_elapsed(channel, tick) / channel->count + 1) * channel->count;
    return;
  }
  if (is_triggered(channel)) {
    if (channel->is_started)
      channel->next_count = count;
    else
      channel->count = count;
    channel->next_start = CLOCK_NEVER;
    return;
  }
  channel->count = count;
  channel_start(channel, tick);
}

/* GATE has risen in a mode that it does not trigger. Modes 2 and 3 begin a cycle with the count that was written last;
 * the others continue. */
static void channel_resume(struct pit_channel *channel, uint64_t tick)
{
  channel->is_paused = false;
  if (!is_periodic(channel)) {
    channel->start = tick - clock_earlier(channel->paused, tick);
    return;
  }
  channel->start = tick;
  if (channel->next_count)
    channel->count = channel->next_count;
  channel->next_count = 0;
}

void pit_set_gate(struct board *board, bool is_high)
{
  struct pit_channel *channel = &pit_of(board)->channel[2];
  uint64_t tick = pit_tick(board);

  if (channel->gate == is_high)
    return;
  channel_catch_up(channel, tick);
  if (is_high && is_triggered(channel) && channel->has_count) {
    if (channel->next_count)
      channel->count = channel->next_count;
    channel->gate = true;
    channel_start(channel, tick);
  } else if (!is_triggered(channel) && channel->is_started) {
    if (is_high) {
      channel_resume(channel, tick);
    } else {
      channel->paused = channel_elapsed(channel, tick);
      channel->is_paused = true;
    }
  }
  channel->gate = is_high;
}

bool pit_speaker(const struct board *board)
{
  const struct pit_channel *channel = &pit_of(board)->channel[2];
  struct pit_channel copy = *channel;
  uint64_t tick = pit_tick(board);

  channel_catch_up(&copy, tick);
  return channel_output(&copy, tick);
}

/* ---- ports ---- */

static void channel_latch(struct pit_channel *channel, uint64_t tick)
{
  if (channel->latched)
    return; /* a latch stays until it is read */
  channel->latch = channel_count(channel, tick);
  channel->latched = channel->access == 3 ? 2 : 1;
}

static void channel_latch_status(struct pit_channel *channel, uint64_t tick)
{
  if (channel->has_status)
    return;
  bool is_null = !channel->has_count || channel->next_count;
  channel->has_status = true;
  channel->status = (uint8_t)(channel_output(channel, tick) << 7 | is_null << 6 | channel->access << 4 |
                              channel->mode << 1 | channel->is_bcd);
}

static void pit_write_control(struct board *board, uint8_t value)
{
  uint64_t tick = pit_tick(board);
  unsigned number = value >> 6;

  if (number == 3) { /* read-back */
    for (unsigned i = 0; i < 3; i++) {
      if (!(value >> (i + 1) & 1))
        continue;
      if (!(value & 0x20))
        channel_latch(&pit_of(board)->channel[i], tick);
      if (!(value & 0x10))
        channel_latch_status(&pit_of(board)->channel[i], tick);
    }
    return;
  }
  struct pit_channel *channel = &pit_of(board)->channel[number];
  if ((value >> 4 & 3) == 0) {
    channel_latch(channel, tick);
    return;
  }
  unsigned mode = value >> 1 & 7;
  *channel = (struct pit_channel){
    .access = value >> 4 & 3,
    .mode = (uint8_t)(mode >= 6 ? mode - 4 : mode),
    .is_bcd = value & 1,
    .gate = channel->gate,
    .count = value & 1 ? 10000 : 65536,
  };
  if (number == 0 && !hpet_replaces_legacy(board))
    line_set(board, 0, channel->mode != 0);
}

static void pit_out(struct board *board, uint16_t port, unsigned size, uint32_t value)
{
  struct pit_channel *channel = &pit_of(board)->channel[port & 3];
  uint8_t byte = (uint8_t)value;

  (void)size;
  board_catch_up(board);
  if ((port & 3) == 3) {
    pit_write_control(board, byte);
    return;
  }
  if (channel->access == 3 && !channel->writes_high) {
    channel->low = byte;
    channel->writes_high = true;
    if (channel->mode == 0) /* counting stops until the second byte comes */
      channel->is_started = false;
    return;
  }
  unsigned word = channel->access == 1 ? byte : channel->access == 2 ? byte << 8u : channel->low | byte << 8u;
  channel->writes_high = false;
  channel_load(channel, (uint16_t)word, pit_tick(board));
  if ((port & 3) == 0 && channel->mode == 0 && !hpet_replaces_legacy(board))
    line_set(board, 0, false);
}

static uint8_t channel_read(struct pit_channel *channel, uint64_t tick)
{
  uint16_t word = channel->latched ? channel->latch : channel_count(channel, tick);
  bool is_high = channel->access == 2 || (channel->access == 3 && channel->reads_high);

  if (channel->has_status) {
    channel->has_status = false;
    return channel->status;
  }
  if (channel->latched)
    channel->latched--;
  channel->reads_high = channel->access == 3 && !channel->reads_high;
  return (uint8_t)(is_high ? word >> 8 : word);
}

static uint32_t pit_in(struct board *board, uint16_t port, unsigned size)
{
  (void)size;
  if ((port & 3) == 3)
    return 0xFF; /* the control word cannot be read */
  board_catch_up(board);
  return channel_read(&pit_of(board)->channel[port & 3], pit_tick(board));
}

static void pit_reset(struct board *board)
{
  *pit_of(board) = (struct pit){.seen = pit_tick(board)};
  for (unsigned i = 0; i < 3; i++)
    pit_of(board)->channel[i] = (struct pit_channel){.access = 3, .mode = 3, .count = 65536, .gate = i != 2};
}

/* ---- saving ---- */

static void channel_archive(struct archive *archive, struct pit_channel *channel)
{
  bool *const flags[] = {&channel->is_bcd,      &channel->gate,       &channel->has_count, &channel->is_started,
                         &channel->writes_high, &channel->reads_high, &channel->is_paused, &channel->has_status};

  archive_most(archive, &channel->mode, 5);
  archive_most(archive, &channel->access, 3);
  for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
    archive_flag(archive, flags[i]);
  archive_value(archive, &channel->low);
  archive_most(archive, &channel->count, 65536);
  archive_most(archive, &channel->next_count, 65536);
  archive_value(archive, &channel->next_start);
  archive_value(archive, &channel->start);
  archive_value(archive, &channel->paused);
  archive_most(archive, &channel->latched, 2);
  archive_value(archive, &channel->latch);
  archive_value(archive, &channel->status);
  if (channel->count == 0)
    archive_refuse(archive);
}

static void pit_archive(struct archive *archive, struct board *board)
{
  struct pit *pit = pit_of(board);

  for (unsigned i = 0; i < 3; i++)
    channel_archive(archive, &pit->channel[i]);
  archive_value(archive, &pit->seen);
}

static const struct port_range pit_ports[] = {
  {0x040, 0x043, 0, pit_in, pit_out},
  {0},
};

const struct device device_pit = {
  DEVICE_STATE(pit),      .ports = pit_ports,       .reset = pit_reset,
  .advance = pit_advance, .deadline = pit_deadline, .archive = pit_archive,
};
