/* SPDX-License-Identifier: Apache-2.0
 *
 * The local APIC's registers as the processor sees them: IA32_APIC_BASE, the page of xAPIC mode, the MSRs of x2APIC
 * mode. SDM vol. 3, 10.4 and 10.12. lapic_interrupt.c and lapic_timer.c implement their effects.
 */
#include "base/base.h"
#include "board/state.h"

#define MSR_APIC_BASE 0x1Bu
#define MSR_TSC_DEADLINE 0x6E0u
#define MSR_X2APIC 0x800u
#define BASE_DEFAULT UINT64_C(0xFEE00000)
#define BASE_MODE (APIC_BASE_ENABLED | APIC_BASE_X2APIC)
#define VERSION_ENTRIES ((uint32_t)(LVT_ENTRIES - 1) << 16)
#define LVT_READ_ONLY UINT32_C(0x5000) /* delivery status and remote IRR: may be written, to no effect */
#define ICR_PENDING UINT32_C(0x1000)
#define ICR_BITS UINT32_C(0x000CCFFF)

/* The bits of each entry that can be written. */
static const uint32_t lvt_bits[LVT_ENTRIES] = {
  [LVT_TIMER] = 0x000700FF, [LVT_THERMAL] = 0x000107FF, [LVT_PERF] = 0x000107FF, [LVT_LINT0] = 0x0001A7FF,
  [LVT_LINT1] = 0x0001A7FF, [LVT_ERROR] = 0x000100FF,   [LVT_CMCI] = 0x000107FF,
};

bool lapic_is_on(const struct board *board, const struct lapic *lapic)
{
  return board->config.has_apic && (lapic->base & APIC_BASE_ENABLED);
}

static bool lapic_is_x2(const struct lapic *lapic)
{
  return lapic->base & APIC_BASE_X2APIC;
}

bool lapic_is_enabled(const struct board *board, const struct lapic *lapic)
{
  return lapic_is_on(board, lapic) && (lapic->svr & SVR_ENABLED);
}

bool board_apic_is_enabled(const struct board *board)
{
  return lapic_is_enabled(board, board->asking);
}

uint32_t board_lvt_perf(const struct board *board)
{
  return board->asking->lvt[LVT_PERF];
}

/* ---- registers ---- */

/* The entry of the local vector table with this number; -1: it is none. */
static int lvt_of_register(unsigned number)
{
  if (number == APIC_LVT_CMCI)
    return LVT_CMCI;
  return number >= APIC_LVT_TIMER && number <= APIC_LVT_ERROR ? (int)(number - APIC_LVT_TIMER) : -1;
}

static bool is_vector_bits(unsigned number)
{
  return number >= APIC_ISR && number < APIC_ISR + 24;
}

static uint32_t lapic_read_bits(const struct lapic *lapic, unsigned number)
{
  if (number < APIC_TMR)
    return lapic->isr[number - APIC_ISR];
  return number < APIC_IRR ? lapic->tmr[number - APIC_TMR] : lapic->irr[number - APIC_IRR];
}

static uint32_t lapic_read_register(struct board *board, struct lapic *lapic, unsigned number)
{
  bool is_x2 = lapic_is_x2(lapic);

  if (is_vector_bits(number))
    return lapic_read_bits(lapic, number);
  if (lvt_of_register(number) >= 0)
    return lapic->lvt[lvt_of_register(number)];
  switch (number) {
  case APIC_ID:
    return is_x2 ? lapic->id : lapic->id << 24;
  case APIC_VERSION:
    return VERSION_ENTRIES | board->config.apic_version;
  case APIC_TPR:
    return lapic->tpr;
  case APIC_APR:
  case APIC_PPR:
    return lapic_processor_priority(lapic);
  case APIC_LDR: /* x2APIC: cluster and place in it, both from the ID (10.12.10.2) */
    return is_x2 ? lapic->id >> 4 << 16 | UINT32_C(1) << (lapic->id & 15) : lapic->ldr;
  case APIC_DFR:
    return lapic->dfr;
  case APIC_SVR:
    return lapic->svr;
  case APIC_ESR:
    return lapic->esr;
  case APIC_ICR:
    return lapic->icr;
  case APIC_ICR_HIGH:
    return lapic->icr_high;
  case APIC_INITIAL_COUNT:
    return lapic->timer.initial;
  case APIC_CURRENT_COUNT:
    return lapic_timer_count(board, lapic);
  case APIC_DIVIDE:
    return lapic->timer.divide;
  default:
    return 0;
  }
}

