/* SPDX-License-Identifier: Apache-2.0
 *
 * silicon FILE make CPU        a processor in a file
 * silicon FILE branch FROM TO MISPREDICTED CYCLES ...
 * silicon FILE wrmsr MSR VALUE
 * silicon FILE registers       all of them, a line each
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "silicon_file.h"

static uint64_t number(const char *word)
{
  return strtoull(word, NULL, 0);
}

static void branch_feed(struct silicon_file *file, char **words)
{
  struct lb_branch branch = {
    .from = number(words[0]),
    .to = number(words[1]),
    .kind = LB_BRANCH_NEAR_REL_JMP,
    .flags = number(words[2]) ? LB_BRANCH_MISPREDICTED : 0,
  };

  branch.from_cpl = branch.from >> 63 ? 0 : 3;
  branch.to_cpl = branch.to >> 63 ? 0 : 3;
  lb_recorder_clock(&file->unit, number(words[3]));
  lb_recorder_branch(&file->unit, &branch);
}

static void registers_print(const struct lb_recorder *unit)
{
  for (unsigned id = 0; id < LB_REGISTERS; id++) {
    struct lb_register_range range = lb_cpu_register(unit->cpu, (enum lb_register)id);

    for (unsigned i = 0; i < range.count; i++) {
      uint32_t msr = range.first + i * range.stride;
      uint64_t value;

      if (lb_recorder_rdmsr(unit, msr, &value) == LB_MSR_OK)
        printf("0x%x 0x%llx\n", msr, (unsigned long long)value);
    }
  }
}

int main(int argc, char **argv)
{
  bool makes = argc == 4 && !strcmp(argv[2], "make");
  struct silicon_file *file = argc > 2 ? silicon_open(argv[1], makes ? argv[3] : NULL) : NULL;

  if (!file) {
    fprintf(stderr, "silicon: no processor\n");
    return 1;
  }
  if (!strcmp(argv[2], "branch"))
    for (int i = 3; i + 3 < argc; i += 4)
      branch_feed(file, argv + i);
  else if (!strcmp(argv[2], "wrmsr") && argc == 5)
    return lb_recorder_wrmsr(&file->unit, (uint32_t)number(argv[3]), number(argv[4])) != LB_MSR_OK;
  else if (!strcmp(argv[2], "registers"))
    registers_print(&file->unit);
  return 0;
}
