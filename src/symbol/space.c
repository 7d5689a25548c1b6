/* SPDX-License-Identifier: Apache-2.0
 *
 * An address space: which part of which file is mapped where; and the files, which spaces share. A space may come from
 * an untrusted trace, which may name any number of files, so there are limits, and a file is opened only when an
 * address in it is asked for.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/base.h"
#include "symbol/symbol.h"

#define VDSO_SIZE_MAX (1u << 20)

struct cached {
  char *path;
  uint8_t build_id[SYMBOL_BUILD_ID_MAX]; /* the build-id that it must have */
  size_t build_id_size;
  bool is_asked;
  struct symbol_module *module;
  int error; /* why it cannot be used */
};

struct symbol_cache {
  char *debug_root; /* NULL for the usual one */
  struct cached *list;
  size_t count, capacity;
  struct symbol_module *vdso;
};

struct symbol_space {
  struct symbol_cache *cache;
  struct interval_map map; /* values are indexes in the cache, offsets are those in the file */
};

/* ---- the cache ---- */

int symbol_cache_new(const char *debug_root, struct symbol_cache **ret_cache)
{
  struct symbol_cache *cache = calloc(1, sizeof(*cache));

  if (!cache)
    return -ENOMEM;
  cache->debug_root = debug_root ? strdup(debug_root) : NULL;
  if (debug_root && !cache->debug_root) {
    free(cache);
    return -ENOMEM;
  }
  *ret_cache = cache;
  return 0;
}

void symbol_cache_free(struct symbol_cache *cache)
{
  if (!cache)
    return;
  for (size_t i = 0; i < cache->count; i++) {
    if (cache->list[i].module != cache->vdso)
      symbol_module_close(cache->list[i].module);
    free(cache->list[i].path);
  }
  symbol_module_close(cache->vdso);
  free(cache->list);
  free(cache->debug_root);
  free(cache);
}

int symbol_cache_add_vdso(struct symbol_cache *cache)
{
  const Elf64_Ehdr *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
  uint64_t size;
  int r;

  if (!vdso || cache->vdso)
    return 0;
  size = vdso->e_shoff + (uint64_t)vdso->e_shnum * vdso->e_shentsize; /* its section headers are at its end */
  if (size > VDSO_SIZE_MAX)
    return 0;
  r = symbol_module_open_bytes(vdso, size, &cache->vdso);
  return r == -ENOMEM ? r : 0;
}

static bool cached_is(const struct cached *cached, const struct symbol_mapping *mapping)
{
  return cached->build_id_size == mapping->build_id_size &&
         (!cached->build_id_size || !memcmp(cached->build_id, mapping->build_id, cached->build_id_size)) &&
         !strcmp(cached->path, mapping->path);
}

/* The cache index of a mapping's file, which may be new. Returns 0, LB_E_TOO_BIG, or -ENOMEM. */
static int cache_get(struct symbol_cache *cache, const struct symbol_mapping *mapping, uint32_t *ret_number)
{
  struct cached *list;

  for (size_t i = cache->count; i-- > 0;)
    if (cached_is(&cache->list[i], mapping)) {
      *ret_number = (uint32_t)i;
      return 0;
    }
  if (cache->count >= SYMBOL_MODULES_MAX || mapping->build_id_size > SYMBOL_BUILD_ID_MAX)
    return LB_E_TOO_BIG;
  list = array_grow(cache->list, sizeof(*list), cache->count, &cache->capacity);
  if (!list)
    return -ENOMEM;
  cache->list = list;
  list[cache->count] = (struct cached){.path = strdup(mapping->path), .build_id_size = mapping->build_id_size};
  if (!list[cache->count].path)
    return -ENOMEM;
  if (mapping->build_id_size)
    memcpy(list[cache->count].build_id, mapping->build_id, mapping->build_id_size);
  *ret_number = (uint32_t)cache->count++;
  return 0;
}

static int cached_check(const struct cached *cached)
{
  const struct symbol_layout *layout = symbol_module_layout(cached->module);

  if (!cached->build_id_size || (cached->build_id_size == layout->build_id_size &&
                                 !memcmp(cached->build_id, layout->build_id, layout->build_id_size)))
    return 0;
  return LB_E_NO_SYMBOLS;
}

/* Opens a file on its first use. "[vdso]" and similar names are not files. */
static int cached_ask(const struct symbol_cache *cache, struct cached *cached)
{
  if (cached->is_asked)
    return cached->error;
  cached->is_asked = true;
  if (!strcmp(cached->path, "[vdso]") && cache->vdso)
    cached->module = cache->vdso;
  else
    cached->error =
      *cached->path == '/' ? symbol_module_open(cached->path, cache->debug_root, &cached->module) : -ENOENT;
  if (cached->error >= 0)
    cached->error = cached_check(cached);
  return cached->error;
}

