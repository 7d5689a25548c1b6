/* SPDX-License-Identifier: Apache-2.0
 *
 * The records of perf_event_open(2): reads them from the ring that the kernel fills, and parses them. Pure functions
 * over bytes, which are not trusted. The layouts are those of <linux/perf_event.h>.
 */
#ifndef SOURCE_PERF_RECORD_H
#define SOURCE_PERF_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the ring ---- */

#define PERF_RECORD_SIZE_MAX 65536u /* the size of a record is 16 bits */

/* A ring of records, or of AUX data. Byte counts only grow; the position in the ring is the count modulo the size. */
struct perf_ring {
  const uint8_t *bytes;
  uint64_t size; /* a power of two for records */
};

/* Copies the record at `*tail` in one piece to `buffer` (PERF_RECORD_SIZE_MAX bytes). The ring was written up to
 * `head`. `*tail` is then after the record. Returns its size; 0: there is none; -EBADMSG: the ring is invalid, and
 * `*tail` is at `head`. */
int perf_ring_next(const struct perf_ring *ring, uint64_t head, uint64_t *tail, uint8_t *buffer);

/* Copies `size` bytes from the count `offset` on. Returns 0, or -EBADMSG if the ring does not hold so many. */
int perf_ring_copy(const struct perf_ring *ring, uint64_t offset, uint64_t size, void *buffer);

/* ---- what a record says ---- */

/* The layout of the records of an event: the fields of perf_event_attr of the same names. */
struct perf_layout {
  uint64_t sample_type;
  uint64_t branch_sample_type;
  bool sample_id_all;
};

enum perf_record_kind {
  PERF_OTHER,  /* irrelevant, or of an unknown type */
  PERF_SAMPLE, /* with a branch stack */
  PERF_MAP,
  PERF_COMM,
  PERF_FORK,
  PERF_EXIT,
  PERF_LOST,     /* records, or samples */
  PERF_AUX,      /* bytes in the AUX area */
  PERF_START,    /* PERF_RECORD_ITRACE_START: the thread whose AUX data follows */
  PERF_THROTTLE, /* samples are suppressed from here on */
  PERF_UNTHROTTLE,
};

enum perf_aux_flag {
  PERF_AUX_TRUNCATED = 1u << 0, /* data was lost after it */
  PERF_AUX_OVERWRITE = 1u << 1,
  PERF_AUX_PARTIAL = 1u << 2, /* data was lost in it */
  PERF_AUX_COLLISION = 1u << 3,
};

struct perf_branch_stack {
  const uint8_t *entries; /* PERF_BRANCH_SIZE bytes each, the newest first; valid as long as the record's bytes */
  uint64_t count;
  uint64_t hardware_index; /* of the newest in the hardware's stack; UINT64_MAX: not known */
};

struct perf_record {
  enum perf_record_kind kind;
  uint32_t process, thread, cpu; /* the thread that was running; 0 if the record does not say */
  uint64_t time;
  union {
    struct {
      uint32_t process, thread; /* whose */
      uint64_t address, size, offset;
      bool is_executable;
      const char *path; /* ended by 0, valid as long as the record's bytes */
    } map;
    struct {
      uint32_t process, thread;
      bool is_exec;
      const char *name;
    } comm;
    struct {
      uint32_t process, parent, thread, parent_thread;
    } task; /* fork, exit */
    struct {
      uint64_t count;
    } lost;
    struct {
      uint64_t offset, size; /* counts of bytes of the AUX ring */
      uint32_t flags;        /* enum perf_aux_flag */
    } aux;
    struct {
      uint32_t process, thread;
    } start;
    struct {
      uint64_t ip;
      struct perf_branch_stack stack;
    } sample;
  };
};

/* Parses a record. Returns 0, or -EBADMSG if it is shorter than its type needs, or a text in it has no end. */
int perf_record_parse(const struct perf_layout *layout, const uint8_t *bytes, size_t size,
                      struct perf_record *ret_record);

/* ---- a branch of a stack ---- */

#define PERF_BRANCH_SIZE 24u

/* struct perf_branch_entry. */
struct perf_branch {
  uint64_t from, to;
  bool is_mispredicted, is_predicted; /* neither: not known */
  bool is_in_tx, is_abort;
  uint16_t cycles; /* since the one before; 0: not known */
  uint8_t type;    /* PERF_BR_* */
  uint8_t speculation, new_type, privilege;
};

struct perf_branch perf_branch_get(const uint8_t bytes[PERF_BRANCH_SIZE]);

/* enum lb_branch_kind of a type that perf tells; LB_BRANCH_UNKNOWN if it says too little. */
unsigned perf_branch_kind(const struct perf_branch *branch);

/* The bits of branch_sample_type, without privileges, that let all branches of these kinds (bits 1 << enum
 * lb_branch_kind; 0: all) pass. They may let others pass too. */
uint64_t perf_branch_filter(uint32_t kinds);

#endif
