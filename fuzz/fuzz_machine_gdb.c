/* SPDX-License-Identifier: Apache-2.0
 *
 * A gdb that sends whatever it likes to a machine that runs: registers and memory of any value, points anywhere, steps,
 * `monitor` commands, the branch trace. Serving must end with the input, and the machine still be one that runs. See
 * gdb_way.h. An input that begins with "%" is for a processor without 64-bit mode.
 */
#include "gdb/gdb.h"
#include "gdb_way.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SLICE 300u
#define SLICES 100u /* in all */

static const struct lb_cpu *model;

/* A little of everything; what else a guest may be the packets write. */
static const uint8_t code[] = {
  0xB9, 0x05, 0x00,             /* mov cx, 5 */
  0xE8, 0x0E, 0x00,             /* l: call sub */
  0xE2, 0xFB,                   /* loop l */
  0xBF, 0x00, 0x05,             /* mov di, 500h */
  0xB9, 0x10, 0x00, 0xF3, 0xAA, /* mov cx, 16; rep stosb */
  0xCD, 0x10,                   /* int 10h */
  0xEB, 0xEC,                   /* jmp to the start */
  0x40, 0xC3,                   /* sub: inc ax; ret */
};

struct run {
  struct machine_session session;
  unsigned slices;
};

static bool run_slice(void *data, bool is_step, enum machine_stop *ret_stop)
{
  struct run *run = data;
  struct machine_limit limit = {.instructions = SLICE, .nanoseconds = 100000000, .is_step = is_step};

  *ret_stop = machine_run(run->session.machine, &limit);
  run->session.end = END_INSTRUCTIONS;
  return run->slices++ >= SLICES || *ret_stop == MACHINE_STOP_EXIT;
}

static bool run_wait(void *data, int fd, int milliseconds)
{
  (void)data, (void)fd, (void)milliseconds;
  return true;
}

static void serve(const struct gdb_io *io)
{
  struct machine_arguments arguments = {.cpu = model};
  struct run run = {.session = {.arguments = &arguments}};
  struct machine_front front = {&run, run_slice, run_wait};
  struct machine_config config = {.model = model, .ram = 2 << 20};
  struct machine_image image = {code, sizeof(code)};
  struct gdb_machine *gdb = calloc(1, sizeof(*gdb));
  struct machine_limit limit = {.instructions = SLICE, .nanoseconds = 100000000};
  struct gdb_target target;

  demand(gdb && machine_new(&config, NULL, &run.session.machine) >= 0);
  demand(machine_load_flat(run.session.machine, &image, 0x7C00) >= 0);
  gdb_machine_init(gdb, &run.session, &front);
  target = gdb_machine_target(gdb);
  demand(gdb_serve(&target, io) >= 0);
  gdb_machine_leave(gdb);
  for (unsigned i = 0; i < 3; i++)
    demand(machine_run(run.session.machine, &limit) != MACHINE_STOP_POINT);
  machine_free(run.session.machine);
  free(gdb);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  bool is_old = size && *data == '%';

  demand(lb_cpu_find(is_old ? "pentium-m" : "skylake", &model) >= 0);
  way_run(data + is_old, size - is_old, serve);
  return 0;
}
