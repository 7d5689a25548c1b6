/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything that is computed from a trace: names for its addresses, counts, calls, hot code, differences, a replay
 * through a recorder. Each computation takes the records of a trace in order; the caller reads them and opens the
 * files. Results are structs: src/report turns them into text, src/export into files for other tools.
 */
#ifndef ANALYSIS_ANALYSIS_H
#define ANALYSIS_ANALYSIS_H

#include "analysis/annotate.h"       /* IWYU pragma: export */
#include "analysis/backtrace.h"      /* IWYU pragma: export */
#include "analysis/callers.h"        /* IWYU pragma: export */
#include "analysis/calls.h"          /* IWYU pragma: export */
#include "analysis/calls_filter.h"   /* IWYU pragma: export */
#include "analysis/calls_folded.h"   /* IWYU pragma: export */
#include "analysis/calls_graph.h"    /* IWYU pragma: export */
#include "analysis/calls_tree.h"     /* IWYU pragma: export */
#include "analysis/calls_walk.h"     /* IWYU pragma: export */
#include "analysis/clock.h"          /* IWYU pragma: export */
#include "analysis/code.h"           /* IWYU pragma: export */
#include "analysis/counts.h"         /* IWYU pragma: export */
#include "analysis/death.h"          /* IWYU pragma: export */
#include "analysis/diff.h"           /* IWYU pragma: export */
#include "analysis/diff_side.h"      /* IWYU pragma: export */
#include "analysis/extent.h"         /* IWYU pragma: export */
#include "analysis/fault.h"          /* IWYU pragma: export */
#include "analysis/filter.h"         /* IWYU pragma: export */
#include "analysis/hot.h"            /* IWYU pragma: export */
#include "analysis/latency.h"        /* IWYU pragma: export */
#include "analysis/location.h"       /* IWYU pragma: export */
#include "analysis/module_totals.h"  /* IWYU pragma: export */
#include "analysis/names.h"          /* IWYU pragma: export */
#include "analysis/predict.h"        /* IWYU pragma: export */
#include "analysis/reading.h"        /* IWYU pragma: export */
#include "analysis/replay.h"         /* IWYU pragma: export */
#include "analysis/replay_feed.h"    /* IWYU pragma: export */
#include "analysis/stacks.h"         /* IWYU pragma: export */
#include "analysis/streams.h"        /* IWYU pragma: export */
#include "analysis/summary.h"        /* IWYU pragma: export */
#include "analysis/syscalls.h"       /* IWYU pragma: export */
#include "analysis/thread_times.h"   /* IWYU pragma: export */
#include "analysis/timeline.h"       /* IWYU pragma: export */
#include "analysis/trace_input.h"    /* IWYU pragma: export */
#include "analysis/trace_part.h"     /* IWYU pragma: export */
#include "analysis/trace_progress.h" /* IWYU pragma: export */
#include "analysis/trace_stream.h"   /* IWYU pragma: export */

#endif
