/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the readers of kernel images share: a plan of what goes where in memory. Images are not trusted: a
 * plan is made and checked as a whole before anything is written. Functions return NULL, or a sentence that says what
 * is wrong with the image.
 */
#ifndef MACHINE_KERNEL_H
#define MACHINE_KERNEL_H

#include "machine/state.h"

#define PIECES_MAX 64u

/* Bytes [offset, offset + file_size) of the image go to `address`; zeros follow up to memory_size. */
struct piece {
  uint64_t address, memory_size;
  uint64_t offset, file_size;
};

/* The section headers of an ELF file; count 0: none that can be used. All lie within the image. */
struct sections {
  uint64_t offset;
  uint32_t count, size, names; /* size: of one; names: which section has their names */
  bool is_64;
};

struct plan {
  struct piece pieces[PIECES_MAX];
  unsigned count;
  uint64_t entry; /* physical */
  struct sections sections;
};

/* ---- elf.c ---- */

bool elf_is(const struct machine_image *image);
const char *elf_plan(const struct machine_image *image, struct plan *ret_plan);

/* Copies section headers and symbols to the memory after the kernel, stores in each header the address of its section,
 * and moves *end past them. Returns the address of the headers, 0 if there is no room or there are none. */
uint64_t elf_load_symbols(struct machine *machine, const struct machine_image *image, const struct sections *sections,
                          uint64_t *end);

/* ---- gzip.c ---- */

/* Does it begin like a gzip file? */
bool gzip_is(const struct machine_image *image);
/* Unpacks an image into memory that the caller frees. Returns 0; LB_E_BAD_IMAGE for damaged data, LB_E_TOO_BIG when it
 * unpacks to more than `limit` bytes, or -ENOMEM, each with a static sentence in ret_why. */
int gzip_unpack(const struct machine_image *image, uint64_t limit, struct machine_image *ret_image,
                const char **ret_why);

/* ---- multiboot_info.c ---- */

/* The contents of the information structure. */
struct multiboot_facts {
  const struct start *start;
  const struct plan *plan;
  const uint64_t *modules; /* where each begins */
  uint64_t symbols;        /* section headers; 0: none */
  bool wants_video;
};

/* Writes the structure below 640 KiB, outside the kernel. Returns its address, or 0 without room. */
uint32_t multiboot_info(struct machine *machine, const struct multiboot_facts *facts);

#endif
