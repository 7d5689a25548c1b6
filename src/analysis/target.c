/* SPDX-License-Identifier: Apache-2.0
 *
 * The words by which users name places of a program, and their meaning. Every command accepts what any command prints.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/filter.h"
#include "analysis/hot.h"
#include "analysis/names_inside.h"
#include "base/base.h"

#define WORD_MAX 4096u    /* bytes of a word: longer ones match nothing */
#define STREAMS_MAX 4096u /* streams whose address spaces are searched */

/* ---- reading a word ---- */

/* The last ':' between two parts of a word, but not one of the two in "a::b". NULL if there is none. */
static char *word_colon(char *word)
{
  for (char *at = strrchr(word, ':'); at && at > word; at = memrchr(word, ':', (size_t)(at - word))) {
    if (at[-1] != ':')
      return at[1] ? at : NULL;
    at--;
  }
  return NULL;
}

static bool is_decimal(const char *word)
{
  return *word && word[strspn(word, "0123456789")] == '\0' && strlen(word) <= 9;
}

/* ADDRESS..ADDRESS */
static bool range_parse(const char *word, struct analysis_target *target)
{
  const char *dots = strstr(word, "..");
  char first[32];
  size_t length = dots ? (size_t)(dots - word) : 0;

  if (!dots || length >= sizeof(first))
    return false;
  memcpy(first, word, length);
  first[length] = '\0';
  return number_parse(first, &target->first) >= 0 && number_parse(dots + 2, &target->last) >= 0;
}

/* The number after a '+', or as 0x... after a ':', is an offset or an address. */
static bool offset_parse(char *word, struct analysis_target *target)
{
  char *plus = strrchr(word, '+'), *colon = word_colon(word);

  if (!plus && colon && !strncmp(colon, ":0x", 3))
    plus = colon;
  if (!plus || plus == word || number_parse(plus + 1, &target->first) < 0)
    return false;
  *plus = '\0';
  target->last = target->first;
  target->is_offset = true;
  return true;
}

int analysis_target_parse(char *word, struct analysis_target *ret_target)
{
  struct analysis_target target = {.last = UINT64_MAX};
  size_t length = strlen(word);
  char *colon;

  if (length > 1 && word[length - 1] == *ANALYSIS_EXTENT_GUESS)
    word[length - 1] = '\0';
  if (!*word)
    return LB_E_BAD_SYNTAX;
  if (range_parse(word, &target)) {
    *ret_target = target;
    return target.last < target.first ? -ERANGE : 0;
  }
  if (number_parse(word, &target.first) >= 0) {
    target.last = target.first;
    *ret_target = target;
    return 0;
  }
  target = (struct analysis_target){.symbol = word, .last = UINT64_MAX};
  if (!offset_parse(word, &target)) {
    target.first = 0; /* number_parse may have changed it */
    colon = word_colon(word);
    if (colon && is_decimal(colon + 1)) {
      *colon = '\0';
      target.source = word;
      target.line = (unsigned)strtoul(colon + 1, NULL, 10);
    } else if (colon) {
      target.inner = colon + 1;
    }
  }
  *ret_target = target;
  return 0;
}

/* ---- modules and lines ---- */

/* "lua5.4" and "[lua5.4]" are the same module; the brackets of "[vdso]" are part of its name. For a path, the last
 * component counts. */
static bool module_is(const char *word, size_t length, const char *module)
{
  const char *slash = memrchr(word, '/', length);

  if (!module)
    return false;
  if (strlen(module) == length && !memcmp(word, module, length))
    return true;
  if (length > 2 && word[0] == '[' && word[length - 1] == ']')
    return module_is(word + 1, length - 2, module);
  return slash && module_is(slash + 1, length - (size_t)(slash + 1 - word), module);
}

bool analysis_target_is_module(const struct analysis_target *target, const char *module)
{
  return target->is_offset && module_is(target->symbol, strlen(target->symbol), module);
}

/* "sort.c" and "lib/sort.c" match "/home/me/lib/sort.c". */
static bool path_is(const char *word, const char *path)
{
  size_t length = strlen(word), whole = strlen(path);

  return whole >= length && !strcmp(path + whole - length, word) &&
         (whole == length || path[whole - length - 1] == '/');
}

