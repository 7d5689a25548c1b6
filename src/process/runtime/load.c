/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps a program and its dynamic linker, as the kernel does on execve (ELF specification, "Program Loading"). The file
 * is not trusted.
 */
#include <asm/unistd.h>
#include <elf.h>
#include <linux/fcntl.h>
#include <linux/mman.h>

#include "process/runtime/runtime.h"

enum { HEADERS_MOST = 64, PATH_MOST = 4096, X_OK = 1 };

static const uint64_t address_most = 0x7FFFFFFFF000;
enum { STACK_NEAR = 8 << 20 }; /* bytes: arguments and environment are at the end of the stack */

/* A file that is being mapped. */
struct file {
  int fd;
  const char *path;
  bool is_program;          /* not its interpreter */
  enum process_error error; /* set on failure */
  int system_error;
  Elf64_Ehdr header;
  Elf64_Phdr segments[HEADERS_MOST];
};

static bool file_fail(struct file *file, enum process_error error, int64_t system_error)
{
  file->error = error;
  file->system_error = is_failure(system_error) ? (int)system_error : 0;
  return false;
}

/* ---- headers ---- */

static bool file_open(struct file *file, const char *path)
{
  int64_t fd = kernel_call(__NR_openat, (uint64_t)AT_FDCWD, (uint64_t)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);

  if (is_failure(fd))
    return file_fail(file, fd == -ENOENT || fd == -ENOTDIR ? PROCESS_E_NOT_FOUND : PROCESS_E_NO_ACCESS, fd);
  file->fd = (int)fd;
  int64_t result = kernel_call(__NR_faccessat, (uint64_t)AT_FDCWD, (uint64_t)path, X_OK, 0, 0, 0);
  return !is_failure(result) || file_fail(file, PROCESS_E_NO_ACCESS, result);
}

static bool file_read(const struct file *file, void *to, uint64_t size, uint64_t offset)
{
  return kernel_call(__NR_pread64, (uint64_t)file->fd, (uint64_t)to, size, offset, 0, 0) == (int64_t)size;
}

static bool file_read_header(struct file *file)
{
  Elf64_Ehdr *header = &file->header;
  static const uint8_t magic[] = {0x7F, 'E', 'L', 'F'};
  int64_t size = kernel_call(__NR_pread64, (uint64_t)file->fd, (uint64_t)header, sizeof(*header), 0, 0, 0);
  if (size < EI_NIDENT)
    return file_fail(file, PROCESS_E_NOT_ELF, size);
  for (unsigned i = 0; i < sizeof(magic); i++)
    if (header->e_ident[i] != magic[i])
      return file_fail(file, PROCESS_E_NOT_ELF, 0);
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || size != sizeof(*header) || header->e_machine != EM_X86_64)
    return file_fail(file, PROCESS_E_NOT_X86_64, 0);
  bool is_good = (header->e_type == ET_EXEC || header->e_type == ET_DYN) && header->e_phnum &&
                 header->e_phnum <= HEADERS_MOST && header->e_phentsize == sizeof(Elf64_Phdr) &&
                 file_read(file, file->segments, header->e_phnum * sizeof(Elf64_Phdr), header->e_phoff);
  return is_good || file_fail(file, PROCESS_E_BAD_ELF, 0);
}

/* Whether a load segment's addresses are in user space and its offset matches its address. */
static bool is_segment_good(const Elf64_Phdr *segment)
{
  return segment->p_vaddr < address_most && segment->p_memsz <= address_most - segment->p_vaddr &&
         segment->p_filesz <= segment->p_memsz && segment->p_offset <= INT64_MAX - segment->p_filesz - PROCESS_PAGE &&
         (segment->p_vaddr - segment->p_offset) % PROCESS_PAGE == 0;
}

/* Finds the first address, the address after the last, and the strictest alignment of the load segments. */
static bool file_measure(struct file *file, struct range *ret_span, uint64_t *ret_alignment)
{
  struct range span = {.start = UINT64_MAX};
  uint64_t alignment = PROCESS_PAGE;

  for (unsigned i = 0; i < file->header.e_phnum; i++) {
    const Elf64_Phdr *segment = &file->segments[i];
    if (segment->p_type != PT_LOAD)
      continue;
    if (!is_segment_good(segment))
      return file_fail(file, PROCESS_E_BAD_ELF, 0);
    if (page_down(segment->p_vaddr) < span.start)
      span.start = page_down(segment->p_vaddr);
    if (page_up(segment->p_vaddr + segment->p_memsz) > span.end)
      span.end = page_up(segment->p_vaddr + segment->p_memsz);
    bool is_power = segment->p_align && !(segment->p_align & (segment->p_align - 1));
    if (is_power && segment->p_align > alignment && segment->p_align <= 1 << 30)
      alignment = segment->p_align;
  }
  if (span.start >= span.end)
    return file_fail(file, PROCESS_E_BAD_ELF, 0);
  *ret_span = span;
  *ret_alignment = alignment;
  return true;
}

