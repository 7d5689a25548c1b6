/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of commands that run a program: which program, its children, its addresses, the source of its branches.
 */
#ifndef CLI_PROGRAM_OPTION_H
#define CLI_PROGRAM_OPTION_H

#include <argp.h>

#include "cli/source_option.h"
#include "session/session.h"

enum {
  KEY_PROGRAM_NO_FOLLOW = 0x1000,
  KEY_PROGRAM_ASLR,
  KEY_PROGRAM_NO_ASLR,
  KEY_PROGRAM_NO_CACHE,
  KEY_PROGRAM_SOURCE,
  KEY_ATTACH_CHILDREN
};

/* Rows for commands that also attach to processes that run already. */
#define ATTACH_OPTIONS                                                                                                  \
  {"pid", 'p', "PID[,PID...]", 0, "Attach to these processes instead of starting a program, and leave them at the end", \
   0},                                                                                                                  \
    ATTACH_MORE_OPTIONS

/* The same for commands that only attach: all but -p. */
#define ATTACH_MORE_OPTIONS                                                                                            \
  {"tid", 't', "TID[,TID...]", 0, "Attach to the processes of these threads, and record no other threads", 0},         \
  {                                                                                                                    \
    "children", KEY_ATTACH_CHILDREN, NULL, 0,                                                                          \
      "With -p: attach also to the children that the processes have already, and to those of the children", 0          \
  }

/* Rows of a struct argp_option[]. */
#define PROGRAM_OPTIONS                                                                                                \
  {"no-follow", KEY_PROGRAM_NO_FOLLOW, NULL, 0, "Do not record the child processes of the program", 0},                \
    {"aslr",                                                                                                           \
     KEY_PROGRAM_ASLR,                                                                                                 \
     NULL,                                                                                                             \
     0,                                                                                                                \
     "Run the program with address randomisation: further processes start more slowly",                                \
     0},                                                                                                               \
    {"no-cache", KEY_PROGRAM_NO_CACHE, NULL, 0, "Neither use nor keep translations of earlier recordings (lbr cache)", \
     0},                                                                                                               \
    {"no-aslr", KEY_PROGRAM_NO_ASLR, NULL, 0, "Run the program without address randomisation, or not at all", 0},      \
  {                                                                                                                    \
    "source", KEY_PROGRAM_SOURCE, "SOURCE", 0, SOURCE_OPTION_HELP, 0                                                   \
  }

/* The destinations of the values. */
struct program_options {
  bool *is_alone, *is_uncached;
  enum program_aslr *aslr;
  enum source_kind *source;
  char ***program; /* the rest of the command line */
};

/* The options of ATTACH_OPTIONS. Returns 0, or ARGP_ERR_UNKNOWN for another key. The second completes the list at the
 * end, and checks whether the options go together. */
error_t attach_option_parse(int key, char *argument, struct attach_list *list, struct argp_state *state);
void attach_option_end(struct attach_list *list, bool is_alone, struct argp_state *state);

/* Returns 0, or ARGP_ERR_UNKNOWN for another key. */
error_t program_option_parse(int key, char *argument, const struct program_options *options, struct argp_state *state);

#endif
