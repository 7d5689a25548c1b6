/* SPDX-License-Identifier: Apache-2.0
 *
 * The build-id of an ELF file: the note of type NT_GNU_BUILD_ID in one of its PT_NOTE segments. Other programs may
 * change the file at any time, so it is read and not mapped, and every value in it is checked.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process/drain.h"

enum { HEADERS_MOST = 128, NOTES_MOST = 4096 };

static bool read_at(int fd, void *bytes, size_t size, uint64_t offset)
{
  return offset <= INT64_MAX && pread(fd, bytes, size, (off_t)offset) == (ssize_t)size;
}

static size_t aligned(size_t size)
{
  return (size + 3) & ~(size_t)3;
}

/* Looks through the notes of a segment. */
static size_t notes_find(const uint8_t *bytes, size_t size, uint8_t *ret_id)
{
  Elf64_Nhdr note;

  for (size_t at = 0; size - at >= sizeof(note);) {
    memcpy(&note, bytes + at, sizeof(note));
    at += sizeof(note);
    if (note.n_namesz > NOTES_MOST || note.n_descsz > NOTES_MOST || aligned(note.n_namesz) + note.n_descsz > size - at)
      return 0;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(bytes + at, "GNU", 4) && note.n_descsz &&
        note.n_descsz <= BUILD_ID_MOST) {
      memcpy(ret_id, bytes + at + 4, note.n_descsz);
      return note.n_descsz;
    }
    at += aligned(note.n_namesz) + aligned(note.n_descsz);
    if (at > size)
      return 0;
  }
  return 0;
}

static size_t segment_find(int fd, uint64_t offset, uint64_t size, uint8_t *ret_id)
{
  uint8_t bytes[NOTES_MOST];

  if (size > sizeof(bytes))
    size = sizeof(bytes);
  return read_at(fd, bytes, size, offset) ? notes_find(bytes, size, ret_id) : 0;
}

static size_t segments_find(int fd, const Elf64_Ehdr *head, uint8_t *ret_id)
{
  size_t size = 0;

  for (unsigned i = 0; i < head->e_phnum && i < HEADERS_MOST && !size; i++) {
    Elf64_Phdr segment;
    if (!read_at(fd, &segment, sizeof(segment), head->e_phoff + i * sizeof(segment)))
      return 0;
    if (segment.p_type == PT_NOTE)
      size = segment_find(fd, segment.p_offset, segment.p_filesz, ret_id);
  }
  return size;
}

static size_t file_find(int fd, uint8_t *ret_id)
{
  Elf64_Ehdr head;

  if (!read_at(fd, &head, sizeof(head), 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr))
    return 0;
  return segments_find(fd, &head, ret_id);
}

size_t build_id_read(const char *path, struct file_mark *ret_mark, uint8_t ret_id[BUILD_ID_MOST])
{
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* the path may name a pipe or a terminal by now */
  struct stat status;
  size_t size = 0;

  *ret_mark = (struct file_mark){0};
  if (fd < 0)
    return 0;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    *ret_mark = file_mark_of(&status);
    size = file_find(fd, ret_id);
  }
  close(fd);
  return size;
}
