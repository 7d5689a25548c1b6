/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the machine: its parts, what it starts with, and the functions that its files share. Those of the
 * firmware are in firmware.h.
 */
#ifndef MACHINE_STATE_H
#define MACHINE_STATE_H

#include <stdatomic.h>

#include "base/base.h"
#include "board/board.h"
#include "machine/machine.h"

#define FIRMWARE_START UINT64_C(0xF0000) /* its ROM, up to 1 MiB */
#define FIRMWARE_SEGMENT 0xF000u
#define EBDA_START UINT64_C(0x9FC00) /* the last KiB of conventional memory */
#define EXTENDED_START UINT64_C(0x100000)
#define VIDEO_START UINT64_C(0xB8000)
#define VIDEO_SIZE 0x8000u
#define SECTOR_SIZE 512u

/* A floppy or a disk: its bytes, a multiple of 512, and the geometry that INT 13h shows. */
struct drive {
  uint8_t *bytes; /* NULL: not there */
  uint64_t size;
  uint32_t cylinders, heads, sectors;
  uint8_t type; /* of a floppy, as CMOS and INT 13h number them: 1 360K, 2 1.2M, 3 720K, 4 1.44M, 6 2.88M */
};

/* The start that the caller has chosen, kept for the next reset. */
enum start_kind { START_DRIVES, START_KERNEL, START_FLAT };

struct start {
  enum start_kind kind;
  struct machine_image image;    /* kernel or flat bytes, a copy */
  uint64_t address;              /* of flat bytes */
  char *command_line;            /* NULL: none */
  struct machine_image *modules; /* copies */
  char **names;
  size_t count;
};

/* Keys on their way to the keyboard controller, one code a millisecond. */
#define KEYS_MAX 1024
struct keys {
  uint8_t codes[KEYS_MAX];
  unsigned first, count;
  uint64_t next; /* earliest time of the next code */
};

/* The state of idle.c: see there. */
struct idle {
  unsigned quiet;   /* times in a row that the guest came back to a loop that does nothing */
  bool is_foreign;  /* code other than the firmware was called since the last time */
  unsigned barren;  /* times in a row that time passed and no instruction was executed */
  uint64_t retired; /* instructions at the last time */
};

/* INT 10h AH=13h between two parts of a long string: firmware_video.c. */
struct string_progress {
  uint64_t stack; /* linear address of the frame that INT pushed: identifies the string */
  uint32_t done;  /* characters; 0: no string is under way */
  uint8_t row, column;
};

/* The machine's end of a processor's bus. */
struct wire {
  struct machine *machine;
  unsigned number; /* of the processor */
};

/* The current turn: see turn.c. */
struct turn {
  unsigned number;  /* of the processor */
  unsigned waiting; /* consecutive processors before this one that did nothing but wait */
  uint64_t until;   /* its end */
  uint64_t retired; /* instructions of this processor when it began */
};

struct machine {
  struct memory memory;
  struct cpu *cpu; /* the one whose turn it is; the firmware serves it */
  struct cpu *cpus[MACHINE_CPUS];
  unsigned cpu_count;
  unsigned shown; /* number of the processor that machine_cpu returns */
  struct wire wires[MACHINE_CPUS];
  struct turn turn;
  struct board *board;
  struct machine_host host;
  struct machine_config config; /* its images are in the drives */
  struct drive floppy, disk;
  struct start start;
  struct text refusal; /* why machine_load_kernel last refused a module */
  bool is_started;     /* a kernel, flat bytes or a boot sector are in place */
  bool wants_reset, wants_boot;
  bool wants_cpu_reset; /* with wants_reset: the processor has not come to the reset vector by itself */
  atomic_bool is_stopping;
  bool has_exit;
  bool has_no_boot; /* INT 18h: nothing was found to boot */
  bool is_off;      /* the guest switched the machine off, and that was not yet reported */
  uint32_t exit_value;
  struct keys keys;
  struct idle idle;
  uint64_t tables;     /* where ACPI's tables begin: the end of the guest's low memory */
  uint64_t wait_until; /* INT 15h AH=86h */
  uint64_t skip_until; /* the last run ended while the guest waited for this time; 0: it did not */
  struct string_progress string;
  uint64_t service_cycles; /* cycles that the running service has taken so far */
  uint16_t key_wait;       /* offset in the ROM after the HLT that waits for a key */
};

/* ---- bus.c ---- */

