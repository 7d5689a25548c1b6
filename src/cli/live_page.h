/* SPDX-License-Identifier: Apache-2.0
 *
 * A page of `lbr live`.
 */
#ifndef CLI_LIVE_PAGE_H
#define CLI_LIVE_PAGE_H

#include "base/base.h"
#include "cli/live_options.h"

/* Appends the page. Returns 0 or -ENOMEM. */
int live_page_print(struct text *text, struct live_session *session, const struct live_reading *reading,
                    const struct live_show *show);

#endif
