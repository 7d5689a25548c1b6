/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrows beside the rows of a function.
 */
#ifndef ANALYSIS_ANNOTATE_ARROWS_H
#define ANALYSIS_ANNOTATE_ARROWS_H

#include "analysis/annotate.h"

/* Makes the arrows of an annotation that has its rows. Returns 0, or -ENOMEM. */
int annotation_draw(struct analysis_annotation *annotation);

#endif
