/* SPDX-License-Identifier: Apache-2.0
 *
 * Branches of two runs in words, for the page of `lbr diff`.
 */
#ifndef REPORT_DIFF_WORDS_H
#define REPORT_DIFF_WORDS_H

#include "analysis/analysis.h"
#include "report/page.h"

/* A table of branches. */
void diff_put_branches(struct page *page, const struct diff_side *side, const char *key, const char *title,
                       const struct analysis_diff_branch *branches, size_t count);

/* Describes what the two runs did where they diverged; `one` or `other` is NULL if that run has ended. */
void diff_put_parting(struct page *page, const struct diff_side sides[2], const struct analysis_diff_branch *one,
                      const struct analysis_diff_branch *other);

/* The same in a few words, without the reason. */
void diff_parting_brief(char *text, size_t size, const struct diff_side sides[2],
                        const struct analysis_diff_branch *one, const struct analysis_diff_branch *other);

/* Members of a row: the function, and in JSON its module. As text, a function without a name has that of its module. */
void diff_put_function(struct page *page, const char *symbol, const char *module);

/* "thread 3 (worker)" */
void diff_thread_text(char *text, size_t size, const struct diff_side *side, uint32_t number);

#endif
