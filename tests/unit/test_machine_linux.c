/* SPDX-License-Identifier: Apache-2.0
 *
 * Images of Linux, by the boot protocol of Documentation/arch/x86/boot.rst.
 */
#include "machine_rig.h"

static void assert_e820(struct machine *machine, uint32_t params)
{
  static const uint64_t wanted[][3] = {
    {0, 0x9FC00, 1}, {0x9FC00, 0x400, 2}, {0xF0000, 0x10000, 2}, {0x100000, 0xEF0000, 1}, {0xFF0000, 0x10000, 3}};

  assert_true(get(machine, params + 0x1E8, 1) >= 5);
  for (unsigned i = 0; i < 5; i++) {
    assert_int_equal(get(machine, params + 0x2D0 + 20 * i, 8), wanted[i][0]);
    assert_int_equal(get(machine, params + 0x2D8 + 20 * i, 8), wanted[i][1]);
    assert_int_equal(get(machine, params + 0x2E0 + 20 * i, 4), wanted[i][2]);
  }
}

/* The 32-bit entry of the boot protocol, and boot_params: places are those of the kernel's documentation. */
static void test_linux(void **state)
{
  (void)state;
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  struct machine_image kernel = guest_read("linux.bin");
  struct machine_image modules[] = {{(const uint8_t *)"abcde", 5}, {(const uint8_t *)"fg", 2}};
  const char *why = "";
  assert_true(machine_is_linux(&kernel));
  int r = machine_load_kernel(machine, &kernel, "console=ttyS0 a=b", modules, NULL, 2, &why);
  if (r < 0)
    fail_msg("%s: %s", lb_strerror(r), why);
  assert_stop(machine, &idle, MACHINE_STOP_OFF);
  uint32_t params = (uint32_t)get(machine, 0x2000, 4);
  assert_int_equal(get(machine, 0x2004, 4), 0);
  assert_int_equal(get(machine, 0x2008, 4) & 0x20200, 0);
  assert_int_equal(get(machine, 0x200C, 4) & 0x80000001, 1);
  assert_in_range(get(machine, 0x2010, 4), 0x100000, 0x100040);
  assert_int_equal(get(machine, 0x2014, 2), 0x10);
  assert_int_equal(get(machine, 0x2016, 2), 0x18);
  assert_int_equal(get(machine, 0x2018, 2), 0x18);
  assert_string_at(machine, (uint32_t)get(machine, params + 0x228, 4), "console=ttyS0 a=b");
  assert_int_equal(get(machine, params + 0x1EF, 1), 0); /* the sentinel */
  assert_int_equal(get(machine, params + 0x202, 4), 0x53726448);
  assert_int_equal(get(machine, params + 0x206, 2), 0x20F);
  assert_int_not_equal(get(machine, params + 0x210, 1), 0);
  uint32_t initrd = (uint32_t)get(machine, params + 0x218, 4), rsdp = (uint32_t)get(machine, params + 0x70, 4);
  assert_int_equal(initrd, 0xFEF000); /* the last page that is free */
  assert_int_equal(get(machine, params + 0x21C, 4), 10);
  assert_int_equal(get(machine, initrd, 8), UINT64_C(0x6564636261));
  assert_int_equal(get(machine, initrd + 8, 2), 0x6766);
  assert_int_equal(get(machine, rsdp, 8), UINT64_C(0x2052545020445352)); /* "RSD PTR " */
  assert_e820(machine, params);
  struct machine_screen screen = machine_screen(machine);
  assert_row(&screen, 0, "OK");
  guest_free(kernel);
  machine_free(machine);
}

