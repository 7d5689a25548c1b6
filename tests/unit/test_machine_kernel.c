/* SPDX-License-Identifier: Apache-2.0
 *
 * Multiboot and ELF kernels, packed ones included.
 */
#include <zlib.h>

#include "machine_rig.h"

static uint32_t info_get(struct machine *machine, uint32_t info, unsigned offset)
{
  return (uint32_t)get(machine, info + offset, 4);
}

static void assert_modules(struct machine *machine, uint32_t info)
{
  assert_int_equal(info_get(machine, info, 20), 2);
  uint32_t list = info_get(machine, info, 24), first = info_get(machine, list, 0), second = info_get(machine, list, 16);
  assert_int_equal(first % 4096, 0);
  assert_int_equal(second % 4096, 0);
  assert_int_equal(info_get(machine, list, 4), first + 3);
  assert_string_at(machine, info_get(machine, list, 8), "one");
  assert_string_at(machine, info_get(machine, list, 24), "two words");
  assert_int_equal(get(machine, first, 3), 0x636261);
  assert_int_equal(get(machine, second, 1), 'd');
}

/* A gzip file of it, for guest_free. */
static struct machine_image packed(const void *bytes, size_t size)
{
  z_stream stream = {.next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (unsigned)size};

  assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  unsigned room = (unsigned)deflateBound(&stream, size);
  uint8_t *file = malloc(room);
  assert_non_null(file);
  stream.next_out = file;
  stream.avail_out = room;
  assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
  assert_int_equal(deflateEnd(&stream), Z_OK);
  return (struct machine_image){file, room - stream.avail_out};
}

static void image_pack(struct machine_image *image)
{
  struct machine_image file = packed(image->bytes, image->size);

  guest_free(*image);
  *image = file;
}

static void assert_kernel(const char *name, bool is_elf, bool is_packed)
{
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  struct machine_image kernel = guest_read(name);
  struct machine_image modules[] = {{(const uint8_t *)"abc", 3}, {(const uint8_t *)"d", 1}};
  const char *names[] = {"one", "two words"}, *why = "";
  struct machine_image module = packed("abc", 3);

  if (is_packed) {
    image_pack(&kernel);
    modules[0] = module;
  }
  int r = machine_load_kernel(machine, &kernel, "kernel a=b", modules, names, 2, &why);
  if (r < 0)
    fail_msg("%s: %s: %s", name, lb_strerror(r), why);
  guest_free(kernel);
  guest_free(module);
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  assert_int_equal(get(machine, 0x2000, 4), 0x2BADB002);
  uint32_t info = (uint32_t)get(machine, 0x2004, 4);
  assert_int_equal(get(machine, 0x2008, 4) & 0x20200, 0);    /* neither IF nor VM */
  assert_int_equal(get(machine, 0x200C, 4) & 0x80000001, 1); /* protected, no paging */
  assert_int_equal(get(machine, 0x2010, 4), 0x37F);          /* FNINIT */
  assert_int_equal(get(machine, 0x2014, 4), 0);
  assert_int_equal(get(machine, 0x2018, 4), 0xCAFE);
  assert_int_equal(info_get(machine, info, 0) & 0x24D, 0x24D);
  assert_int_equal(!!(info_get(machine, info, 0) & 0x20), is_elf);
  assert_int_equal(info_get(machine, info, 4), 639);
  assert_int_equal(info_get(machine, info, 8), 15 * 1024 - 64);
  assert_string_at(machine, info_get(machine, info, 16), "kernel a=b");
  assert_modules(machine, info);
  assert_true(info_get(machine, info, 44) >= 6 * 24);
  assert_int_equal(info_get(machine, info_get(machine, info, 48), 0), 20);
  struct machine_screen screen = machine_screen(machine);
  assert_row(&screen, 0, "AB");
  machine_free(machine);
}

static void test_kernels(void **state)
{
  (void)state;
  assert_kernel("kernel32.elf", true, false);
  assert_kernel("kernel64.elf", true, false);
  assert_kernel("kernel_page.elf", true, false); /* its headers are at FF000h, in a segment of their own */
  assert_kernel("kernel.bin", false, false);
}

static void test_packed_kernels(void **state)
{
  (void)state;
  assert_kernel("kernel32.elf", true, true);
  assert_kernel("kernel64.elf", true, true);
  assert_kernel("kernel.bin", false, true);
}

