/* SPDX-License-Identifier: Apache-2.0
 *
 * Temporary files that are removed when a signal ends lbr.
 */
#ifndef SESSION_LEFTOVER_H
#define SESSION_LEFTOVER_H

/* Makes a file as mkostemp(3) does: the last six letters of `name` are XXXXXX. The file is removed if SIGINT, SIGTERM,
 * SIGHUP or SIGQUIT ends lbr. A command that handles one of these signals must remove its file itself. `name` must stay
 * valid until leftover_forget. Returns a descriptor, or -1 with errno. */
int leftover_create(char *name);

/* Forgets a file that has its final name or was removed. Takes NULL. */
void leftover_forget(const char *name);

#endif
