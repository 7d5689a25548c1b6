/* SPDX-License-Identifier: Apache-2.0
 *
 * The units of the code cache, and the links between them.
 *
 * An exit that is tied to a unit stays tied for ever, because the log does not mention the tie. A unit whose code has
 * changed therefore keeps its place. Its first two bytes become a jump to the room before it, which holds a jump to a
 * stub that asks the dispatcher. Once there is a new unit for that address, that jump leads to a stub that logs the new
 * unit's head and enters it.
 */
#include "process/runtime/runtime.h"

enum { STUB_MOST = 128, ASK_MOST = 32 };

static unsigned pool_number(const struct runtime *runtime, const struct pool *pool)
{
  return (unsigned)(pool - runtime->pools);
}

/* ---- stubs ---- */

/* Reserves a few bytes near some code, for code that runs often or (`is_cold`) seldom. Returns false if there is no
 * room. */
static bool stub_begin(struct runtime *runtime, const uint8_t *near, bool is_cold, struct emitter *ret_emitter,
                       struct area **ret_area)
{
  for (unsigned i = 0; i < CACHE_AREAS; i++) {
    struct area *area = &runtime->pool->areas[i];

    if (area_has_room(area, STUB_MOST) && area_is_near(area->code, (uint64_t)near)) {
      *ret_area = area;
      *ret_emitter = (struct emitter){area->code + (is_cold ? area->cold : area->used)};
      return true;
    }
  }
  runtime->is_full = true;
  return false;
}

static void stub_end(struct area *area, const struct emitter *emitter)
{
  uint64_t end = (uint64_t)(emitter->at - area->code);

  if (end >= area->size)
    area->cold = (end + 7) & ~7ull;
  else
    area->used = end;
}

/* ---- units ---- */

struct unit *cache_find(struct runtime *runtime, uint64_t address)
{
  struct unit *unit = index_find(runtime, address);

  return unit && !unit->is_stale ? unit : NULL;
}

struct unit *cache_add(struct runtime *runtime, struct area *area, const struct unit *unit)
{
  struct pool *pool = runtime->pool;
  uint32_t number = pool_number(runtime, pool) * CACHE_UNITS + pool->unit_count++;
  struct unit *kept = &runtime->units[number];

  *kept = *unit;
  runtime->local[unit->head].unit = number;
  area->units[area->unit_count] = number;
  area->kept += ASK_MOST;
  __atomic_store_n(&area->unit_count, area->unit_count + 1, __ATOMIC_RELEASE);
  runtime->counts.units_made++;
  index_put(runtime, number);
  return kept;
}

void cache_forget(struct runtime *runtime)
{
  index_clear(runtime);
}

/* ---- links ---- */

/* Returns a way from `site` to code that may be out of reach of a rel32: the code itself, or a stub. This and the other
 * functions that make links return NULL if there is no room. */
static const uint8_t *in_reach(struct runtime *runtime, const uint8_t *site, const uint8_t *to)
{
  int64_t distance = to - site;

  if (distance < CACHE_REACH && distance > -CACHE_REACH)
    return to;
  struct area *area;
  struct emitter emitter;
  if (!stub_begin(runtime, site, true, &emitter, &area))
    return NULL;
  const uint8_t *stub = emitter.at;
  emit_bytes(&emitter, (const uint8_t[]){0xFF, 0x25, 0, 0, 0, 0}, 6); /* jmp *0(%rip) */
  emit_u64(&emitter, (uint64_t)to);
  stub_end(area, &emitter);
  return stub;
}

uint8_t *cache_write_way(const struct runtime *runtime, struct emitter *emitter, const struct way_parts *parts)
{
  const uint8_t *miss = emitter->at;

  emit_address(emitter, GPR_RDX, parts->address);
  emit_u32(emitter, 0x110C8D48); /* lea (%rcx, %rdx), %rcx: the target again */
  emit_address(emitter, GPR_RDX, parts->next);
  emit_bytes(emitter, (const uint8_t[]){0xFF, 0xE2}, 2); /* jmp *%rdx */
  uint8_t *entry = emitter->at;
  emit_check_near(emitter, runtime->options, parts->address, miss);
  emit_reload(emitter, GPR_RDX, STATE_SPILL_RDX);
  emit_reload(emitter, GPR_RCX, STATE_SPILL_RCX);
  emit_log(emitter, parts->head);
  return entry;
}

/* Writes a way for a unit that exists already: a stub that jumps to it. */
static uint8_t *indirect_way(struct runtime *runtime, const struct unit *unit, uint64_t next)
{
  struct area *area;
  struct emitter emitter;

  if (!stub_begin(runtime, unit->code, false, &emitter, &area))
    return NULL;
  uint8_t *entry = cache_write_way(runtime, &emitter, &(struct way_parts){unit->address, unit->head, next});
  emit_jump(&emitter, unit->code);
  stub_end(area, &emitter);
  return entry;
}