/* As the kernel and as a module of a good kernel; both are refused with the same code. */
static void assert_packed_refused(struct machine_image file, int error, const char *sentence)
{
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  struct machine_image kernel = guest_read("kernel32.elf");
  const char *why = "", *name = "extra.gz";
  char named[128];

  assert_int_equal(machine_load_kernel(machine, &file, "", NULL, NULL, 0, &why), error);
  assert_string_equal(why, sentence);
  assert_int_equal(machine_load_kernel(machine, &kernel, "", &file, &name, 1, &why), error);
  snprintf(named, sizeof(named), "module extra.gz: %s", sentence);
  assert_string_equal(why, named);
  assert_int_equal(machine_load_kernel(machine, &kernel, "", NULL, NULL, 0, &why), 0);
  guest_free(kernel);
  machine_free(machine);
}

static void test_bad_packed_kernels(void **state)
{
  (void)state;
  struct machine_image file = guest_read("kernel32.elf");
  image_pack(&file);
  uint8_t *bytes = (uint8_t *)file.bytes;
  for (size_t size = 2; size < file.size; size += 7)
    assert_packed_refused((struct machine_image){bytes, size}, LB_E_BAD_IMAGE, "its gzip data ends too early");
  bytes[file.size - 5] ^= 1; /* of the CRC */
  assert_packed_refused(file, LB_E_BAD_IMAGE, "its gzip data is damaged");
  bytes[file.size - 5] ^= 1;
  bytes[2] = 7; /* no such method */
  assert_packed_refused(file, LB_E_BAD_IMAGE, "its gzip data is damaged");
  guest_free(file);

  struct machine_config config = config_get();
  uint8_t *zeros = calloc(1, config.ram + 1);
  assert_non_null(zeros);
  file = packed(zeros, config.ram + 1);
  assert_packed_refused(file, LB_E_TOO_BIG, "unpacked, it is larger than the guest's memory");
  guest_free(file);
  free(zeros);
}

/* Members are joined and zeros behind them ignored (gzip's manual, ADVANCED USAGE); other bytes are not lost silently.
 */
static void test_packed_members(void **state)
{
  (void)state;
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  struct machine_image kernel = guest_read("kernel32.elf"), one = packed("ab", 2), two = packed("c", 1);
  uint8_t file[256] = {0};
  memcpy(file, one.bytes, one.size);
  memcpy(file + one.size, two.bytes, two.size);
  struct machine_image modules[] = {{file, sizeof(file)}, {(const uint8_t *)"d", 1}};
  const char *names[] = {"one", "two words"}, *why = "";
  assert_int_equal(machine_load_kernel(machine, &kernel, "", modules, names, 2, &why), 0);
  assert_modules(machine, (uint32_t)machine_cpu(machine)->r[RBX]);
  file[255] = 1;
  assert_int_equal(machine_load_kernel(machine, &kernel, "", modules, names, 2, &why), LB_E_BAD_IMAGE);
  assert_string_equal(why, "module one: its gzip data is followed by other bytes");
  guest_free(kernel);
  guest_free(one);
  guest_free(two);
  machine_free(machine);
}

/* Linux unpacks its initrd itself, and itself too: only the file that it comes in may be packed by mistake. */
static void test_packed_linux(void **state)
{
  (void)state;
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  struct machine_image kernel = guest_read("linux.bin"), initrd = packed("abc", 3);
  const char *why = "";
  assert_int_equal(machine_load_kernel(machine, &kernel, "", &initrd, NULL, 1, &why), 0);
  uint64_t params = machine_cpu(machine)->r[RSI];
  uint32_t at = (uint32_t)get(machine, params + 0x218, 4);
  assert_int_equal(get(machine, params + 0x21C, 4), initrd.size);
  assert_int_equal(get(machine, at, 4), bytes_get_u32(initrd.bytes));
  image_pack(&kernel);
  assert_int_equal(machine_load_kernel(machine, &kernel, "", NULL, NULL, 0, &why), LB_E_BAD_IMAGE);
  assert_string_equal(why, "it is a Linux kernel in a gzip file; unpack it with gunzip first");
  guest_free(kernel);
  guest_free(initrd);
  machine_free(machine);
}

