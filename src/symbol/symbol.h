/* SPDX-License-Identifier: Apache-2.0
 *
 * Names for addresses, in four steps, each of which can be used alone:
 *   table    symbols out of an ELF file's symbol table, or out of a map file as `nm`, System.map and NASM write them
 *   layout   where an ELF file says that it lies, and its build-id
 *   module   an ELF file that is asked about its code: symbol, lines of source with inlined functions, bytes
 *   space    an address space: which pieces of which modules are mapped where
 *
 * Files are untrusted input; parts that cannot be used are left out, and a file with nothing usable is an error. Every
 * string that comes out of here is UTF-8 without control characters.
 */
#ifndef SYMBOL_SYMBOL_H
#define SYMBOL_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYMBOL_NAME_MAX 1023 /* bytes: longer names are cut */
#define SYMBOL_COUNT_MAX (4u << 20)
#define SYMBOL_REACH (1u << 20) /* a symbol of unknown size reaches up to the next one, at most so far */

struct symbol_table;

/* Reads the symbols out of a file in memory, which need not stay: an ELF file if it begins like one, else a map.
 * Returns 0; LB_E_NO_SYMBOLS for a file without any; LB_E_BAD_SYNTAX for an ELF file that cannot be understood, or a
 * map that holds zero bytes; LB_E_TOO_BIG for more than SYMBOL_COUNT_MAX, or overlapping sections that together are
 * greater than the file; -ENOMEM. */
int symbol_table_read(const void *bytes, size_t size, struct symbol_table **ret_table);

/* Takes NULL. */
void symbol_table_free(struct symbol_table *table);

/* The number of symbols in a table. */
size_t symbol_table_count(const struct symbol_table *table);

/* The symbol that `address` belongs to, and the offset from its start. If a kernel is linked for one address and loaded
 * at another (p_vaddr and p_paddr of an ELF file), the physical address finds the symbol too. Names are UTF-8 without
 * control characters, and good as long as the table. Returns false, touching nothing, if there is none. Takes NULL. */
bool symbol_table_find(const struct symbol_table *table, uint64_t address, const char **ret_name, uint64_t *ret_offset);

/* Bytes of the symbol that `address` belongs to; for a symbol without a size in its file, up to the next symbol. 0 if
 * there is none. Takes NULL. */
uint64_t symbol_table_size(const struct symbol_table *table, uint64_t address);

/* For an address that no symbol holds: where the symbols before it end (0: there is none before it), and where the next
 * one begins (UINT64_MAX: there is none). Takes NULL. */
void symbol_table_around(const struct symbol_table *table, uint64_t address, uint64_t *ret_before, uint64_t *ret_after);

/* The address of the symbol with this name; of several names of one address only the best is kept. Returns false,
 * touching nothing, if there is none. Takes NULL. */
bool symbol_table_address(const struct symbol_table *table, const char *name, uint64_t *ret_address);

/* ---- where an ELF file says that it lies ---- */

#define SYMBOL_PIECES_MAX 16
#define SYMBOL_BUILD_ID_MAX 64

struct symbol_piece {
  uint64_t address, physical, size; /* as it is linked, as it is loaded, bytes in the file */
  uint64_t offset;                  /* in the file */
  bool is_executed;
};

struct symbol_layout {
  struct symbol_piece pieces[SYMBOL_PIECES_MAX]; /* of PT_LOAD, the first so many */
  size_t count;
  uint8_t build_id[SYMBOL_BUILD_ID_MAX];
  size_t build_id_size; /* 0: it has none */
  bool is_32;           /* an ELF file of class 32: its code is not 64-bit code */
};

/* Returns 0; LB_E_BAD_SYNTAX if it is not an ELF file; LB_E_TOO_BIG as above; -ENOMEM. */
int symbol_layout_read(const void *bytes, size_t size, struct symbol_layout *ret_layout);

/* The linked address of the byte at an offset in the file. Files are mapped by pages, so a mapping may begin before its
 * piece: such offsets are accepted. Returns false, touching nothing, for a byte that is not loaded. */
bool symbol_layout_address(const struct symbol_layout *layout, uint64_t offset, uint64_t *ret_address);

/* ---- a module: an ELF file that is asked about its code ---- */

#define SYMBOL_FRAMES_MAX 16

struct symbol_module;

/* One function in a chain of inlined ones. */
struct symbol_frame {
  const char *function;  /* as the source has it: "push_back", not mangled. NULL: not known */
  const char *linkage;   /* as the linker knows it: mangled, or the same as the function. NULL: not known */
  const char *file;      /* its path, absolute if the debug information tells. NULL: not known */
  unsigned line, column; /* 0: not known */
  unsigned declared;     /* line at which the function is declared; 0: not known */
};