struct cpu_bus bus_of_wire(struct wire *wire);
struct board_host board_host_of_machine(struct machine *machine);

/* ---- geometry.c ---- */

/* Copies an image into a drive and works out its geometry. Return 0, -ENOMEM, LB_E_BAD_IMAGE, LB_E_TOO_BIG. */
int drive_init_floppy(struct drive *drive, const struct machine_image *image);
int drive_init_disk(struct drive *drive, const struct machine_image *image);
void drive_done(struct drive *drive);
/* The geometry that the disk itself reports: at most 16383 cylinders of 16 heads. */
struct board_disk drive_as_board_disk(const struct drive *drive);

/* ---- machine.c ---- */

/* Makes memory, processors and board from `config` and the drives. Returns as machine_new. */
int machine_assemble(struct machine *machine);
/* Resets processors, board and firmware, by RESET# or power-on. The kernel or boot sector is not yet in place. */
void machine_power_on(struct machine *machine, bool is_warm);
/* Is all of [address, address + size) RAM that belongs to the guest at the start? */
bool machine_is_free(const struct machine *machine, uint64_t address, uint64_t size);

/* ---- turn.c ---- */

/* Runs the processor whose turn it is, for at most `instructions`, and ends the turn if it is over. Sets *ret_waits if
 * all processors wait: the result then tells how the bootstrap processor waits, and it has the turn. */
enum cpu_stop turn_run(struct machine *machine, uint64_t instructions, bool *ret_waits);
/* Instructions that are left of the turn. */
uint64_t turn_left(const struct machine *machine);
/* Restarts the turn after time has passed while all processors waited. */
void turn_renew(struct machine *machine);
/* Gives the turn to the bootstrap processor and sets all clocks to the same time, as at power-on. */
void turn_reset(struct machine *machine);
/* Sets all clocks to the same time, for callers that look at other processors. */
void turn_settle(struct machine *machine);
/* turn_is_interruptible: could an interrupt wake a processor? turn_is_disturbed: has a processor been sent one? */
bool turn_is_interruptible(const struct machine *machine);
bool turn_is_disturbed(const struct machine *machine);
/* Do all processors but the bootstrap processor sleep, so that no interrupt could wake them? */
bool turn_others_sleep(const struct machine *machine);

/* ---- boot.c ---- */

/* Real mode: general registers 0, interrupts on, a stack that grows down from SS:SP. */
void enter_real(struct machine *machine, uint16_t cs, uint16_t ip, uint16_t ss, uint16_t sp);

/* Loads the kernel, flat bytes or boot sector that the machine starts with. */
void start_apply(struct machine *machine);
void start_done(struct start *start);
/* INT 19h: the first drive with a boot sector, or the message of INT 18h. */
void boot_drives(struct machine *machine);
/* Handles a reset of the processor alone, by which programs for the 286 leave protected mode: CMOS register 0Fh marks
 * it, and execution continues at the pointer at 40:67. Returns false for a reset of the whole machine. */
bool boot_resume(struct machine *machine);

/* ---- sleep.c ---- */

/* Ends S3 after an event of the board: processors and devices are reset, and the guest continues at its waking vector,
 * or restarts if it has set none. */
void sleep_end(struct machine *machine);

/* ---- multiboot.c ---- */

/* Puts the kernel of machine->start into memory and the processor at its entry. Returns as machine_load_kernel. */
int multiboot_load(struct machine *machine, const struct start *start, const char **ret_why);

/* ---- linux.c ---- */

/* The same for a bzImage: machine_is_linux says what is one. */
int linux_load(struct machine *machine, const struct start *start, const char **ret_why);

/* ---- idle.c ---- */

/* idle_interrupt: the processor takes an interrupt with this vector. idle_disturb: another input arrives. */
void idle_interrupt(struct machine *machine, uint8_t vector);
void idle_disturb(struct machine *machine);
/* Is the processor at the HLT with which INT 16h waits for a key? */
bool idle_waits_for_key(const struct machine *machine);
/* Called when the guest waits and something could wake it. Returns true if it would only come back here for ever. */
bool idle_is_forever(struct machine *machine, enum cpu_stop stop);

/* ---- keyboard.c ---- */

/* When the next key is due; UINT64_MAX for none. */
uint64_t keyboard_deadline(const struct machine *machine);
void keyboard_advance(struct machine *machine, uint64_t now);

#endif
