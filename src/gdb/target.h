/* SPDX-License-Identifier: Apache-2.0
 *
 * A remote stub for gdb 13: serves something that can be inspected, and perhaps run, over gdb's remote protocol, with
 * the branch trace that gdb's `record btrace` commands read. The object that is served is a struct gdb_target: a
 * recorded trace, a dead process, a running machine. The connection is a struct gdb_io. Nothing here opens or prints
 * anything.
 *
 * The client is not trusted: every packet gets an answer, sizes are bounded, and a target is called only as its
 * contract below says.
 *
 * Of a target's functions only `stop` is required. A function that is NULL is not supported, and gdb is told so.
 */
#ifndef GDB_TARGET_H
#define GDB_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct text;

/* ---- registers ---- */

enum gdb_architecture {
  GDB_X86_64,
  GDB_I386,
  GDB_I8086, /* the registers of GDB_I386; gdb reads code as 16-bit */
};

/* The meaning of a register; its number and width follow from the architecture: GDB_RAX is EAX for GDB_I386. General
 * registers are in the order of the encoding. */
enum gdb_register {
  GDB_RAX,
  GDB_RCX,
  GDB_RDX,
  GDB_RBX,
  GDB_RSP,
  GDB_RBP,
  GDB_RSI,
  GDB_RDI,
  GDB_R8, /* up to R15 */
  GDB_RIP = GDB_R8 + 8,
  GDB_EFLAGS,
  GDB_CS,
  GDB_SS,
  GDB_DS,
  GDB_ES,
  GDB_FS,
  GDB_GS,
  GDB_ST0, /* up to ST7, by their place in the stack */
  GDB_FCTRL = GDB_ST0 + 8,
  GDB_FSTAT,
  GDB_FTAG, /* two bits for each */
  GDB_FISEG,
  GDB_FIOFF,
  GDB_FOSEG,
  GDB_FOOFF,
  GDB_FOP,
  GDB_XMM0, /* up to XMM15; GDB_I386 has 8 */
  GDB_MXCSR = GDB_XMM0 + 16,
  /* with GDB_HAS_LINUX: the number of the system call that it is in */
  GDB_ORIG_RAX,
  /* with GDB_HAS_BASES */
  GDB_FS_BASE,
  GDB_GS_BASE,
  /* with GDB_HAS_SYSTEM */
  GDB_CR0,
  GDB_CR2,
  GDB_CR3,
  GDB_CR4,
  GDB_CR8,
  GDB_EFER,
  GDB_REGISTERS,
};

#define GDB_REGISTER_SIZE 16u /* bytes of the greatest */

enum gdb_feature {
  GDB_HAS_LINUX =
    1u << 0, /* a Linux program: without this gdb asks neither for its libraries nor for its load address */
  GDB_HAS_BASES = 1u << 1,  /* bases of FS and GS; GDB_X86_64 only */
  GDB_HAS_SYSTEM = 1u << 2, /* control registers and EFER */
};

/* Bytes of a register, 0 if the architecture does not have it; its name ("rax", "eax"), or NULL. */
unsigned gdb_register_size(enum gdb_architecture architecture, enum gdb_register number);
const char *gdb_register_name(enum gdb_architecture architecture, enum gdb_register number);

/* ---- stopping and going on ---- */

enum gdb_stop_kind {
  GDB_STOPPED, /* it has stopped; `signal` says why, as gdb numbers signals (gdb_signal) */
  GDB_BREAK,   /* at a breakpoint; RIP is its address */
  GDB_WATCH,   /* a watchpoint's `address` was written, read, or either: `point` is which kind it is */
  GDB_EXITED,  /* it is gone: `signal` is its exit status */
  GDB_KILLED,  /* it is gone: `signal` killed it */
  GDB_ENDED,   /* the recording ends here, and the target cannot continue. gdb stops stepping, and tells the user */
};

enum gdb_point { /* the numbers are the protocol's */
                 GDB_POINT_SOFTWARE,
                 GDB_POINT_HARDWARE,
                 GDB_POINT_WRITE,
                 GDB_POINT_READ,
                 GDB_POINT_ACCESS,
                 GDB_POINTS,
};

struct gdb_stop {
  enum gdb_stop_kind kind;
  unsigned signal;
  uint64_t thread; /* 0: of no meaning */
  enum gdb_point point;
  uint64_t address;
};

struct gdb_session;

struct gdb_resume {
  uint64_t thread; /* the thread that continues, or steps while the others continue; 0: all */
  bool is_step;    /* one instruction */
  unsigned signal; /* to deliver to it, as gdb numbers signals; 0: none */
  struct gdb_session *session;
};

/* To be called now and then by a target inside `resume`: true when gdb wants it to stop (Ctrl-C, or a packet that would
 * otherwise not be answered), or is gone. The target then stops, with signal 2. */
bool gdb_session_interrupted(struct gdb_session *session);

/* For a target inside `resume`: does gdb want this signal (as gdb numbers them) to be delivered without a report?
 * `handle SIGNAL nostop noprint pass` says so. */
bool gdb_session_passes(const struct gdb_session *session, unsigned signal);

/* For a target inside `resume`: gdb prints this at once, as output of the program. */
void gdb_session_print(struct gdb_session *session, const char *text);

/* gdb's number of a Linux signal on x86; 143 ("unknown") for those that gdb does not have. */
unsigned gdb_signal(int number);

/* ---- what else there is ---- */

struct gdb_thread {
  uint64_t id;      /* from 1 to 2^62 */
  const char *name; /* "": none. Valid until the next call */
};

