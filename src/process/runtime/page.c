/* SPDX-License-Identifier: Apache-2.0
 *
 * Code that changes. The table records which units came from which page. A page that the application may write to is
 * protected once code in it is translated, and a write fault makes its units stale. Protection does not help if the
 * same memory is mapped at other addresses too, and it costs too much if the application writes to the page often. The
 * runtime then compares the bytes of a unit each time before it executes the unit. If the comparisons of a page have
 * found no change for some time, the page is protected again.
 */
#include <asm/unistd.h>
#include <linux/mman.h>

#include "process/runtime/runtime.h"

enum {
  PAGES = 1 << 20,      /* slots of the hash table when it is largest, */
  PAGES_LEAST = 1 << 9, /* and at first */
  NODES = 1 << 23,      /* units of a pool on pages */
  PROTECTED_MOST = 4096,
  FAULTS_MOST = 16,  /* write faults before the bytes of a page are compared instead */
  SAME_LEAST = 2000, /* comparisons without a change before the page is protected again, at first; */
  SETTLED_MOST = 3,  /* twice as many after each time, this often */
};

struct page {
  uint64_t address;           /* 0: free */
  uint32_t node[CACHE_POOLS]; /* first of its units in each pool, 0: none; */
  uint32_t age[CACHE_POOLS];  /* the age of that list; in another age the list is empty */
  uint8_t level;              /* enum page_level */
  uint8_t faults;
  uint8_t is_protected;
  uint8_t settled; /* how often it was protected again, at most SETTLED_MOST */
  uint32_t same;   /* comparisons since the last change that one of them has found */
};

struct page_node {
  uint32_t unit, next;
};

/* The nodes of a pool. */
struct page_nodes {
  uint32_t count, free;
  struct page_node nodes[NODES];
};

struct page_table {
  uint32_t slots;
  uint32_t page_count, page_most; /* more pages than that end the age */
  struct page pages[2 * PAGES];   /* hash tables of growing size: that of n slots begins at n */
  struct page_nodes nodes[CACHE_POOLS];
  uint32_t protected_count;
  uint64_t protected_pages[PROTECTED_MOST];
};

int page_init(struct runtime *runtime)
{
  int64_t memory = place_map(sizeof(struct page_table), -1, 0);

  if (is_failure(memory))
    return (int)memory;
  runtime->pages = (struct page_table *)memory;
  runtime->pages->slots = PAGES_LEAST;
  runtime->pages->page_most = PAGES / 2;
  for (unsigned i = 0; i < CACHE_POOLS; i++)
    runtime->pages->nodes[i].count = 1;
  return 0;
}

uint64_t page_memory(void)
{
  return sizeof(struct page_table);
}

/* The slot of the page, or the free slot where it would be. */
static struct page *page_slot(struct runtime *runtime, uint64_t address)
{
  uint32_t slots = runtime->pages->slots;
  struct page *pages = runtime->pages->pages + slots;
  uint64_t at = address * 0x9E3779B97F4A7C15 >> 44 & (slots - 1);

  while (pages[at].address && pages[at].address != address)
    at = (at + 1) & (slots - 1);
  return &pages[at];
}

/* The larger table follows the one in use. */
static void pages_grow(struct runtime *runtime)
{
  struct page_table *table = runtime->pages;
  uint32_t slots = table->slots;

  table->slots = 2 * slots;
  for (uint32_t i = slots; i < 2 * slots; i++)
    if (table->pages[i].address)
      *page_slot(runtime, table->pages[i].address) = table->pages[i];
}

static struct page *page_get(struct runtime *runtime, uint64_t address)
{
  struct page_table *table = runtime->pages;

  if (table->page_count >= table->slots / 2 && table->slots < PAGES)
    pages_grow(runtime);
  struct page *page = page_slot(runtime, address);
  if (!page->address) {
    if (++table->page_count > PAGES / 8 * 7)
      runtime_fail(PROCESS_E_CACHE_FULL, 0, address);
    runtime->is_full |= table->page_count > table->page_most;
    page->address = address;
  }
  return page;
}

/* Whether the page has state that must be kept. */
static bool is_needed(const struct runtime *runtime, const struct page *page)
{
  bool is_needed = page->is_protected || page->level != PAGE_STEADY;

  for (unsigned pool = 0; pool < CACHE_POOLS; pool++)
    is_needed |= page->node[pool] && page->age[pool] == runtime->pools[pool].age;
  return is_needed;
}

/* Removes pages without state: a program may generate code at ever new addresses. The table has its largest size by
 * then. The other pages are copied to the memory of the smaller tables and back. */
static void pages_sift(struct runtime *runtime)
{
  struct page_table *table = runtime->pages;
  struct page *pages = table->pages + PAGES, *kept = table->pages;
  uint32_t count = 0;

  runtime_assert(table->slots == PAGES);
  for (uint32_t i = 0; i < PAGES; i++)
    if (pages[i].address && is_needed(runtime, &pages[i]))
      kept[count++] = pages[i];
  memset(pages, 0, PAGES * sizeof(*pages));
  for (uint32_t i = 0; i < count; i++)
    *page_slot(runtime, kept[i].address) = kept[i];
  table->page_count = count;
  table->page_most = count < PAGES / 4 ? PAGES / 2 : count + PAGES / 4;
}

