/* SPDX-License-Identifier: Apache-2.0
 *
 * The registers as gdb numbers them: by their order in the target description, which is that of its features
 * org.gnu.gdb.i386.core, .sse and .segments; after these, a feature of our own for registers that only a machine has.
 */
#include "gdb/register.h"

#include <assert.h>
#include <errno.h>

/* A row for each register of enum gdb_register, in its order. */
struct row {
  const char *name[2]; /* by architecture; NULL if it does not exist there */
  uint8_t bits[2];
  const char *type[2];
};

#define GENERAL(wide, narrow)                                                                                          \
  {                                                                                                                    \
    {wide, narrow}, {64, 32},                                                                                          \
    {                                                                                                                  \
      "int64", "int32"                                                                                                 \
    }                                                                                                                  \
  }
#define POINTER(wide, narrow)                                                                                          \
  {                                                                                                                    \
    {wide, narrow}, {64, 32},                                                                                          \
    {                                                                                                                  \
      "data_ptr", "data_ptr"                                                                                           \
    }                                                                                                                  \
  }
#define WIDE(name)                                                                                                     \
  {                                                                                                                    \
    {name, NULL}, {64, 0},                                                                                             \
    {                                                                                                                  \
      "int64", NULL                                                                                                    \
    }                                                                                                                  \
  }
#define BOTH(name, bits, type)                                                                                         \
  {                                                                                                                    \
    {name, name}, {bits, bits},                                                                                        \
    {                                                                                                                  \
      type, type                                                                                                       \
    }                                                                                                                  \
  }
#define WIDE_VECTOR(name)                                                                                              \
  {                                                                                                                    \
    {name, NULL}, {128, 0},                                                                                            \
    {                                                                                                                  \
      "vec128", NULL                                                                                                   \
    }                                                                                                                  \
  }

static const struct row rows[GDB_REGISTERS] = {
  GENERAL("rax", "eax"),
  GENERAL("rcx", "ecx"),
  GENERAL("rdx", "edx"),
  GENERAL("rbx", "ebx"),
  POINTER("rsp", "esp"),
  POINTER("rbp", "ebp"),
  GENERAL("rsi", "esi"),
  GENERAL("rdi", "edi"),
  WIDE("r8"),
  WIDE("r9"),
  WIDE("r10"),
  WIDE("r11"),
  WIDE("r12"),
  WIDE("r13"),
  WIDE("r14"),
  WIDE("r15"),
  {{"rip", "eip"}, {64, 32}, {"code_ptr", "code_ptr"}},
  BOTH("eflags", 32, "i386_eflags"),
  BOTH("cs", 32, "int32"),
  BOTH("ss", 32, "int32"),
  BOTH("ds", 32, "int32"),
  BOTH("es", 32, "int32"),
  BOTH("fs", 32, "int32"),
  BOTH("gs", 32, "int32"),
  BOTH("st0", 80, "i387_ext"),
  BOTH("st1", 80, "i387_ext"),
  BOTH("st2", 80, "i387_ext"),
  BOTH("st3", 80, "i387_ext"),
  BOTH("st4", 80, "i387_ext"),
  BOTH("st5", 80, "i387_ext"),
  BOTH("st6", 80, "i387_ext"),
  BOTH("st7", 80, "i387_ext"),
  BOTH("fctrl", 32, "int"),
  BOTH("fstat", 32, "int"),
  BOTH("ftag", 32, "int"),
  BOTH("fiseg", 32, "int"),
  BOTH("fioff", 32, "int"),
  BOTH("foseg", 32, "int"),
  BOTH("fooff", 32, "int"),
  BOTH("fop", 32, "int"),
  BOTH("xmm0", 128, "vec128"),
  BOTH("xmm1", 128, "vec128"),
  BOTH("xmm2", 128, "vec128"),
  BOTH("xmm3", 128, "vec128"),
  BOTH("xmm4", 128, "vec128"),
  BOTH("xmm5", 128, "vec128"),
  BOTH("xmm6", 128, "vec128"),
  BOTH("xmm7", 128, "vec128"),
  WIDE_VECTOR("xmm8"),
  WIDE_VECTOR("xmm9"),
  WIDE_VECTOR("xmm10"),
  WIDE_VECTOR("xmm11"),
  WIDE_VECTOR("xmm12"),
  WIDE_VECTOR("xmm13"),
  WIDE_VECTOR("xmm14"),
  WIDE_VECTOR("xmm15"),
  BOTH("mxcsr", 32, "i386_mxcsr"),
  {{"orig_rax", "orig_eax"}, {64, 32}, {"int64", "int32"}},
  WIDE("fs_base"),
  WIDE("gs_base"),
  GENERAL("cr0", "cr0"),
  GENERAL("cr2", "cr2"),
  GENERAL("cr3", "cr3"),
  GENERAL("cr4", "cr4"),
  WIDE("cr8"),
  BOTH("efer", 64, "int64"),
};

