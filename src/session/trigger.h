/* SPDX-License-Identifier: Apache-2.0
 *
 * The place that `lbr record --trigger` waits for: a function, a line of source code or an address. Its addresses are
 * looked for in each file that a recorded process maps.
 */
#ifndef SESSION_TRIGGER_H
#define SESSION_TRIGGER_H

#include <stddef.h>
#include <stdint.h>

#include "process/process.h"

struct trigger;

/* `place` is FUNCTION, FILE:LINE or 0xADDRESS. `slow`: nanoseconds that a call of the function must take, 0: reaching
 * the place is enough. The text must stay. Returns 0 or -errno. */
int trigger_new(const char *place, uint64_t slow, struct trigger **ret_trigger);
void trigger_free(struct trigger *trigger); /* takes NULL */

/* For the options of a process. */
const struct process_trigger *trigger_process(const struct trigger *trigger);

/* Looks for the place in what the process has mapped now. Returns 0 or -errno. */
int trigger_search(struct trigger *trigger, int process);

/* How many addresses were found so far. */
size_t trigger_count(const struct trigger *trigger);

/* Says that the place was not found in any of the files, with names that are similar. */
void trigger_complain(struct trigger *trigger);

/* An address as "FUNCTION (FILE:LINE)", as far as that is known. Good until the next call. */
const char *trigger_describe(struct trigger *trigger, uint64_t address);

#endif
