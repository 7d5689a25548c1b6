/* SPDX-License-Identifier: Apache-2.0
 *
 * A struct's fields from DWARF. See fields.h.
 */
#include "fields.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static bool type_of(Dwarf_Die *die, Dwarf_Die *ret_type)
{
  Dwarf_Attribute attribute;
  return dwarf_attr_integrate(die, DW_AT_type, &attribute) && dwarf_formref_die(&attribute, ret_type);
}

/* Without const, typedef and the like. */
static void type_peel(Dwarf_Die *type)
{
  Dwarf_Die inner;
  for (;;)
    switch (dwarf_tag(type)) {
    case DW_TAG_typedef:
    case DW_TAG_const_type:
    case DW_TAG_volatile_type:
    case DW_TAG_atomic_type:
      if (!type_of(type, &inner))
        return;
      *type = inner;
      break;
    default:
      return;
    }
}

static void type_mark(Dwarf_Die *type, uint8_t *map, size_t size);

static void members_mark(Dwarf_Die *type, uint8_t *map, size_t size)
{
  Dwarf_Die member, inner;
  if (dwarf_child(type, &member) != 0)
    return;
  do {
    Dwarf_Attribute attribute;
    Dwarf_Word offset = 0, bytes;
    if (dwarf_tag(&member) != DW_TAG_member || !type_of(&member, &inner))
      continue;
    if (dwarf_attr(&member, DW_AT_data_member_location, &attribute))
      dwarf_formudata(&attribute, &offset);
    if (dwarf_aggregate_size(&inner, &bytes) == 0 && offset + bytes <= size)
      type_mark(&inner, map + offset, bytes);
  } while (dwarf_siblingof(&member, &member) == 0);
}

static void type_mark(Dwarf_Die *type, uint8_t *map, size_t size)
{
  Dwarf_Die inner;
  Dwarf_Word bytes;
  type_peel(type);
  switch (dwarf_tag(type)) {
  case DW_TAG_structure_type:
  case DW_TAG_union_type:
    members_mark(type, map, size);
    break;
  case DW_TAG_array_type:
    if (!type_of(type, &inner) || dwarf_aggregate_size(&inner, &bytes) != 0 || bytes == 0)
      return;
    for (size_t i = 0; i + bytes <= size; i += bytes) {
      Dwarf_Die element = inner;
      type_mark(&element, map + i, bytes);
    }
    break;
  default:
    memset(map, 1, size);
    break;
  }
}

static bool unit_find(Dwarf_Die *unit, const char *name, size_t size, Dwarf_Die *ret_type)
{
  Dwarf_Die die;
  Dwarf_Word bytes;
  if (dwarf_child(unit, &die) != 0)
    return false;
  do {
    const char *own = dwarf_diename(&die);

    if (dwarf_tag(&die) == DW_TAG_structure_type && own && !strcmp(own, name) &&
        dwarf_aggregate_size(&die, &bytes) == 0 && bytes == size) {
      *ret_type = die;
      return true;
    }
  } while (dwarf_siblingof(&die, &die) == 0);
  return false;
}

static bool program_find(Dwarf *dwarf, const char *name, size_t size, Dwarf_Die *ret_type)
{
  Dwarf_Off next, at = 0;
  size_t head;
  for (; dwarf_nextcu(dwarf, at, &next, &head, NULL, NULL, NULL) == 0; at = next) {
    Dwarf_Die unit;
    if (dwarf_offdie(dwarf, at + head, &unit) && unit_find(&unit, name, size, ret_type))
      return true;
  }
  return false;
}

bool fields_of(const char *name, uint8_t *map, size_t size)
{
  int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

  Dwarf *dwarf = fd < 0 ? NULL : dwarf_begin(fd, DWARF_C_READ);
  Dwarf_Die type;
  bool is_found = dwarf && program_find(dwarf, name, size, &type);
  if (is_found)
    type_mark(&type, map, size);
  if (dwarf)
    dwarf_end(dwarf);
  if (fd >= 0)
    close(fd);
  return is_found;
}
