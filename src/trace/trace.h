/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces for the other folders: the public header is all there is. doc/trace-format.md describes the bytes.
 */
#ifndef TRACE_TRACE_H
#define TRACE_TRACE_H

#include "lastbranch/trace.h" /* IWYU pragma: export */

#endif
