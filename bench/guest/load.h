/* SPDX-License-Identifier: Apache-2.0
 *
 * What the load knows of the machine it runs on (platform.c).
 */
#ifndef LOAD_H
#define LOAD_H

#include <stdint.h>

void load_main(const char *command_line);

/* The serial port. */
void load_open(void);
void load_print(const char *text);
void load_print_hex(uint32_t value);

/* Switches recording on, if the command line holds the word lbr or bts; and a performance counter, if it holds count.
 */
void load_record(const char *command_line);

/* Ends the emulator: each by its own port. */
void load_exit(void);

#endif