bool analysis_target_is_line(const struct analysis_target *target, struct analysis_names *names,
                             const struct analysis_location *location)
{
  const char *file;
  unsigned line;

  assert(target->source);
  return analysis_names_line(names, location, &file, &line) && line == target->line && path_is(target->source, file);
}

/* ---- functions ---- */

static bool extent_holds(struct analysis_names *names, const struct analysis_extent *extent,
                         const struct analysis_location *location)
{
  struct analysis_extent found;

  if (location->file != extent->file || location->space != extent->space)
    return false;
  analysis_extent_find(names, location, &found);
  return found.start == extent->start && !found.symbol == !extent->symbol &&
         (found.source == ANALYSIS_EXTENT_BY_NOTHING) == (extent->source == ANALYSIS_EXTENT_BY_NOTHING);
}

/* Matches an address of the run or, if nothing was mapped there, an address of a file as it is linked. */
static bool address_names(struct analysis_names *names, uint64_t address, const struct analysis_extent *extent)
{
  const struct analysis_location linked = {extent->file, extent->space, address};
  bool is_mapped = false;

  for (uint32_t stream = 0; stream < STREAMS_MAX; stream++) {
    uint32_t space = analysis_names_space(names, stream);
    struct analysis_location location;

    if (space == STREAM_NO_SPACE)
      break;
    location = analysis_names_locate(names, space, address);
    is_mapped |= location.file != ANALYSIS_NO_FILE;
    if (extent_holds(names, extent, &location))
      return true;
  }
  return !is_mapped && extent->file != ANALYSIS_NO_FILE && extent_holds(names, extent, &linked);
}

static bool line_names(struct analysis_names *names, const struct analysis_target *target,
                       const struct analysis_extent *extent)
{
  const struct names_file *file = extent->file < names->count ? &names->list[extent->file] : NULL;
  const uint64_t *addresses;
  size_t count =
    file && file->module ? symbol_module_addresses(file->module, target->source, target->line, &addresses) : 0;

  for (size_t i = 0; i < count; i++)
    if (addresses[i] >= extent->start && (!extent->end || addresses[i] < extent->end))
      return true;
  return false;
}

static bool symbol_names(const struct analysis_target *target, const struct analysis_extent *extent)
{
  if (extent->source == ANALYSIS_EXTENT_BY_NOTHING) /* "[MODULE]" */
    return !target->is_offset && *target->symbol == '[' &&
           module_is(target->symbol, strlen(target->symbol), extent->module);
  if (!extent->symbol)
    return false;
  if (analysis_symbol_is(extent->symbol, extent->mangled, target->symbol))
    return !target->is_offset || !extent->end || target->first < extent->end - extent->start;
  return target->inner && module_is(target->symbol, (size_t)(target->inner - 1 - target->symbol), extent->module) &&
         analysis_symbol_is(extent->symbol, extent->mangled, target->inner);
}

bool analysis_target_names(const struct analysis_target *target, struct analysis_names *names,
                           const struct analysis_extent *extent)
{
  const struct analysis_location linked = {extent->file, extent->space, target->first};

  if (!target->symbol)
    return address_names(names, target->first, extent);
  if (target->source)
    return line_names(names, target, extent);
  if (analysis_target_is_module(target, extent->module) && extent_holds(names, extent, &linked))
    return true;
  return symbol_names(target, extent);
}

bool analysis_word_names(const char *word, struct analysis_names *names, const struct analysis_extent *extent)
{
  char copy[WORD_MAX];
  struct analysis_target target;

  if (strlen(word) >= sizeof(copy))
    return false;
  strcpy(copy, word);
  if (extent->symbol && analysis_symbol_is(extent->symbol, extent->mangled, word))
    return true;
  return analysis_target_parse(copy, &target) >= 0 && analysis_target_names(&target, names, extent);
}

bool analysis_word_is_place(const char *word)
{
  char copy[WORD_MAX];
  struct analysis_target target;

  if (strlen(word) >= sizeof(copy))
    return false;
  strcpy(copy, word);
  return analysis_target_parse(copy, &target) >= 0 &&
         (!target.symbol || target.is_offset || target.source || target.inner || *word == '[');
}