/* The column of a row. */
static unsigned column(enum gdb_architecture architecture)
{
  return architecture == GDB_X86_64 ? 0 : 1;
}

unsigned gdb_register_size(enum gdb_architecture architecture, enum gdb_register number)
{
  assert((unsigned)number < GDB_REGISTERS);
  return rows[number].bits[column(architecture)] / 8;
}

const char *gdb_register_name(enum gdb_architecture architecture, enum gdb_register number)
{
  return rows[number].name[column(architecture)];
}

/* ---- the order ---- */

/* gdb expects the general registers in its own order, which differs by architecture. From RIP on the order is ours. */
static const uint8_t general[2][16] = {
  {GDB_RAX, GDB_RBX, GDB_RCX, GDB_RDX, GDB_RSI, GDB_RDI, GDB_RBP, GDB_RSP, GDB_R8, GDB_R8 + 1, GDB_R8 + 2, GDB_R8 + 3,
   GDB_R8 + 4, GDB_R8 + 5, GDB_R8 + 6, GDB_R8 + 7},
  {GDB_RAX, GDB_RCX, GDB_RDX, GDB_RBX, GDB_RSP, GDB_RBP, GDB_RSI, GDB_RDI},
};

static size_t general_count(enum gdb_architecture architecture)
{
  return architecture == GDB_X86_64 ? 16 : 8;
}

static bool register_is_there(enum gdb_architecture architecture, unsigned features, unsigned number)
{
  if (number >= GDB_CR0 && !(features & GDB_HAS_SYSTEM))
    return false;
  if (number == GDB_ORIG_RAX && !(features & GDB_HAS_LINUX))
    return false;
  if ((number == GDB_FS_BASE || number == GDB_GS_BASE) && !(features & GDB_HAS_BASES))
    return false;
  return rows[number].name[column(architecture)];
}

bool register_at(enum gdb_architecture architecture, unsigned features, size_t index, enum gdb_register *ret_number)
{
  size_t count = general_count(architecture);

  if (index < count) {
    *ret_number = general[column(architecture)][index];
    return true;
  }
  for (unsigned number = GDB_RIP; number < GDB_REGISTERS; number++)
    if (register_is_there(architecture, features, number) && count++ == index) {
      *ret_number = number;
      return true;
    }
  return false;
}

size_t register_index(enum gdb_architecture architecture, enum gdb_register number)
{
  enum gdb_register other;
  size_t index = 0;

  while (register_at(architecture, 0, index, &other) && other != number)
    index++;
  return index;
}

/* ---- the description ---- */

static const char eflags_type[] =
  "<flags id=\"i386_eflags\" size=\"4\"><field name=\"\" start=\"22\" end=\"31\"/><field name=\"ID\" start=\"21\" "
  "end=\"21\"/><field name=\"VIP\" start=\"20\" end=\"20\"/><field name=\"VIF\" start=\"19\" end=\"19\"/>"
  "<field name=\"AC\" start=\"18\" end=\"18\"/><field name=\"VM\" start=\"17\" end=\"17\"/><field name=\"RF\" "
  "start=\"16\" end=\"16\"/><field name=\"NT\" start=\"14\" end=\"14\"/><field name=\"OF\" start=\"11\" end=\"11\"/>"
  "<field name=\"DF\" start=\"10\" end=\"10\"/><field name=\"IF\" start=\"9\" end=\"9\"/><field name=\"TF\" "
  "start=\"8\" end=\"8\"/><field name=\"SF\" start=\"7\" end=\"7\"/><field name=\"ZF\" start=\"6\" end=\"6\"/>"
  "<field name=\"AF\" start=\"4\" end=\"4\"/><field name=\"PF\" start=\"2\" end=\"2\"/><field name=\"\" start=\"1\" "
  "end=\"1\"/><field name=\"CF\" start=\"0\" end=\"0\"/></flags>";

