/* SPDX-License-Identifier: Apache-2.0
 *
 * The cache of translated paths, and the code of the application that they were made from.
 */
#ifndef PROCESS_RUNTIME_CACHE_H
#define PROCESS_RUNTIME_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "process/runtime/emit.h"

#pragma GCC visibility push(hidden)

struct runtime;
struct thread;
struct piece_list;
struct way;

/* ---- executable memory of the application (range.c) ---- */

enum { RANGES = 8192 };

enum range_flag {
  RANGE_WRITABLE = 1 << 0, /* the application may write there: pages that hold translated code are protected */
  RANGE_SHARED = 1 << 1,   /* the same memory may be written through other addresses */
  RANGE_FILE = 1 << 2,     /* its bytes are in a file that a NOTE_MAP names */
};

struct range {
  uint64_t start, end;
  uint32_t flags; /* enum range_flag */
};

/* The ranges are sorted and do not overlap. Adjacent ranges with the same flags are merged. */
struct range_list {
  unsigned count;
  struct range ranges[RANGES];
};

/* Adds a range, replacing what was there. Returns false when the list is full. */
bool range_add(struct range_list *list, uint64_t start, uint64_t end, uint32_t flags);

/* Removes a range. Returns whether anything of it was there. If the list is too full to split a range, the upper part
 * of that range is lost, too. */
bool range_remove(struct range_list *list, uint64_t start, uint64_t end);

static inline bool range_has(const struct range *range, uint64_t address)
{
  return address >= range->start && address < range->end;
}

/* The range that holds the address, or NULL. */
const struct range *range_find(const struct range_list *list, uint64_t address);

/* ---- the code cache (cache.c) ---- */

enum {
  CACHE_POOLS = 2,
  CACHE_AREAS = 8,
  CACHE_AREA_SIZE = 128 << 20, /* of one pool; the area of the other pool follows it */
  CACHE_SIZE_LEAST = 1 << 16,  /* least size of the used part of an area: control.cache_size */
  CACHE_UNITS = 1 << 21,       /* of one pool */
  CACHE_INDEX = 1 << 23,       /* slots of the index when it is largest */
  CACHE_PLACES = 1 << 26,      /* of one pool */
  CACHE_PLACES_MOST = 8192,    /* of one unit, including the bytes that are kept */
  CACHE_PATH_MOST = 16384,     /* bytes of one unit */
  CACHE_ROOM = 8,              /* bytes before a unit and its edge, for the jump that makes it stale */
  CACHE_GRAIN = 16,            /* units are longer than this on average */
  CACHE_REACH = 0x7FFF0000,    /* of a rel32, less the length of an instruction */
};

/* Memory for translated code. There are several areas, because code with RIP-relative operands must lie near their
 * targets. */
struct area {
  uint8_t *code;           /* NULL: the area does not exist */
  uint64_t used, size;     /* of the first part, where units are */
  uint64_t cold, cold_end; /* the second part: code that runs seldom */
  uint64_t kept;           /* bytes of the second part that are reserved for units that become stale */
  uint32_t *units;         /* numbers of its units, in the order of their code */
  uint32_t unit_count;
  bool is_huge; /* of the first pool: in both, its memory is in huge pages */
};

/* Half of the cache's memory. When a pool is full, its translations are given up, and a new age begins in the other
 * pool. Threads that are in the old pool leave it one after another; no code of the new pool leads to the old one, and
 * exits in the old one are not tied any more. When the new pool is full, too, the old one can be used again once no
 * thread is in it. */
struct pool {
  uint32_t age;   /* age in which it was begun, 0: never used */
  uint32_t first; /* steps of its paths have this number or a higher one */
  uint32_t unit_count, place_count;
  struct area areas[CACHE_AREAS];
};

