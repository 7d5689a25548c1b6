/* SPDX-License-Identifier: Apache-2.0
 *
 * -o FILE of commands that print: standard output becomes a file.
 */
#ifndef CLI_REDIRECT_H
#define CLI_REDIRECT_H

/* From now on standard output is a file, which gets its name when the program exits; "-" changes nothing. If nothing is
 * written, no file is created. Returns 0, or negative after a message. */
int redirect_stdout(const char *name);

#endif
