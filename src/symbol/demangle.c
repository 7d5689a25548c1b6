/* SPDX-License-Identifier: Apache-2.0
 *
 * Demangles C++ names with the C++ library of this system, if there is one. The library is loaded on the first such
 * name; nothing is linked with it. It does not limit the size of its results: a name can refer to its own parts again
 * and again, so that a few hundred bytes stand for gigabytes. Such names are not given to it.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "base/base.h"
#include "symbol/loader.h"
#include "symbol/table.h"

#define LIBRARY "libstdc++.so.6"
#define MADE_MAX 26u          /* bits: the largest result that the library may make of a name: 64 MiB */
#define BYTES_MAX (64u << 20) /* of all results of one demangler, kept or discarded */

/* ---- the library ---- */

/* The C++ ABI, 3.4: the result is for free(3), or NULL. */
typedef char *demangle_function(const char *name, char *buffer, size_t *size, int *ret_status);

static demangle_function *library_demangle; /* NULL if there is none */
static once_flag library_flag = ONCE_FLAG_INIT;

static void library_load(void)
{
  loader_find(LIBRARY, "__cxa_demangle", &library_demangle);
}

/* ---- one name ---- */

static unsigned bits_of(size_t number)
{
  unsigned bits = 0;

  for (; number; number >>= 1)
    bits++;
  return bits;
}

/* An upper bound of the size of a demangled name, as a power of two. S_, S1_, T_, T1_ and similar codes stand for
 * earlier parts. The text grows fastest if each part refers to the one before it three times: n references then make
 * 3^(n/3) times the text, or 0.53 bits for each. Dp repeats what follows for each element of a list. Letters inside
 * identifiers are counted, too, which is on the safe side. One of 1500 names in LLVM's library exceeds the limit. */
static unsigned name_bits(const char *name, size_t length)
{
  static const char numbers[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  unsigned references = 0, lists = 0;

  for (size_t i = 0; i + 1 < length; i++) {
    references += (name[i] == 'S' || name[i] == 'T') && strchr(numbers, name[i + 1]);
    lists += name[i] == 'D' && name[i + 1] == 'p';
  }
  return (references * 17 + 31) / 32 + (lists + 1) * bits_of(length);
}

/* Demangles the part of NAME@plt before the @. The result is for free(3), or NULL. */
static char *name_demangle(const char *name, size_t length)
{
  char part[SYMBOL_NAME_MAX + 1];
  int status = 0;

  if (strncmp(name, "_Z", 2) != 0 || length > SYMBOL_NAME_MAX || name_bits(name, length) > MADE_MAX)
    return NULL;
  call_once(&library_flag, library_load);
  if (!library_demangle)
    return NULL;
  memcpy(part, name, length);
  part[length] = '\0';
  return library_demangle(part, NULL, NULL, &status);
}

/* Like symbol_demangle; also gives the length of the library's result. */
static bool name_plain(const char *name, char ret_plain[SYMBOL_NAME_MAX + 1], size_t *ret_made)
{
  size_t length = strcspn(name, "@"), rest = strlen(name + length), made;
  char *plain = name_demangle(name, length);
  bool is_fit;

  *ret_made = made = plain ? strlen(plain) : 0;
  is_fit = made && rest <= SYMBOL_NAME_MAX && made <= SYMBOL_NAME_MAX - rest && text_is_fit(plain, made);
  if (is_fit) {
    memcpy(ret_plain, plain, made);
    memcpy(ret_plain + made, name + length, rest + 1);
  }
  free(plain);
  return is_fit;
}

bool symbol_demangle(const char *name, char ret_plain[SYMBOL_NAME_MAX + 1])
{
  size_t made;

  return name_plain(name, ret_plain, &made);
}

/* ---- cached names ---- */

/* A symbol's name, identified by its address in memory, and its demangled form. */
struct demangled {
  const char *name;
  char *plain; /* NULL if the name is not mangled, or cannot be demangled */
};

struct symbol_demangler {
  struct demangled *list;
  size_t count, capacity;
  struct hash_index index; /* by name */
  size_t bytes;
};

int symbol_demangler_new(struct symbol_demangler **ret_demangler)
{
  struct symbol_demangler *demangler = calloc(1, sizeof(*demangler));

  if (!demangler)
    return -ENOMEM;
  *ret_demangler = demangler;
  return 0;
}

void symbol_demangler_free(struct symbol_demangler *demangler)
{
  if (!demangler)
    return;
  for (size_t i = 0; i < demangler->count; i++)
    free(demangler->list[i].plain);
  free(demangler->list);
  hash_index_done(&demangler->index);
  free(demangler);
}

static char *plain_make(struct symbol_demangler *demangler, const char *name)
{
  char plain[SYMBOL_NAME_MAX + 1];
  size_t made;
  bool is_fit = name_plain(name, plain, &made);

  demangler->bytes += made + sizeof(struct demangled);
  return is_fit ? strdup(plain) : NULL;
}

/* Demangles a name and adds it to the cache; NULL without memory. */
static const struct demangled *demangled_add(struct symbol_demangler *demangler, const char *name, uint64_t hash)
{
  struct demangled *added = array_append(&demangler->list, &demangler->count, &demangler->capacity);

  if (!added)
    return NULL;
  if (hash_index_add(&demangler->index, hash, demangler->count - 1) < 0) {
    demangler->count--;
    return NULL;
  }
  *added = (struct demangled){name, plain_make(demangler, name)};
  return added;
}

const char *symbol_demangler_name(struct symbol_demangler *demangler, const char *name)
{
  const struct demangled *found = NULL;
  uint64_t hash = hash_start((uintptr_t)name);
  uint32_t number;

  if (!demangler || !name || strncmp(name, "_Z", 2) != 0)
    return name;
  for (size_t at = 0; !found && (number = hash_index_next(&demangler->index, hash, &at)) != HASH_NONE;)
    if (demangler->list[number].name == name)
      found = &demangler->list[number];
  if (!found && demangler->bytes < BYTES_MAX)
    found = demangled_add(demangler, name, hash);
  return found && found->plain ? found->plain : name;
}
