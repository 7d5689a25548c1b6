/* SPDX-License-Identifier: Apache-2.0
 *
 * The separate debug file of a stripped file, where Debian, Fedora and gdb put it: by build-id, or by the name and
 * checksum of .gnu_debuglink. GDB manual, "Debugging Information in Separate Files". As the last resort, and if that is
 * allowed, a server is asked (fetch.c).
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "symbol/elf.h"

struct debug_search {
  const struct elf_file *file;
  const struct symbol_layout *layout;
  const char *root;
  char folder[PATH_MAX]; /* of the file, without links */
  const char *name;      /* of .gnu_debuglink, or NULL */
  uint32_t checksum;     /* and its CRC */
};

/* CRC-32 as in zlib, four bits at a time. */
static uint32_t crc_add(uint32_t crc, const uint8_t *bytes, size_t size)
{
  static const uint32_t table[16] = {0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4,
                                     0x4DB26158, 0x5005713C, 0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C,
                                     0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C};

  for (size_t i = 0; i < size; i++) {
    crc = table[(crc ^ bytes[i]) & 15] ^ crc >> 4;
    crc = table[(crc ^ bytes[i] >> 4) & 15] ^ crc >> 4;
  }
  return crc;
}

static bool checksum_is(const struct elf_file *file, uint32_t wanted)
{
  uint8_t buffer[65536];
  uint32_t crc = UINT32_MAX;
  off_t offset = 0;
  ssize_t size;

  while ((size = pread(file->fd, buffer, sizeof(buffer), offset)) > 0 && (uint64_t)offset <= ELF_FILE_MAX) {
    crc = crc_add(crc, buffer, (size_t)size);
    offset += size;
  }
  return size == 0 && ~crc == wanted;
}

/* The build-ids decide if both have one, otherwise the checksum. */
static bool candidate_fits(const struct debug_search *search, const struct elf_file *candidate)
{
  const struct symbol_layout *layout = search->layout;
  struct symbol_layout other;

  elf_layout(candidate->elf, &other);
  if (layout->build_id_size && other.build_id_size)
    return layout->build_id_size == other.build_id_size &&
           !memcmp(layout->build_id, other.build_id, layout->build_id_size);
  return search->name && checksum_is(candidate, search->checksum);
}

__attribute__((format(printf, 3, 4))) static bool candidate_try(const struct debug_search *search,
                                                                struct elf_file *ret_file, const char *format, ...)
{
  struct elf_file candidate;
  va_list list;
  char *path;
  bool fits;
  int r;

  va_start(list, format);
  r = vasprintf(&path, format, list);
  va_end(list);
  if (r < 0)
    return false;
  fits = elf_open_path(&candidate, path) >= 0 && candidate_fits(search, &candidate);
  free(path);
  if (fits)
    *ret_file = candidate;
  else
    elf_close(&candidate);
  return fits;
}

static bool build_id_try(const struct debug_search *search, struct elf_file *ret_file)
{
  const struct symbol_layout *layout = search->layout;
  char rest[2 * SYMBOL_BUILD_ID_MAX + 1] = "";

  if (layout->build_id_size < 2)
    return false;
  for (size_t i = 1; i < layout->build_id_size; i++)
    sprintf(rest + 2 * (i - 1), "%02x", layout->build_id[i]);
  return candidate_try(search, ret_file, "%s/.build-id/%02x/%s.debug", search->root, layout->build_id[0], rest);
}

/* The section has a name, zeros up to a multiple of four, and the checksum. */
static void link_read(struct debug_search *search)
{
  Elf_Scn *scn = elf_section(search->file->elf, ".gnu_debuglink");
  Elf_Data *data = scn ? sym_elf_rawdata(scn, NULL) : NULL;
  size_t length;

  if (!data || !data->d_buf)
    return;
  length = strnlen(data->d_buf, data->d_size);
  if (!length || length > NAME_MAX || memchr(data->d_buf, '/', length) || (length + 4) / 4 * 4 + 4 > data->d_size)
    return;
  search->name = data->d_buf;
  search->checksum = bytes_get_u32(search->name + (length + 4) / 4 * 4);
}

/* The folder of a file, without links. */
static bool folder_get(const char *path, char folder[PATH_MAX])
{
  char *slash;

  if (!realpath(path, folder))
    return false;
  slash = strrchr(folder, '/');
  if (slash)
    *slash = '\0';
  return slash;
}

static bool link_try(struct debug_search *search, const char *path, struct elf_file *ret_file)
{
  link_read(search);
  if (!search->name || !folder_get(path, search->folder))
    return false;
  return candidate_try(search, ret_file, "%s/%s", search->folder, search->name) ||
         candidate_try(search, ret_file, "%s/.debug/%s", search->folder, search->name) ||
         candidate_try(search, ret_file, "%s%s/%s", search->root, search->folder, search->name);
}

static bool fetch_try(const struct debug_search *search, const char *path, struct elf_file *ret_file)
{
  char *copy;
  bool fits;

  if (debug_fetch(search->layout, path, &copy) < 0)
    return false;
  fits = candidate_try(search, ret_file, "%s", copy);
  free(copy);
  return fits;
}

int debug_file_open(const struct elf_file *file, const struct symbol_layout *layout, const char *path,
                    const char *debug_root, struct elf_file *ret_file)
{
  struct debug_search search = {.file = file, .layout = layout, .root = debug_root};

  return build_id_try(&search, ret_file) || link_try(&search, path, ret_file) || fetch_try(&search, path, ret_file)
           ? 0
           : LB_E_NO_SYMBOLS;
}

bool debug_alt_is_usable(const struct elf_file *file)
{
  Elf_Scn *scn = elf_section(file->elf, ".gnu_debugaltlink");
  Elf_Data *data = scn ? sym_elf_rawdata(scn, NULL) : NULL;
  const char *name = data ? data->d_buf : NULL;
  char self[32], folder[PATH_MAX] = "";
  struct stat status;
  char *path;
  bool is_usable;

  if (!name || strnlen(name, data->d_size) == data->d_size)
    return true;
  snprintf(self, sizeof(self), "/proc/self/fd/%d", file->fd);
  if (*name != '/' && (file->fd < 0 || !folder_get(self, folder)))
    return true;
  if (asprintf(&path, "%s/%s", folder, name) < 0)
    return false;
  is_usable = stat(path, &status) < 0 || S_ISREG(status.st_mode);
  free(path);
  return is_usable;
}