/* Things that gdb reads as a whole. */
enum gdb_object {
  GDB_AUXV,       /* the auxiliary vector, as bytes */
  GDB_EXEC_FILE,  /* the path of the program */
  GDB_LIBRARIES,  /* its libraries: an XML <library-list-svr4> */
  GDB_MEMORY_MAP, /* an XML <memory-map> */
  GDB_OBJECTS,
};

/* Instructions that ran one after the other, in a straight line. */
struct gdb_block {
  uint64_t begin; /* address of the first */
  uint64_t end;   /* address of the last */
};

enum gdb_history {
  GDB_HISTORY_ALL,
  GDB_HISTORY_NEW,   /* all, if some of it was not read yet; else nothing */
  GDB_HISTORY_DELTA, /* the part since it was last read. Its oldest block has begin 0: it continues where the last block
                        that was read ended. Nothing new: one block from 0 to RIP */
};

struct gdb_target {
  void *data;        /* passed to the functions */
  unsigned features; /* enum gdb_feature */
  const char *osabi; /* as gdb names it: "GNU/Linux"; NULL: none */

  /* Asked when gdb reads the description of the target: when it connects, and at `unset tdesc filename`. In between gdb
   * keeps the answer, and registers are read and written accordingly. NULL: GDB_X86_64. */
  enum gdb_architecture (*architecture)(void *data);

  /* Threads, from 0 on; their order and number may change while it runs. Returns false past the last. NULL: there is
   * one, 1. */
  bool (*thread)(void *data, size_t index, struct gdb_thread *ret_thread);

  /* A register of a thread that `thread` gave: gdb_register_size bytes, little-endian. Read returns 1; 0: its value is
   * not known, which gdb shows as <unavailable>; or negative. Write returns 0, or negative. */
  int (*read_register)(void *data, uint64_t thread, enum gdb_register number, uint8_t *bytes);
  int (*write_register)(void *data, uint64_t thread, enum gdb_register number, const uint8_t *bytes);

  /* Memory by linear address. Read returns how many bytes from the first on could be read, at most `size`. Write
   * returns 0, or negative: nothing or a part was written. */
  size_t (*read_memory)(void *data, uint64_t address, uint8_t *bytes, size_t size);
  int (*write_memory)(void *data, uint64_t address, const uint8_t *bytes, size_t size);

  /* Sets or removes a breakpoint (`size` then of no meaning) or a watchpoint. gdb may set the same one twice, and
   * remove one that is not set. Memory reads do not show breakpoints. Returns 0; -EOPNOTSUPP: not this kind, gdb then
   * writes breakpoints into memory itself; or negative. */
  int (*point)(void *data, bool is_set, enum gdb_point kind, uint64_t address, uint64_t size);

  /* Gets the reason why it is stopped now. */
  void (*stop)(void *data, struct gdb_stop *ret_stop);

  /* Resumes the target until it stops again. Returns 0, or negative: it could not. NULL: it stays where it is. */
  int (*resume)(void *data, const struct gdb_resume *resume, struct gdb_stop *ret_stop);

  /* `monitor COMMAND`: appends the text that gdb prints, of any size. Returns 0, or negative if the command failed; the
   * text then says why. */
  int (*monitor)(void *data, const char *command, struct text *output);

  /* Appends an object. Returns 0; -ENOENT: there is none; or negative. */
  unsigned objects; /* 1 << enum gdb_object: those that may exist */
  int (*object)(void *data, enum gdb_object object, struct text *content);

  /* The branch trace of a thread. `history_is_on`: is it being recorded? Asked at connect: gdb then switches `record
   * btrace` on by itself. `history_enable` switches. `history_begin` goes to its end. `history_next` then gives block
   * after block, the newest first, which ends at RIP. A block that begins after its end stands for a gap, of which gdb
   * warns. All return 0, or negative; `begin` returns -EOPNOTSUPP for an enum gdb_history that it does not support: gdb
   * then asks for more. `next` returns 1, or 0 past the oldest. If there is no branch trace, all of them are NULL. */
  bool (*history_is_on)(void *data, uint64_t thread);
  int (*history_enable)(void *data, uint64_t thread, bool is_on);
  int (*history_begin)(void *data, uint64_t thread, enum gdb_history which);
  int (*history_next)(void *data, struct gdb_block *ret_block);
};

/* Appends a string, escaped for use between tags or in an attribute; invalid UTF-8 and control characters become "?".
 * Returns 0, or -ENOMEM. */
int gdb_xml_add(struct text *text, const char *string);

/* ---- serving ---- */

/* The connection to gdb. */
struct gdb_io {
  void *data; /* passed to the functions */
  /* Waits for bytes. Returns how many there are, at most `size`; 0: gdb is gone; or -errno. */
  ssize_t (*read)(void *data, void *bytes, size_t size);
  /* All of them. Returns 0, or -errno. */
  int (*write)(void *data, const void *bytes, size_t size);
  /* Would `read` return at once? */
  bool (*is_ready)(void *data);
};

enum gdb_end {
  GDB_END_GONE,     /* the connection ended */
  GDB_END_DETACHED, /* gdb detached: the target continues */
  GDB_END_KILLED,   /* gdb wants the target to end */
  GDB_END_STRANGER, /* the client does not use gdb's remote protocol: nothing was done for it */
};

/* Can gdb's remote protocol begin with this byte? A browser, for example, begins with the name of a method. */
bool gdb_is_first_byte(uint8_t byte);

#define GDB_PACKET_MAX 16384u /* bytes of a packet */

/* Serves one gdb until it leaves. Returns enum gdb_end; -errno of the connection; -ENOMEM. */
int gdb_serve(const struct gdb_target *target, const struct gdb_io *io);

#endif
