/* SPDX-License-Identifier: Apache-2.0
 *
 * The LBR stack that a processor would have after a program's branches: `lbr run --cpu`.
 */
#include "hardware/hardware.h"
#include "session/run.h"

int run_lbr_new(const struct run_arguments *arguments, struct lb_recorder **ret_recorder)
{
  const struct lbr_setup setup = {.cpu = arguments->cpu, .filter = arguments->filter};

  return lbr_setup_new(&setup, ret_recorder);
}

void run_lbr_feed(struct lb_recorder *recorder, const struct lb_branch *branches, size_t count)
{
  analysis_replay_feed(recorder, branches, count);
}
