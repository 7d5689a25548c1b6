/* SPDX-License-Identifier: Apache-2.0
 *
 * The mappings of processes that are stepped: reads /proc/PID/maps, and finds what has changed since the last time.
 */
#ifndef SOURCE_STEP_MAPS_H
#define SOURCE_STEP_MAPS_H

#include "source/source_inside.h"

struct step_map {
  uint32_t process;
  bool is_there; /* it was found in the current reading */
  uint64_t start, end, offset;
  char *path;
};

struct step_maps {
  struct step_map *maps;
  size_t count, capacity;
};

/* Reports new and removed mappings to the task table. */
void step_maps_read(struct step_maps *maps, struct source *source, uint32_t process);

/* The first gives a forked process its parent's mappings. The second forgets all mappings after execve. */
void step_maps_fork(struct step_maps *maps, uint32_t parent, uint32_t process);
void step_maps_forget(struct step_maps *maps, uint32_t process);
void step_maps_done(struct step_maps *maps);

/* Gets the name of a process. */
void step_maps_name(const struct source *source, uint32_t process, char name[17]);

#endif
