/* SPDX-License-Identifier: Apache-2.0
 *
 * Debug files from servers (symbol_fetch_enable).
 */
#ifndef CLI_FETCH_H
#define CLI_FETCH_H

/* Lets commands fetch them, if the environment asks for it. */
void fetch_allow(void);

#endif
