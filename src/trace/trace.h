/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces for the other folders: the public header, and paths for whoever makes entries or walks through them.
 * doc/trace-format.md describes the bytes.
 */
#ifndef TRACE_TRACE_H
#define TRACE_TRACE_H

#include "lastbranch/trace.h" /* IWYU pragma: export */
#include "trace/path.h"       /* IWYU pragma: export */

#endif
