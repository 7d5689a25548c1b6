/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrows beside the rows of a function.
 */
#ifndef REPORT_ANNOTATE_ARROWS_H
#define REPORT_ANNOTATE_ARROWS_H

#include "report/annotate.h"

/* Makes the arrows of an annotation that has its rows. Returns 0, or -ENOMEM. */
int annotation_draw(struct report_annotation *annotation);

#endif
