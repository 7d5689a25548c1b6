/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts linear addresses to locations, and looks up information about locations.
 */
#include "analysis/location.h"

#include <errno.h>

#include "analysis/names_inside.h"

/* ---- records of a trace ---- */

/* Code in the trace is code at a location: mostly in no file, or in a pseudo file such as "[vdso]". */
static int names_code(struct analysis_names *names, const struct lb_trace_code *code)
{
  const uint8_t *bytes = code->bytes;
  uint64_t address = code->address;
  size_t left = code->size;

  names_change(names);
  while (left) {
    const struct interval *mapping = interval_map_find(&names->map, code->space, address);
    struct analysis_location location = analysis_names_locate(names, code->space, address);
    uint64_t part = mapping ? mapping->last - address + 1 : GRANULE - address % GRANULE;
    uint64_t reach = jit_names_reach(names, code->space, address);
    int r;

    part = part && part < reach ? part : reach;

    part = part && part < left ? part : left;
    r = code_store_add(&names->code, &location, bytes, (size_t)part);
    if (r < 0)
      return r;
    bytes += part;
    address += part;
    left -= (size_t)part;
  }
  return 0;
}

int analysis_names_record(struct analysis_names *names, const struct lb_trace_record *record)
{
  const struct trace_names *names_record = trace_record_names(record);

  if (names_record)
    return jit_names_take(names, names_record);
  if (record->type == LB_TRACE_MODULE)
    return analysis_names_module(names, &record->module);
  if (record->type == LB_TRACE_CODE)
    return names_code(names, &record->code);
  if (record->type == LB_TRACE_STREAM)
    return stream_list_describe(&names->streams, &record->stream);
  if (record->type == LB_TRACE_META)
    return stream_list_meta(&names->streams, &record->meta);
  return 0;
}

uint32_t analysis_names_generation(const struct analysis_names *names)
{
  return names->generation;
}

uint32_t analysis_names_space(const struct analysis_names *names, uint32_t stream)
{
  return stream < names->streams.count && names->streams.streams[stream].is_described
           ? names->streams.streams[stream].space
           : STREAM_NO_SPACE;
}

/* ---- locations ---- */

struct analysis_location analysis_names_locate(struct analysis_names *names, uint32_t space, uint64_t address)
{
  const struct interval *mapping = names_mapping(names, space, address);
  struct analysis_location location = {.file = ANALYSIS_NO_FILE, .space = space, .address = address};
  const struct names_file *file;
  uint64_t linked;

  if (names_locate_jit(names, mapping, space, address, &location) || !mapping)
    return location;
  file = &names->list[mapping->value];
  location.file = mapping->value;
  location.space = 0;
  location.address = mapping->offset + (address - mapping->first);
  if (file->layout && names_file_address(file, location.address, &linked))
    location.address = linked;
  return location;
}

/* Processes may share the translation of a file's code. The code in no file that it calls is that of each process. */
struct analysis_location analysis_names_target(struct analysis_names *names, const struct lb_trace_count *count)
{
  struct analysis_location location = analysis_names_locate(names, count->space, count->to);

  if (location.file == ANALYSIS_NO_FILE && trace_count_target(count) != count->space)
    location = analysis_names_locate(names, trace_count_target(count), count->to);
  return location;
}

static const struct names_file *location_file(const struct analysis_names *names,
                                              const struct analysis_location *location)
{
  return location->file < names->count ? &names->list[location->file] : NULL;
}

bool analysis_names_symbol(struct analysis_names *names, const struct analysis_location *location,
                           struct analysis_name *ret_name)
{
  const struct names_file *file = location_file(names, location);
  struct analysis_name name;

  if (!file)
    return false;
  name = (struct analysis_name){
    .module = file->base, .file = location->file, .offset = location->address, .linked = location->address};
  if (jit_names_is_file(names, location->file)
        ? jit_names_symbol(names, location->address, &name)
        : names_file_has_symbols(file) && names_file_find(file, location->address, &name)) {
    name.start = location->address - name.offset;
    names_demangle(names, &name);
  }
  *ret_name = name;
  return true;
}

bool analysis_names_place(struct analysis_names *names, const struct analysis_location *location,
                          struct symbol_place *ret_place)
{
  const struct names_file *file = location_file(names, location);
  struct symbol_place place = {0};
  struct analysis_name name;

  if (!file || !analysis_names_symbol(names, location, &name))
    return false;
  if (!file->module || !symbol_module_find(file->module, location->address, true, &place))
    place = (struct symbol_place){.address = location->address};
  place.module = file->name;
  place.symbol = name.symbol;
  place.mangled = name.mangled;
  place.offset = name.offset;
  *ret_place = place;
  return true;
}

bool analysis_names_line(struct analysis_names *names, const struct analysis_location *location, const char **ret_file,
                         unsigned *ret_line)
{
  const struct names_file *file = location_file(names, location);

  return file && file->module && symbol_module_line(file->module, location->address, ret_file, ret_line);
}

size_t analysis_names_code(struct analysis_names *names, const struct analysis_location *location, uint8_t *bytes,
                           size_t size)
{
  const struct names_file *file = location_file(names, location);
  size_t done = code_store_get(&names->code, location, bytes, size);
  struct analysis_location lower = *location;

  while (!done && jit_names_is_file(names, location->file) && jit_names_lower(names, &lower.address))
    done = code_store_get(&names->code, &lower, bytes, size);
  if (done || !file || !file->module || (file->layout && file->layout->is_32)) /* 64-bit code only */
    return done;
  return symbol_module_code(file->module, location->address, bytes, size);
}

const struct symbol_layout *analysis_names_layout(const struct analysis_names *names, uint32_t file)
{
  return file < names->count ? names->list[file].layout : NULL;
}

/* ---- displacement ---- */

bool analysis_names_displaces(struct analysis_names *names, const struct lb_trace_record *record)
{
  const struct lb_trace_module *module = &record->module;
  const struct trace_names *names_record = trace_record_names(record);
  uint64_t last;

  if (names_record)
    return jit_names_displace(names, names_record);
  if (record->type == LB_TRACE_CODE) {
    uint8_t byte;
    struct analysis_location location = {ANALYSIS_NO_FILE, record->code.space, record->code.address};

    (void)jit_names_locate(names, record->code.space, record->code.address, &location);

    return code_store_get(&names->code, &location, &byte, 1) > 0; /* code that changes: a just-in-time compiler */
  }
  if (record->type != LB_TRACE_MODULE || !module->size)
    return false;
  last = module->address + module->size - 1;
  last = last < module->address ? UINT64_MAX : last;
  return interval_map_overlaps(&names->map, module->space, module->address, last);
}