/* The description of an address. Strings are good as long as the module. */
struct symbol_place {
  const char *module;  /* symbol_space_find: path of the file, as it was added. Else NULL */
  uint64_t address;    /* as the file is linked: what addr2line and objdump take */
  const char *symbol;  /* from the symbol table, or NAME@plt. NULL: none is known */
  const char *mangled; /* NULL; a caller that demangles the symbol keeps the original here */
  uint64_t offset;     /* from the symbol. Without one: `address`, or the offset in the file if that is not known */
  uint64_t size;       /* bytes of the symbol; 0: none is known */
  /* The innermost function comes first, with the line of the code itself. Each following frame is the function that the
   * previous one was inlined into, with the line of the call. The last one is the function that really exists, unless
   * there are more than fit. */
  struct symbol_frame frames[SYMBOL_FRAMES_MAX];
  size_t frame_count; /* 0: no line is known, or lines were not wanted */
};

/* Opens a file; it stays open. Symbols and lines are read when they are first asked for. They come from the file itself
 * or from its debug file, which is looked for by build-id in DEBUG_ROOT/.build-id, and by .gnu_debuglink beside the
 * file, in .debug beside it and in DEBUG_ROOT; `debug_root` NULL: /usr/lib/debug. Returns 0; LB_E_BAD_SYNTAX if it is
 * not an ELF file; LB_E_TOO_BIG as above; -ENOMEM; the -errno of opening, with -ESPIPE if it is not a regular file. */
int symbol_module_open(const char *path, const char *debug_root, struct symbol_module **ret_module);

/* From here on, debug files that are not on this machine are fetched from the servers of the environment variable
 * DEBUGINFOD_URLS, if it is set, and the library libdebuginfod.so.1 is there. A server that sends nothing for ten
 * seconds, or another failure, ends fetching for good. NULL: switches fetching off, which is the default. */
struct symbol_fetch {
  void *data;                                            /* handed to the functions */
  void (*begin)(void *data, const char *path);           /* the debug file of this file is being fetched */
  void (*fail)(void *data, const char *path, int error); /* -errno: nothing more will be fetched; -ELIBACC: there is no
                                                            library, -ENOTSUP: a static program loads none,
                                                            -ETIMEDOUT: no answer */
};

void symbol_fetch_enable(const struct symbol_fetch *fetch);

/* The same for a file in memory, of which it makes a copy. No debug file is looked for. Returns as above. */
int symbol_module_open_bytes(const void *bytes, size_t size, struct symbol_module **ret_module);

void symbol_module_close(struct symbol_module *module); /* takes NULL */

const struct symbol_layout *symbol_module_layout(const struct symbol_module *module);

/* Describes an address as the file is linked. Returns false, touching nothing, if neither a symbol nor a line is known.
 * `wants_lines`: false leaves the debug information alone, which costs time when it is first read. */
bool symbol_module_find(struct symbol_module *module, uint64_t address, bool wants_lines,
                        struct symbol_place *ret_place);

/* Only the file and the line of the code there, without the functions: many times faster. Returns false, touching
 * nothing, if they are not known. The string is good as long as the module. */
bool symbol_module_line(struct symbol_module *module, uint64_t address, const char **ret_file, unsigned *ret_line);

/* Addresses of code that comes from a line of a source file, as the line table has them; the end of the file's path is
 * enough. Good until the next call. Returns how many. */
size_t symbol_module_addresses(struct symbol_module *module, const char *file, unsigned line,
                               const uint64_t **ret_addresses);

/* Folder number `index` of the compilation folders of the code that was queried so far, an absolute path; NULL past the
 * end. Good as long as the module. */
const char *symbol_module_directory(const struct symbol_module *module, size_t index);

/* As symbol_table_around. */
void symbol_module_around(struct symbol_module *module, uint64_t address, uint64_t *ret_before, uint64_t *ret_after);

/* As symbol_table_address. */
bool symbol_module_address(struct symbol_module *module, const char *name, uint64_t *ret_address);

/* A symbol as the file's own symbol table has it. */
struct symbol_entry {
  const char *name;       /* NULL: not fit to be printed, or it has none */
  uint64_t address, size; /* size 0: not known */
  uint64_t limit;         /* the end of its section */
  bool is_function, is_local;
  bool is_code; /* lies in a section that is executed */
};

/* Gives every symbol that lies in memory, in the order of the table; not those of the debug file. `visit` returns 0, or
 * negative to stop. Returns 0; LB_E_NO_SYMBOLS: the file is stripped; LB_E_TOO_BIG; or the value that `visit`
 * returned. */
int symbol_module_entries(struct symbol_module *module, int (*visit)(void *data, const struct symbol_entry *entry),
                          void *data);

/* The same for every name that is known: of the symbol table, in the file or its debug file, and of the dynamic
 * symbols. A symbol may come twice. */
int symbol_module_names(struct symbol_module *module, int (*visit)(void *data, const struct symbol_entry *entry),
                        void *data);

/* The highest DWARF version of the debug information, and whether it lies in another file. 0: there is none. */
unsigned symbol_module_dwarf(struct symbol_module *module, bool *ret_is_separate);

/* Copies the bytes of the file that lie at an address as it is linked. Returns how many there are, at most `size`. */
size_t symbol_module_code(struct symbol_module *module, uint64_t address, void *buffer, size_t size);

/* ---- C++ names ---- */

