/* SPDX-License-Identifier: Apache-2.0
 *
 * One vector or x87 instruction on the host's own CPU (vector_native.c) and in the interpreter (vector_guest.c), with
 * all registers loaded before and saved after, so that test_cpu_vector.c can compare.
 */
#ifndef VECTOR_RUN_H
#define VECTOR_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Offsets in an FXSAVE image. */
enum {
  FX_CONTROL = 0,
  FX_STATUS = 2,
  FX_TAGS = 4,
  FX_OPCODE = 6,
  FX_POINTERS = 8,
  FX_MXCSR = 24,
  FX_ST = 32,
  FX_XMM = 160
};

struct vector_state {
  uint8_t fx[512];      /* as FXSAVE64 writes it, pointers and opcode left out */
  uint8_t high[16][16]; /* upper halves of YMM0 to YMM15 */
  uint64_t r[16];
  uint64_t flags;
} __attribute__((aligned(64)));

/* Memory operands lie in DATA_BYTES, behind which nothing may be touched. */
enum { DATA_BYTES = 8192 };

/* ---- the host ---- */

int vector_native_init(void);
void vector_native_done(void);
uint8_t *vector_native_data(void);
/* Runs it; registers RBX, RDI and R11 are `offset` bytes into the data. Returns 0, or the signal that ended it: then
 * only MXCSR is changed in `state`. */
int vector_native_run(const uint8_t *code, size_t size, unsigned offset, struct vector_state *state);
bool vector_native_has_avx(void);

/* ---- the interpreter ---- */

struct cpu;

enum { GUEST_CODE = 0x100000, GUEST_DATA = 0x200000, VECTOR_UNIMPLEMENTED = 1000 };

/* A guest in 64-bit mode with everything switched on. NULL when there is no memory. */
struct cpu *vector_guest_new(void);
void vector_guest_free(struct cpu *cpu);
uint8_t *vector_guest_data(struct cpu *cpu);
/* As vector_native_run. Returns -1, or the vector of the exception. */
int vector_guest_run(struct cpu *cpu, const uint8_t *code, size_t size, unsigned offset, struct vector_state *state);
/* Runs one instruction with the CPU as it is. Returns -1, or the vector of the exception. */
int vector_guest_step(struct cpu *cpu, const uint8_t *code, size_t size);
/* How often FERR# was asserted. */
extern unsigned vector_guest_ferr;

#endif