/* Without a module and in a machine that is only just big enough. */
static void test_linux_in_little_memory(void **state)
{
  (void)state;
  struct machine_config config = config_get();
  struct machine_image kernel = guest_read("linux.bin"), module = {(const uint8_t *)"abc", 3};
  const char *why = "";
  config.ram = UINT64_C(0x700000) + 0x10000;
  struct machine *machine = machine_make(&config, NULL);
  assert_int_equal(machine_load_kernel(machine, &kernel, NULL, NULL, NULL, 0, &why), 0);
  assert_int_equal(get(machine, machine_cpu(machine)->r[RSI] + 0x218, 8), 0);
  assert_int_equal(machine_load_kernel(machine, &kernel, NULL, &module, NULL, 1, &why), LB_E_TOO_BIG);
  assert_string_equal(why, "no room in memory for its initrd; --ram gives it more");
  machine_free(machine);
  config.ram -= 0x1000;
  machine = machine_make(&config, NULL);
  assert_int_equal(machine_load_kernel(machine, &kernel, NULL, NULL, NULL, 0, &why), LB_E_TOO_BIG);
  assert_string_equal(why, "it needs more memory to unpack itself than there is; --ram gives it more");
  machine_free(machine);
  guest_free(kernel);
}

/* The 16-bit entry, for protocols before 2.10, whose header ends earlier: what stands behind it is code. */
static void test_linux_in_real_mode(void **state)
{
  (void)state;
  for (uint16_t version = 0x203; version < 0x20A; version += 2) {
    struct machine_config config = config_get();
    struct machine *machine = machine_make(&config, NULL);
    struct machine_image kernel = guest_read("linux.bin"), module = {(const uint8_t *)"abc", 3};
    const char *why = "";

    memcpy((uint8_t *)kernel.bytes + 0x206, &version, 2);
    memset((uint8_t *)kernel.bytes + 0x258, 0xFF, 12); /* no pref_address, no init_size */
    int r = machine_load_kernel(machine, &kernel, "a=b", &module, NULL, 1, &why);
    if (r < 0)
      fail_msg("%s: %s", lb_strerror(r), why);
    assert_stop(machine, &idle, MACHINE_STOP_OFF);
    uint64_t segment = get(machine, 0x3002, 2), pointer = get(machine, 0x3006, 2);
    assert_int_equal(get(machine, 0x3000, 2), segment + 0x20);
    assert_int_equal(get(machine, 0x3004, 2), segment);
    assert_int_equal(get(machine, 0x3008, 2) & 0x200, 0); /* interrupts are off */
    assert_string_at(machine, (uint32_t)get(machine, 0x300C, 4), "a=b");
    assert_in_range(get(machine, 0x3010, 2) + 0x200, 0x400, pointer - 0x200);
    assert_int_equal(get(machine, get(machine, 0x3014, 4), 3), 0x636261);
    assert_int_equal(get(machine, segment * 16 + 0x21C, 4), 3);
    assert_int_equal(get(machine, segment * 16 + 0x211, 1), 0x81); /* LOADED_HIGH, CAN_USE_HEAP */
    assert_int_equal(get(machine, 0x100000, 4), bytes_get_u32(kernel.bytes + 0x400));
    guest_free(kernel);
    machine_free(machine);
  }
}

static void test_linux_wants_64_bits(void **state)
{
  (void)state;
  struct machine_config config = config_get();
  struct machine_image kernel = guest_read("linux.bin");
  ((uint8_t *)kernel.bytes)[0x236] = 1; /* XLF_KERNEL_64 */
  for (unsigned i = 0; i < 4; i++) {
    static const char *const names[] = {"skylake", "p6", "yonah", "k8"};
    const char *why = "";

    assert_int_equal(lb_cpu_find(names[i], &config.model), 0);
    struct machine *machine = machine_make(&config, NULL);
    int r = machine_load_kernel(machine, &kernel, NULL, NULL, NULL, 0, &why);
    assert_int_equal(r, i == 1 || i == 2 ? LB_E_BAD_IMAGE : 0);
    assert_string_equal(why, r < 0 ? "it is a kernel of 64 bits, and this processor has no 64-bit mode" : "");
    assert_int_equal(machine_cpu(machine)->efer, 0);
    machine_free(machine);
  }
  guest_free(kernel);
}

