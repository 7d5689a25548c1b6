/* SPDX-License-Identifier: Apache-2.0
 *
 * The interrupts of the local APIC. It takes them from its own sources (LVT), from the I/O APIC and from the local
 * APICs of all processors (ICR), holds them by priority, passes them to the processor and ends them. SDM vol. 3, 10.5,
 * 10.6 and 10.8.
 */
#include "board/state.h"

#define ICR_LOGICAL UINT32_C(0x800)
#define ICR_ASSERT UINT32_C(0x4000)
#define ICR_LEVEL UINT32_C(0x8000)
#define ICR_SHORTHAND(icr) ((icr) >> 18 & 3)
#define FIRST_VECTOR 16

/* ---- sets of 256 vectors ---- */

static void bits_set(uint32_t bits[8], uint8_t vector, bool is_set)
{
  uint32_t bit = UINT32_C(1) << (vector & 31);

  bits[vector >> 5] = is_set ? bits[vector >> 5] | bit : bits[vector >> 5] & ~bit;
}

static bool bits_has(const uint32_t bits[8], uint8_t vector)
{
  return bits[vector >> 5] >> (vector & 31) & 1;
}

static int bits_highest(const uint32_t bits[8])
{
  for (int i = 7; i >= 0; i--)
    if (bits[i])
      return i * 32 + 31 - __builtin_clz(bits[i]);
  return -1;
}

/* ---- priorities ---- */

/* The higher of TPR and the vector in service; the subclass is TPR's when the classes are equal (10.8.3.1). */
uint8_t lapic_processor_priority(const struct lapic *lapic)
{
  int service = bits_highest(lapic->isr);
  unsigned class = service < 0 ? 0 : (unsigned)service & 0xF0;

  return (uint8_t)((lapic->tpr & 0xF0) >= class ? lapic->tpr : class);
}

int lapic_request(const struct board *board, const struct lapic *lapic)
{
  if (!lapic_is_on(board, lapic))
    return -1;
  int vector = bits_highest(lapic->irr);
  return vector >= 0 && (vector & 0xF0) > (lapic_processor_priority(lapic) & 0xF0) ? vector : -1;
}

uint8_t lapic_take(struct lapic *lapic, uint8_t vector)
{
  bits_set(lapic->irr, vector, false);
  bits_set(lapic->isr, vector, true);
  return vector;
}

void lapic_eoi(struct board *board, struct lapic *lapic)
{
  int vector = bits_highest(lapic->isr);

  if (vector < 0)
    return;
  bits_set(lapic->isr, (uint8_t)vector, false);
  if ((uint8_t)lapic->lvt[LVT_LINT0] == vector)
    lapic->lvt[LVT_LINT0] &= ~LVT_REMOTE_IRR;
  if (bits_has(lapic->tmr, (uint8_t)vector))
    ioapic_eoi(board, (uint8_t)vector);
}

/* ---- taking interrupts ---- */

/* The error's own interrupt may have an illegal vector: that is an error too, and no more than that. */
void lapic_error(struct board *board, struct lapic *lapic, uint32_t bit)
{
  bool is_new = !(lapic->errors & bit);

  lapic->errors |= bit;
  board->is_touched = true;
  if (is_new)
    lapic_raise_lvt(board, lapic, LVT_ERROR);
}

static bool lapic_accept_vector(struct board *board, struct lapic *lapic, uint8_t vector, bool is_level)
{
  if (!(lapic->svr & SVR_ENABLED))
    return false;
  if (vector < FIRST_VECTOR) {
    lapic_error(board, lapic, ESR_RECEIVE_VECTOR);
    return false;
  }
  bits_set(lapic->irr, vector, true);
  bits_set(lapic->tmr, vector, is_level);
  return true;
}

