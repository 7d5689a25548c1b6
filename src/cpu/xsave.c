/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves the state of x87, SSE and AVX to memory and restores it: FXSAVE, XSAVE and similar instructions, MXCSR, EMMS.
 * SDM vol. 1, 10.5 and chapter 13. This file has the standard format, with AVX and PKRU where CPUID leaf 0DH puts them;
 * xsaves.c has the compacted one.
 */
#include "cpu/xsave.h"
#include "cpu/key.h"
#include "cpu/system.h"
#include "cpu/x87.h"

/* ---- MXCSR, EMMS ---- */

const struct insn *vector_ldmxcsr(struct cpu *cpu, const struct insn *insn)
{
  vector_begin_any(cpu, insn);
  uint32_t value = (uint32_t)insn_load(cpu, insn, 4);
  if (value & ~MXCSR_VALID)
    fault_gp(cpu, 0);
  cpu->fpu.mxcsr = value;
  return insn + 1;
}

const struct insn *vector_stmxcsr(struct cpu *cpu, const struct insn *insn)
{
  vector_begin_any(cpu, insn);
  insn_store(cpu, insn, 4, cpu->fpu.mxcsr);
  return insn + 1;
}

const struct insn *vector_emms(struct cpu *cpu, const struct insn *insn)
{
  vector_begin_mmx(cpu);
  cpu->fpu.tags = 0;
  cpu->fpu.top = 0;
  return insn + 1;
}

/* ---- parts of the image ---- */

static void put(uint8_t *bytes, uint64_t value, unsigned size)
{
  memcpy(bytes, &value, size);
}

void xsave_put_x87(const struct fpu *fpu, uint8_t *image, bool is_64)
{
  put(image, fpu->control, 2);
  put(image + 2, x87_status(fpu), 2);
  put(image + 4, fpu->tags, 2);
  put(image + 6, fpu->opcode & 0x7FF, 2);
  put(image + 8, fpu->instruction, 8);
  put(image + 16, fpu->data, 8);
  if (!is_64) {
    put(image + 12, fpu->instruction_selector, 4);
    put(image + 20, fpu->data_selector, 4);
  }
  for (unsigned i = 0; i < 8; i++) {
    uint8_t *st = image + IMAGE_ST + 16 * i;

    memset(st, 0, 16);
    memcpy(st, fpu->st[x87_number(fpu, i)], 10);
  }
}

static void image_get_x87(struct fpu *fpu, const uint8_t *image, bool is_64)
{
  x87_set_control(fpu, (uint16_t)access_fetch(image, 2));
  x87_set_status(fpu, (uint16_t)access_fetch(image + 2, 2));
  fpu->tags = image[4];
  fpu->opcode = access_fetch(image + 6, 2) & 0x7FF;
  fpu->instruction = access_fetch(image + 8, is_64 ? 8 : 4);
  fpu->data = access_fetch(image + 16, is_64 ? 8 : 4);
  fpu->instruction_selector = is_64 ? 0 : (uint16_t)access_fetch(image + 12, 2);
  fpu->data_selector = is_64 ? 0 : (uint16_t)access_fetch(image + 20, 2);
  for (unsigned i = 0; i < 8; i++)
    memcpy(fpu->st[x87_number(fpu, i)], image + IMAGE_ST + 16 * i, 10);
}

void xsave_put_mxcsr(const struct fpu *fpu, uint8_t *image)
{
  put(image + IMAGE_MXCSR, fpu->mxcsr, 4);
  put(image + IMAGE_MXCSR + 4, MXCSR_VALID, 4);
}

/* Registers 8 to 15 exist in 64-bit mode only. */
static unsigned registers(const struct cpu *cpu)
{
  return insn_is_64(cpu) ? 16 : 8;
}

void xsave_put_half(const struct cpu *cpu, uint8_t *at, unsigned half)
{
  for (unsigned i = 0; i < registers(cpu); i++)
    memcpy(at + 16 * i, cpu->fpu.v[i].u8 + 16 * half, 16);
}

void xsave_get_half(struct cpu *cpu, const uint8_t *at, unsigned half)
{
  for (unsigned i = 0; i < registers(cpu); i++) {
    if (at)
      memcpy(cpu->fpu.v[i].u8 + 16 * half, at + 16 * i, 16);
    else
      memset(cpu->fpu.v[i].u8 + 16 * half, 0, 16);
  }
}

/* ---- FXSAVE, FXRSTOR ---- */

uint64_t xsave_address(struct cpu *cpu, const struct insn *insn, unsigned size, unsigned alignment, unsigned access)
{
  uint64_t offset = insn_address(cpu, insn);

  if (access_linear(cpu, insn->segment, offset, size, access) % alignment)
    fault_gp(cpu, 0);
  return offset;
}

