/* SPDX-License-Identifier: Apache-2.0
 *
 * A device of the board as the board sees it: ports, memory, reset, time, and the fields to be saved. Each device's .c
 * ends in its descriptor, `const struct device device_NAME`, and has a row in device.def.
 */
#ifndef BOARD_DEVICE_H
#define BOARD_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct archive;
struct board;

/* ---- ports ---- */

#define PORT_COUNT 0x2018u /* there is no device beyond */

/* PORT_WIDE: the device takes words and double words at once. All others are accessed byte by byte, as on the ISA bus:
 * OUT of a word to 0x3D4 writes an index and its data. PORT_QUIET: writing changes no interrupt and no deadline. */
enum { PORT_WIDE = 1, PORT_QUIET = 2 };

typedef uint32_t port_in(struct board *board, uint16_t port, unsigned size);
typedef void port_out(struct board *board, uint16_t port, unsigned size, uint32_t value);

struct port_range {
  uint16_t first, last;
  unsigned flags;
  port_in *in;
  port_out *out;
};

/* ---- devices ---- */

/* Every member may be left out, unless its comment says otherwise. */
struct device {
  /* Private state, which device_state returns; zero at first. DEVICE_STATE sets both. A device whose state other files
   * read has a member in struct board instead. */
  const char *state_name; /* of the struct */
  size_t state_size;
  const struct port_range *ports; /* the last one has no `in` */

  void (*power_on)(struct board *board); /* once, before the first reset */
  void (*reset)(struct board *board);
  /* Brings the device to the time `now`. */
  void (*advance)(struct board *board, uint64_t now);
  /* The time at which the device will change a line that reaches a processor; goes together with `advance`. */
  uint64_t (*deadline)(const struct board *board);
  bool runs_asleep; /* advances in ACPI's S3, too */

  /* Device memory: all three, or none. */
  bool (*owns)(const struct board *board, uint64_t address);
  uint64_t (*read)(struct board *board, uint64_t address, unsigned size);
  void (*write)(struct board *board, uint64_t address, unsigned size, uint64_t value);

  /* Names every field of the state once, for writing, reading and checking. The bytes may be forged: every index, size
   * and divisor is checked. Values that the guest could write into a register itself are not checked. A time may have
   * any value: a device whose time has passed is late, and any other device waits. */
  void (*archive)(struct archive *archive, struct board *board);
};

#define DEVICE_STATE(type) .state_name = #type, .state_size = sizeof(struct type)

/* DEVICE_NUMBER_name of each row, in their order. */
enum device_number {
#define DEVICE(name) DEVICE_NUMBER_##name,
#include "board/device.def"
#undef DEVICE
  DEVICE_COUNT
};

#define DEVICE(name) extern const struct device device_##name;
#include "board/device.def"
#undef DEVICE

extern const struct device *const devices[DEVICE_COUNT];

/* ---- port.c ---- */

/* Fills in board->ranges and board->port_owner. */
void port_map(struct board *board);

#endif