void page_begin_age(struct runtime *runtime, const struct pool *pool)
{
  struct page_table *table = runtime->pages;
  struct page_nodes *nodes = &table->nodes[pool - runtime->pools];

  nodes->count = 1;
  nodes->free = 0;
  if (table->page_count > table->page_most)
    pages_sift(runtime);
}

/* The list of a page's units in that pool. */
static uint32_t *page_list(struct runtime *runtime, struct page *page, unsigned pool)
{
  if (page->age[pool] != runtime->pools[pool].age) {
    page->age[pool] = runtime->pools[pool].age;
    page->node[pool] = 0;
  }
  return &page->node[pool];
}

/* A path spans so few pages that there is always room for one more. */
void page_add_unit(struct runtime *runtime, uint64_t address, uint32_t unit)
{
  enum { LAST = 256 };
  unsigned pool = (unsigned)(runtime->pool - runtime->pools);
  struct page_nodes *nodes = &runtime->pages->nodes[pool];
  uint32_t *list = page_list(runtime, page_get(runtime, page_down(address)), pool);

  if (*list && nodes->nodes[*list].unit == unit)
    return;
  uint32_t node = nodes->free;
  if (node)
    nodes->free = nodes->nodes[node].next;
  else
    node = nodes->count++;
  nodes->nodes[node] = (struct page_node){unit, *list};
  *list = node;
  runtime->is_full |= nodes->count > NODES - LAST;
}

unsigned page_level(struct runtime *runtime, const struct range *range, uint64_t address)
{
  if (range->flags & RANGE_SHARED)
    return PAGE_CHECKED;
  return range->flags & RANGE_WRITABLE ? page_slot(runtime, page_down(address))->level : PAGE_STEADY;
}

/* ---- protection ---- */

static int64_t protect(uint64_t page, unsigned protection)
{
  return kernel_call(__NR_mprotect, page, PROCESS_PAGE, protection, 0, 0, 0);
}

static void release(struct runtime *runtime, struct page *page)
{
  struct page_table *table = runtime->pages;

  page->is_protected = 0;
  for (uint32_t i = 0; i < table->protected_count; i++)
    if (table->protected_pages[i] == page->address) {
      table->protected_pages[i] = table->protected_pages[--table->protected_count];
      return;
    }
}

/* If a page cannot be protected, its bytes are compared instead. */
void page_protect(struct runtime *runtime, const struct range *range, uint64_t address)
{
  struct page_table *table = runtime->pages;

  if (!(range->flags & RANGE_WRITABLE) || range->flags & RANGE_SHARED)
    return;
  struct page *page = page_get(runtime, page_down(address));
  if (page->is_protected || page->level != PAGE_STEADY)
    return;
  bool is_good = table->protected_count < PROTECTED_MOST && !protect(page->address, PROT_READ | PROT_EXEC);
  if (!is_good) {
    page->level = PAGE_CHECKED;
    return;
  }
  page->is_protected = 1;
  table->protected_pages[table->protected_count++] = page->address;
}

/* Makes the units of the page stale. */
static void page_forget(struct runtime *runtime, struct page *page)
{
  for (unsigned pool = 0; pool < CACHE_POOLS; pool++) {
    struct page_nodes *nodes = &runtime->pages->nodes[pool];
    uint32_t *list = page_list(runtime, page, pool);

    while (*list) {
      uint32_t node = *list;

      *list = nodes->nodes[node].next;
      cache_make_stale(runtime, &runtime->units[nodes->nodes[node].unit]);
      nodes->nodes[node].next = nodes->free;
      nodes->free = node;
    }
  }
}

void page_renew(struct runtime *runtime, uint64_t address)
{
  struct page *page = page_slot(runtime, page_down(address));

  if (page->address)
    page_forget(runtime, page);
}

/* The kernel has set new rights for these pages: our protection is gone. */
static void page_drop_one(struct runtime *runtime, struct page *page)
{
  page_forget(runtime, page);
  if (page->is_protected)
    release(runtime, page);
}

void page_drop(struct runtime *runtime, uint64_t start, uint64_t end)
{
  struct page_table *table = runtime->pages;

  if ((end - start) / PROCESS_PAGE <= table->slots / 16) {
    for (uint64_t at = page_down(start); at < end; at += PROCESS_PAGE) {
      struct page *page = page_slot(runtime, at);

      if (page->address)
        page_drop_one(runtime, page);
    }
    return;
  }
  struct page *pages = table->pages + table->slots;
  for (uint32_t i = 0; i < table->slots; i++)
    if (pages[i].address >= page_down(start) && pages[i].address < end)
      page_drop_one(runtime, &pages[i]);
}

