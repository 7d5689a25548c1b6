/* SPDX-License-Identifier: Apache-2.0
 *
 * The compacted format: XSAVEC, XSAVES, XRSTORS, and XRSTOR of such an image. The components that the image has follow
 * each other in the order of their numbers. One is a supervisor component: the registers of the architectural LBR. SDM
 * vol. 1, 13.4.3, 13.7 to 13.12; Linux, arch/x86/include/asm/fpu/types.h: the layout of that one; Intel TDX module 1.5,
 * tdh_vp_enter.c: XRSTORS and IA32_LBR_DEPTH.
 */
#include "cpu/control.h"
#include "cpu/key.h"
#include "cpu/run.h"
#include "cpu/x87.h"
#include "cpu/xsave.h"

enum {
  COMPONENTS = 63,
  AVX_BYTES = 256,
  PKRU_BYTES = 8,
  LBR_HEAD = 40, /* CTL, DEPTH, LER */
  LBR_ENTRY = 24,
  COMPACT_BYTES = IMAGE_AVX + AVX_BYTES + PKRU_BYTES + LBR_HEAD + LBR_ENTRY * LB_DEPTH_MAX,
};

#define COMPACT (UINT64_C(1) << COMPONENTS) /* in the header's second word, XCOMP_BV */

enum {
  MSR_LER_FROM = 0x1DD,
  MSR_LER_TO = 0x1DE,
  MSR_LER_INFO = 0x1E0,
  MSR_LBR_INFO = 0x1200,
  MSR_LBR_CTL = 0x14CE,
  MSR_LBR_DEPTH = 0x14CF,
  MSR_LBR_FROM = 0x1500,
  MSR_LBR_TO = 0x1600,
};

/* ---- layout ---- */

static bool has_lbr(const struct cpu *cpu)
{
  return system_has(cpu, FEATURE_XSAVES) && lb_cpu_has(cpu->model, LB_FEATURE_ARCH_LBR);
}

uint64_t xsave_xss_bits(const struct cpu *cpu)
{
  return has_lbr(cpu) ? STATE_LBR : 0;
}

unsigned xsave_component_size(const struct cpu *cpu, unsigned number)
{
  if (number == COMPONENT_AVX && system_has(cpu, FEATURE_AVX))
    return AVX_BYTES;
  if (number == COMPONENT_PKRU && system_has(cpu, FEATURE_PKU))
    return PKRU_BYTES;
  return number == COMPONENT_LBR && has_lbr(cpu) ? LBR_HEAD + LBR_ENTRY * lb_cpu_depth(cpu->model) : 0;
}

/* No component needs more alignment than its predecessors give it. */
static unsigned component_place(const struct cpu *cpu, uint64_t components, unsigned number)
{
  unsigned place = IMAGE_AVX;

  for (unsigned i = COMPONENT_AVX; i < number; i++)
    place += components >> i & 1 ? xsave_component_size(cpu, i) : 0;
  return place;
}

unsigned xsave_compact_size(const struct cpu *cpu, uint64_t components)
{
  return component_place(cpu, components, COMPONENTS);
}

bool xsave_is_compact(const struct cpu *cpu, const uint8_t *image)
{
  return system_has(cpu, FEATURE_XSAVEC) && access_fetch(image + IMAGE_HEADER + 8, 8) & COMPACT;
}

/* The components that the instruction asks for, in EDX:EAX. */
static uint64_t asked_for(const struct cpu *cpu)
{
  return (uint64_t)(uint32_t)cpu->r[RDX] << 32 | (uint32_t)cpu->r[RAX];
}

/* ---- the registers of LBR ---- */

/* The registers in the order of the image: those before the entries, then three for each entry. */
static uint32_t lbr_register(unsigned index)
{
  static const uint32_t head[] = {MSR_LBR_CTL, MSR_LBR_DEPTH, MSR_LER_FROM, MSR_LER_TO, MSR_LER_INFO};
  static const uint32_t entry[] = {MSR_LBR_FROM, MSR_LBR_TO, MSR_LBR_INFO};
  enum { HEAD = sizeof(head) / sizeof(head[0]) };

  return index < HEAD ? head[index] : entry[(index - HEAD) % 3] + (index - HEAD) / 3;
}

static unsigned lbr_registers(const struct cpu *cpu)
{
  return xsave_component_size(cpu, COMPONENT_LBR) / 8;
}

