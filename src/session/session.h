/* SPDX-License-Identifier: Apache-2.0
 *
 * A program, a machine or a processor under recording, from its start to its end. A session reads no options and prints
 * nothing: messages for the user go through message() of base.h or through callbacks, or are in a struct when the
 * session is over.
 */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include "session/attach.h"        /* IWYU pragma: export */
#include "session/live.h"          /* IWYU pragma: export */
#include "session/machine.h"       /* IWYU pragma: export */
#include "session/new_file.h"      /* IWYU pragma: export */
#include "session/program.h"       /* IWYU pragma: export */
#include "session/record.h"        /* IWYU pragma: export */
#include "session/record_source.h" /* IWYU pragma: export */
#include "session/relay.h"         /* IWYU pragma: export */
#include "session/run.h"           /* IWYU pragma: export */
#include "session/source_choice.h" /* IWYU pragma: export */
#include "session/top.h"           /* IWYU pragma: export */

#endif
