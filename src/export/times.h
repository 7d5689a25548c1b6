/* SPDX-License-Identifier: Apache-2.0
 *
 * For the reading loop (export.c): the times of a trace, handed to the format.
 */
#ifndef EXPORT_TIMES_H
#define EXPORT_TIMES_H

#include "export/export.h"

/* Makes the clock of a job that has calls, if times are wanted. Returns 0, or -ENOMEM. */
int times_new(struct export_job *job, struct lb_trace_reader *reader);
void times_done(struct export_job *job);

/* Decides on the axis, when the first call or stamp comes. Returns 0, or LB_E_NO_ENTRY after export_fail: the trace has
 * no times. */
int times_choose(struct export_job *job);

/* Gives a call to the format. Where a recording begins in the middle of a thread, the first calls have no times: those
 * that have ended before the first time is known are left out, and the others begin then. Returns 0, what the format
 * returned, or -ENOMEM. */
int times_call(struct export_job *job, const struct analysis_call *call);

/* Takes a record before the analyses do, and the end of the trace. Return 0, what the format returned, or -ENOMEM. */
int times_record(struct export_job *job, const struct lb_trace_record *record);
int times_end(struct export_job *job);

#endif
