/* SPDX-License-Identifier: Apache-2.0
 *
 * The board of a PC: everything outside the processor except RAM. Two 8259A, 8254, RTC/CMOS, 8042 with keyboard, COM1,
 * VGA text registers, local APICs, I/O APIC, HPET, PCI configuration space, an IDE disk, power and debug ports.
 *
 * The board knows no processor: the host calls it for ports, device memory and APIC registers and tells it the time,
 * and it drives lines through struct board_host. It does nothing on its own: board_deadline says when board_advance
 * must be called next. Time is in nanoseconds since power-on.
 */
#ifndef BOARD_BOARD_H
#define BOARD_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct board;

#define BOARD_CPUS 8u

/* The lines and outputs that the board drives. Callbacks must not be NULL. */
struct board_host {
  void *data; /* handed to every callback */
  uint64_t (*now)(void *data);
  void (*intr)(void *data, unsigned cpu, bool is_high); /* INTR of a processor: called when it changes */
  void (*nmi)(void *data, unsigned cpu);
  void (*smi)(void *data, unsigned cpu);
  void (*init)(void *data, unsigned cpu);                    /* INIT */
  void (*startup)(void *data, unsigned cpu, uint8_t vector); /* SIPI */
  void (*a20)(void *data, bool is_open);
  void (*reset)(void *data);                       /* port 0xCF9, 8042, port 0x92 */
  void (*replan)(void *data);                      /* board_deadline has changed */
  void (*serial)(void *data, uint8_t byte);        /* COM1 sends */
  void (*debug)(void *data, uint8_t byte);         /* port 0xE9 */
  void (*post)(void *data, uint8_t code);          /* port 0x80 */
  void (*exit)(void *data, uint32_t value);        /* port 0xF4 */
  void (*power_off)(void *data);                   /* ACPI's S5 */
  void (*sleep)(void *data);                       /* ACPI's S3: board_is_asleep from now on */
  void (*pmi_delivered)(void *data, unsigned cpu); /* the LVT entry took, or dropped, a performance interrupt */
};

/* A disk image, in memory. Writes change the memory only. */
struct board_disk {
  uint8_t *bytes;
  uint64_t size;
  uint32_t cylinders, heads, sectors; /* of its geometry */
};

struct board_config {
  unsigned cpus;         /* processors: 1 to BOARD_CPUS, anything else is 1 */
  uint64_t ram;          /* bytes, for CMOS */
  int64_t wall_clock;    /* seconds since 1970 that the RTC shows at power-on */
  struct board_disk hda; /* bytes NULL: none */
  bool has_floppy;       /* for CMOS */
  bool has_x2apic;       /* the CPU has x2APIC mode */
  bool has_apic;         /* the CPU has a local APIC */
  bool has_tsc_deadline;
  bool keeps_lvt_perf;     /* AMD: the LVT performance entry does not mask itself */
  bool has_test_device;    /* testdevice.c */
  uint64_t tsc_per_second; /* TSC ticks in 1e9 ns */
  uint8_t apic_version;    /* of register 0x30: 0x14 */
  uint8_t physical_bits;   /* MAXPHYADDR, for IA32_APIC_BASE; 0: 52 */
};

/* Returns 0 or -ENOMEM. */
int board_new(const struct board_config *config, const struct board_host *host, struct board **ret_board);
void board_free(struct board *board);
void board_reset(struct board *board);

/* The state of all devices as bytes: writes at most `size` of them and returns how many there are. board_load takes
 * such bytes, which may be forged, into a board that was made with the same configuration; host.a20 is called, nothing
 * else. Returns 0, LB_E_TRUNCATED or LB_E_DAMAGED: the board may then only be freed. */
size_t board_save(struct board *board, void *bytes, size_t size);
int board_load(struct board *board, const void *bytes, size_t size);
bool board_intr(const struct board *board, unsigned cpu); /* INTR as last reported to the host */

/* Selects the processor that makes the following calls: they use its local APIC. At first it is 0, the bootstrap
 * processor. */
void board_select(struct board *board, unsigned cpu);

/* Ports of 1, 2 or 4 bytes. A port without a device reads as all ones. */
uint32_t board_in(struct board *board, uint16_t port, unsigned size);
void board_out(struct board *board, uint16_t port, unsigned size, uint32_t value);