/* ---- mapping ---- */

enum { RESERVE_FLAGS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };

/* The dynamic linker goes into a range that the runtime keeps free for it. */
static int64_t reserve_interpreter(uint64_t size)
{
  uint64_t start = page_down((uint64_t)interpreter_place + INTERPRETER_PLACE - size);

  the_runtime.interpreter = start;
  return kernel_map(start, size, PROT_NONE, RESERVE_FLAGS | MAP_FIXED, -1, 0);
}

/* Reserves this range if it is free. */
static int64_t reserve_at(uint64_t start, uint64_t size)
{
  int64_t result = kernel_map(start, size, PROT_NONE, RESERVE_FLAGS | MAP_FIXED_NOREPLACE, -1, 0);

  if (result == (int64_t)start || is_failure(result))
    return result;
  kernel_call(__NR_munmap, (uint64_t)result, size, 0, 0, 0, 0); /* an old kernel that ignores the flag */
  return -EEXIST;
}

/* The kernel places a program that has an interpreter at two thirds of the address space (ELF_ET_DYN_BASE) if addresses
 * are not randomised. The kernel's stack then ends where user space ends; the path is a word of the command line, which
 * is at that end. Returns 0 if addresses are randomised. */
static uint64_t unrandomised_place(const char *path, uint64_t alignment)
{
  return (uint64_t)path > address_most - STACK_NEAR ? (address_most / 3 * 2) & ~(alignment - 1) & ~(PROCESS_PAGE - 1ull)
                                                    : 0;
}

/* The runtime's own heap, which is empty, begins there too. It is moved to the end of the program, where the program's
 * heap would be. */
static int64_t reserve_unrandomised(const char *path, uint64_t size, uint64_t alignment, uint64_t heap)
{
  uint64_t place = unrandomised_place(path, alignment), end = place + size;

  if (!place)
    return -ENOMEM;
  if (heap >= place && heap < end) {
    if ((uint64_t)kernel_call(__NR_brk, end, 0, 0, 0, 0, 0) != end)
      return -ENOMEM;
    kernel_call(__NR_munmap, page_up(heap), end - page_up(heap), 0, 0, 0, 0);
  }
  return reserve_at(place, size);
}

/* A program is placed below its heap, as the kernel would do it, if that range is free. */
static int64_t reserve_anywhere(const char *path, uint64_t size, uint64_t alignment, bool is_low)
{
  enum { FLAGS = RESERVE_FLAGS };

  if (!is_low && size <= INTERPRETER_PLACE && alignment == PROCESS_PAGE)
    return reserve_interpreter(size);
  uint64_t heap = (uint64_t)kernel_call(__NR_brk, 0, 0, 0, 0, 0, 0);
  uint64_t wish = (heap - size) & ~(alignment - 1);
  if (is_low) {
    int64_t result = reserve_unrandomised(path, size, alignment, heap);

    if (is_failure(result) && heap > size && size < heap - size)
      result = reserve_at(wish, size);
    if (!is_failure(result))
      return result;
  }
  uint64_t extra = alignment - PROCESS_PAGE;
  int64_t result = kernel_map(0, size + extra, PROT_NONE, FLAGS, -1, 0);
  if (is_failure(result))
    return result;
  uint64_t start = ((uint64_t)result + extra) & ~(alignment - 1), end = (uint64_t)result + size + extra;
  if (start > (uint64_t)result)
    kernel_call(__NR_munmap, (uint64_t)result, start - (uint64_t)result, 0, 0, 0, 0);
  if (end > start + size)
    kernel_call(__NR_munmap, start + size, end - (start + size), 0, 0, 0, 0);
  return (int64_t)start;
}

/* The kernel places a program without an interpreter where it places interpreters. */
static bool file_has_interpreter(const struct file *file)
{
  for (unsigned i = 0; i < file->header.e_phnum; i++)
    if (file->segments[i].p_type == PT_INTERP)
      return true;
  return false;
}

/* Reserves the addresses of the whole file. Returns the load bias in `ret_base`. */
static bool file_reserve(struct file *file, uint64_t *ret_base)
{
  enum { FLAGS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };
  struct range span = {0};
  uint64_t alignment = PROCESS_PAGE;

  if (!file_measure(file, &span, &alignment))
    return false;
  uint64_t size = span.end - span.start;
  if (file->header.e_type == ET_EXEC) {
    int64_t result = kernel_map(span.start, size, PROT_NONE, FLAGS | MAP_FIXED_NOREPLACE, -1, 0);

    *ret_base = 0;
    return result == (int64_t)span.start || file_fail(file, PROCESS_E_NO_PLACE, result);
  }
  int64_t result = reserve_anywhere(file->path, size, alignment, file->is_program && file_has_interpreter(file));
  if (is_failure(result))
    return file_fail(file, PROCESS_E_NO_PLACE, result);
  *ret_base = (uint64_t)result - span.start;
  return true;
}

