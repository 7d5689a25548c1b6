/* SPDX-License-Identifier: Apache-2.0
 *
 * Code that changes. Which units came from which page; pages that the application may write to are protected once
 * something in them is translated, and a write fault makes those units stale. Pages for which that is of no use (other
 * addresses lead to the same memory, or writes come again and again) are compared each time instead.
 */
#include <asm/unistd.h>
#include <linux/mman.h>

#include "process/runtime.h"

enum {
  PAGES = 1 << 20, /* places in the hash table */
  NODES = 1 << 24, /* units on pages */
  PROTECTED_MOST = 4096,
  FAULTS_MOST = 16, /* write faults before a page is compared instead */
};

struct page {
  uint64_t address; /* 0: free */
  uint32_t node;    /* first of its units, 0: none */
  uint8_t level;    /* enum page_level */
  uint8_t faults;
  uint8_t is_protected;
  uint8_t unused;
};

struct page_node {
  uint32_t unit, next;
};

struct page_table {
  struct page pages[PAGES];
  struct page_node nodes[NODES];
  uint32_t node_count, node_free, page_count;
  uint32_t protected_count;
  uint64_t protected_pages[PROTECTED_MOST];
};

int page_init(struct runtime *runtime)
{
  int64_t memory = place_map(sizeof(struct page_table), -1, 0);
  if (is_failure(memory))
    return (int)memory;
  runtime->pages = (struct page_table *)memory;
  runtime->pages->node_count = 1;
  return 0;
}

uint64_t page_memory(void)
{
  return sizeof(struct page_table);
}

/* The page's place, or the free one where it would be. */
static struct page *page_slot(struct runtime *runtime, uint64_t address)
{
  uint64_t at = address * 0x9E3779B97F4A7C15 >> 44 & (PAGES - 1);
  while (runtime->pages->pages[at].address && runtime->pages->pages[at].address != address)
    at = (at + 1) & (PAGES - 1);
  return &runtime->pages->pages[at];
}

static struct page *page_get(struct runtime *runtime, uint64_t address)
{
  struct page *page = page_slot(runtime, address);
  if (!page->address) {
    if (++runtime->pages->page_count > PAGES / 4 * 3)
      runtime_fail(PROCESS_E_CACHE_FULL, 0, address);
    page->address = address;
  }
  return page;
}

void page_add_unit(struct runtime *runtime, uint64_t address, uint32_t unit)
{
  struct page_table *table = runtime->pages;
  struct page *page = page_get(runtime, page_down(address));
  if (page->node && table->nodes[page->node].unit == unit)
    return;
  uint32_t node = table->node_free;
  if (node)
    table->node_free = table->nodes[node].next;
  else if (table->node_count < NODES)
    node = table->node_count++;
  else
    runtime_fail(PROCESS_E_CACHE_FULL, 0, address);
  table->nodes[node] = (struct page_node){unit, page->node};
  page->node = node;
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
    if (table->protected_pages[i] == page->address)
      table->protected_pages[i] = table->protected_pages[--table->protected_count];
}

/* A page that cannot be protected is compared. */
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

static void page_forget(struct runtime *runtime, struct page *page)
{
  struct page_table *table = runtime->pages;
  for (uint32_t node = page->node; node;) {
    uint32_t next = table->nodes[node].next;
    cache_make_stale(runtime, &runtime->units[table->nodes[node].unit]);
    table->nodes[node].next = table->node_free;
    table->node_free = node;
    node = next;
  }
  page->node = 0;
}

/* The kernel has new rights for these pages: ours are gone. */
static void page_drop_one(struct runtime *runtime, struct page *page)
{
  page_forget(runtime, page);
  if (page->is_protected)
    release(runtime, page);
}

void page_drop(struct runtime *runtime, uint64_t start, uint64_t end)
{
  struct page_table *table = runtime->pages;
  if ((end - start) / PROCESS_PAGE <= PAGES / 16) {
    for (uint64_t at = page_down(start); at < end; at += PROCESS_PAGE) {
      struct page *page = page_slot(runtime, at);
      if (page->address)
        page_drop_one(runtime, page);
    }
    return;
  }
  for (uint32_t i = 0; i < PAGES; i++)
    if (table->pages[i].address >= page_down(start) && table->pages[i].address < end)
      page_drop_one(runtime, &table->pages[i]);
}

static void page_release(struct runtime *runtime, struct page *page)
{
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

/* Another thread may have released it since, or a mprotect that failed halfway: the rights are set in any case. */
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