static const char vector_types[] =
  "<vector id=\"v4f\" type=\"ieee_single\" count=\"4\"/><vector id=\"v2d\" type=\"ieee_double\" count=\"2\"/>"
  "<vector id=\"v16i8\" type=\"int8\" count=\"16\"/><vector id=\"v8i16\" type=\"int16\" count=\"8\"/>"
  "<vector id=\"v4i32\" type=\"int32\" count=\"4\"/><vector id=\"v2i64\" type=\"int64\" count=\"2\"/>"
  "<union id=\"vec128\"><field name=\"v4_float\" type=\"v4f\"/><field name=\"v2_double\" type=\"v2d\"/>"
  "<field name=\"v16_int8\" type=\"v16i8\"/><field name=\"v8_int16\" type=\"v8i16\"/><field name=\"v4_int32\" "
  "type=\"v4i32\"/><field name=\"v2_int64\" type=\"v2i64\"/><field name=\"uint128\" type=\"uint128\"/></union>"
  "<flags id=\"i386_mxcsr\" size=\"4\"><field name=\"IE\" start=\"0\" end=\"0\"/><field name=\"DE\" start=\"1\" "
  "end=\"1\"/><field name=\"ZE\" start=\"2\" end=\"2\"/><field name=\"OE\" start=\"3\" end=\"3\"/><field name=\"UE\" "
  "start=\"4\" end=\"4\"/><field name=\"PE\" start=\"5\" end=\"5\"/><field name=\"DAZ\" start=\"6\" end=\"6\"/>"
  "<field name=\"IM\" start=\"7\" end=\"7\"/><field name=\"DM\" start=\"8\" end=\"8\"/><field name=\"ZM\" start=\"9\" "
  "end=\"9\"/><field name=\"OM\" start=\"10\" end=\"10\"/><field name=\"UM\" start=\"11\" end=\"11\"/><field "
  "name=\"PM\" start=\"12\" end=\"12\"/><field name=\"FZ\" start=\"15\" end=\"15\"/></flags>";

/* The feature that a register begins. */
static int feature_begin(unsigned number, bool is_first, struct text *text)
{
  static const struct {
    unsigned number;
    const char *name, *types;
  } features[] = {
    {GDB_XMM0, "org.gnu.gdb.i386.sse", vector_types},
    {GDB_ORIG_RAX, "org.gnu.gdb.i386.linux", ""},
    {GDB_FS_BASE, "org.gnu.gdb.i386.segments", ""},
    {GDB_CR0, "org.lastbranch.i386.system", ""},
  };

  if (is_first)
    return text_addf(text, "<feature name=\"org.gnu.gdb.i386.core\">%s", eflags_type);
  for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++)
    if (features[i].number == number)
      return text_addf(text, "</feature><feature name=\"%s\">%s", features[i].name, features[i].types);
  return 0;
}

static int registers_describe(enum gdb_architecture architecture, unsigned features, struct text *text)
{
  enum gdb_register number;
  int r = 0;

  for (size_t i = 0; r >= 0 && register_at(architecture, features, i, &number); i++) {
    const struct row *row = &rows[number];

    r = feature_begin(number, i == 0, text);
    if (r >= 0)
      r = text_addf(text, "<reg name=\"%s\" bitsize=\"%u\" type=\"%s\"%s/>", row->name[column(architecture)],
                    (unsigned)row->bits[column(architecture)], row->type[column(architecture)],
                    number >= GDB_CR0 ? " group=\"system\"" : "");
  }
  return r;
}

int register_describe(enum gdb_architecture architecture, unsigned features, const char *osabi, struct text *text)
{
  static const char *const names[] = {[GDB_X86_64] = "i386:x86-64", [GDB_I386] = "i386", [GDB_I8086] = "i8086"};
  int r = text_addf(text,
                    "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target>"
                    "<architecture>%s</architecture>",
                    names[architecture]);

  if (r >= 0 && osabi)
    r = text_addf(text, "<osabi>%s</osabi>", osabi);
  if (r >= 0)
    r = registers_describe(architecture, features, text);
  return r < 0 ? r : text_add(text, "</feature></target>");
}