/* While the APIC is disabled by software its entries stay masked (10.4.7.2). */
static void lapic_write_lvt(struct board *board, struct lapic *lapic, enum lvt entry, uint32_t value)
{
  value = (value & lvt_bits[entry]) | (lapic->lvt[entry] & LVT_REMOTE_IRR);
  if (!(lapic->svr & SVR_ENABLED))
    value |= LVT_MASKED;
  if (!(value & LVT_LEVEL))
    value &= ~LVT_REMOTE_IRR;
  if (entry == LVT_TIMER && !board->config.has_tsc_deadline)
    value &= ~(UINT32_C(1) << 18);
  if (entry == LVT_TIMER)
    lapic_timer_change_mode(lapic, value);
  lapic->lvt[entry] = value;
}

static void lapic_write_svr(struct board *board, struct lapic *lapic, uint32_t value)
{
  lapic->svr = value & 0x3FF;
  if (value & SVR_ENABLED) {
    ioapic_retry(board);
    return;
  }
  for (unsigned i = 0; i < LVT_ENTRIES; i++)
    lapic->lvt[i] |= LVT_MASKED;
}

static void lapic_write_register(struct board *board, struct lapic *lapic, unsigned number, uint32_t value)
{
  if (lvt_of_register(number) >= 0) {
    lapic_write_lvt(board, lapic, (enum lvt)lvt_of_register(number), value);
    return;
  }
  switch (number) {
  case APIC_ID:
    lapic->id = value >> 24;
    break;
  case APIC_TPR:
    lapic->tpr = value & 0xFF;
    break;
  case APIC_EOI:
    lapic_eoi(board, lapic);
    break;
  case APIC_LDR:
    lapic->ldr = value & 0xFF000000;
    break;
  case APIC_DFR:
    lapic->dfr = value | 0x0FFFFFFF;
    break;
  case APIC_SVR:
    lapic_write_svr(board, lapic, value);
    break;
  case APIC_ESR: /* any write shows the errors since the last write (10.5.3) */
    lapic->esr = lapic->errors;
    lapic->errors = 0;
    break;
  case APIC_ICR:
    lapic->icr = value & ICR_BITS & ~ICR_PENDING;
    lapic_send(board, lapic, lapic->icr, lapic_is_x2(lapic) ? lapic->icr_high : lapic->icr_high >> 24);
    break;
  case APIC_ICR_HIGH:
    lapic->icr_high = value & 0xFF000000;
    break;
  case APIC_INITIAL_COUNT:
    lapic_timer_set_initial(board, lapic, value);
    break;
  case APIC_DIVIDE:
    lapic_timer_set_divide(board, lapic, value & 0x0B);
    break;
  case APIC_SELF_IPI:
    lapic_accept(board, lapic, MODE_FIXED, (uint8_t)value, false);
    break;
  default:
    break; /* read-only */
  }
}

/* ---- xAPIC: the page ---- */

bool lapic_owns(const struct board *board, const struct lapic *lapic, uint64_t address)
{
  return board->config.has_apic && (lapic->base & BASE_MODE) == APIC_BASE_ENABLED && address >> 12 == lapic->base >> 12;
}

static bool is_xapic_register(unsigned number)
{
  if (is_vector_bits(number) || lvt_of_register(number) >= 0)
    return true;
  return number == APIC_ID || number == APIC_VERSION || (number >= APIC_TPR && number <= APIC_SVR) ||
         number == APIC_ESR || number == APIC_ICR || number == APIC_ICR_HIGH || number == APIC_INITIAL_COUNT ||
         number == APIC_CURRENT_COUNT || number == APIC_DIVIDE;
}

/* A register takes the first four of 16 bytes, and parts of it may be read. The other twelve bytes read as 0. */
uint32_t lapic_read_memory(struct board *board, struct lapic *lapic, uint64_t address, unsigned size)
{
  unsigned number = (unsigned)(address >> 4 & 0xFF), offset = (unsigned)(address & 15);

  if (!is_xapic_register(number)) {
    lapic_error(board, lapic, ESR_REGISTER);
    return 0;
  }
  if (offset + size > 4 && !(offset == 0 && size == 8))
    return 0;
  if (number == APIC_CURRENT_COUNT)
    lapic_timer_advance(board, board_now(board));
  return lapic_read_register(board, lapic, number) >> 8 * offset;
}

