/* SPDX-License-Identifier: Apache-2.0
 *
 * The identity of the processor: vendor, family, model, hypervisor, the CPUID fields about recording, and the row of
 * the catalogue. Intel SDM vol. 2, CPUID; AMD APM vol. 3, appendix E; hypervisors have their signature at 0x40000000.
 */
#include "hardware/identify.h"

#include <string.h>

enum { EAX, EBX, ECX, EDX };

struct cpuid_limits {
  uint32_t basic, extended;
};

static const struct {
  char text[13];
  int vendor;
} vendors[] = {
  {"GenuineIntel", LB_VENDOR_INTEL},   {"AuthenticAMD", LB_VENDOR_AMD},     {"HygonGenuine", LB_VENDOR_HYGON},
  {"CentaurHauls", LB_VENDOR_CENTAUR}, {"  Shanghai  ", LB_VENDOR_ZHAOXIN},
};

static const struct {
  char text[13];
  const char *name;
} hypervisors[] = {
  {"KVMKVMKVM", "KVM"},
  {"Linux KVM Hv", "KVM with Hyper-V interface"},
  {"TCGTCGTCGTCG", "QEMU, interpreting"},
  {"Microsoft Hv", "Microsoft Hyper-V"},
  {"VMwareVMware", "VMware"},
  {"XenVMMXenVMM", "Xen"},
  {"VBoxVBoxVBox", "VirtualBox"},
  {"bhyve bhyve ", "bhyve"},
  {"ACRNACRNACRN", "ACRN"},
  {" lrpepyh  vr", "Parallels"},
  {"prl hyperv  ", "Parallels"},
  {"OpenBSDVMM58", "OpenBSD vmm"},
  {"___ NVMM ___", "NetBSD NVMM"},
  {"Jailhouse", "Jailhouse"},
};

static const struct hardware_cpuid_place places[] = {
#define HARDWARE_CPUID(name, leaf, register, high, low, meaning) {#name, meaning, leaf, register, high, low},
#include "hardware/cpuid.def"
#undef HARDWARE_CPUID
};

const struct hardware_cpuid_place *hardware_cpuid_place(unsigned field)
{
  return field < HARDWARE_CPUID_FIELDS ? &places[field] : NULL;
}

/* A leaf past the last one would return another leaf's data: gives zeros instead. */
static void leaf_read(const struct hardware_system *system, struct cpuid_limits limits, uint32_t leaf,
                      uint32_t value[4])
{
  uint32_t limit = leaf >= 0x80000000 ? limits.extended : limits.basic;

  memset(value, 0, 4 * sizeof(value[0]));
  if (leaf <= limit)
    system->cpuid(system->data, leaf, 0, value);
}

static uint32_t field_get(const struct hardware_cpuid_place *place, const uint32_t value[4])
{
  uint32_t mask = (uint32_t)((UINT64_C(1) << (place->high - place->low + 1)) - 1);

  return value[place->reg] >> place->low & mask;
}

/* Copies registers as text, up to the first 0. The text is shown to people, so it has only printable characters. */
static void text_copy(char *text, const uint32_t *registers, size_t count)
{
  size_t size = count * sizeof(registers[0]);

  memcpy(text, registers, size);
  text[size] = '\0';
  for (; *text; text++)
    if (*text < ' ' || *text > '~')
      *text = '?';
}

static void vendor_find(const uint32_t leaf_0[4], struct hardware_host *host)
{
  const uint32_t text[] = {leaf_0[EBX], leaf_0[EDX], leaf_0[ECX]};

  text_copy(host->vendor_text, text, 3);
  host->vendor = -1;
  for (size_t i = 0; i < sizeof(vendors) / sizeof(vendors[0]); i++)
    if (strcmp(host->vendor_text, vendors[i].text) == 0)
      host->vendor = vendors[i].vendor;
}

/* DisplayFamily and DisplayModel: SDM vol. 2, CPUID, "version information". */
static void model_find(uint32_t signature, struct hardware_host *host)
{
  unsigned family = signature >> 8 & 0xF;

  host->stepping = signature & 0xF;
  host->model = signature >> 4 & 0xF;
  host->family = family;
  if (family == 0xF)
    host->family += signature >> 20 & 0xFF;
  if (family == 0x6 || family == 0xF)
    host->model += (signature >> 16 & 0xF) << 4;
}

static void brand_find(const struct hardware_system *system, struct cpuid_limits limits, struct hardware_host *host)
{
  uint32_t words[12];
  char text[sizeof(words) + 1];
  const char *start;

  for (unsigned i = 0; i < 3; i++)
    leaf_read(system, limits, 0x80000002 + i, &words[4 * i]);
  text_copy(text, words, 12);
  start = text + strspn(text, " ");
  memcpy(host->brand, start, strlen(start) + 1);
}

static void hypervisor_find(const struct hardware_system *system, struct hardware_host *host)
{
  uint32_t value[4] = {0};

  host->hypervisor_name = "unknown";
  if (!host->is_virtual)
    return;
  system->cpuid(system->data, 0x40000000, 0, value);
  text_copy(host->hypervisor, &value[EBX], 3);
  for (size_t i = 0; i < sizeof(hypervisors) / sizeof(hypervisors[0]); i++)
    if (strcmp(host->hypervisor, hypervisors[i].text) == 0)
      host->hypervisor_name = hypervisors[i].name;
}

bool hardware_cpuid_expected(const struct hardware_host *host, unsigned field, uint32_t *ret_value)
{
  const struct hardware_cpuid_place *place = hardware_cpuid_place(field);
  struct lb_cpuid row;

  if (!host->cpu || !place)
    return false;
  row = lb_cpu_cpuid(host->cpu, place->leaf, 0);
  if (!field_get(place, row.mask))
    return false;
  *ret_value = field_get(place, row.value);
  return true;
}

void host_identify(const struct hardware_system *system, struct hardware_host *host)
{
  struct cpuid_limits limits;
  uint32_t value[4] = {0};

  system->cpuid(system->data, 0, 0, value);
  limits.basic = value[EAX];
  vendor_find(value, host);
  system->cpuid(system->data, 0x80000000, 0, value);
  limits.extended = value[EAX] >= 0x80000000 && value[EAX] < 0x80010000 ? value[EAX] : 0;

  leaf_read(system, limits, 1, value);
  model_find(value[EAX], host);
  host->is_virtual = value[ECX] >> 31;
  hypervisor_find(system, host);
  brand_find(system, limits, host);
  for (unsigned i = 0; i < HARDWARE_CPUID_FIELDS; i++) {
    leaf_read(system, limits, places[i].leaf, value);
    host->cpuid[i] = field_get(&places[i], value);
  }
  if (host->vendor < 0 ||
      lb_cpu_find_model((unsigned)host->vendor, host->family, host->model, host->stepping, &host->cpu) < 0)
    host->cpu = NULL;
}
