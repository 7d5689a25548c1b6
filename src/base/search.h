/* SPDX-License-Identifier: Apache-2.0
 *
 * Binary search in a sorted array: finds the first element that does not come before the wanted place. The caller's
 * loop compares, so the compiler sees the whole search:
 *
 *   struct search search = {.end = count};
 *
 *   while (search_next(&search))
 *     search_turn(&search, items[search.at].address < address);
 *
 * After the loop, `first` is the number of the elements for which the comparison was true, and so the index of the
 * first for which it is not; it may be `count`.
 */
#ifndef BASE_SEARCH_H
#define BASE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

struct search {
  size_t first, end; /* the wanted index is one of these, or between them */
  size_t at;         /* the element to compare with */
};

/* Chooses the next element. Returns false at the end of the search. */
static inline bool search_next(struct search *search)
{
  search->at = search->first + (search->end - search->first) / 2;
  return search->first < search->end;
}

/* Tells whether the element comes before the wanted place. */
static inline void search_turn(struct search *search, bool is_before)
{
  if (is_before)
    search->first = search->at + 1;
  else
    search->end = search->at;
}

#endif