static const struct insn *fxsave(struct cpu *cpu, const struct insn *insn, bool is_64)
{
  x87_check_available(cpu);
  uint64_t offset = xsave_address(cpu, insn, 512, 16, ACCESS_WRITE);
  uint8_t image[IMAGE_XMM_END];
  xsave_put_x87(&cpu->fpu, image, is_64);
  xsave_put_mxcsr(&cpu->fpu, image);
  xsave_put_half(cpu, image + IMAGE_XMM, 0);
  access_write(cpu, insn->segment, offset, image, IMAGE_XMM + 16 * registers(cpu));
  return insn + 1;
}

static const struct insn *fxrstor(struct cpu *cpu, const struct insn *insn, bool is_64)
{
  x87_check_available(cpu);
  uint64_t offset = xsave_address(cpu, insn, 512, 16, ACCESS_READ);
  uint8_t image[512];
  access_read(cpu, insn->segment, offset, image, 512);
  uint32_t mxcsr = (uint32_t)access_fetch(image + IMAGE_MXCSR, 4);
  if (mxcsr & ~MXCSR_VALID)
    fault_gp(cpu, 0);
  image_get_x87(&cpu->fpu, image, is_64);
  cpu->fpu.mxcsr = mxcsr;
  xsave_get_half(cpu, image + IMAGE_XMM, 0);
  return insn + 1;
}

const struct insn *vector_fxsave(struct cpu *cpu, const struct insn *insn)
{
  return fxsave(cpu, insn, false);
}

const struct insn *vector_fxsave64(struct cpu *cpu, const struct insn *insn)
{
  return fxsave(cpu, insn, true);
}

const struct insn *vector_fxrstor(struct cpu *cpu, const struct insn *insn)
{
  return fxrstor(cpu, insn, false);
}

const struct insn *vector_fxrstor64(struct cpu *cpu, const struct insn *insn)
{
  return fxrstor(cpu, insn, true);
}

/* ---- XSAVE, XSAVEOPT, XRSTOR ---- */

/* PKRU comes after the state of AVX-512, also on CPUs without AVX-512: 0DH/9 in the dumps of generation.def. */
unsigned xsave_place(const struct cpu *cpu, unsigned component)
{
  return component == COMPONENT_PKRU ? system_is_amd(cpu) ? 0x980 : 0xA80 : IMAGE_AVX;
}

unsigned xsave_size(const struct cpu *cpu, uint64_t components)
{
  if (components & STATE_PKRU)
    return xsave_place(cpu, COMPONENT_PKRU) + xsave_component_size(cpu, COMPONENT_PKRU);
  return components & STATE_AVX ? IMAGE_BYTES : IMAGE_AVX;
}

void xsave_begin(struct cpu *cpu)
{
  if (!(cpu->cr4 & CR4_OSXSAVE))
    fault_ud(cpu);
  if (cpu->cr0 & CR0_TS)
    fault_raise(cpu, EXCEPTION_NM, 0);
}

/* The components that the instruction asks for in EDX:EAX and the system has enabled. */
static unsigned requested(const struct cpu *cpu)
{
  return (unsigned)(cpu->r[RAX] & cpu->xcr0) & (STATE_X87 | STATE_SSE | STATE_AVX | STATE_PKRU);
}

static bool is_half_used(const struct cpu *cpu, unsigned half)
{
  uint64_t any = 0;

  for (unsigned i = 0; i < registers(cpu); i++)
    any |= cpu->fpu.v[i].u64[2 * half] | cpu->fpu.v[i].u64[2 * half + 1];
  return any;
}

static bool is_x87_used(const struct fpu *fpu)
{
  uint64_t any = (fpu->control ^ X87_CONTROL_DEFAULT) | fpu->status | fpu->top | fpu->tags | fpu->opcode |
                 fpu->instruction | fpu->data | fpu->instruction_selector | fpu->data_selector;

  for (unsigned i = 0; i < 8; i++)
    any |= access_fetch(fpu->st[i], 8) | access_fetch(fpu->st[i] + 8, 2);
  return any;
}

unsigned xsave_used(const struct cpu *cpu)
{
  return (is_x87_used(&cpu->fpu) ? STATE_X87 : 0u) | (is_half_used(cpu, 0) ? STATE_SSE : 0u) |
         (is_half_used(cpu, 1) ? STATE_AVX : 0u) | (cpu->pkru ? STATE_PKRU : 0u);
}

static void pkru_write(struct cpu *cpu, const struct insn *insn, uint64_t offset)
{
  uint8_t bytes[8];

  put(bytes, cpu->pkru, sizeof(bytes));
  access_write(cpu, insn->segment, offset + xsave_place(cpu, COMPONENT_PKRU), bytes, sizeof(bytes));
}

static uint32_t pkru_read(struct cpu *cpu, const struct insn *insn, uint64_t offset)
{
  uint8_t bytes[8];

  access_read(cpu, insn->segment, offset + xsave_place(cpu, COMPONENT_PKRU), bytes, sizeof(bytes));
  return (uint32_t)access_fetch(bytes, 4);
}

/* The image is read, changed in the saved components, and written back as a whole: nothing is written if a part of it
 * would fault. XSAVEOPT leaves out unused components. */
