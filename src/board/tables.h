/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables for an operating system, built byte by byte in the caller's memory. tables.c makes those of ACPI, tables_mp.c
 * those of the MultiProcessor specification.
 */
#ifndef BOARD_TABLES_H
#define BOARD_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct board;

/* Bytes that do not fit are dropped, and `is_full` is set: one check at the end is enough. */
struct tables {
  uint8_t *bytes;
  size_t size, used;
  uint64_t address; /* physical, of `bytes` */
  bool is_full;
};

void tables_put(struct tables *tables, uint64_t value, unsigned size);
void tables_put_text(struct tables *tables, const char *text, size_t size);
/* Appends zeros up to a physical address that is a multiple of `alignment`. */
void tables_align(struct tables *tables, unsigned alignment);
/* Changes the byte at `sum` so that the `size` bytes from `start` add up to 0. */
void tables_seal(struct tables *tables, size_t start, size_t size, size_t sum);
/* Physical address of the next byte. */
uint64_t tables_place(const struct tables *tables);
/* Overwrites four bytes. */
void tables_patch(struct tables *tables, size_t offset, uint32_t value);

/* Writes the floating pointer and, after it, the table. */
void tables_put_mp(const struct board *board, struct tables *tables);

#endif