/* Entries beyond the depth do not exist and are saved as 0. */
static uint64_t lbr_read(const struct cpu *cpu, uint32_t msr)
{
  uint64_t value = 0;

  return lb_recorder_rdmsr(&cpu->recorder, msr, &value) == LB_MSR_OK ? value : 0;
}

static bool is_lbr_used(const struct cpu *cpu)
{
  uint64_t any = 0;

  for (unsigned i = 0; i < lbr_registers(cpu); i++)
    any |= lbr_register(i) == MSR_LBR_DEPTH ? 0 : lbr_read(cpu, lbr_register(i));
  return any;
}

static void lbr_put(const struct cpu *cpu, uint8_t *at)
{
  for (unsigned i = 0; i < lbr_registers(cpu); i++) {
    uint64_t value = lbr_read(cpu, lbr_register(i));

    memcpy(at + 8 * i, &value, sizeof(value));
  }
}

/* IA32_LBR_DEPTH is only compared: if the entries were saved with another depth, they and LER are cleared. With NULL,
 * the registers are set as at reset. IA32_LBR_CTL comes first, and is the only one that can be refused. */
static void lbr_get(struct cpu *cpu, const uint8_t *at)
{
  uint64_t depth = lbr_read(cpu, MSR_LBR_DEPTH);
  bool is_equal = at && access_fetch(at + 8, 8) == depth;

  run_sync(cpu);
  for (unsigned i = 0; i < lbr_registers(cpu); i++) {
    uint32_t msr = lbr_register(i);
    uint64_t value = at && (is_equal || msr == MSR_LBR_CTL) ? access_fetch(at + 8 * i, 8) : 0;

    if (msr != MSR_LBR_DEPTH && lb_recorder_wrmsr(&cpu->recorder, msr, value) != LB_MSR_OK && msr == MSR_LBR_CTL)
      fault_gp(cpu, 0);
  }
  system_update_debug(cpu);
}

/* ---- saving ---- */

/* MXCSR belongs to SSE here, and is written only with it. */
static uint64_t components_to_save(const struct cpu *cpu, uint64_t asked)
{
  bool is_sse_used = cpu->fpu.mxcsr != MXCSR_MASKS;

  return asked & (xsave_used(cpu) | (is_sse_used ? STATE_SSE : 0u) | (is_lbr_used(cpu) ? STATE_LBR : 0u));
}

static void image_put(const struct cpu *cpu, uint8_t *image, uint64_t asked, uint64_t saved, bool is_64)
{
  uint64_t header[2] = {saved, asked | COMPACT};

  if (saved & STATE_X87)
    xsave_put_x87(&cpu->fpu, image, is_64);
  if (saved & STATE_SSE) {
    xsave_put_mxcsr(&cpu->fpu, image);
    xsave_put_half(cpu, image + IMAGE_XMM, 0);
  }
  if (saved & STATE_AVX)
    xsave_put_half(cpu, image + component_place(cpu, asked, COMPONENT_AVX), 1);
  if (saved & STATE_PKRU)
    memcpy(image + component_place(cpu, asked, COMPONENT_PKRU), &(uint64_t){cpu->pkru}, PKRU_BYTES);
  if (saved & STATE_LBR)
    lbr_put(cpu, image + component_place(cpu, asked, COMPONENT_LBR));
  memcpy(image + IMAGE_HEADER, header, sizeof(header));
}

/* As with XSAVE, the image is read, changed and written back as a whole. */
static const struct insn *save(struct cpu *cpu, const struct insn *insn, uint64_t allowed, bool is_64)
{
  uint64_t asked = asked_for(cpu) & allowed;
  unsigned size = xsave_compact_size(cpu, asked);
  uint64_t offset = xsave_address(cpu, insn, size, 64, ACCESS_WRITE);

  access_check_write(cpu, insn->segment, offset, size);
  uint8_t image[COMPACT_BYTES];
  access_read(cpu, insn->segment, offset, image, size);
  if (asked & STATE_LBR)
    run_sync(cpu);
  image_put(cpu, image, asked, components_to_save(cpu, asked), is_64);
  access_write(cpu, insn->segment, offset, image, size);
  return insn + 1;
}

/* ---- restoring ---- */