/* The section headers of kernel32.elf lead to its symbols: one of them is _start. */
static void test_symbols(void **state)
{
  (void)state;
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  struct machine_image kernel = guest_read("kernel32.elf");
  assert_int_equal(machine_load_kernel(machine, &kernel, NULL, NULL, NULL, 0, NULL), 0);
  uint32_t info = (uint32_t)machine_cpu(machine)->r[RBX], count = info_get(machine, info, 28);
  uint32_t headers = info_get(machine, info, 36), names = 0, symbols = 0, size = 0;
  assert_int_equal(info_get(machine, info, 32), 40);
  for (uint32_t i = 0; i < count; i++)
    if (info_get(machine, headers, 40 * i + 4) == 2) {
      symbols = info_get(machine, headers, 40 * i + 12);
      size = info_get(machine, headers, 40 * i + 20);
      names = info_get(machine, headers, 40 * info_get(machine, headers, 40 * i + 24) + 12);
    }
  assert_true(symbols && names);
  bool is_found = false;
  for (uint32_t at = 0; at < size; at += 16) {
    char name[8];

    assert_true(memory_read(machine_memory(machine), names + info_get(machine, symbols, at), name, sizeof(name)));
    if (strncmp(name, "_start", sizeof(name)) == 0)
      is_found = info_get(machine, symbols, at + 4) == machine_cpu(machine)->rip;
  }
  assert_true(is_found);
  guest_free(kernel);
  machine_free(machine);
}

/* Each change makes the kernel unusable, in its own words. */
static void assert_bad_kernel(size_t at, uint32_t value, unsigned size, const char *sentence)
{
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  struct machine_image kernel = guest_read("kernel32.elf");
  const char *why = "";

  memcpy((uint8_t *)kernel.bytes + at, &value, size);
  int r = machine_load_kernel(machine, &kernel, "", NULL, NULL, 0, &why);
  assert_true(r == LB_E_BAD_IMAGE || r == LB_E_TOO_BIG);
  assert_string_equal(why, sentence);
  guest_free(kernel);
  machine_free(machine);
}

static void test_bad_kernels(void **state)
{
  (void)state;
  struct machine_image kernel = guest_read("kernel32.elf");
  size_t header = 0, segment = bytes_get_u32(kernel.bytes + 28);
  while (bytes_get_u32(kernel.bytes + header) != 0x1BADB002)
    header += 4;
  guest_free(kernel);
  assert_bad_kernel(header, 0, 4, "no multiboot header in its first 8192 bytes");
  assert_bad_kernel(header + 8, 0, 4, "no multiboot header in its first 8192 bytes");
  assert_bad_kernel(0, 0, 4, "it has a multiboot header, but is not an ELF file and has no address fields");
  assert_bad_kernel(5, 2, 1, "the ELF file is not little-endian");
  assert_bad_kernel(4, 7, 1, "the ELF file is neither of 32 nor of 64 bits");
  assert_bad_kernel(18, 40, 2, "the ELF file ends within its header or is for another processor");
  assert_bad_kernel(28, 0xFFFFFFF0, 4, "the program headers of the ELF file end behind the end of the file");
  assert_bad_kernel(42, 8, 2, "the program headers of the ELF file are too small");
  assert_bad_kernel(44, 0, 2, "the ELF file has no segment to load");
  assert_bad_kernel(segment + 4, 0x10000000, 4, "a segment of the ELF file ends behind the end of the file");
  assert_bad_kernel(segment + 20, 1, 4, "a segment of the ELF file is longer in the file than in memory");
  assert_bad_kernel(segment + 20, 0xFFFFFFFF, 4,
                    "a part of it does not fit into memory, or lies where the firmware is");
  assert_bad_kernel(segment + 12, 0xF0000, 4, "a part of it does not fit into memory, or lies where the firmware is");
}

/* What an operating system looks at before it uses caching at all. */
static void test_memory_types(void **state)
{
  (void)state;
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  uint64_t value = 0;
  assert_true(cpu_read_msr(machine_cpu(machine), 0x2FF, &value));
  assert_int_equal(value, 0xC06);
  assert_true(cpu_read_msr(machine_cpu(machine), 0x201, &value));
  assert_int_equal(value, UINT64_C(0xFFC0000800));
  assert_true(cpu_read_msr(machine_cpu(machine), 0x26F, &value));
  assert_int_equal(value, UINT64_C(0x0505050505050505));
  machine_free(machine);
}

PART(cmocka_unit_test(test_kernels), cmocka_unit_test(test_packed_kernels), cmocka_unit_test(test_bad_packed_kernels),
     cmocka_unit_test(test_packed_members), cmocka_unit_test(test_packed_linux), cmocka_unit_test(test_symbols),
     cmocka_unit_test(test_bad_kernels), cmocka_unit_test(test_memory_types));
