/* SPDX-License-Identifier: Apache-2.0
 *
 * What just-in-time compilers say about the code that they make: perf maps (jit_map.c), jitdump files (jit_dump.c) and
 * GDB's interface in memory (jit_gdb.c). All of it is hostile input, and grows while it is read.
 */
#ifndef PROCESS_JIT_H
#define PROCESS_JIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The name of some code. */
struct jit_name {
  uint64_t start, size;
  const char *text;    /* printable; not terminated */
  size_t length;       /* at most TRACE_NAME_MAX; 0: the code has no name from now on */
  const uint8_t *code; /* its bytes, `size` of them; NULL: not known */
  uint64_t moved;      /* the code was moved from here, and keeps the name that it had there; 0: it was not moved */
};

/* Takes a name. Returns 0, or negative to stop. */
typedef int jit_name_function(void *data, const struct jit_name *name);

/* ---- a perf map: lines "START SIZE NAME", in hexadecimal ---- */

enum { JIT_LINE_MOST = 4096 };

struct jit_map {
  char line[JIT_LINE_MOST]; /* the beginning of a line whose end was not read yet */
  size_t length;
  bool is_long;        /* the line is longer; its end is left out */
  uint64_t lines, bad; /* lines so far, and those that are no names */
};

/* Takes more bytes of a map. Returns 0, or what `function` returned. */
int jit_map_take(struct jit_map *map, const char *bytes, size_t size, jit_name_function *function, void *data);

/* ---- a jitdump file ---- */

struct jit_dump {
  uint64_t offset; /* of the next record; 0: the head was not read yet */
  bool is_bad;     /* the file is none, or is damaged: it is not read any more */
  bool is_closed;  /* the writer said that nothing follows */
  uint8_t *record; /* the one that is being read */
  size_t capacity;
};

/* Reads bytes of the file. Returns how many there are at the offset, at most `size`, or negative. */
typedef int64_t jit_read_function(void *data, uint64_t offset, void *bytes, size_t size);

/* Takes the records that are complete by now, at most about `most` bytes of them. Returns 0; 1 if there are more; or
 * negative: what `read` or `function` returned, or -ENOMEM. */
int jit_dump_take(struct jit_dump *dump, uint64_t most, jit_read_function *read, void *read_data,
                  jit_name_function *function, void *data);
void jit_dump_done(struct jit_dump *dump);

/* ---- GDB's interface ---- */

/* Gives the functions of an ELF object in memory. Returns 0, or what `function` returned. */
int jit_elf_take(const uint8_t *bytes, size_t size, jit_name_function *function, void *data);

/* Finds the address of `__jit_debug_descriptor` in an ELF file, as linked, and the linked address of the code at an
 * offset of the file. Returns false if the file does not have them. */
bool jit_elf_descriptor(int fd, uint64_t offset, uint64_t *ret_address, uint64_t *ret_linked);

struct jit_gdb_entry {
  uint64_t address, object, size;
  uint64_t first, end; /* addresses of its functions */
  uint32_t seen;       /* number of the last walk that found it */
};

struct jit_gdb {
  uint64_t descriptor; /* its address */
  uint64_t first;      /* the first entry when the list was last read, */
  uint64_t relevant;   /* and the one that was changed last, */
  uint32_t action;     /* and how */
  uint32_t walks;
  bool is_read;
  struct jit_gdb_entry *entries;
  size_t count, capacity;
};

/* Takes the objects that were registered since the last call, through a function that reads the process's memory at an
 * address. Returns 0, what `function` returned, or -ENOMEM. */
int jit_gdb_take(struct jit_gdb *gdb, jit_read_function *read, void *read_data, jit_name_function *function,
                 void *data);
void jit_gdb_done(struct jit_gdb *gdb);

/* ---- a process ---- */

struct process_jit;

/* Begins to read the names of a process, which is alive or has just ended. Nothing is opened yet that is not there.
 * Returns 0 or -ENOMEM. */
int process_jit_new(uint32_t process, struct process_jit **ret_jit);
void process_jit_free(struct process_jit *jit); /* takes NULL */

/* The process has mapped a part of a file. It may be a jitdump file, or have the descriptor of GDB's interface. */
void process_jit_module(struct process_jit *jit, const char *path, uint64_t start, uint64_t offset);

/* Gives the names that are new since the last call. With `is_whole`, looks for files that have appeared or were
 * replaced, too. Returns 0; 1 if there are more; or negative: what `function` returned, or -ENOMEM. */
int process_jit_read(struct process_jit *jit, bool is_whole, jit_name_function *function, void *data);

/* Copies a text without control characters, and cut to TRACE_NAME_MAX bytes. Returns its length. */
size_t jit_text_copy(char *copy, const char *text, size_t length);

#endif