/* Numbers about the cache and its profile. */
struct cache_counts {
  uint32_t units_made;                                    /* so far */
  uint32_t index_slots, index_used;                       /* size of the index that is used; its slots that are taken */
  uint32_t habit_count;                                   /* slots of the table of habits that are taken */
  uint32_t turns, next_profile, samples;                  /* log parts that were filled; the turn of the next profile;
                                                             number of profiles so far, */
  uint32_t steady;                                        /* and of the last ones that were alike: profile.c */
  uint32_t generation, generation_units, generation_turn; /* of the profile; numbers of units and turns when it began */
  uint32_t patience;                                      /* turns that the profile lasts at least */
  uint32_t is_wide;                                       /* new code uses the wide lookup table */
};

/* A path in the cache. */
struct unit {
  uint64_t address;    /* in the application, of its first instruction */
  uint8_t *code;       /* its entry */
  uint8_t *indirect;   /* entry for indirect branches, which compares and logs the head; NULL: none was needed yet */
  const uint8_t *edge; /* code before its entry, if the unit was made for an exit: the exit jumps there */
  uint32_t size;       /* bytes from its entry */
  uint32_t head;       /* number of its head among the steps */
  uint32_t place;      /* of its first instruction among the places */
  uint16_t place_count;
  uint8_t is_stale; /* its code has changed: its entry leads to the dispatcher, or to the unit that replaced it */
  uint8_t uses_r11;
  uint8_t is_for_edge;      /* the edge before its entry is of the exit that it was made for */
  uint8_t is_indirect_wide; /* `indirect` is for the wide lookup table */
  uint8_t is_checked;  /* no exit is tied to it: its code may change unnoticed, and its bytes are compared each time; or
                          its address is a trigger, and it has no such bytes */
  const uint8_t *ask;  /* of a stale unit: code that goes to the dispatcher */
  uint32_t led;        /* first of the stale units that lead to it, number + 1, 0: none; */
  uint32_t led_next;   /* and, of a stale unit, the next in that list */
  uint32_t leads_to;   /* of a stale unit: the unit in whose list it is, number + 1, 0: none */
  uint32_t byte_count; /* of a checked unit */
  const uint8_t *bytes; /* as they were when it was translated */
};

/* One instruction of the application in a unit, in the order of the code. */
struct place {
  uint16_t code;   /* offset of its translation from the unit's entry */
  uint8_t length;  /* of the instruction */
  uint8_t spilled; /* registers that are in their slots while it runs, from the 9th byte on: enum place_spill */
};

enum place_spill {
  PLACE_RCX = 1 << 0,
  PLACE_RDX = 1 << 1,
  PLACE_RSI = 1 << 2, /* in spill */
  PLACE_RDI = 1 << 3,
  PLACE_RBX = 1 << 4,
  PLACE_R11 = 1 << 6,    /* R11 is the log's pointer: the application's is in state->registers */
  PLACE_BRANCH = 1 << 5, /* it is a step of the path; a unit that continues after it has passed the step */
};

/* The place in the application that an address in the cache corresponds to. */
struct location {
  uint64_t address; /* of the instruction */
  unsigned passed;  /* steps of the path before it */
  unsigned spilled; /* enum place_spill: registers that are not in the processor there */
  bool is_boundary; /* the instruction has not begun: the processor holds the application's registers */
  bool is_stub;     /* in the code that leaves a path, or between two paths: no instruction of the application */
};

/* Is the address in the cache, and in which area? The second returns NULL if it is not. These two and cache_locate take
 * no lock. locate.c */
bool cache_has(struct runtime *runtime, uint64_t pc);
struct area *cache_area_of(struct runtime *runtime, uint64_t pc);

/* May be called in a signal handler whose thread was in the cache. Returns false when it is not in a unit. */
bool cache_locate(struct runtime *runtime, uint64_t pc, struct location *ret_location);

/* Areas (area.c): is there room for `size` bytes in both parts; is the whole area in reach of the address? */
bool area_has_room(const struct area *area, uint64_t size);
bool area_is_near(const uint8_t *code, uint64_t address);