int symbol_cache_module(struct symbol_cache *cache, const char *path, struct symbol_module **ret_module)
{
  uint32_t number;
  int r = cache_get(cache, &(struct symbol_mapping){.path = path}, &number);

  if (r >= 0)
    r = cached_ask(cache, &cache->list[number]);
  if (r >= 0)
    *ret_module = cache->list[number].module;
  return r;
}

/* ---- the map ---- */

int symbol_space_new(struct symbol_cache *cache, struct symbol_space **ret_space)
{
  struct symbol_space *space = calloc(1, sizeof(*space));

  if (!space)
    return -ENOMEM;
  space->cache = cache;
  *ret_space = space;
  return 0;
}

int symbol_space_copy(const struct symbol_space *space, struct symbol_space **ret_space)
{
  struct symbol_space *copy;
  int r = symbol_space_new(space->cache, &copy);

  if (r < 0)
    return r;
  r = interval_map_copy(&space->map, &copy->map);
  if (r < 0)
    symbol_space_free(copy);
  else
    *ret_space = copy;
  return r;
}

void symbol_space_free(struct symbol_space *space)
{
  if (!space)
    return;
  interval_map_done(&space->map);
  free(space);
}

/* Any change may need room for two more entries: a cut one and a new one. */
static bool space_is_full(const struct symbol_space *space)
{
  return space->map.count + 2 > SYMBOL_MAPPINGS_MAX;
}

static const struct interval *interval_at(const struct symbol_space *space, uint64_t address)
{
  return interval_map_find(&space->map, 0, address);
}

int symbol_space_add(struct symbol_space *space, const struct symbol_mapping *mapping)
{
  struct interval interval = {.first = mapping->start, .last = mapping->end - 1, .offset = mapping->offset};
  int r;

  if (interval.last < interval.first)
    return -EINVAL;
  if (space_is_full(space))
    return LB_E_TOO_BIG;
  r = cache_get(space->cache, mapping, &interval.value);
  return r < 0 ? r : interval_map_add(&space->map, &interval, SYMBOL_MAPPINGS_MAX);
}

int symbol_space_remove(struct symbol_space *space, uint64_t start, uint64_t end)
{
  if (end - 1 < start)
    return -EINVAL;
  if (space_is_full(space))
    return LB_E_TOO_BIG;
  return interval_map_clear(&space->map, 0, start, end - 1, SYMBOL_MAPPINGS_MAX);
}

/* ---- queries ---- */

bool symbol_space_mapping(const struct symbol_space *space, uint64_t address, struct symbol_mapping *ret_mapping)
{
  const struct interval *interval = interval_at(space, address);

  if (!interval)
    return false;
  *ret_mapping = (struct symbol_mapping){.start = interval->first,
                                         .end = interval->last + 1,
                                         .offset = interval->offset,
                                         .path = space->cache->list[interval->value].path};
  return true;
}

int symbol_space_module(struct symbol_space *space, uint64_t address, struct symbol_module **ret_module,
                        uint64_t *ret_address)
{
  const struct interval *interval = interval_at(space, address);
  struct cached *cached = interval ? &space->cache->list[interval->value] : NULL;
  int r = cached ? cached_ask(space->cache, cached) : -ENOENT;

  if (r < 0)
    return r;
  if (!symbol_layout_address(symbol_module_layout(cached->module), interval->offset + (address - interval->first),
                             ret_address))
    return LB_E_NO_ENTRY;
  *ret_module = cached->module;
  return 0;
}

bool symbol_space_find(struct symbol_space *space, uint64_t address, bool wants_lines, struct symbol_place *ret_place)
{
  const struct interval *interval = interval_at(space, address);
  struct symbol_place place = {0};
  struct symbol_module *module;
  uint64_t offset;

  if (!interval)
    return false;
  offset = interval->offset + (address - interval->first);
  if (symbol_space_module(space, address, &module, &place.address) >= 0) {
    offset = place.address;
    (void)symbol_module_find(module, place.address, wants_lines, &place);
  }
  place.module = space->cache->list[interval->value].path;
  if (!place.symbol)
    place.offset = offset;
  *ret_place = place;
  return true;
}

size_t symbol_space_code(struct symbol_space *space, uint64_t address, void *buffer, size_t size)
{
  struct symbol_module *module;
  uint64_t linked;

  if (symbol_space_module(space, address, &module, &linked) < 0)
    return 0;
  return symbol_module_code(module, linked, buffer, size);
}