/* A disabled APIC still passes NMI, SMI, INIT and start-up on (10.4.7.2). */
bool lapic_accept(struct board *board, struct lapic *lapic, enum apic_mode mode, uint8_t vector, bool is_level)
{
  const struct board_host *host = &board->host;
  unsigned number = lapic_number(board, lapic);

  board->is_touched = true;
  if (!lapic_is_on(board, lapic))
    return false;
  switch (mode) {
  case MODE_FIXED:
  case MODE_LOWEST:
    return lapic_accept_vector(board, lapic, vector, is_level);
  case MODE_SMI:
    host->smi(host->data, number);
    return true;
  case MODE_NMI:
    host->nmi(host->data, number);
    return true;
  case MODE_INIT:
    power_init_processor(board, lapic);
    return true;
  case MODE_STARTUP:
    host->startup(host->data, number, vector);
    return true;
  default:
    return false;
  }
}

void lapic_raise_lvt(struct board *board, struct lapic *lapic, enum lvt entry)
{
  uint32_t value = lapic->lvt[entry];
  bool has_mode = entry != LVT_TIMER && entry != LVT_ERROR;

  if (!(value & LVT_MASKED))
    lapic_accept(board, lapic, has_mode ? APIC_MODE(value) : MODE_FIXED, (uint8_t)value, false);
}

/* The entry masks itself when it takes the interrupt (10.5.1). AMD's entry does not: on AMD, Linux reads from a status
 * register which counters overflowed and never unmasks the entry (arch/x86/events/amd/core.c). */
void board_pmi(struct board *board)
{
  struct lapic *lapic = board->asking;
  uint32_t value = lapic->lvt[LVT_PERF];

  board_catch_up(board);
  if (lapic_is_on(board, lapic) && !(value & LVT_MASKED)) {
    if (!board->config.keeps_lvt_perf)
      lapic->lvt[LVT_PERF] |= LVT_MASKED;
    lapic_accept(board, lapic, APIC_MODE(value), (uint8_t)value, false);
  }
  board->host.pmi_delivered(board->host.data, lapic_number(board, lapic));
  board_settle(board);
}

/* ---- LINT0 and LINT1 ---- */

/* While the APIC is off, the pins are INTR and NMI themselves; INTR is the bootstrap processor's alone. */
void lapic_set_pin(struct board *board, struct lapic *lapic, unsigned pin, bool is_high)
{
  uint32_t *entry = &lapic->lvt[LVT_LINT0 + pin];
  bool is_edge = is_high && !lapic->lint[pin];
  bool is_level = pin == 0 && (*entry & LVT_LEVEL) && APIC_MODE(*entry) == MODE_FIXED;

  lapic->lint[pin] = is_high;
  if (!lapic_is_on(board, lapic)) {
    if (pin == 1 && is_edge)
      board->host.nmi(board->host.data, lapic_number(board, lapic));
    return;
  }
  if ((*entry & LVT_MASKED) || APIC_MODE(*entry) == MODE_EXTINT)
    return;
  if (is_level && is_high && !(*entry & LVT_REMOTE_IRR)) {
    if (lapic_accept(board, lapic, MODE_FIXED, (uint8_t)*entry, true))
      *entry |= LVT_REMOTE_IRR;
  } else if (!is_level && is_edge)
    lapic_accept(board, lapic, APIC_MODE(*entry), (uint8_t)*entry, false);
}

bool lapic_passes_extint(const struct board *board, const struct lapic *lapic)
{
  uint32_t entry = lapic->lvt[LVT_LINT0];

  if (!lapic_is_on(board, lapic))
    return lapic_number(board, lapic) == 0;
  return (!(entry & LVT_MASKED) && APIC_MODE(entry) == MODE_EXTINT) || ioapic_passes_extint(board, lapic);
}

void lapic_set_pic(struct board *board)
{
  bool is_high = pic_output(&board->pic);

  for (unsigned i = 0; i < board->config.cpus; i++)
    lapic_set_pin(board, &board->lapics[i], 0, is_high);
}

bool lapic_hears_pic(const struct board *board, const struct lapic *lapic)
{
  return !(lapic->lvt[LVT_LINT0] & LVT_MASKED) || lapic_passes_extint(board, lapic);
}

