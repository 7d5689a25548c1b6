/* SPDX-License-Identifier: Apache-2.0
 *
 * Other emulators, as processes whose guest's serial port is a pipe.
 */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <stdio.h>
#include <sys/types.h>

struct bench_peer {
  pid_t process;
  int serial;    /* to be read */
  char *scratch; /* a directory of its own, or NULL */
};

/* Boots a disk image. Returns 0, or -errno (-ENOENT: it is not installed). */
typedef int bench_peer_start(const char *image, struct bench_peer *peer);
bench_peer_start bench_bochs_start;
bench_peer_start bench_qemu_start;
bench_peer_start bench_qemu_nochain_start; /* every block comes back to the loop, where a recorder could look */

void bench_peer_end(struct bench_peer *peer);

/* Says which are there, with their versions, and what to install for those that are not. */
void bench_peers_name(FILE *file);

#endif
