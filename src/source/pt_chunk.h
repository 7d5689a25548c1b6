/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a chunk of Intel PT packets stand alone.
 */
#ifndef SOURCE_PT_CHUNK_H
#define SOURCE_PT_CHUNK_H

#include "source/pt.h"

#define PT_CHUNK_HEAD 32u /* bytes by which it grows at most */

/* Copies the packets, with a PSB before them and their first address whole if they do not begin with a PSB, and follows
 * the state of the processor through them. `chunk` has room for PT_CHUNK_HEAD more bytes. Returns its size; 0: it
 * cannot be decoded, since nothing is known of what came before. */
size_t pt_chunk_make(struct pt_state *state, const uint8_t *bytes, size_t size, uint8_t *chunk);

#endif
