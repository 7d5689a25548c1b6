/* SPDX-License-Identifier: Apache-2.0
 *
 * A PC: combines processor, board, memory, firmware services and boot loaders. The command line, the labs and the tests
 * run guests through it.
 */
#ifndef MACHINE_MACHINE_H
#define MACHINE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu/cpu.h"
#include "lastbranch/cpudb.h"

struct machine;

#define MACHINE_CPUS 8u

/* Callbacks for the machine's output. Any may be NULL. */
struct machine_host {
  void *data;
  void (*serial)(void *data, uint8_t byte);
  void (*debug)(void *data, uint8_t byte);                   /* port 0xE9 */
  void (*bus)(void *data, const struct lb_message *message); /* branch trace messages */
};

struct machine_image {
  const uint8_t *bytes; /* copied */
  size_t size;
};

/* The configuration of a machine. */
struct machine_config {
  const struct lb_cpu *model;
  unsigned cpus;             /* processors, 1 to MACHINE_CPUS; 0: 1 */
  uint64_t ram;              /* bytes; 0: 128 MiB */
  uint32_t recorder_options; /* 1 << enum lb_option */
  enum predictor_kind predictor;
  struct machine_image floppy, disk;
  bool has_test_device; /* memory, ports and interrupt lines for kernels that test a processor: board/testdevice.c */
  int64_t wall_clock; /* seconds since 1970 that the clock shows at power-on; 0: always the same date, so that runs are
                         repeatable */
};

/* Makes a machine, powered on, with firmware in place. An image that is smaller than a disk of its kind is filled up
 * with zeros: a single boot sector is enough. Returns 0, -ENOMEM, LB_E_NO_UNIT, LB_E_BAD_RAM (fewer than 2 MiB or more
 * than 64 GiB), -EINVAL for more than MACHINE_CPUS processors, LB_E_TOO_BIG for a floppy of more than 2.88 MB or a disk
 * of more than 8 GiB, LB_E_BAD_IMAGE for an image of no bytes. */
int machine_new(const struct machine_config *config, const struct machine_host *host, struct machine **ret_machine);
void machine_free(struct machine *machine);

/* ---- what it starts with: the last call decides; without one it boots from floppy, then disk ---- */

/* Is it a Linux kernel (bzImage or zImage), by its setup header? */
bool machine_is_linux(const struct machine_image *image);
/* Loads a multiboot 1 kernel (ELF or with address fields) with command line and modules, or a Linux bzImage, whose
 * modules form one initrd. The command line is passed unchanged: by custom its first word is the kernel's name, except
 * for Linux, which has no such word. NULL stands for no command line. A multiboot kernel and its modules may be
 * compressed with gzip; Linux unpacks its initrd itself. Returns 0; LB_E_BAD_IMAGE when it cannot be started,
 * LB_E_TOO_BIG without room for it, both with a sentence in ret_why (may be NULL) that stays until the next call or
 * machine_free; or -ENOMEM. */
int machine_load_kernel(struct machine *machine, const struct machine_image *kernel, const char *command_line,
                        const struct machine_image *modules, const char *const *module_names, size_t count,
                        const char **ret_why);
/* Loads raw bytes at a physical address and starts them there in real mode (CS:IP = address >> 4 : address & 15) below
 * 1 MiB, else in flat 32-bit protected mode. Returns 0, -ENOMEM, LB_E_BAD_IMAGE for no bytes, or LB_E_TOO_BIG if they
 * do not lie in the guest's RAM. */
int machine_load_flat(struct machine *machine, const struct machine_image *image, uint64_t address);

/* ---- from a file ---- */

typedef int machine_writer(void *data, const void *bytes, size_t size); /* >= 0, or negative: it is not called again */

/* Writes the whole machine as bytes (doc/machine-format.md). Must be called between two runs. A machine that is
 * restored from them continues as this one would. Returns 0, -ENOMEM, or the error of the writer. */
int machine_save(struct machine *machine, machine_writer *write, void *data);
/* Makes a machine from such bytes, which may be forged. Returns 0; LB_E_NOT_MACHINE; LB_E_MACHINE_VERSION;
 * LB_E_TRUNCATED; LB_E_DAMAGED; LB_E_NO_CPU, LB_E_NO_UNIT when its CPU is not in the catalogue; LB_E_OTHER_HOST;
 * -ENOMEM. */
int machine_restore(const void *bytes, size_t size, const struct machine_host *host, struct machine **ret_machine);

/* ---- running ---- */