/* The functions below need the lock. Steps and units are of the current age, except for a unit that becomes stale. If
 * there is no room for something, it is left out, and runtime->is_full is set. */
int cache_init(struct runtime *runtime);                            /* returns 0 or -errno */
struct unit *cache_find(struct runtime *runtime, uint64_t address); /* never a stale one */
struct area *cache_area(struct runtime *runtime, uint64_t address); /* the best for a unit of code there; NULL: full */
struct unit *cache_add(struct runtime *runtime, struct area *area, const struct unit *unit);
void cache_tie(struct runtime *runtime, uint32_t step, struct unit *unit,
               bool is_new); /* the step's exit goes to the unit from now on */
void cache_write_edge(struct runtime *runtime, struct emitter *emitter, uint32_t step, uint32_t head);
void cache_replace(struct runtime *runtime, struct unit *old,
                   struct unit *unit); /* threads that reach the stale unit continue in the new one */
void cache_make_stale(struct runtime *runtime, struct unit *unit);
void cache_save(struct runtime *runtime, struct piece_list *pieces); /* the memory of the pool, for a snapshot */

/* Maps the areas of a snapshot's pool, which becomes the one in use. The memory of the snapshot is mapped over it then.
 * Returns false, and no area is open, if the addresses are not free. */
bool cache_reserve(struct runtime *runtime, const struct pool *pool);
void cache_unmap(struct runtime *runtime);    /* unmaps all areas: nothing runs in them any more */
void cache_open_all(struct runtime *runtime); /* maps areas for all code that there is, and no more later */
void pool_clear(struct runtime *runtime, struct pool *pool); /* nothing is in it */
void cache_forget(
  struct runtime *runtime); /* all units: threads that run them may continue, but lookups do not find them */

/* Code by which indirect branches enter a unit (a way). RCX holds the target; RCX and RDX are spilled. If the target is
 * the unit's address, the way logs the head and continues after its own last byte; otherwise it continues at `next`.
 * Returns the way's entry. */
struct way_parts {
  uint64_t address;
  uint32_t head;
  uint64_t next; /* code: the next way of the chain, or the one that leaves the cache */
};

uint8_t *cache_write_way(const struct runtime *runtime, struct emitter *emitter, const struct way_parts *parts);

/* Returns the entry of the thread's wide or narrow lookup table for the address. A way that replaces this entry takes
 * it as its `next`. */
uint64_t cache_slot(struct thread *thread, uint64_t address, bool is_wide);

/* The first lets indirect branches of this thread that use the wide or narrow lookup table find the unit without
 * leaving the cache; the second does so with a way that was written before the unit, whose `next` is the result of
 * cache_slot. The third empties the tables. */
void cache_publish(struct thread *thread, struct unit *unit, bool is_wide);
void cache_publish_own(struct thread *thread, struct unit *unit, uint8_t *way, bool is_wide);
void cache_lookup_init(struct thread *thread);
void cache_offer(struct thread *thread, const struct way *way); /* if its slot is free */

/* To be called before a unit is made: once there are many units, or a part of a log was full, new units use the wide
 * table. */
void cache_lookup_grow(struct runtime *runtime);

/* ---- the newest unit of each address, stale or not (index.c); with the lock held ---- */

int index_init(struct runtime *runtime);                                  /* returns 0 or -errno */
struct unit *index_find(const struct runtime *runtime, uint64_t address); /* NULL: there is none */
void index_put(struct runtime *runtime, uint32_t number);                 /* adds runtime->units[number] */
void index_clear(struct runtime *runtime);
void index_save(struct runtime *runtime, struct piece_list *pieces); /* for a snapshot; makes room first */
uint64_t index_memory(void);                                         /* bytes of address space */

/* ---- ages (age.c) ---- */

/* The thread has left the cache, and only its log tells where it was. The second is for use before a system call, which
 * may take long: a signal that age_begin has sent has arrived when this function returns. */
void age_leave(struct thread *thread);
void age_leave_long(struct thread *thread);

