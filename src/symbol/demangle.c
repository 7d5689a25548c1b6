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
#define MADE_MAX 26u              /* bits: what the library may make of a name, at most: 64 MiB */
#define BYTES_MAX (64u << 20)     /* of what one demangler keeps or throws away */
#define NAMES_LEAST ((size_t)256) /* a power of two */

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
  const char *name; /* NULL: the place is free */
  char *plain;      /* NULL: the name is not mangled, or nothing could be made of it */
};

struct symbol_demangler {
  struct demangled *list; /* a hash */
  size_t count, capacity;
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
  for (size_t i = 0; i < demangler->capacity; i++)
    free(demangler->list[i].plain);
  free(demangler->list);
  free(demangler);
}

static struct demangled *demangled_get(struct demangled *list, size_t capacity, const char *name)
{
  size_t at = (size_t)((uintptr_t)name * UINT64_C(0x9E3779B97F4A7C15) >> 20);

  while (list[at & (capacity - 1)].name && list[at & (capacity - 1)].name != name)
    at++;
  return &list[at & (capacity - 1)];
}

/* Room for one more. Returns false if there is no memory. */
static bool demangler_grow(struct symbol_demangler *demangler)
{
  size_t capacity = demangler->capacity ? 2 * demangler->capacity : NAMES_LEAST;
  struct demangled *list;

  if (2 * (demangler->count + 1) <= demangler->capacity)
    return true;
  list = calloc(capacity, sizeof(*list));
  if (!list)
    return false;
  for (size_t i = 0; i < demangler->capacity; i++)
    if (demangler->list[i].name)
      *demangled_get(list, capacity, demangler->list[i].name) = demangler->list[i];
  free(demangler->list);
  demangler->list = list;
  demangler->capacity = capacity;
  return true;
}

static char *plain_make(struct symbol_demangler *demangler, const char *name)
{
  char plain[SYMBOL_NAME_MAX + 1];
  size_t made;
  bool is_fit = name_plain(name, plain, &made);

  demangler->bytes += made + sizeof(struct demangled);
  return is_fit ? strdup(plain) : NULL;
}

const char *symbol_demangler_name(struct symbol_demangler *demangler, const char *name)
{
  struct demangled *found;

  if (!demangler || !name || strncmp(name, "_Z", 2) != 0)
    return name;
  found = demangler->capacity ? demangled_get(demangler->list, demangler->capacity, name) : NULL;
  if (!found || !found->name) {
    if (demangler->bytes >= BYTES_MAX || !demangler_grow(demangler))
      return name;
    found = demangled_get(demangler->list, demangler->capacity, name);
    *found = (struct demangled){name, plain_make(demangler, name)};
    demangler->count++;
  }
  return found->plain ? found->plain : name;
}
