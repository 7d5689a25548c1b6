/* SPDX-License-Identifier: Apache-2.0
 *
 * The categories of top-down analysis, for the report that the run loop makes to the recorder's counters.
 */
#ifndef CPU_COUNTER_H
#define CPU_COUNTER_H

#include "recorder/recorder.h"

#define COUNTER_SLOTS 4u /* of each cycle */

/* Divides the slots of a report among the categories of top-down analysis. doc/machine.md has the model. */
void counter_metrics(struct lb_progress *progress);

#endif
