/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks for the place of a trigger: trigger.h.
 */
#include "session/trigger.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbol/symbol.h"

enum { GUESSES = 3, GUESS_DISTANCE = 3 };

enum place_kind { PLACE_FUNCTION, PLACE_LINE, PLACE_ADDRESS };

/* An address that was found. */
struct trigger_found {
  uint64_t address, linked; /* in the process, in the file */
  struct symbol_module *module;
};

/* A name that is similar to the one that was not found. */
struct trigger_guess {
  char name[SYMBOL_NAME_MAX + 1];
  size_t distance;
};

struct trigger {
  const char *text;
  enum place_kind kind;
  char *file; /* of FILE:LINE */
  unsigned line;
  uint64_t address;
  struct process_trigger process;
  struct symbol_cache *cache;
  struct symbol_module **modules; /* that were looked at */
  size_t module_count, module_capacity;
  struct trigger_found *found;
  size_t found_count, found_capacity;
  struct text description;
};

/* ---- the text ---- */

static int place_parse(struct trigger *trigger)
{
  const char *text = trigger->text, *colon = strrchr(text, ':');
  char *end = NULL;

  if (!strncmp(text, "0x", 2)) {
    trigger->kind = PLACE_ADDRESS;
    trigger->address = strtoull(text, &end, 16);
    return *end || end == text + 2 ? -EINVAL : 0;
  }
  if (!colon || colon == text || colon[-1] == ':' || !colon[1] || colon[1 + strspn(colon + 1, "0123456789")])
    return 0;
  trigger->kind = PLACE_LINE;
  trigger->line = (unsigned)strtoul(colon + 1, NULL, 10);
  trigger->file = strndup(text, (size_t)(colon - text));
  return trigger->file ? 0 : -ENOMEM;
}

/* ---- a file ---- */

/* A search in one mapping of a file. */
struct place_search {
  struct trigger *trigger;
  const struct process_module *mapping;
  struct symbol_module *module;
  uint64_t *addresses;
  size_t count, most;
};

/* The address in the process of one in the file, or 0: it is not in the mapping. */
static uint64_t address_mapped(const struct place_search *search, uint64_t linked)
{
  const struct symbol_layout *layout = symbol_module_layout(search->module);
  const struct process_module *mapping = search->mapping;

  for (size_t i = 0; i < layout->count; i++) {
    const struct symbol_piece *piece = &layout->pieces[i];
    uint64_t offset = linked - piece->address + piece->offset - mapping->offset;

    if (piece->is_executed && linked - piece->address < piece->size && offset < mapping->end - mapping->start)
      return mapping->start + offset;
  }
  return 0;
}

static void found_note(struct trigger *trigger, const struct trigger_found *found)
{
  struct trigger_found *added;

  for (size_t i = 0; i < trigger->found_count; i++)
    if (trigger->found[i].address == found->address && trigger->found[i].module == found->module)
      return;
  added = array_append(&trigger->found, &trigger->found_count, &trigger->found_capacity);
  if (added)
    *added = *found;
}

static void search_add(struct place_search *search, uint64_t linked)
{
  uint64_t address = address_mapped(search, linked);

  for (size_t i = 0; i < search->count; i++)
    if (search->addresses[i] == address)
      return;
  if (!address || search->count >= search->most)
    return;
  search->addresses[search->count++] = address;
  found_note(search->trigger, &(struct trigger_found){address, linked, search->module});
}

/* Compilers rename functions of which they have changed the parameters. */
static bool is_clone(const char *name, const char *wanted)
{
  size_t length = strlen(wanted);

  return !strncmp(name, wanted, length) &&
         (!strncmp(name + length, ".constprop.", 11) || !strncmp(name + length, ".isra.", 6));
}

/* A C++ name is given with or without its parameters. */
static bool is_demangled(const char *name, const char *wanted)
{
  char plain[SYMBOL_NAME_MAX + 1], last[SYMBOL_NAME_MAX + 1];
  const char *colon = strrchr(wanted, ':');
  size_t length = strlen(wanted);

  snprintf(last, sizeof(last), "%s", colon ? colon + 1 : wanted);
  last[strcspn(last, "(<")] = 0;
  if (strncmp(name, "_Z", 2) != 0 || !strstr(name, last) || !symbol_demangle(name, plain))
    return false;
  return !strncmp(plain, wanted, length) && (!plain[length] || plain[length] == '(');
}

static int name_look(void *data, const struct symbol_entry *entry)
{
  struct place_search *search = data;
  const char *wanted = search->trigger->text;

  if (entry->name && entry->is_code &&
      (!strcmp(entry->name, wanted) || is_clone(entry->name, wanted) || is_demangled(entry->name, wanted)))
    search_add(search, entry->address);
  return 0;
}

static void module_look(struct place_search *search)
{
  struct trigger *trigger = search->trigger;
  const uint64_t *addresses;
  size_t count;

  switch (trigger->kind) {
  case PLACE_FUNCTION:
    symbol_module_names(search->module, name_look, search);
    break;
  case PLACE_LINE:
    count = symbol_module_addresses(search->module, trigger->file, trigger->line, &addresses);
    for (size_t i = 0; i < count; i++)
      search_add(search, addresses[i]);
    break;
  case PLACE_ADDRESS: {
    uint64_t offset = trigger->address - search->mapping->start + search->mapping->offset, linked;

    if (trigger->address - search->mapping->start < search->mapping->end - search->mapping->start &&
        symbol_layout_address(symbol_module_layout(search->module), offset, &linked))
      search_add(search, linked);
    break;
  }
  }
}

