/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields of the board and its devices that are state. save.c; the tests check that none was forgotten.
 */
#ifndef BOARD_SAVE_H
#define BOARD_SAVE_H

#include "base/base.h"
#include "board/state.h"

/* Everything but the configuration, the host and the table of ports. */
void board_archive(struct archive *archive, struct board *board);

#endif
