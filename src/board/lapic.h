/* SPDX-License-Identifier: Apache-2.0
 *
 * The local APIC, of which every processor has one. lapic.c holds its registers as the processor sees them,
 * lapic_interrupt.c its handling of interrupts, lapic_timer.c its timer. SDM vol. 3 chapter 10.
 */
#ifndef BOARD_LAPIC_H
#define BOARD_LAPIC_H

#include <stdbool.h>
#include <stdint.h>

struct board;

/* Registers by their number: offset in the page / 16, or MSR - 0x800. */
enum {
  APIC_ID = 0x02,
  APIC_VERSION = 0x03,
  APIC_TPR = 0x08,
  APIC_APR = 0x09,
  APIC_PPR = 0x0A,
  APIC_EOI = 0x0B,
  APIC_RRD = 0x0C,
  APIC_LDR = 0x0D,
  APIC_DFR = 0x0E,
  APIC_SVR = 0x0F,
  APIC_ISR = 0x10,
  APIC_TMR = 0x18,
  APIC_IRR = 0x20,
  APIC_ESR = 0x28,
  APIC_LVT_CMCI = 0x2F,
  APIC_ICR = 0x30,
  APIC_ICR_HIGH = 0x31,
  APIC_LVT_TIMER = 0x32,
  APIC_LVT_THERMAL = 0x33,
  APIC_LVT_PERF = 0x34,
  APIC_LVT_LINT0 = 0x35,
  APIC_LVT_LINT1 = 0x36,
  APIC_LVT_ERROR = 0x37,
  APIC_INITIAL_COUNT = 0x38,
  APIC_CURRENT_COUNT = 0x39,
  APIC_DIVIDE = 0x3E,
  APIC_SELF_IPI = 0x3F,
};

/* Entries of the local vector table, in the order of `lvt` below. */
enum lvt { LVT_TIMER, LVT_THERMAL, LVT_PERF, LVT_LINT0, LVT_LINT1, LVT_ERROR, LVT_CMCI, LVT_ENTRIES };

#define LVT_MASKED (UINT32_C(1) << 16)
#define LVT_LEVEL (UINT32_C(1) << 15)
#define LVT_REMOTE_IRR (UINT32_C(1) << 14)
#define LVT_TIMER_MODE(entry) ((entry) >> 17 & 3)

/* Delivery modes of LVT entries, ICR and redirection entries. */
enum apic_mode { MODE_FIXED, MODE_LOWEST, MODE_SMI, MODE_RESERVED, MODE_NMI, MODE_INIT, MODE_STARTUP, MODE_EXTINT };
#define APIC_MODE(entry) ((enum apic_mode)((entry) >> 8 & 7))

#define SVR_ENABLED 0x100u
#define ESR_SEND_VECTOR 0x20u
#define ESR_RECEIVE_VECTOR 0x40u
#define ESR_REGISTER 0x80u

#define APIC_BASE_BSP (UINT64_C(1) << 8)
#define APIC_BASE_X2APIC (UINT64_C(1) << 10)
#define APIC_BASE_ENABLED (UINT64_C(1) << 11)

struct lapic_timer {
  uint32_t initial, divide; /* the registers */
  uint32_t count;           /* current count at `since` */
  uint64_t since;           /* bus ticks */
  bool is_counting;
  uint64_t tsc_deadline; /* IA32_TSC_DEADLINE, 0 when not armed */
  uint64_t tsc_due;      /* the same as time */
};

struct lapic {
  uint64_t base; /* IA32_APIC_BASE */
  uint32_t id, tpr, ldr, dfr, svr, esr, errors, icr, icr_high;
  uint32_t lvt[LVT_ENTRIES];
  uint32_t irr[8], isr[8], tmr[8];
  bool lint[2]; /* levels of the pins */
  struct lapic_timer timer;
};

/* ---- lapic.c ---- */

/* Without `is_power_on`, this is INIT, which keeps IA32_APIC_BASE and the ID. */
void lapic_reset(struct board *board, struct lapic *lapic, bool is_power_on);
bool lapic_is_on(const struct board *board, const struct lapic *lapic);      /* globally enabled */
bool lapic_is_enabled(const struct board *board, const struct lapic *lapic); /* by software, too */
bool lapic_owns(const struct board *board, const struct lapic *lapic, uint64_t address);
uint32_t lapic_read_memory(struct board *board, struct lapic *lapic, uint64_t address, unsigned size);
void lapic_write_memory(struct board *board, struct lapic *lapic, uint64_t address, unsigned size, uint64_t value);

/* ---- lapic_interrupt.c ---- */

/* Passes an interrupt from outside to the APIC. Returns true if the APIC took it. */
bool lapic_accept(struct board *board, struct lapic *lapic, enum apic_mode mode, uint8_t vector, bool is_level);
/* The first: is this processor a destination of the message? The second: all processors that are, one bit each. */
bool lapic_is_destination(const struct lapic *lapic, uint32_t destination, bool is_logical);
uint32_t lapic_destinations(const struct board *board, uint32_t destination, bool is_logical);
/* Delivers an interrupt to these processors; with MODE_LOWEST to one of them. Returns true when one accepted it. */
bool lapic_deliver(struct board *board, uint32_t set, enum apic_mode mode, uint8_t vector, bool is_level);
void lapic_raise_lvt(struct board *board, struct lapic *lapic, enum lvt entry);
void lapic_set_pin(struct board *board, struct lapic *lapic, unsigned pin, bool is_high);
/* INT of the 8259A is connected to LINT0 of all processors. */
void lapic_set_pic(struct board *board);
void lapic_error(struct board *board, struct lapic *lapic, uint32_t bit);
void lapic_eoi(struct board *board, struct lapic *lapic);
void lapic_send(struct board *board, struct lapic *lapic, uint32_t icr, uint32_t destination);
uint8_t lapic_processor_priority(const struct lapic *lapic);
/* The vector that is to be delivered now; -1 for none. */
int lapic_request(const struct board *board, const struct lapic *lapic);
uint8_t lapic_take(struct lapic *lapic, uint8_t vector);
/* Does INT of the 8259A reach INTR? */
bool lapic_passes_extint(const struct board *board, const struct lapic *lapic);
/* Does INT of the 8259A reach INTR, or may it cause another interrupt through LINT0? */
bool lapic_hears_pic(const struct board *board, const struct lapic *lapic);

/* ---- lapic_timer.c ---- */

void lapic_timer_reset(struct board *board, struct lapic *lapic);
void lapic_timer_advance(struct board *board, uint64_t now);
uint64_t lapic_timer_deadline(const struct board *board);
uint32_t lapic_timer_count(const struct board *board, const struct lapic *lapic);
void lapic_timer_set_initial(struct board *board, struct lapic *lapic, uint32_t value);
void lapic_timer_set_divide(struct board *board, struct lapic *lapic, uint32_t value);
/* The LVT entry is about to change its mode. */
void lapic_timer_change_mode(struct lapic *lapic, uint32_t entry);
void lapic_timer_set_deadline(struct board *board, struct lapic *lapic, uint64_t value);

#endif