/* ---- lookup tables ---- */

/* A thread has two, and code in the cache uses the one that was chosen when it was translated. The narrow table has 16
 * pages, which most processes of a recording fill and leave; a large program would have long chains in it. */
enum { NARROW_SLOTS = 1 << 13, WIDE_SLOTS = 1 << 16, NARROW_UNITS = 2048 };

struct lookup {
  uint64_t *slots;
  uint32_t count;
  uint64_t empty; /* the target of an unused slot and of the end of a chain */
};

static struct lookup lookup_of(const struct thread *thread, bool is_wide)
{
  uint64_t region = (uint64_t)thread - REGION_PRIVATE;

  if (is_wide)
    return (struct lookup){(uint64_t *)(region + REGION_WIDE), WIDE_SLOTS, (uint64_t)leave_indirect};
  return (struct lookup){(uint64_t *)(region + REGION_NARROW), NARROW_SLOTS, (uint64_t)leave_narrow};
}

static void lookup_clear(const struct thread *thread, bool is_wide)
{
  const struct lookup lookup = lookup_of(thread, is_wide);

  for (uint32_t i = 0; i < lookup.count; i++)
    lookup.slots[i] = lookup.empty;
}

static uint64_t *slot_of(const struct lookup *lookup, uint64_t address)
{
  return &lookup->slots[address & (lookup->count - 1)];
}

uint64_t cache_slot(struct thread *thread, uint64_t address, bool is_wide)
{
  const struct lookup lookup = lookup_of(thread, is_wide);

  age_enter(thread, true);
  return *slot_of(&lookup, address);
}

void cache_publish_own(struct thread *thread, struct unit *unit, uint8_t *way, bool is_wide)
{
  const struct lookup lookup = lookup_of(thread, is_wide);
  uint64_t *slot = slot_of(&lookup, unit->address);

  if (*slot == lookup.empty) {
    unit->indirect = way;
    unit->is_indirect_wide = is_wide;
  }
  *slot = (uint64_t)way;
}

/* Enters the unit into the thread's lookup table. The slot's previous entry is chained after the new one. */
void cache_publish(struct thread *thread, struct unit *unit, bool is_wide)
{
  const struct lookup lookup = lookup_of(thread, is_wide);
  uint64_t *slot = slot_of(&lookup, unit->address);

  age_enter(thread, true);
  uint8_t *way = unit->is_indirect_wide == is_wide ? unit->indirect : NULL;
  if (*slot != lookup.empty) {
    way = indirect_way(thread->runtime, unit, *slot);
  } else if (!way) {
    way = unit->indirect = indirect_way(thread->runtime, unit, lookup.empty);
    unit->is_indirect_wide = is_wide;
  }
  if (way)
    *slot = (uint64_t)way;
}

void cache_offer(struct thread *thread, const struct way *way)
{
  const struct lookup lookup = lookup_of(thread, way->is_wide);
  uint64_t *slot = slot_of(&lookup, way->address);

  if (*slot == lookup.empty)
    *slot = (uint64_t)way->code;
}

void cache_lookup_init(struct thread *thread)
{
  thread->lookup_age = thread->runtime->age;
  lookup_clear(thread, false);
  if (__atomic_load_n(&thread->runtime->counts.is_wide, __ATOMIC_ACQUIRE))
    lookup_clear(thread, true);
}

/* Other threads may run new code as soon as it exists, so their tables must be ready before that. */
void cache_lookup_grow(struct runtime *runtime)
{
  const struct cache_counts *counts = &runtime->counts;
  bool is_short = !__atomic_load_n(&counts->turns, __ATOMIC_RELAXED) && counts->units_made < NARROW_UNITS;

  if (counts->is_wide || is_short)
    return;
  for (const struct thread *thread = thread_first(); thread; thread = thread->next)
    lookup_clear(thread, true);
  __atomic_store_n(&runtime->counts.is_wide, 1, __ATOMIC_RELEASE);
}

/* ---- ties ---- */

/* Logs an exit, and with a head also that the head's path is entered. */
void cache_write_edge(struct runtime *runtime, struct emitter *emitter, uint32_t number, uint32_t head)
{
  const struct unit *from = &runtime->units[runtime->local[runtime->steps[number].head].unit];

  if (from->uses_r11)
    emit_take_r11(emitter);
  emit_log(emitter, number);
  if (head)
    emit_log(emitter, LB_ENTRY_ENTER | head);
}