/* Only whole registers can be written: 10.4.1 leaves everything else undefined. */
void lapic_write_memory(struct board *board, struct lapic *lapic, uint64_t address, unsigned size, uint64_t value)
{
  unsigned number = (unsigned)(address >> 4 & 0xFF);

  if (!is_xapic_register(number))
    lapic_error(board, lapic, ESR_REGISTER);
  else if (size == 4 && (address & 15) == 0)
    lapic_write_register(board, lapic, number, (uint32_t)value);
}

/* ---- x2APIC: the MSRs ---- */

static bool is_x2apic_readable(unsigned number)
{
  return is_xapic_register(number) && number != APIC_APR && number != APIC_EOI && number != APIC_RRD &&
         number != APIC_DFR && number != APIC_ICR_HIGH;
}

/* The bits that a write may set; UINT64_MAX: the register cannot be written at all. */
static uint64_t x2apic_writable(const struct board *board, unsigned number)
{
  int entry = lvt_of_register(number);

  if (entry == LVT_TIMER && !board->config.has_tsc_deadline)
    return 0x000300FF | LVT_READ_ONLY;
  if (entry >= 0)
    return lvt_bits[entry] | LVT_READ_ONLY;
  switch (number) {
  case APIC_EOI:
  case APIC_ESR:
    return 0;
  case APIC_TPR:
  case APIC_SELF_IPI:
    return 0xFF;
  case APIC_SVR:
    return 0x3FF;
  case APIC_ICR:
    return UINT64_C(0xFFFFFFFF00000000) | ICR_BITS | ICR_PENDING;
  case APIC_INITIAL_COUNT:
    return UINT32_MAX;
  case APIC_DIVIDE:
    return 0x0B;
  default:
    return UINT64_MAX;
  }
}

static int x2apic_read(struct board *board, struct lapic *lapic, unsigned number, uint64_t *ret_value)
{
  if (!lapic_is_x2(lapic) || !is_x2apic_readable(number))
    return -1;
  lapic_timer_advance(board, board_now(board));
  *ret_value = lapic_read_register(board, lapic, number);
  if (number == APIC_ICR)
    *ret_value |= (uint64_t)lapic->icr_high << 32;
  return 0;
}

static int x2apic_write(struct board *board, struct lapic *lapic, unsigned number, uint64_t value)
{
  uint64_t bits = x2apic_writable(board, number);

  if (!lapic_is_x2(lapic) || bits == UINT64_MAX || (value & ~bits))
    return -1;
  if (number == APIC_ICR)
    lapic->icr_high = (uint32_t)(value >> 32);
  lapic_write_register(board, lapic, number, (uint32_t)value);
  return 0;
}

/* ---- IA32_APIC_BASE ---- */

/* The transitions of SDM vol. 3, 10.12.5: into x2APIC mode from xAPIC mode only, and out of it only by disabling. */
static bool base_is_legal(const struct board *board, const struct lapic *lapic, uint64_t value)
{
  uint64_t from = lapic->base & BASE_MODE, to = value & BASE_MODE;
  unsigned bits = board->config.physical_bits ? board->config.physical_bits : 52;
  uint64_t known = APIC_BASE_BSP | BASE_MODE | ((UINT64_C(1) << (bits > 52 ? 52 : bits)) - 0x1000);

  if (!board->config.has_x2apic)
    known &= ~APIC_BASE_X2APIC;
  if ((value & ~known) || to == APIC_BASE_X2APIC)
    return false;
  if (to == BASE_MODE)
    return from != 0;
  return !(from == BASE_MODE && to == APIC_BASE_ENABLED);
}

static int lapic_write_base(struct board *board, struct lapic *lapic, uint64_t value)
{
  bool was_x2 = lapic_is_x2(lapic);

  if (!base_is_legal(board, lapic, value))
    return -1;
  lapic->base = value;
  if (!(value & APIC_BASE_ENABLED)) /* the programmed state is lost (10.4.3) */
    lapic_reset(board, lapic, false);
  else if (lapic_is_x2(lapic) && !was_x2)
    lapic->icr_high = 0;
  if (!(value & APIC_BASE_ENABLED) || lapic_is_x2(lapic))
    lapic->id =
      lapic_number(board, lapic); /* an ID that software wrote is lost; that of x2APIC cannot be written (10.12.5.1) */
  return 0;
}