/* SDM vol. 1, 13.8.2 and 13.12. Returns XSTATE_BV. */
static uint64_t checked_header(struct cpu *cpu, const uint8_t *image, uint64_t allowed)
{
  uint64_t components = access_fetch(image + IMAGE_HEADER, 8);
  uint64_t compact = access_fetch(image + IMAGE_HEADER + 8, 8);
  uint64_t reserved = 0;

  for (unsigned i = 16; i < 64; i += 8)
    reserved |= access_fetch(image + IMAGE_HEADER + i, 8);
  if (!(compact & COMPACT) || compact & ~COMPACT & ~allowed || components & (~compact | COMPACT) || reserved)
    fault_gp(cpu, 0);
  return components;
}

static void restore_sse(struct cpu *cpu, const uint8_t *image)
{
  cpu->fpu.mxcsr = image ? (uint32_t)access_fetch(image + IMAGE_MXCSR, 4) : MXCSR_MASKS;
  xsave_get_half(cpu, image ? image + IMAGE_XMM : NULL, 0);
}

static void image_get(struct cpu *cpu, const uint8_t *image, uint64_t asked, uint64_t components, bool is_64)
{
  uint64_t compact = access_fetch(image + IMAGE_HEADER + 8, 8);
  const uint8_t *avx = image + component_place(cpu, compact, COMPONENT_AVX);
  const uint8_t *pkru = image + component_place(cpu, compact, COMPONENT_PKRU);
  const uint8_t *lbr = image + component_place(cpu, compact, COMPONENT_LBR);

  if (asked & STATE_LBR)
    lbr_get(cpu, components & STATE_LBR ? lbr : NULL);
  if (asked & STATE_X87)
    xsave_get_x87(cpu, components & STATE_X87 ? image : NULL, is_64);
  if (asked & STATE_SSE)
    restore_sse(cpu, components & STATE_SSE ? image : NULL);
  if (asked & STATE_AVX)
    xsave_get_half(cpu, components & STATE_AVX ? avx : NULL, 1);
  if (asked & STATE_PKRU)
    key_set_user(cpu, components & STATE_PKRU ? (uint32_t)access_fetch(pkru, 4) : 0);
}

const struct insn *xsave_restore(struct cpu *cpu, const struct insn *insn, uint64_t allowed, bool is_64)
{
  uint64_t asked = asked_for(cpu) & allowed;
  uint64_t offset = xsave_address(cpu, insn, IMAGE_AVX, 64, ACCESS_READ);
  uint8_t image[COMPACT_BYTES];

  access_read(cpu, insn->segment, offset, image, IMAGE_AVX);
  uint64_t components = checked_header(cpu, image, allowed);
  unsigned size = xsave_compact_size(cpu, access_fetch(image + IMAGE_HEADER + 8, 8) & allowed);
  if (asked & components & ~(uint64_t)(STATE_X87 | STATE_SSE))
    access_read(cpu, insn->segment, offset, image, size);
  if (asked & components & STATE_SSE && access_fetch(image + IMAGE_MXCSR, 4) & ~(uint64_t)MXCSR_VALID)
    fault_gp(cpu, 0);
  image_get(cpu, image, asked, components, is_64);
  return asked & STATE_LBR ? insn_leave(cpu, insn) : insn + 1;
}

/* ---- instructions ---- */

static uint64_t supervisor_allowed(struct cpu *cpu)
{
  xsave_begin(cpu);
  control_check_privilege(cpu);
  return cpu->xcr0 | cpu->xss;
}

const struct insn *vector_xsavec(struct cpu *cpu, const struct insn *insn)
{
  xsave_begin(cpu);
  return save(cpu, insn, cpu->xcr0, false);
}

const struct insn *vector_xsavec64(struct cpu *cpu, const struct insn *insn)
{
  xsave_begin(cpu);
  return save(cpu, insn, cpu->xcr0, true);
}

const struct insn *vector_xsaves(struct cpu *cpu, const struct insn *insn)
{
  return save(cpu, insn, supervisor_allowed(cpu), false);
}

const struct insn *vector_xsaves64(struct cpu *cpu, const struct insn *insn)
{
  return save(cpu, insn, supervisor_allowed(cpu), true);
}

const struct insn *vector_xrstors(struct cpu *cpu, const struct insn *insn)
{
  return xsave_restore(cpu, insn, supervisor_allowed(cpu), false);
}

const struct insn *vector_xrstors64(struct cpu *cpu, const struct insn *insn)
{
  return xsave_restore(cpu, insn, supervisor_allowed(cpu), true);
}
