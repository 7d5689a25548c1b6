/* SPDX-License-Identifier: Apache-2.0
 *
 * C++ names as the source has them, by the C++ library of this system if it has one: that is loaded when the first such
 * name comes, and nothing is linked with it. The library puts no limit to what it makes of a name: a name can refer to
 * its own parts again and again, so that some hundred bytes stand for gigabytes. Those are not given to it.
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
#define MADE_MAX 26u          /* bits: what the library may make of a name, at most: 64 MiB */
#define BYTES_MAX (64u << 20) /* of what one demangler keeps or throws away */

/* ---- the library ---- */

/* The C++ ABI, 3.4: the result is for free(3), or NULL. */
typedef char *demangle_function(const char *name, char *buffer, size_t *size, int *ret_status);

static demangle_function *library_demangle; /* NULL: none */
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

/* How much can be made of a name, at most, as a power of two. S_, S1_, T_, T1_ and the like stand for what came before:
 * text grows fastest if each part names the one before it three times, which makes 3^(n/3) of n references, or 0.53
 * bits for each. Dp repeats what follows for each element of a list. Letters inside identifiers are counted, too: that
 * errs on the safe side. Of the names in LLVM's library, one of 1500 is over the limit. */
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

/* The part of NAME@plt before the @, by the library, for free(3); or NULL. */
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

/* As symbol_demangle; and how long was what the library made. */
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

/* ---- names that are kept ---- */

/* A symbol's name, by where it lies, and what was made of it. */
struct demangled {
  const char *name;
  char *plain; /* NULL: the name is not mangled, or nothing could be made of it */
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

/* What is known of a name now; NULL without memory. */
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