/* Demangles a C++ name ("_ZN1A1fEi" is "A::f(int)"), with the C++ library of this system; of NAME@plt, the NAME.
 * Returns false, touching nothing, if it is not a mangled name; if the library is missing; if the result is longer than
 * SYMBOL_NAME_MAX or not fit to be printed; or if the name might expand to far too long a result. */
bool symbol_demangle(const char *name, char ret_plain[SYMBOL_NAME_MAX + 1]);

struct symbol_demangler;

/* Demangles each symbol once, and caches the result. Returns 0, or -ENOMEM. */
int symbol_demangler_new(struct symbol_demangler **ret_demangler);
void symbol_demangler_free(struct symbol_demangler *demangler); /* takes NULL */

/* The name to show for a symbol: the demangled name, or the symbol itself. Symbols are identified by the addresses of
 * their names, so these must stay as long as the demangler. The result stays as long, too. Takes NULL for both. */
const char *symbol_demangler_name(struct symbol_demangler *demangler, const char *name);

/* ---- modules that are shared by address spaces ---- */

#define SYMBOL_MODULES_MAX 1024u
#define SYMBOL_MAPPINGS_MAX 65536u /* of a space */

struct symbol_cache;

/* `debug_root` as for symbol_module_open; it is copied. Returns 0, or -ENOMEM. */
int symbol_cache_new(const char *debug_root, struct symbol_cache **ret_cache);
void symbol_cache_free(struct symbol_cache *cache); /* after its spaces; takes NULL */

/* Lets the path "[vdso]" stand for the vdso of the kernel that runs now: right for programs that run on it, not for a
 * trace from elsewhere. Returns 0, also if there is none; -ENOMEM. */
int symbol_cache_add_vdso(struct symbol_cache *cache);

/* The module with this path, which must be absolute, or "[vdso]"; it stays good as long as the cache. For callers that
 * know where it lies without a space: symbol_layout_address converts offsets in the file to its addresses. Returns 0;
 * LB_E_TOO_BIG beyond the limit above; -ENOENT for other paths; or as symbol_module_open, each time. */
int symbol_cache_module(struct symbol_cache *cache, const char *path, struct symbol_module **ret_module);

/* ---- an address space ---- */

struct symbol_space;

struct symbol_mapping {
  uint64_t start, end; /* end is the first address after it; 0: the end of all addresses */
  uint64_t offset;     /* of `start` in the file */
  const char *path;
  const uint8_t *build_id; /* of the file that ran; size 0: not known */
  size_t build_id_size;
};

/* Returns 0, or -ENOMEM. */
int symbol_space_new(struct symbol_cache *cache, struct symbol_space **ret_space);
/* An independent copy, as fork makes one. Returns 0, or -ENOMEM. */
int symbol_space_copy(const struct symbol_space *space, struct symbol_space **ret_space);
void symbol_space_free(struct symbol_space *space); /* takes NULL */

/* Maps a piece of a file, over whatever was mapped there before. The file is opened when an address in it is first
 * asked for. Strings and bytes are copied. Returns 0; -EINVAL if the end is not after the start; LB_E_TOO_BIG beyond
 * the limits above; -ENOMEM: nothing has changed then. */
int symbol_space_add(struct symbol_space *space, const struct symbol_mapping *mapping);

/* Maps the code, of files and [vdso], that /proc/PID/maps lists; `text` holds all of its lines. Lines of other forms
 * are skipped, as are files that were removed. `root` is put before the paths of files, so that those of another root
 * directory are found ("/proc/PID/root"); "" for none. Returns 0, also for text without any; or as symbol_space_add. */
int symbol_space_add_maps(struct symbol_space *space, const char *text, size_t size, const char *root);

/* Unmaps whatever lies there. Returns as symbol_space_add. */
int symbol_space_remove(struct symbol_space *space, uint64_t start, uint64_t end);

/* Describes an address. Returns false, touching nothing, if no mapping is there; else the place with at least its
 * module and, without a symbol, the address as it is linked or the offset in the file. A file that cannot be opened, or
 * whose build-id differs from the mapping's, gives no symbol, no line and no code. Strings are good as long as the
 * cache. */
bool symbol_space_find(struct symbol_space *space, uint64_t address, bool wants_lines, struct symbol_place *ret_place);

/* The mapping at an address, without its build-id. Its path is good as long as the cache. Returns false, touching
 * nothing, if there is none. */
bool symbol_space_mapping(const struct symbol_space *space, uint64_t address, struct symbol_mapping *ret_mapping);

/* The module at an address, and the address as it is linked. Returns 0; -ENOENT if no mapping is there; the error of
 * opening the file; LB_E_NO_SYMBOLS for a file with another build-id; LB_E_NO_ENTRY for a byte that the file does not
 * load. */
int symbol_space_module(struct symbol_space *space, uint64_t address, struct symbol_module **ret_module,
                        uint64_t *ret_address);

/* The bytes of code at an address, as the file has them. Returns how many there are, at most `size`. */
size_t symbol_space_code(struct symbol_space *space, uint64_t address, void *buffer, size_t size);

#endif