int board_apic_read(struct board *board, uint32_t msr, uint64_t *ret_value)
{
  struct lapic *lapic = board->asking;
  int r = -1;

  if (!board->config.has_apic)
    return -1;
  if (msr == MSR_APIC_BASE) {
    *ret_value = lapic->base;
    return 0;
  }
  if (msr == MSR_TSC_DEADLINE && board->config.has_tsc_deadline) {
    lapic_timer_advance(board, board_now(board));
    *ret_value = lapic->timer.tsc_deadline;
    r = 0;
  } else if (msr >= MSR_X2APIC && msr < MSR_X2APIC + 0x40)
    r = x2apic_read(board, lapic, msr - MSR_X2APIC, ret_value);
  if (board->is_touched)
    board_settle(board);
  return r;
}

int board_apic_write(struct board *board, uint32_t msr, uint64_t value)
{
  struct lapic *lapic = board->asking;
  int r = -1;

  if (!board->config.has_apic)
    return -1;
  board_catch_up(board);
  if (msr == MSR_APIC_BASE)
    r = lapic_write_base(board, lapic, value);
  else if (msr == MSR_TSC_DEADLINE && board->config.has_tsc_deadline) {
    lapic_timer_set_deadline(board, lapic, value);
    r = 0;
  } else if (msr >= MSR_X2APIC && msr < MSR_X2APIC + 0x40)
    r = x2apic_write(board, lapic, msr - MSR_X2APIC, value);
  board_settle(board);
  return r;
}

uint8_t board_task_priority(const struct board *board)
{
  return (uint8_t)(board->asking->tpr >> 4);
}

void board_set_task_priority(struct board *board, uint8_t value)
{
  board->asking->tpr = (value & 15u) << 4; /* the subclass becomes 0 (10.8.6) */
  board_settle_intr(board);
}

/* 10.4.7.1: everything masked, TPR 0, disabled by software. */
void lapic_reset(struct board *board, struct lapic *lapic, bool is_power_on)
{
  unsigned number = lapic_number(board, lapic);
  uint64_t base = is_power_on ? BASE_DEFAULT | (number ? 0 : APIC_BASE_BSP) | APIC_BASE_ENABLED : lapic->base;

  *lapic = (struct lapic){
    .base = board->config.has_apic ? base : 0,
    .id = is_power_on ? number : lapic->id,
    .dfr = UINT32_MAX,
    .svr = 0xFF,
    .lint = {lapic->lint[0], lapic->lint[1]},
  };
  for (unsigned i = 0; i < LVT_ENTRIES; i++)
    lapic->lvt[i] = LVT_MASKED;
  lapic_timer_reset(board, lapic);
}

static void lapic_power_reset(struct board *board)
{
  for (unsigned i = 0; i < board->config.cpus; i++)
    lapic_reset(board, &board->lapics[i], true);
}

/* ---- saving ---- */

static void one_archive(struct archive *archive, struct lapic *lapic)
{
  uint32_t *const registers[] = {&lapic->id,  &lapic->tpr,    &lapic->ldr, &lapic->dfr,     &lapic->svr,
                                 &lapic->esr, &lapic->errors, &lapic->icr, &lapic->icr_high};

  archive_value(archive, &lapic->base);
  for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++)
    archive_value(archive, registers[i]);
  archive_array(archive, lapic->lvt);
  archive_array(archive, lapic->irr);
  archive_array(archive, lapic->isr);
  archive_array(archive, lapic->tmr);
  archive_flag(archive, &lapic->lint[0]);
  archive_flag(archive, &lapic->lint[1]);
  archive_value(archive, &lapic->timer.initial);
  archive_value(archive, &lapic->timer.divide);
  archive_value(archive, &lapic->timer.count);
  archive_value(archive, &lapic->timer.since);
  archive_flag(archive, &lapic->timer.is_counting);
  archive_value(archive, &lapic->timer.tsc_deadline);
  archive_value(archive, &lapic->timer.tsc_due);
}

static void lapic_archive(struct archive *archive, struct board *board)
{
  for (unsigned i = 0; i < board->config.cpus; i++)
    one_archive(archive, &board->lapics[i]);
}

/* Its memory is not listed here: a processor accesses its own local APIC before the bus (board.c). */
const struct device device_lapic = {
  .reset = lapic_power_reset,
  .advance = lapic_timer_advance,
  .deadline = lapic_timer_deadline,
  .archive = lapic_archive,
};
