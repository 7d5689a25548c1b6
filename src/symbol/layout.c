/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of an ELF file in memory, and its build-id, from its program headers and notes. ELF specification,
 * "Program Header", "Note Section".
 */
#include <string.h>

#include "base/base.h"
#include "symbol/elf.h"

#define PAGE UINT64_C(4096)

static void note_read(Elf_Data *data, struct symbol_layout *layout)
{
  size_t name, contents, offset = 0;

  GElf_Nhdr note;

  while ((offset = sym_gelf_getnote(data, offset, &note, &name, &contents)) > 0)
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp((char *)data->d_buf + name, "GNU", 4) &&
        note.n_descsz <= SYMBOL_BUILD_ID_MAX) {
      memcpy(layout->build_id, (char *)data->d_buf + contents, note.n_descsz);
      layout->build_id_size = note.n_descsz;
      return;
    }
}

static void program_read(Elf *elf, const GElf_Phdr *program, struct symbol_layout *layout)
{
  if (program->p_type == PT_LOAD && program->p_filesz && layout->count < SYMBOL_PIECES_MAX)
    layout->pieces[layout->count++] = (struct symbol_piece){program->p_vaddr, program->p_paddr, program->p_filesz,
                                                            program->p_offset, program->p_flags & PF_X};
  if (program->p_type == PT_NOTE && !layout->build_id_size) {
    Elf_Data *data = sym_elf_getdata_rawchunk(elf, (int64_t)program->p_offset, program->p_filesz, ELF_T_NHDR);

    if (data)
      note_read(data, layout);
  }
}

void elf_layout(Elf *elf, struct symbol_layout *ret_layout)
{
  struct symbol_layout layout = {.is_32 = sym_gelf_getclass(elf) == ELFCLASS32};
  size_t count = 0;

  if (sym_elf_getphdrnum(elf, &count) == 0)
    for (size_t i = 0; i < count; i++) {
      GElf_Phdr program;

      if (sym_gelf_getphdr(elf, (int)i, &program))
        program_read(elf, &program, &layout);
    }
  *ret_layout = layout;
}

int symbol_layout_read(const void *bytes, size_t size, struct symbol_layout *ret_layout)
{
  struct elf_file file;
  int r = elf_open(&file, bytes, size);

  if (r >= 0)
    elf_layout(file.elf, ret_layout);
  elf_close(&file);
  return r;
}

bool symbol_layout_address(const struct symbol_layout *layout, uint64_t offset, uint64_t *ret_address)
{
  for (uint64_t slack = 1; slack <= PAGE; slack *= PAGE)
    for (size_t i = 0; i < layout->count; i++) {
      const struct symbol_piece *piece = &layout->pieces[i];
      uint64_t before = piece->offset & (slack - 1);

      if (offset - (piece->offset - before) < piece->size + before) {
        *ret_address = piece->address + (offset - piece->offset);
        return true;
      }
    }
  return false;
}