/* Afterwards the page is no longer in the list of protected pages. The loops that empty that list rely on this. */
static void page_release(struct runtime *runtime, struct page *page)
{
  runtime_assert(page->address);
  protect(page->address, PROT_READ | PROT_WRITE | PROT_EXEC);
  release(runtime, page);
  page_forget(runtime, page);
}

void page_release_range(struct runtime *runtime, uint64_t start, uint64_t end)
{
  struct page_table *table = runtime->pages;

  for (uint32_t i = 0; i < table->protected_count;) {
    uint64_t at = table->protected_pages[i];

    if (at >= page_down(start) && at < end)
      page_release(runtime, page_slot(runtime, at)); /* another takes its place in the list */
    else
      i++;
  }
}

bool page_release_all(struct runtime *runtime)
{
  struct page_table *table = runtime->pages;
  bool is_any = table->protected_count;

  while (table->protected_count)
    page_release(runtime, page_slot(runtime, table->protected_pages[0]));
  return is_any;
}

/* ---- snapshots ---- */

/* Whether each process that executes code of the one module has mapped the other. */
static bool is_together(const struct module *one, const struct module *other)
{
  return one == other || (one && other && one->is_early && other->is_early);
}

/* Resets a page: what was learnt about it does not hold in another process, which may have other memory there. */
static void page_reset(struct runtime *runtime, struct page *page)
{
  page_forget(runtime, page);
  page->level = PAGE_STEADY;
  page->faults = page->settled = 0;
  page->same = 0;
}

/* The code of a unit is on few pages, one of which is that of its first instruction. */
void page_drop_foreign(struct runtime *runtime)
{
  struct page_table *table = runtime->pages;
  unsigned pool = (unsigned)(runtime->pool - runtime->pools);
  struct page *pages = table->pages + table->slots;

  for (uint32_t i = 0; i < table->slots; i++) {
    const struct module *module = pages[i].address ? module_find(runtime, pages[i].address) : NULL;

    if (pages[i].address && !module)
      page_reset(runtime, &pages[i]);
    for (uint32_t node = module ? *page_list(runtime, &pages[i], pool) : 0; node;
         node = table->nodes[pool].nodes[node].next) {
      struct unit *unit = &runtime->units[table->nodes[pool].nodes[node].unit];

      if (unit->is_checked || !is_together(module, module_find(runtime, unit->address)))
        cache_make_stale(runtime, unit);
    }
  }
}

void page_hide_protection(struct runtime *runtime, bool is_hidden)
{
  const struct page_table *table = runtime->pages;

  for (uint32_t i = 0; i < table->protected_count; i++)
    page_slot(runtime, table->protected_pages[i])->is_protected = !is_hidden;
}

void page_save(const struct runtime *runtime, struct piece_list *pieces)
{
  const struct page_table *table = runtime->pages;

  piece_add(pieces, table->pages + table->slots, table->slots * sizeof(*table->pages));
  piece_add(pieces, &table->nodes[0],
            offsetof(struct page_nodes, nodes) + table->nodes[0].count * sizeof(struct page_node));
}

struct page_counts page_counts(const struct runtime *runtime)
{
  const struct page_table *table = runtime->pages;

  return (struct page_counts){table->slots, table->page_count, table->page_most};
}

void page_inherit(struct runtime *runtime, const struct page_counts *counts)
{
  struct page_table *table = runtime->pages;

  table->slots = counts->slots;
  table->page_count = counts->page_count;
  table->page_most = counts->page_most;
}

/* ---- comparisons ---- */

/* Pages of shared mappings are not among those that have this level, so that they never settle. */
static void page_settle(struct runtime *runtime, struct page *page)
{
  if (page->level != PAGE_CHECKED || ++page->same < (uint32_t)SAME_LEAST << page->settled)
    return;
  page->level = PAGE_STEADY;
  page->faults = 0;
  page->same = 0;
  page->settled += page->settled < SETTLED_MOST;
  page_forget(runtime, page);
}

void page_compared(struct runtime *runtime, const struct unit *unit, bool is_same)
{
  for (uint64_t at = page_down(unit->address); at < unit->address + unit->byte_count; at += PROCESS_PAGE) {
    struct page *page = page_slot(runtime, at);

    if (is_same)
      page_settle(runtime, page);
    else
      page->same = 0;
  }
}

/* ---- faults ---- */

/* The rights are set in any case, because another thread, or an mprotect call that failed halfway, may have released
 * the page since. */
bool page_write_fault(struct thread *thread, uint64_t address, uint64_t rip)
{
  struct runtime *runtime = thread->runtime;

  runtime_lock(runtime);
  struct page *page = page_slot(runtime, page_down(address));
  const struct range *range = range_find(&runtime->executable, address);
  bool is_ours = page->address && range && range->flags & RANGE_WRITABLE;
  if (is_ours && page->is_protected) {
    page->faults++;
    if (page_down(rip) == page->address)
      page->level = PAGE_WILD;
    else if (page->faults > FAULTS_MOST)
      page->level = PAGE_CHECKED;
  }
  if (is_ours)
    page_release(runtime, page);
  runtime_unlock(runtime);
  return is_ours;
}