/* Device memory. board_owns tells whether a physical page is a device's (the local APIC moves). */
bool board_owns(const struct board *board, uint64_t address);
uint64_t board_read(struct board *board, uint64_t address, unsigned size);
void board_write(struct board *board, uint64_t address, unsigned size, uint64_t value);

/* ---- local APIC ---- */

/* IA32_APIC_BASE, IA32_TSC_DEADLINE (in TSC ticks since power-on, wherever the guest has moved its TSC to), x2APIC
 * registers as MSRs. 0, or -1 for #GP(0). */
int board_apic_read(struct board *board, uint32_t msr, uint64_t *ret_value);
int board_apic_write(struct board *board, uint32_t msr, uint64_t value);
/* CR8: TPR 7:4. */
uint8_t board_task_priority(const struct board *board);
void board_set_task_priority(struct board *board, uint8_t value);
/* Requests the recording unit's interrupt through the LVT entry at 0x340. The entry selects fixed, NMI or SMI delivery
 * and then masks itself (SDM vol. 3, 10.5.1 and 18), unless keeps_lvt_perf is set. A masked entry or a disabled APIC
 * drops the interrupt. host.pmi_delivered is called either way. */
void board_pmi(struct board *board);
/* The current LVT performance entry, and whether the APIC is enabled (for lb_ds_check). */
uint32_t board_lvt_perf(const struct board *board);
bool board_apic_is_enabled(const struct board *board);

/* Acknowledges INTR. Returns the vector: that of the local APIC first, else (ExtINT) that of the 8259A. */
uint8_t board_acknowledge(struct board *board);

/* ---- time ---- */

/* The time at which board_advance must be called next; UINT64_MAX: never. Events that cannot change a line are
 * ignored. */
uint64_t board_deadline(const struct board *board);
void board_advance(struct board *board, uint64_t now);
/* True when time alone could interrupt the processor: a timer runs whose interrupt is not masked on its way. */
bool board_can_wake(const struct board *board);

/* ---- sleep: ACPI's S3 ---- */

/* While the board is asleep the host runs no processor, and board_deadline is the time of the next event that ends the
 * sleep. After that event board_is_waking returns true. The host then resets the processors, calls board_wake, which
 * resets all devices and reports the event in PM1, and lets the firmware continue at the waking vector. */
bool board_is_asleep(const struct board *board);
bool board_is_waking(const struct board *board);
void board_wake(struct board *board);
/* A key or the host ends the sleep. PM1 then shows the power button, as with QEMU. Does nothing if the board is awake.
 */
void board_request_wake(struct board *board);

/* ---- the outside world ---- */

/* Passes a byte of the set-1 scan code of a key that goes down or up. Returns false if the buffer is full: the byte is
 * dropped. */
bool board_key(struct board *board, uint8_t code);
/* Delivers a byte to COM1. Returns false if COM1 does not take it now. A byte does not end S3. */
bool board_serial_receive(struct board *board, uint8_t byte);
/* Would the guest see a byte: has it enabled COM1's interrupt for received data, or does it poll the status? A byte
 * that arrives earlier is lost if a driver clears the FIFO. */
bool board_serial_is_awaited(const struct board *board);

/* The text screen according to the VGA's registers. */
struct board_screen {
  uint32_t start;  /* first character cell shown, from 0xB8000 */
  uint32_t cursor; /* cell of the cursor */
  bool has_cursor;
  unsigned columns, rows;
};

struct board_screen board_screen(const struct board *board);
void board_set_cursor(struct board *board, uint32_t cell);
void board_set_cursor_shape(struct board *board, uint8_t start, uint8_t end);

/* The NMI button: to LINT1, unless bit 7 of port 0x70 masks it. */
void board_nmi(struct board *board);

/* FERR# of the processor: IRQ 13. */
void board_ferr(struct board *board);

/* ACPI (RSDP, RSDT/XSDT, MADT, FADT with a minimal DSDT, HPET) and MP tables, to be put into memory by the firmware.
 * Writes tables for physical address `address`, at most `size` bytes. Returns the number of bytes; 0 if `size` is too
 * small. `ret_rsdp` gets the offset of the RSDP, which the firmware also finds by its signature. */
size_t board_tables(const struct board *board, uint64_t address, uint8_t *bytes, size_t size, size_t *ret_rsdp);

#endif
