/* SPDX-License-Identifier: Apache-2.0
 *
 * Protection keys, RDPKRU and WRPKRU. See key.h; SDM vol. 3, 4.6.2 and vol. 2 under these names.
 */
#include "cpu/key.h"

#include "cpu/control.h"
#include "cpu/instruction.h"
#include "cpu/paging.h"

#define ENTRY_KEY_SHIFT 59

enum { KEY_AD = 1, KEY_WD = 2 }; /* two bits for each key: no access, no writes */

static unsigned entry_key(uint64_t entry)
{
  return (unsigned)(entry >> ENTRY_KEY_SHIFT) & 15;
}

static bool keys_are_on(const struct cpu *cpu, bool is_user)
{
  return (cpu->efer & EFER_LMA) && (cpu->cr4 & (is_user ? CR4_PKE : CR4_PKS));
}

/* For a supervisor write, WD applies only with CR0.WP. The user has no access to the supervisor's pages, whatever their
 * key: the error code does not report the key then. */
bool key_denies(const struct cpu *cpu, uint64_t entry, bool is_user, unsigned wants)
{
  bool has_access = is_user || !(wants & PAGING_USER);

  if (!has_access || (wants & PAGING_FETCH) || !keys_are_on(cpu, is_user))
    return false;
  unsigned rights = (is_user ? cpu->pkru : cpu->pkrs) >> (2 * entry_key(entry));
  bool heeds_wd = (wants & PAGING_USER) || (cpu->cr0 & CR0_WP);
  return (rights & KEY_AD) || ((rights & KEY_WD) && (wants & PAGING_WRITE) && heeds_wd);
}

void key_note(struct cpu *cpu, uint64_t entry, bool is_user)
{
  if (keys_are_on(cpu, is_user))
    cpu->keys_cached[is_user] |= (uint16_t)(1u << entry_key(entry));
}

/* The keys whose rights differ between the two values. */
static uint16_t keys_changed(uint32_t before, uint32_t after)
{
  uint16_t keys = 0;

  for (unsigned i = 0; i < 16; i++)
    keys |= (uint16_t)(((before ^ after) >> (2 * i) & 3 ? 1u : 0u) << i);
  return keys;
}

static void rights_set(struct cpu *cpu, bool is_user, uint32_t *rights, uint32_t value)
{
  uint16_t changed = keys_changed(*rights, value);

  *rights = value;
  if (changed & cpu->keys_cached[is_user])
    access_flush_data(cpu);
}

void key_set_user(struct cpu *cpu, uint32_t rights)
{
  rights_set(cpu, true, &cpu->pkru, rights);
}

void key_set_supervisor(struct cpu *cpu, uint32_t rights)
{
  rights_set(cpu, false, &cpu->pkrs, rights);
}

/* ---- instructions ---- */

static void check_pkru(struct cpu *cpu)
{
  if (!(cpu->cr4 & CR4_PKE))
    fault_ud(cpu);
  if ((uint32_t)cpu->r[RCX])
    fault_gp(cpu, 0);
}

const struct insn *control_rdpkru(struct cpu *cpu, const struct insn *insn)
{
  check_pkru(cpu);
  cpu->r[RAX] = cpu->pkru;
  cpu->r[RDX] = 0;
  return insn + 1;
}

const struct insn *control_wrpkru(struct cpu *cpu, const struct insn *insn)
{
  check_pkru(cpu);
  if ((uint32_t)cpu->r[RDX])
    fault_gp(cpu, 0);
  key_set_user(cpu, (uint32_t)cpu->r[RAX]);
  return insn + 1;
}