static const struct insn *xsave(struct cpu *cpu, const struct insn *insn, bool is_64, bool is_optimized)
{
  xsave_begin(cpu);
  unsigned asked = requested(cpu), used = xsave_used(cpu);
  unsigned size = asked & STATE_AVX ? IMAGE_BYTES : IMAGE_AVX, whole = xsave_size(cpu, asked);
  uint64_t offset = xsave_address(cpu, insn, whole, 64, ACCESS_WRITE);
  access_check_write(cpu, insn->segment, offset, whole);
  uint8_t image[IMAGE_BYTES];
  access_read(cpu, insn->segment, offset, image, size);
  unsigned saved = is_optimized ? asked & used : asked;
  if (saved & STATE_X87)
    xsave_put_x87(&cpu->fpu, image, is_64);
  if (asked & (STATE_SSE | STATE_AVX))
    xsave_put_mxcsr(&cpu->fpu, image);
  if (saved & STATE_SSE)
    xsave_put_half(cpu, image + IMAGE_XMM, 0);
  if (saved & STATE_AVX)
    xsave_put_half(cpu, image + IMAGE_AVX, 1);
  uint64_t in_image = access_fetch(image + IMAGE_HEADER, 8);
  put(image + IMAGE_HEADER, (in_image & ~(uint64_t)asked) | (asked & used), 8);
  access_write(cpu, insn->segment, offset, image, size);
  if (saved & STATE_PKRU)
    pkru_write(cpu, insn, offset);
  return insn + 1;
}

/* The header may name only components that are enabled, and the rest of it must be 0: SDM vol. 1, 13.8. */
static uint64_t checked_header(struct cpu *cpu, const uint8_t *image)
{
  uint64_t components = access_fetch(image + IMAGE_HEADER, 8);
  uint64_t compact = access_fetch(image + IMAGE_HEADER + 8, 8);
  uint64_t reserved = access_fetch(image + IMAGE_HEADER + 16, 8);

  if (components & ~cpu->xcr0 || compact || reserved)
    fault_gp(cpu, 0);
  return components;
}

void xsave_get_x87(struct cpu *cpu, const uint8_t *image, bool is_64)
{
  if (image) {
    image_get_x87(&cpu->fpu, image, is_64);
    return;
  }
  x87_init(&cpu->fpu);
  memset(cpu->fpu.st, 0, sizeof(cpu->fpu.st));
}

static const struct insn *xrstor(struct cpu *cpu, const struct insn *insn, bool is_64)
{
  xsave_begin(cpu);
  unsigned asked = requested(cpu);
  uint64_t offset = xsave_address(cpu, insn, IMAGE_AVX, 64, ACCESS_READ);
  uint8_t image[IMAGE_BYTES];
  access_read(cpu, insn->segment, offset, image, IMAGE_AVX);
  if (xsave_is_compact(cpu, image))
    return xsave_restore(cpu, insn, cpu->xcr0, is_64);
  uint64_t components = checked_header(cpu, image);
  if (asked & components & STATE_AVX)
    access_read(cpu, insn->segment, offset, image, IMAGE_BYTES);
  uint32_t pkru = asked & components & STATE_PKRU ? pkru_read(cpu, insn, offset) : 0;
  uint32_t mxcsr = (uint32_t)access_fetch(image + IMAGE_MXCSR, 4);
  if (asked & (STATE_SSE | STATE_AVX)) {
    if (mxcsr & ~MXCSR_VALID)
      fault_gp(cpu, 0);
    cpu->fpu.mxcsr = mxcsr;
  }
  if (asked & STATE_X87)
    xsave_get_x87(cpu, components & STATE_X87 ? image : NULL, is_64);
  if (asked & STATE_SSE)
    xsave_get_half(cpu, components & STATE_SSE ? image + IMAGE_XMM : NULL, 0);
  if (asked & STATE_AVX)
    xsave_get_half(cpu, components & STATE_AVX ? image + IMAGE_AVX : NULL, 1);
  if (asked & STATE_PKRU)
    key_set_user(cpu, pkru);
  return insn + 1;
}

const struct insn *vector_xsave(struct cpu *cpu, const struct insn *insn)
{
  return xsave(cpu, insn, false, false);
}

const struct insn *vector_xsave64(struct cpu *cpu, const struct insn *insn)
{
  return xsave(cpu, insn, true, false);
}

const struct insn *vector_xsaveopt(struct cpu *cpu, const struct insn *insn)
{
  return xsave(cpu, insn, false, true);
}

const struct insn *vector_xsaveopt64(struct cpu *cpu, const struct insn *insn)
{
  return xsave(cpu, insn, true, true);
}

const struct insn *vector_xrstor(struct cpu *cpu, const struct insn *insn)
{
  return xrstor(cpu, insn, false);
}

const struct insn *vector_xrstor64(struct cpu *cpu, const struct insn *insn)
{
  return xrstor(cpu, insn, true);
}