static const uint8_t *edge_make(struct runtime *runtime, uint32_t number, const struct unit *unit, bool is_explicit)
{
  struct area *area;
  struct emitter emitter;
  const uint8_t *site = runtime->local[number].site;
  const uint8_t *target = in_reach(runtime, site, unit->code);

  if (!target || !stub_begin(runtime, site, false, &emitter, &area))
    return NULL;
  const uint8_t *edge = emitter.at;
  cache_write_edge(runtime, &emitter, number, is_explicit ? unit->head : 0);
  emit_jump(&emitter, target);
  stub_end(area, &emitter);
  return edge;
}

/* A step made before a fork is shared by parent and child, and each would tie it to a unit of its own. Such a tie is
 * therefore not stored in the step but logged at run time. */
void cache_tie(struct runtime *runtime, uint32_t number, struct unit *unit, bool is_new)
{
  struct lb_step *step = &runtime->steps[number];
  uint8_t *site = runtime->local[number].site;
  bool is_foreign = step->space != runtime->space;

  if (!is_foreign && step->next)
    return;
  int64_t distance = unit->edge - site;
  bool is_edge = is_new && !is_foreign && distance < CACHE_REACH && distance > -CACHE_REACH;
  const uint8_t *edge = is_edge ? unit->edge : edge_make(runtime, number, unit, is_foreign);
  if (!edge)
    return;
  if (!is_foreign)
    __atomic_store_n(&step->next, unit->head, __ATOMIC_RELEASE);
  emit_patch(site, edge);
}

/* Patches the jump in the bytes before a unit and its edge. Its displacement is in one aligned word, so that the change
 * is atomic. */
static void stale_lead(struct unit *unit, const uint8_t *to)
{
  uint8_t *jump = (uint8_t *)unit->edge - 5;

  jump[0] = 0xE9;
  emit_patch(jump + 1, to);
}

/* The room for this stub was reserved in advance, also in an old age. */
static const uint8_t *ask_make(struct runtime *runtime, const struct unit *unit)
{
  struct area *area = cache_area_of(runtime, (uint64_t)unit->code);
  struct emitter emitter = {area->code + area->cold};
  const uint8_t *stub = emitter.at;

  area->kept -= ASK_MOST;
  emit_exit_number(&emitter, unit->head);
  emit_leave(&emitter, STATE_LEAVE_STALE);
  stub_end(area, &emitter);
  return stub;
}

/* The number of a unit in a list: 0 means none. */
static uint32_t unit_number(const struct runtime *runtime, const struct unit *unit)
{
  return (uint32_t)(unit - runtime->units) + 1;
}

/* Makes the stale units that lead to this one ask the dispatcher again. Each is in at most one list, and once, so that
 * every list ends. */
static void leads_undo(struct runtime *runtime, struct unit *unit)
{
  uint32_t number = unit->led;

  while (number) {
    struct unit *old = &runtime->units[number - 1];

    runtime_assert(old->is_stale && old->leads_to == unit_number(runtime, unit));
    stale_lead(old, old->ask);
    number = old->led_next;
    old->leads_to = old->led_next = 0;
  }
  unit->led = 0;
}

void cache_make_stale(struct runtime *runtime, struct unit *unit)
{
  if (unit->is_stale)
    return;
  unit->is_stale = 1;
  unit->ask = ask_make(runtime, unit);
  stale_lead(unit, unit->ask);
  int64_t distance = unit->edge - 5 - (unit->code + 2);
  runtime_assert(distance >= INT8_MIN);
  uint16_t jump = (uint16_t)(0xEB | (uint16_t)(distance & 0xFF) << 8); /* jmp to the jump before the unit */
  __atomic_store_n((uint16_t *)unit->code, jump, __ATOMIC_RELEASE);
  leads_undo(runtime, unit);
}

/* Each thread that leaves the stale unit calls this; the first one does the work. It may have led the unit to another
 * one, if the paths were rebuilt meanwhile (profile.c). */
void cache_replace(struct runtime *runtime, struct unit *old, struct unit *unit)
{
  runtime_assert(old->is_stale && !unit->is_stale && old->address == unit->address);
  if (unit->is_checked || old->leads_to)
    return;
  struct area *area;
  struct emitter emitter;
  const uint8_t *target = in_reach(runtime, old->code, unit->code);
  if (!target || !stub_begin(runtime, old->code, true, &emitter, &area))
    return;
  const uint8_t *stub = emitter.at;
  emit_log(&emitter, LB_ENTRY_ENTER | unit->head);
  emit_jump(&emitter, target);
  stub_end(area, &emitter);
  stale_lead(old, stub);
  old->leads_to = unit_number(runtime, unit);
  old->led_next = unit->led;
  unit->led = unit_number(runtime, old);
}
