/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a chunk of Intel PT packets decodable by itself.
 */
#ifndef SOURCE_PT_CHUNK_H
#define SOURCE_PT_CHUNK_H

#include "source/pt.h"

#define PT_CHUNK_HEAD 32u /* bytes by which it grows at most */

/* Copies the packets and updates the state of the processor from them. If they do not begin with a PSB, adds a PSB
 * before them and writes their first address uncompressed. `chunk` has room for PT_CHUNK_HEAD more bytes. Returns its
 * size; 0: it cannot be decoded, since nothing is known of the packets before it. */
size_t pt_chunk_make(struct pt_state *state, const uint8_t *bytes, size_t size, uint8_t *chunk);

#endif