static unsigned protection_of(const Elf64_Phdr *segment)
{
  return (segment->p_flags & PF_R ? PROT_READ : 0u) | (segment->p_flags & PF_W ? PROT_WRITE : 0u) |
         (segment->p_flags & PF_X ? PROT_EXEC : 0u);
}

/* Memory after the file's bytes: the rest of the last page is cleared, and further pages are mapped empty. */
static int64_t map_zeroes(const Elf64_Phdr *segment, uint64_t start)
{
  uint64_t from = start + segment->p_filesz, end = page_up(start + segment->p_memsz);
  unsigned protection = protection_of(segment);
  uint64_t page = segment->p_filesz ? page_up(from) : page_down(start);

  if (segment->p_memsz == segment->p_filesz)
    return 0;
  if (segment->p_filesz && page > from && protection & PROT_WRITE)
    memset((void *)from, 0, page - from);
  return end > page ? kernel_map(page, end - page, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) : 0;
}

static bool file_map_segment(struct file *file, struct runtime *runtime, const Elf64_Phdr *segment, uint64_t base)
{
  uint64_t start = base + segment->p_vaddr, before = start - page_down(start);
  int64_t result = 0;

  if (segment->p_filesz)
    result = kernel_map(start - before, before + segment->p_filesz, protection_of(segment), MAP_PRIVATE | MAP_FIXED,
                        file->fd, segment->p_offset - before);
  if (!is_failure(result))
    result = map_zeroes(segment, start);
  if (is_failure(result))
    return file_fail(file, PROCESS_E_NO_PLACE, result);
  uint64_t end = page_up(start + segment->p_memsz);
  uint32_t flags = RANGE_FILE | (segment->p_flags & PF_W ? RANGE_WRITABLE : 0);
  if (!(segment->p_flags & PF_X))
    return true;
  note_put(runtime, NOTE_MAP, runtime->space, start - before, end, segment->p_offset - before, file->path,
           (uint32_t)text_length(file->path));
  module_add(runtime, start - before, end, segment->p_offset - before, flags == RANGE_FILE ? file->fd : -1, file->path);
  return range_add(&runtime->executable, start - before, end, flags) || file_fail(file, PROCESS_E_RANGES_FULL, 0);
}

static bool file_map(struct file *file, struct runtime *runtime, struct image *ret_image)
{
  const Elf64_Ehdr *header = &file->header;
  struct image image = {.header_count = header->e_phnum, .header_size = sizeof(Elf64_Phdr)};
  if (!file_reserve(file, &image.base))
    return false;
  for (unsigned i = 0; i < header->e_phnum; i++) {
    const Elf64_Phdr *segment = &file->segments[i];
    if (segment->p_type == PT_GNU_STACK)
      image.has_stack_code = segment->p_flags & PF_X;
    if (segment->p_type != PT_LOAD)
      continue;
    if (!file_map_segment(file, runtime, segment, image.base))
      return false;
    if (header->e_phoff >= segment->p_offset && header->e_phoff - segment->p_offset < segment->p_filesz)
      image.headers = image.base + segment->p_vaddr + header->e_phoff - segment->p_offset;
  }
  image.entry = image.base + header->e_entry;
  *ret_image = image;
  return true;
}

/* ---- whole ---- */

static bool file_load(struct file *file, struct runtime *runtime, const char *path, struct image *ret_image)
{
  file->fd = -1;
  file->path = path;
  return file_open(file, path) && file_read_header(file) && file_map(file, runtime, ret_image);
}

static bool file_interpreter(struct file *file, char path[PATH_MOST], bool *ret_is_there)
{
  const Elf64_Phdr *segment = NULL;
  for (unsigned i = 0; i < file->header.e_phnum && !segment; i++)
    if (file->segments[i].p_type == PT_INTERP)
      segment = &file->segments[i];
  *ret_is_there = segment;
  if (!segment)
    return true;
  bool is_good = segment->p_filesz >= 2 && segment->p_filesz <= PATH_MOST &&
                 file_read(file, path, segment->p_filesz, segment->p_offset) && !path[segment->p_filesz - 1];
  return is_good || file_fail(file, PROCESS_E_BAD_ELF, 0);
}

void load_program(struct runtime *runtime, const char *path, struct image *ret_program, struct image *ret_start)
{
  static struct file file;
  static char interpreter[PATH_MOST];
  bool has_interpreter;

  file.is_program = true;
  if (!file_load(&file, runtime, path, ret_program) || !file_interpreter(&file, interpreter, &has_interpreter))
    runtime_fail(file.error, file.system_error, 0);
  runtime->is_fixed = unrandomised_place(path, PROCESS_PAGE);
  kernel_call(__NR_close, (uint64_t)file.fd, 0, 0, 0, 0, 0);
  *ret_start = *ret_program;
  if (!has_interpreter)
    return;
  file.is_program = false;
  if (!file_load(&file, runtime, interpreter, ret_start))
    runtime_fail(PROCESS_E_NO_INTERPRETER, file.system_error, 0);
  kernel_call(__NR_close, (uint64_t)file.fd, 0, 0, 0, 0, 0);
}