enum machine_stop {
  MACHINE_STOP_INSTRUCTIONS, /* as many as were asked for */
  MACHINE_STOP_IDLE,         /* the guest can make no more progress */
  MACHINE_STOP_HALTED,       /* HLT, if asked to stop there */
  MACHINE_STOP_EXIT,         /* port 0xF4; machine_exit_value */
  MACHINE_STOP_OFF,          /* ACPI's S5 */
  MACHINE_STOP_ASLEEP,       /* ACPI's S3, and nothing inside the machine will ever wake it; a key may */
  MACHINE_STOP_SHUTDOWN,     /* triple fault */
  MACHINE_STOP_UNIMPLEMENTED,
  MACHINE_STOP_REQUESTED, /* machine_stop was called, or the deadline has passed */
  MACHINE_STOP_TIME,      /* as much time of the guest as was asked for */
  MACHINE_STOP_POINT,     /* a debugger's point was hit, or a step is done: machine_cpu()->hit */
};

struct machine_limit {
  uint64_t instructions; /* at most about so many in this call; 0: no limit */
  bool until_idle;
  bool until_halt;
  uint64_t nanoseconds; /* at most about so much of the guest's time in this call; 0: no limit */
  uint64_t deadline;    /* of the host's CLOCK_MONOTONIC in nanoseconds: the run ends soon after it; 0: none */
  bool is_step;         /* one instruction, as cpu_step; after HLT, it waits */
};

/* Runs the machine. May be called again after INSTRUCTIONS, TIME, IDLE, ASLEEP, HALTED, REQUESTED and POINT. Time in
 * which the guest only waits is skipped: a host that wants the guest's clock to run at the speed of its own asks for
 * slices of `nanoseconds` and sleeps between them. Without `until_idle`, IDLE is returned only when nothing inside the
 * machine will ever wake the guest; a key may. */
enum machine_stop machine_run(struct machine *machine, const struct machine_limit *limit);
/* machine_start brings the machine to its first instruction, without running it; machine_reset does so again, with a
 * reset. */
void machine_start(struct machine *machine);
void machine_reset(struct machine *machine);
/* Makes the run end soon. May be called from a callback, a signal handler or another thread. */
void machine_stop(struct machine *machine);
uint64_t machine_time(const struct machine *machine); /* of the guest, in nanoseconds since power-on */
/* Returns whether the firmware, or the code that it has booted, found nothing to boot: INT 18h. */
bool machine_has_no_boot(const struct machine *machine);
/* Returns whether the machine is in ACPI's S3: time passes, but nothing else happens until an event of the board or a
 * key wakes it. machine_wake wakes it at once, and does nothing if it is awake. */
bool machine_is_asleep(const struct machine *machine);
void machine_wake(struct machine *machine);
uint32_t machine_exit_value(const struct machine *machine);
const char *machine_stop_reason(const struct machine *machine); /* of SHUTDOWN and UNIMPLEMENTED; "" else */

/* ---- looking and touching ---- */

/* The processor that machine_show chose, at first the bootstrap processor; and how many there are. */
struct cpu *machine_cpu(struct machine *machine);
void machine_show(struct machine *machine, unsigned number); /* an invalid number means 0 */
unsigned machine_cpu_count(const struct machine *machine);
uint64_t machine_retired(const struct machine *machine); /* instructions of all */
struct memory *machine_memory(struct machine *machine);
const struct machine_config *machine_config(const struct machine *machine); /* `ram` is 0 for the default; no images */
struct machine_image machine_kernel(const struct machine *machine); /* the one it was started with; or no bytes */

/* A key by its set-1 scan code bytes; characters of US keyboards by machine_type. False: the buffer is full. */
bool machine_key(struct machine *machine, uint8_t code);
bool machine_type(struct machine *machine, char character);
/* Delivers a byte to COM1. Returns false if COM1 has no room now. A guest that does not wait for a byte may lose it. */
bool machine_serial_receive(struct machine *machine, uint8_t byte);
bool machine_serial_is_awaited(const struct machine *machine);

/* The text screen: rows of cells, character and attribute. */
struct machine_screen {
  const uint8_t *cells; /* two bytes each, in guest memory */
  unsigned columns, rows;
  unsigned cursor_row, cursor_column;
  bool has_cursor;
};

struct machine_screen machine_screen(struct machine *machine);
/* The whole text memory from the first row down to the last one written, at most 204 rows (32 KiB). */
struct machine_screen machine_screen_all(struct machine *machine);

struct text;

/* A row of the screen as UTF-8, without blanks at its end. Returns 0 or -ENOMEM. */
int machine_screen_row_text(const struct machine_screen *screen, unsigned row, struct text *text);
/* A letter of the screen as UTF-8; returns its bytes. */
size_t machine_screen_letter(uint8_t letter, char bytes[4]);
/* Rows up to the last that is not blank. */
unsigned machine_screen_rows_used(const struct machine_screen *screen);

/* The facts about this guest that lb_ds_check needs. */
struct lb_ds_facts machine_ds_facts(struct machine *machine);

#endif