void board_nmi(struct board *board)
{
  if (board->rtc.nmi_is_masked)
    return;
  for (unsigned i = 0; i < board->config.cpus; i++) {
    lapic_set_pin(board, &board->lapics[i], 1, true);
    lapic_set_pin(board, &board->lapics[i], 1, false);
  }
  board_settle(board);
}

/* ---- messages ---- */

static bool is_logical_destination(const struct lapic *lapic, uint32_t destination)
{
  if (lapic->base & APIC_BASE_X2APIC) {
    bool is_cluster = destination >> 16 == lapic->id >> 4;

    return is_cluster && (destination >> (lapic->id & 15) & 1);
  }
  uint32_t own = lapic->ldr >> 24;
  if (lapic->dfr >> 28 == 0xF) /* flat */
    return destination & own & 0xFF;
  return (destination >> 4 == 0xF || destination >> 4 == own >> 4) && (destination & own & 0xF); /* clusters */
}

/* A destination of all ones, in the width of the mode, means all processors. */
bool lapic_is_destination(const struct lapic *lapic, uint32_t destination, bool is_logical)
{
  bool is_x2 = lapic->base & APIC_BASE_X2APIC;

  if (destination == UINT32_MAX || (!is_x2 && destination == 0xFF))
    return true;
  return is_logical ? is_logical_destination(lapic, destination) : destination == lapic->id;
}

/* Lowest priority: the processor whose priority is lowest; among equals, the first (10.6.2.4). */
static uint32_t lowest_of(const struct board *board, uint32_t set)
{
  unsigned best = BOARD_CPUS, least = 0x100;

  for (unsigned i = 0; i < board->config.cpus; i++) {
    unsigned priority = lapic_processor_priority(&board->lapics[i]);

    if ((set >> i & 1) && lapic_is_enabled(board, &board->lapics[i]) && priority < least) {
      best = i;
      least = priority;
    }
  }
  return best == BOARD_CPUS ? 0 : UINT32_C(1) << best;
}

bool lapic_deliver(struct board *board, uint32_t set, enum apic_mode mode, uint8_t vector, bool is_level)
{
  bool is_taken = false;

  if (mode == MODE_LOWEST)
    set = lowest_of(board, set);
  for (unsigned i = 0; i < board->config.cpus; i++)
    if (set >> i & 1)
      is_taken |= lapic_accept(board, &board->lapics[i], mode, vector, is_level);
  return is_taken;
}

uint32_t lapic_destinations(const struct board *board, uint32_t destination, bool is_logical)
{
  uint32_t set = 0;

  for (unsigned i = 0; i < board->config.cpus; i++)
    set |= (uint32_t)lapic_is_destination(&board->lapics[i], destination, is_logical) << i;
  return set;
}

static uint32_t icr_set(const struct board *board, const struct lapic *lapic, uint32_t icr, uint32_t destination)
{
  uint32_t all = (UINT32_C(1) << board->config.cpus) - 1, own = UINT32_C(1) << lapic_number(board, lapic);
  bool is_x2 = lapic->base & APIC_BASE_X2APIC;

  switch (ICR_SHORTHAND(icr)) {
  case 0:
    return lapic_destinations(board, !is_x2 && destination == 0xFF ? UINT32_MAX : destination, icr & ICR_LOGICAL);
  case 1:
    return own;
  case 2:
    return all;
  default:
    return all & ~own;
  }
}

void lapic_send(struct board *board, struct lapic *lapic, uint32_t icr, uint32_t destination)
{
  enum apic_mode mode = APIC_MODE(icr);
  uint8_t vector = (uint8_t)icr;

  if ((mode == MODE_FIXED || mode == MODE_LOWEST) && vector < FIRST_VECTOR) {
    lapic_error(board, lapic, ESR_SEND_VECTOR);
    return;
  }
  if (mode == MODE_INIT && (icr & ICR_LEVEL) && !(icr & ICR_ASSERT))
    return; /* INIT level de-assert, which only sets arbitration IDs */
  if (mode != MODE_RESERVED && mode != MODE_EXTINT)
    lapic_deliver(board, icr_set(board, lapic, icr, destination), mode, vector, false);
}
