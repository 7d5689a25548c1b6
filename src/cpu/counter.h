/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters for the run loop. While one counts, the recorder must hear of every instruction: of each alone when
 * something may happen with it, of many at once when only numbers change.
 */
#ifndef CPU_COUNTER_H
#define CPU_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

#include "recorder/recorder.h"

/* Is there a counter that counts? */
bool counter_runs(const struct lb_recorder *recorder);

/* Of whatever they count, so much may be told at once: no counter overflows by it, and the sum alone matters. 0:
 * nothing. */
uint64_t counter_room(const struct lb_recorder *recorder);

#define COUNTER_SLOTS 4u /* of each cycle */

/* Does a counter count slots by their category? */
bool counter_wants_metrics(const struct lb_recorder *recorder);

/* Divides the slots of a report among the categories of top-down analysis. doc/machine.md has the model. */
void counter_metrics(struct lb_progress *progress);

#endif
