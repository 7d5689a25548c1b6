/* SPDX-License-Identifier: Apache-2.0
 *
 * A gdb that sends whatever it likes: serving must end with the input, without a crash; every answer must be a whole
 * packet with the right checksum, and the target is asked only for what its contract allows. See gdb_way.h.
 */
#include "gdb_way.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define THREADS 3u
#define BLOCKS 200u
#define MEMORY 4096u

/* ---- a target that keeps watch ---- */

struct state {
  uint8_t memory[MEMORY];
  uint64_t rip;
  unsigned left; /* blocks */
};

static bool target_thread(void *data, size_t index, struct gdb_thread *ret_thread)
{
  (void)data;
  *ret_thread = (struct gdb_thread){index + 10, "<\"thread\"&>"};
  return index < THREADS;
}

static int target_read_register(void *data, uint64_t thread, enum gdb_register number, uint8_t *bytes)
{
  const struct state *state = data;
  unsigned size = gdb_register_size(GDB_X86_64, number);

  demand(thread >= 10 && thread < 10 + THREADS && size && size <= GDB_REGISTER_SIZE);
  memset(bytes, 0x5A, size);
  if (number == GDB_RIP)
    bytes_put_u64(bytes, state->rip);
  return number % 3 != 0;
}

static int target_write_register(void *data, uint64_t thread, enum gdb_register number, const uint8_t *bytes)
{
  struct state *state = data;

  demand(thread >= 10 && thread < 10 + THREADS && gdb_register_name(GDB_X86_64, number));
  if (number == GDB_RIP)
    state->rip = bytes_get_u64(bytes);
  return number == GDB_EFLAGS ? -1 : 0;
}

static size_t target_read_memory(void *data, uint64_t address, uint8_t *bytes, size_t size)
{
  const struct state *state = data;

  demand(size && size <= GDB_PACKET_MAX);
  if (address >= MEMORY)
    return 0;
  size = size < MEMORY - address ? size : MEMORY - (size_t)address;
  memcpy(bytes, state->memory + address, size);
  return size;
}

static int target_write_memory(void *data, uint64_t address, const uint8_t *bytes, size_t size)
{
  struct state *state = data;

  demand(size <= GDB_PACKET_MAX);
  if (address > MEMORY || size > MEMORY - address)
    return -1;
  memcpy(state->memory + address, bytes, size);
  return 0;
}

static int target_point(void *data, bool is_set, enum gdb_point kind, uint64_t address, uint64_t size)
{
  (void)data, (void)is_set, (void)size;
  demand(kind < GDB_POINTS);
  return address & 1 ? -95 : 0;
}

static void target_stop(void *data, struct gdb_stop *ret_stop)
{
  (void)data;
  *ret_stop = (struct gdb_stop){.kind = GDB_STOPPED, .signal = 11, .thread = 11};
}

static int target_resume(void *data, const struct gdb_resume *resume, struct gdb_stop *ret_stop)
{
  struct state *state = data;

  demand(resume->thread == 0 || (resume->thread >= 10 && resume->thread < 10 + THREADS));
  demand(resume->thread || !resume->is_step);
  gdb_session_print(resume->session, "it $runs# }on*\n");
  *ret_stop =
    (struct gdb_stop){.kind = (enum gdb_stop_kind)(state->rip % 5),
                      .signal = gdb_session_interrupted(resume->session) ? 2 : gdb_signal((int)resume->signal),
                      .point = (enum gdb_point)(state->rip % GDB_POINTS),
                      .thread = state->rip};
  state->rip++;
  return state->rip % 11 == 0 ? -5 : 0;
}

static int target_monitor(void *data, const char *command, struct text *output)
{
  (void)data;
  demand(text_add(output, command) >= 0);
  return strlen(command) & 1 ? -1 : 0;
}

static int target_object(void *data, enum gdb_object object, struct text *content)
{
  (void)data;
  demand(object < GDB_OBJECTS && object != GDB_MEMORY_MAP);
  for (unsigned i = 0; i < 100 && object != GDB_AUXV; i++)
    demand(text_addf(content, "#$}* %u", i) >= 0);
  return object == GDB_AUXV ? -2 : 0;
}

static bool target_history_is_on(void *data, uint64_t thread)
{
  (void)data;
  return thread & 1;
}

static int target_history_enable(void *data, uint64_t thread, bool is_on)
{
  (void)data;
  return is_on && thread == 12 ? -1 : 0;
}

static int target_history_begin(void *data, uint64_t thread, enum gdb_history which)
{
  struct state *state = data;

  demand(thread >= 10 && thread < 10 + THREADS && which <= GDB_HISTORY_DELTA);
  state->left = BLOCKS;
  return which == GDB_HISTORY_NEW ? -95 : 0;
}

static int target_history_next(void *data, struct gdb_block *ret_block)
{
  struct state *state = data;

  if (!state->left)
    return 0;
  *ret_block = (struct gdb_block){state->left * 1000, state->left * 1000 + 5};
  state->left--;
  return 1;
}

static void serve(const struct gdb_io *io)
{
  struct state *state = calloc(1, sizeof(*state));
  struct gdb_target target = {
    .data = state,
    .features = GDB_HAS_LINUX | GDB_HAS_BASES | GDB_HAS_SYSTEM,
    .osabi = "GNU/Linux",
    .thread = target_thread,
    .read_register = target_read_register,
    .write_register = target_write_register,
    .read_memory = target_read_memory,
    .write_memory = target_write_memory,
    .point = target_point,
    .stop = target_stop,
    .resume = target_resume,
    .monitor = target_monitor,
    .objects = 1u << GDB_AUXV | 1u << GDB_EXEC_FILE | 1u << GDB_LIBRARIES,
    .object = target_object,
    .history_is_on = target_history_is_on,
    .history_enable = target_history_enable,
    .history_begin = target_history_begin,
    .history_next = target_history_next,
  };

  demand(state);
  demand(gdb_serve(&target, io) >= 0);
  free(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  way_run(data, size, serve);
  return 0;
}