static void module_note(struct trigger *trigger, struct symbol_module *module)
{
  struct symbol_module **added;

  for (size_t i = 0; i < trigger->module_count; i++)
    if (trigger->modules[i] == module)
      return;
  added = array_append(&trigger->modules, &trigger->module_count, &trigger->module_capacity);
  if (added)
    *added = module;
}

/* An address may be one of code in no file. */
static size_t place_find(void *data, const struct process_module *mapping, uint64_t *ret_addresses, size_t most)
{
  struct trigger *trigger = data;
  struct place_search search = {.trigger = trigger, .mapping = mapping, .addresses = ret_addresses, .most = most};

  if (!*mapping->path) {
    if (trigger->kind != PLACE_ADDRESS || !most)
      return 0;
    ret_addresses[0] = trigger->address;
    return 1;
  }
  if (symbol_cache_module(trigger->cache, mapping->path, &search.module) < 0)
    return 0;
  module_note(trigger, search.module);
  module_look(&search);
  return search.count;
}

/* ---- from outside ---- */

int trigger_new(const char *place, uint64_t slow, struct trigger **ret_trigger)
{
  struct trigger *trigger = calloc(1, sizeof(*trigger));
  int r;

  if (!trigger)
    return -ENOMEM;
  trigger->text = place;
  trigger->process = (struct process_trigger){slow, place_find, trigger};
  r = place_parse(trigger);
  if (r >= 0)
    r = symbol_cache_new(NULL, &trigger->cache);
  if (r >= 0)
    r = symbol_cache_add_vdso(trigger->cache);
  if (r < 0) {
    trigger_free(trigger);
    return r;
  }
  *ret_trigger = trigger;
  return 0;
}

void trigger_free(struct trigger *trigger)
{
  if (!trigger)
    return;
  symbol_cache_free(trigger->cache);
  free(trigger->modules);
  free(trigger->found);
  free(trigger->file);
  text_done(&trigger->description);
  free(trigger);
}

const struct process_trigger *trigger_process(const struct trigger *trigger)
{
  return &trigger->process;
}

static void mapping_visit(void *data, const struct process_module *mapping)
{
  uint64_t addresses[64];

  place_find(data, mapping, addresses, sizeof(addresses) / sizeof(addresses[0]));
}

int trigger_search(struct trigger *trigger, int process)
{
  return process_modules(process, mapping_visit, trigger);
}

size_t trigger_count(const struct trigger *trigger)
{
  return trigger->found_count;
}

/* ---- messages ---- */

struct guesses {
  const char *wanted;
  struct trigger_guess list[GUESSES];
  size_t count;
};

/* Keeps the most similar names, each once. */
static int guess_look(void *data, const struct symbol_entry *entry)
{
  struct guesses *guesses = data;
  size_t at = 0;

  if (!entry->name || !entry->is_code || !entry->is_function)
    return 0;
  size_t distance = word_distance(guesses->wanted, entry->name);
  if (distance > GUESS_DISTANCE || distance * 2 > strlen(guesses->wanted))
    return 0;
  while (at < guesses->count && guesses->list[at].distance <= distance)
    if (!strcmp(guesses->list[at++].name, entry->name))
      return 0;
  if (at == GUESSES)
    return 0;
  if (guesses->count < GUESSES)
    guesses->count++;
  for (size_t i = guesses->count - 1; i > at; i--)
    guesses->list[i] = guesses->list[i - 1];
  guesses->list[at].distance = distance;
  snprintf(guesses->list[at].name, sizeof(guesses->list[at].name), "%s", entry->name);
  return 0;
}

static void function_complain(struct trigger *trigger)
{
  struct guesses guesses = {.wanted = trigger->text};
  struct text names = {0};

  for (size_t i = 0; i < trigger->module_count; i++)
    symbol_module_names(trigger->modules[i], guess_look, &guesses);
  for (size_t i = 0; i < guesses.count; i++)
    text_addf(&names, "%s%s", !i ? "" : i + 1 < guesses.count ? ", " : " or ", guesses.list[i].name);
  if (guesses.count)
    message("%s: no file of the process has a function of this name; did you mean %s?", trigger->text,
            text_string(&names));
  else
    message("%s: no file of the process has a function of this name; it may be inlined everywhere, or have no symbol: "
            "give a line (FILE:LINE) or an address (0x...)",
            trigger->text);
  text_done(&names);
}

void trigger_complain(struct trigger *trigger)
{
  if (trigger->kind == PLACE_FUNCTION)
    function_complain(trigger);
  else if (trigger->kind == PLACE_LINE)
    message("%s: no file of the process has code of this line, as far as debug information tells", trigger->text);
  else
    message("%s: no code of a file is mapped there", trigger->text);
}

const char *trigger_describe(struct trigger *trigger, uint64_t address)
{
  const struct trigger_found *found = NULL;
  struct symbol_place place;

  for (size_t i = 0; i < trigger->found_count; i++)
    if (trigger->found[i].address == address)
      found = &trigger->found[i];
  text_done(&trigger->description);
  if (!found || !symbol_module_find(found->module, found->linked, true, &place)) {
    text_addf(&trigger->description, "%s", trigger->text);
    return text_string(&trigger->description);
  }
  const char *file = place.frame_count ? place.frames[0].file : NULL, *slash = file ? strrchr(file, '/') : NULL;
  text_addf(&trigger->description, "%s",
            trigger->kind == PLACE_FUNCTION || !place.symbol ? trigger->text : place.symbol);
  if (trigger->kind != PLACE_FUNCTION && place.symbol && place.offset)
    text_addf(&trigger->description, "+0x%llx", (unsigned long long)place.offset);
  if (file && place.frames[0].line)
    text_addf(&trigger->description, " (%s:%u)", slash ? slash + 1 : file, place.frames[0].line);
  return text_string(&trigger->description);
}
