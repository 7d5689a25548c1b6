/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the source of branches: the one that was asked for, or the best one that can be used here.
 */
#ifndef SESSION_SOURCE_CHOICE_H
#define SESSION_SOURCE_CHOICE_H

#include <stdbool.h>

#include "source/source.h"

/* Replaces auto by a source, with a message unless `is_quiet`, and checks that the source can be used here. Returns
 * true, or false after a message: a source that the user asked for is never replaced by another. */
bool source_choice_settle(enum source_kind *kind, bool is_quiet);

/* For tests, LBR_SINGLE_STEPS in the environment: single steps replace block-step where the processor does not have it.
 */
bool source_choice_steps_singly(void);

/* Reports why a source could not be started. Returns an exit status. */
int source_choice_complain(const char *program, int error, const struct source_problem *problem);

#endif