static void assert_bad_linux(size_t at, uint32_t value, unsigned size, const char *sentence)
{
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  struct machine_image kernel = guest_read("linux.bin"), module = {(const uint8_t *)"abc", 3};
  const char *why = "";

  memcpy((uint8_t *)kernel.bytes + at, &value, size);
  int r = machine_load_kernel(machine, &kernel, "console=ttyS0", &module, NULL, 1, &why);
  assert_true(r == LB_E_BAD_IMAGE || r == LB_E_TOO_BIG);
  assert_string_equal(why, sentence);
  kernel.size = 0x402;
  for (size_t end = 0; end < kernel.size; end += 3) { /* cut anywhere, it is refused in some words */
    struct machine_image part = {kernel.bytes, end};
    why = NULL;
    assert_true(machine_load_kernel(machine, &part, "", NULL, NULL, 0, &why) < 0 || end > 0x400);
    assert_true(why || end > 0x400);
  }
  guest_free(kernel);
  machine_free(machine);
}

static void test_bad_linux(void **state)
{
  (void)state;
  static const char *const no_initrd = "no room in memory for its initrd; --ram gives it more";
  static const char *const no_room = "it needs more memory to unpack itself than there is; --ram gives it more";
  assert_bad_linux(0x1F1, 2, 1, "the file ends within Linux's setup code");
  assert_bad_linux(0x1F1, 255, 1, "the file ends within Linux's setup code");
  assert_bad_linux(0x201, 0x10, 1, "its setup header has no such size");
  assert_bad_linux(0x206, 0x201, 2, "it is a Linux kernel with a boot protocol older than 2.02");
  assert_bad_linux(0x211, 0, 1, "it is a zImage, which is loaded below 640 KiB; a bzImage is wanted");
  assert_bad_linux(0x22C, 0x3FFFFF, 4, no_initrd); /* initrd_addr_max */
  assert_bad_linux(0x22C, 0, 4, no_initrd);
  assert_bad_linux(0x230, 0x200001, 4, "the alignment in its setup header is not a power of two");
  assert_bad_linux(0x230, 0x80000000, 4, no_room);
  assert_bad_linux(0x238, 12, 4, "its command line is longer than it can take");
  assert_bad_linux(0x25C, 1, 4, "its setup header wants it above 4 GiB");
  assert_bad_linux(0x258, 0xFFFFFFFF, 4, no_room);
  assert_bad_linux(0x260, 0xFFFFFFFF, 4, no_room);
}

static void test_flat(void **state)
{
  (void)state;
  static const uint8_t real[] = {0x8C, 0xC8, 0xA3, 0x00, 0x20, 0xFA, 0xF4};       /* mov %cs, %ax; mov %ax, 0x2000 */
  static const uint8_t flat[] = {0x8C, 0xC8, 0xA3, 0x00, 0x20, 0, 0, 0xFA, 0xF4}; /* the same in 32 bits */
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  struct machine_image image = {real, sizeof(real)};
  assert_int_equal(machine_load_flat(machine, &image, 0x12345), 0);
  assert_int_equal(machine_cpu(machine)->rip, 5);
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  assert_int_equal(get(machine, 0x2000, 2), 0x1234);
  image = (struct machine_image){flat, sizeof(flat)};
  assert_int_equal(machine_load_flat(machine, &image, 0x200000), 0);
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  assert_int_not_equal(get(machine, 0x2000, 2), 0x1234);
  assert_int_equal(machine_load_flat(machine, &image, 0xFFFFF), LB_E_TOO_BIG);
  assert_int_equal(machine_load_flat(machine, &image, UINT64_MAX - 2), LB_E_TOO_BIG);
  image.size = 0;
  assert_int_equal(machine_load_flat(machine, &image, 0x1000), LB_E_BAD_IMAGE);
  machine_free(machine);
}

PART(cmocka_unit_test(test_linux), cmocka_unit_test(test_linux_in_little_memory),
     cmocka_unit_test(test_linux_in_real_mode), cmocka_unit_test(test_linux_wants_64_bits),
     cmocka_unit_test(test_bad_linux), cmocka_unit_test(test_flat));