/* The thread will continue in the cache of the current age, or, if `is_inside` is false, outside the cache. Needs the
 * lock, as the next two do. */
void age_enter(struct thread *thread, bool is_inside);

/* Does the step belong to the current age, so that it can be tied? */
bool age_has_step(const struct runtime *runtime, uint32_t step);

/* The cache is full: begins a new age, unless another thread has done so. The calling thread has left the cache. If
 * another thread is still in the pool that is to be reused, it is sent a signal; until it has left, the lock is
 * released at times. */
void age_begin(struct thread *thread);

/* Is the thread in a pool that was given up? Takes no lock. */
bool age_is_over(const struct thread *thread);

/* Bytes of address space that the cache takes. */
uint64_t cache_memory(const struct runtime *runtime);

/* ---- the unit at an executable address (translate.c) ---- */

/* How the application comes to a unit. If the unit is made at that moment, the code that leads to it is right before
 * it, so that no jump is needed between the two. */
struct approach {
  uint32_t step;             /* by this exit; 0: not by an exit */
  bool is_indirect, is_wide; /* by an indirect branch, whose target was not in the narrow or in the wide lookup table */
  bool is_published;         /* result: the lookup table has the unit now */
};

/* Translates a unit into that area, with the lock held. Returns NULL if its first bytes cannot be read. */
struct unit *translate(struct thread *thread, uint64_t address, struct approach *approach, struct area *area);

/* ---- code that changes (page.c) ---- */

enum page_level {
  PAGE_STEADY,  /* changes are seen: by a system call, or by a fault */
  PAGE_CHECKED, /* changes are not seen, or come too often: compare the bytes */
  PAGE_WILD,    /* code that changes its own page: one instruction at a time */
};

/* With the lock held. */
int page_init(struct runtime *runtime);                                                    /* returns 0 or -errno */
unsigned page_level(struct runtime *runtime, const struct range *range, uint64_t address); /* enum page_level */
void page_protect(struct runtime *runtime, const struct range *range, uint64_t address); /* before its level is asked */
void page_add_unit(struct runtime *runtime, uint64_t page, uint32_t unit);
void page_drop(struct runtime *runtime, uint64_t start, uint64_t end); /* makes all units with code from there stale */
void page_renew(struct runtime *runtime, uint64_t address); /* the same for one page, whose rights are as they were */
bool page_release_all(struct runtime *runtime); /* lifts all protection by the runtime; returns whether there was any */
void page_release_range(struct runtime *runtime, uint64_t start,
                        uint64_t end); /* the same for the pages in the range */

/* For snapshots. The first makes all units stale whose code is not all in one module, or in modules that are always
 * mapped together. The second adds the memory of the table to the pieces. A snapshot has no protected pages: while it
 * is written, the table does not show those of this process. The last takes over the table of a snapshot, whose memory
 * is mapped already. */
struct page_counts {
  uint32_t slots, page_count, page_most;
};

void page_drop_foreign(struct runtime *runtime);
void page_save(const struct runtime *runtime, struct piece_list *pieces);
void page_hide_protection(struct runtime *runtime, bool is_hidden);
struct page_counts page_counts(const struct runtime *runtime);
void page_inherit(struct runtime *runtime, const struct page_counts *counts);

/* The bytes of a checked unit were compared. If they have been the same often enough, the pages that the unit is on
 * become steady again; the unit is stale then. */
void page_compared(struct runtime *runtime, const struct unit *unit, bool is_same);

/* A write fault in a page that holds translated code and is protected for that reason. Returns true if it was one: the
 * write must be repeated. Takes the lock. */
bool page_write_fault(struct thread *thread, uint64_t address, uint64_t rip);

/* Bytes of address space that the table of pages takes. */
uint64_t page_memory(void);

/* The pool is used from now on; its earlier contents are gone. */
void page_begin_age(struct runtime *runtime, const struct pool *pool);

#pragma GCC visibility pop

#endif
