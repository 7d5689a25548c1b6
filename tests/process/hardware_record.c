/* SPDX-License-Identifier: Apache-2.0
 *
 * NAME record --quiet -o TRACE -- PROGRAM [ARGUMENT]...: records as `lbr record --source` does on a machine that has
 * the hardware, which is made up here: the oracle steps the program, and its list is put into BTS records, if NAME ends
 * with "bts", or Intel PT packets, with libipt's encoder, if it ends with "pt", as the kernel would hand them out: in
 * chunks, on three processors, with threads that are interrupted. Takes the place of lbr in tests/process/compare, for
 * static programs at fixed addresses. The exit status is the program's, 125 if something is wrong.
 */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef HAS_IPT
#include <intel-pt.h>
#endif

#include "../unit/source_fake.h"
#include "isa/isa.h"
#include "lastbranch/error.h"

#define KERNEL_ADDRESS UINT64_C(0xFFFFFFFF81000000)
#define ITEMS_AT_ONCE 300u
#define CHUNK_SIZE 16384u
#define CHUNK_ITEMS 150u /* a thread is interrupted behind so many, or fewer */
#define THREADS_MAX 64u

static void die(const char *what, const char *why)
{
  fprintf(stderr, "hardware_record: %s: %s\n", what, why);
  exit(125);
}

/* Numbers that repeat. */
static uint32_t chance(uint32_t limit)
{
  static uint32_t state = 12345;

  state = state * 1664525 + 1013904223;
  return (state >> 8) % limit;
}

/* ---- the program's code ---- */

static uint8_t *image;
static size_t image_size;

static const uint8_t *code_at(uint64_t address, size_t *ret_size)
{
  const Elf64_Ehdr *head = (const void *)image;
  const Elf64_Phdr *parts = (const void *)(image + head->e_phoff);

  for (unsigned i = 0; i < head->e_phnum; i++)
    if (parts[i].p_type == PT_LOAD && address - parts[i].p_vaddr < parts[i].p_filesz) {
      *ret_size = (size_t)(parts[i].p_filesz - (address - parts[i].p_vaddr));
      return image + parts[i].p_offset + (address - parts[i].p_vaddr);
    }
  *ret_size = 0;
  return NULL;
}

static void image_read(const char *path)
{
  FILE *file = fopen(path, "rbe");

  image = malloc(16 << 20);
  if (!file || !image)
    die(path, "cannot be read");
  image_size = fread(image, 1, 16 << 20, file);
  fclose(file);
}

static void maps_put(struct fake *fake, uint32_t process, const char *path)
{
  const Elf64_Ehdr *head = (const void *)image;
  const Elf64_Phdr *parts = (const void *)(image + head->e_phoff);

  for (unsigned i = 0; i < head->e_phnum; i++)
    if (parts[i].p_type == PT_LOAD && parts[i].p_flags & PF_X) {
      uint64_t start = parts[i].p_vaddr & ~UINT64_C(4095), skip = parts[i].p_vaddr - start;

      if (!fake_map(fake, 0, process, start, (parts[i].p_filesz + skip + 4095) & ~UINT64_C(4095),
                    parts[i].p_offset - skip, path))
        die("ring", "full");
    }
}

/* ---- threads ---- */

/* What a thread has run of the list: it is in the kernel, or at `ip`. */
struct thread {
  uint32_t process, id;
  bool is_off;
  uint64_t ip;   /* or where it comes back, unless a handler comes first */
  uint64_t left; /* where it left user mode */
  uint8_t tnt[48];
  unsigned tnt_count;
};

struct processor {
  struct thread *running; /* whose chunk is open; NULL: nobody's */
  unsigned items;
  uint8_t chunk[CHUNK_SIZE];
  size_t size;
  uint64_t last_ip;
};

static struct {
  bool is_pt;
  bool is_quiet; /* BTS does not show the ways out of the kernel, as under Linux */
  const char *path;
  FILE *list;
  struct thread threads[THREADS_MAX];
  struct processor processors[FAKE_CPUS];
} world;

static unsigned cpu_of(const struct thread *thread)
{
  return (unsigned)(thread - world.threads) % FAKE_CPUS;
}

static void chunk_put(struct processor *processor, const void *bytes, size_t size)
{
  if (processor->size + size > CHUNK_SIZE)
    die("chunk", "full");
  memcpy(processor->chunk + processor->size, bytes, size);
  processor->size += size;
}

/* ---- packets ---- */

#ifdef HAS_IPT

static void packet_put(struct processor *processor, const struct pt_packet *packet)
{
  uint8_t bytes[64];
  struct pt_config config = {.size = sizeof(config), .begin = bytes, .end = bytes + sizeof(bytes)};
  struct pt_encoder *encoder = pt_alloc_encoder(&config);
  int size = encoder ? pt_enc_next(encoder, packet) : -1;

  if (size <= 0)
    die("packet", "cannot be made");
  pt_free_encoder(encoder);
  chunk_put(processor, bytes, (size_t)size);
}

/* One of the compressions that the last address allows. */
static void ip_put(struct processor *processor, enum pt_packet_type type, uint64_t ip)
{
  static const struct {
    enum pt_ip_compression way;
    unsigned shift;
  } ways[] = {
    {pt_ipc_update_16, 16}, {pt_ipc_update_32, 32}, {pt_ipc_update_48, 48}, {pt_ipc_sext_48, 64}, {pt_ipc_full, 64}};
  unsigned first = 0;
  struct pt_packet packet = {.type = type};

  while (ways[first].shift < 64 && ip >> ways[first].shift != processor->last_ip >> ways[first].shift)
    first++;
  packet.payload.ip.ipc = ways[first + chance(5 - first)].way;
  packet.payload.ip.ip = ip;
  if (packet.payload.ip.ipc == pt_ipc_update_16)
    packet.payload.ip.ip &= 0xFFFF;
  if (packet.payload.ip.ipc == pt_ipc_update_32)
    packet.payload.ip.ip &= 0xFFFFFFFF;
  if (packet.payload.ip.ipc == pt_ipc_update_48 || packet.payload.ip.ipc == pt_ipc_sext_48)
    packet.payload.ip.ip &= 0xFFFFFFFFFFFF;
  packet_put(processor, &packet);
  processor->last_ip = ip;
}

/* Conditional branches, up to six in a short packet, up to 47 in a long one. */
static void tnt_flush(struct processor *processor, struct thread *thread)
{
  unsigned done = 0;

  while (done < thread->tnt_count) {
    unsigned count = thread->tnt_count - done;
    struct pt_packet packet = {.type = count > 6 && chance(2) ? ppt_tnt_64 : ppt_tnt_8};

    if (packet.type == ppt_tnt_8 && count > 6)
      count = 6;
    packet.payload.tnt.bit_size = (uint8_t)count;
    for (unsigned i = 0; i < count; i++)
      packet.payload.tnt.payload = packet.payload.tnt.payload << 1 | thread->tnt[done + i];
    packet_put(processor, &packet);
    done += count;
  }
  thread->tnt_count = 0;
}

static void tnt_put(struct processor *processor, struct thread *thread, bool is_taken)
{
  thread->tnt[thread->tnt_count++] = is_taken;
  if (thread->tnt_count == 47)
    tnt_flush(processor, thread);
}

static void psb_put(struct processor *processor, struct thread *thread)
{
  struct pt_packet packet = {.type = ppt_psb};

  tnt_flush(processor, thread);
  packet_put(processor, &packet);
  processor->last_ip = 0;
  packet = (struct pt_packet){.type = ppt_mode};
  packet.payload.mode.leaf = pt_mol_exec;
  packet.payload.mode.bits.exec.csl = 1;
  packet_put(processor, &packet);
  if (!thread->is_off)
    ip_put(processor, ppt_fup, thread->ip);
  packet_put(processor, &(struct pt_packet){.type = ppt_psbend});
}

/* Straight code up to `to`: branches that were not taken. */
static void straight_put(struct processor *processor, struct thread *thread, uint64_t to)
{
  struct isa_instruction instruction;
  size_t size;

  while (thread->ip < to) {
    const uint8_t *bytes = code_at(thread->ip, &size);
    int length = bytes ? isa_decode(ISA_64, false, bytes, size, &instruction) : 0;

    if (length <= 0)
      die("list", "leads where no code is");
    if (isa_branch_kind(&instruction) == LB_BRANCH_JCC)
      tnt_put(processor, thread, false);
    thread->ip += (unsigned)length;
  }
}

static void pt_off(struct processor *processor, struct thread *thread, bool is_async)
{
  struct pt_packet packet = {.type = ppt_tip_pgd}; /* its address is left out: it is the kernel's */

  tnt_flush(processor, thread);
  if (is_async)
    ip_put(processor, ppt_fup, thread->ip);
  packet_put(processor, &packet);
}

static void pt_on(struct processor *processor, struct thread *thread)
{
  if (chance(4) == 0)
    psb_put(processor, thread);
  ip_put(processor, ppt_tip_pge, thread->ip);
  thread->is_off = false;
}

static void pt_jump(struct processor *processor, struct thread *thread, uint64_t to, unsigned kind)
{
  if (kind == LB_BRANCH_JCC) {
    tnt_put(processor, thread, true);
  } else if (kind != LB_BRANCH_NEAR_REL_JMP && kind != LB_BRANCH_NEAR_REL_CALL) {
    tnt_flush(processor, thread);
    ip_put(processor, ppt_tip, to);
  }
  thread->ip = to;
  if (chance(100) == 0)
    psb_put(processor, thread);
}

#else

static void straight_put(struct processor *processor, struct thread *thread, uint64_t to)
{
  (void)processor;
  thread->ip = to;
}

static void pt_off(struct processor *processor, struct thread *thread, bool is_async)
{
  (void)processor, (void)thread, (void)is_async;
}

static void pt_on(struct processor *processor, struct thread *thread)
{
  (void)processor, (void)thread;
}

static void pt_jump(struct processor *processor, struct thread *thread, uint64_t to, unsigned kind)
{
  (void)processor, (void)thread, (void)to, (void)kind;
}

#endif

static void bts_put(struct processor *processor, uint64_t from, uint64_t to)
{
  uint64_t record[3] = {from, to, 0};

  chunk_put(processor, record, sizeof(record));
}

/* ---- in and out of user mode ---- */

static void thread_leave(struct processor *processor, struct thread *thread, bool is_async)
{
  if (world.is_pt)
    pt_off(processor, thread, is_async);
  else
    bts_put(processor, thread->ip, KERNEL_ADDRESS);
  thread->is_off = true;
  thread->left = thread->ip;
}

static void thread_return(struct processor *processor, struct thread *thread)
{
  if (!thread->is_off)
    return;
  if (world.is_pt)
    pt_on(processor, thread);
  else if (thread->left && !world.is_quiet)
    bts_put(processor, KERNEL_ADDRESS, thread->ip);
  thread->is_off = false;
}

static void chunk_close(struct fake *fake, struct processor *processor)
{
  struct thread *thread = processor->running;
  unsigned cpu = (unsigned)(processor - world.processors);

  if (!thread)
    return;
  if (!thread->is_off)
    thread_leave(processor, thread, true);
  if (processor->size && !fake_aux(fake, cpu, processor->chunk, processor->size, 0, thread->process, thread->id))
    die("AUX area", "full");
  processor->size = processor->items = 0;
  processor->running = NULL;
}

/* The processor runs this thread now. */
static struct processor *processor_take(struct fake *fake, struct thread *thread)
{
  struct processor *processor = &world.processors[cpu_of(thread)];

  if (processor->running != thread || ++processor->items > chance(CHUNK_ITEMS) + 5)
    chunk_close(fake, processor);
  processor->running = thread;
  return processor;
}

/* ---- the list ---- */

/* rt_sigreturn is listed as IRET. */
static bool is_call_at(uint64_t address)
{
  size_t size;
  const uint8_t *bytes = code_at(address, &size);

  return size >= 2 && bytes[0] == 0x0F && bytes[1] == 0x05;
}

static void branch_take(struct fake *fake, struct thread *thread, uint64_t from, uint64_t to, unsigned kind)
{
  struct processor *processor = processor_take(fake, thread);
  bool is_turn = kind == LB_BRANCH_SYSCALL || kind == LB_BRANCH_INT || kind == LB_BRANCH_INT3 ||
                 (kind == LB_BRANCH_IRET && is_call_at(from));

  if (kind == LB_BRANCH_INTERRUPT && thread->is_off && thread->ip == from) {
    thread->ip = to; /* behind a system call, say: it comes back in the handler */
    return;
  }
  thread_return(processor, thread);
  if (world.is_pt)
    straight_put(processor, thread, from);
  thread->ip = from;
  if (kind == LB_BRANCH_INTERRUPT || is_turn) {
    thread_leave(processor, thread, kind == LB_BRANCH_INTERRUPT);
    thread->ip = to;
  } else if (world.is_pt) {
    pt_jump(processor, thread, to, kind);
  } else {
    bts_put(processor, from, to);
    thread->ip = to;
  }
}

static void exec_take(struct fake *fake, struct thread *thread, uint64_t address)
{
  if (!fake_comm(fake, 1, thread->process, thread->id, "program", true))
    die("ring", "full");
  maps_put(fake, thread->process, world.path);
  thread->is_off = true;
  thread->ip = address;
}

static void creation_take(struct fake *fake, struct thread *thread, const char *how, const char *rest)
{
  unsigned creator = 0;
  unsigned long long address = 0;

  if (sscanf(rest, "%u 0x%llx", &creator, &address) != 2 || creator == 0 || creator > THREADS_MAX)
    die("list", rest);
  const struct thread *parent = &world.threads[creator - 1];
  thread->process = strcmp(how, "clone") ? thread->id : parent->process;
  thread->is_off = true;
  thread->ip = address;
  if (!fake_task(fake, 2, PERF_RECORD_FORK, thread->process, thread->id, parent->process, parent->id))
    die("ring", "full");
}

static void remark_take(struct fake *fake, struct thread *thread, const char *what, const char *rest)
{
  if (!strcmp(what, "exec")) {
    exec_take(fake, thread, strtoull(rest, NULL, 16));
  } else if (!strcmp(what, "fork") || !strcmp(what, "vfork") || !strcmp(what, "clone")) {
    creation_take(fake, thread, what, rest);
  } else {
    struct processor *processor = &world.processors[cpu_of(thread)];
    if (processor->running == thread)
      chunk_close(fake, processor);
    fake_task(fake, 0, PERF_RECORD_EXIT, thread->process, thread->id, thread->process, thread->id);
  }
}

static bool list_produce(struct fake *fake)
{
  char line[256], what[32];
  unsigned long long from, to;
  unsigned number;
  int behind = 0;

  for (unsigned i = 0; i < ITEMS_AT_ONCE; i++) {
    if (!fgets(line, sizeof(line), world.list))
      return false;
    if (sscanf(line, "# %u %31s %n", &number, what, &behind) == 2 && number && number <= THREADS_MAX) {
      remark_take(fake, &world.threads[number - 1], what, line + behind);
    } else if (sscanf(line, "%u 0x%llx 0x%llx %31s", &number, &from, &to, what) == 4 && number &&
               number <= THREADS_MAX) {
      int kind = lb_branch_kind_find(what);
      if (kind < 0)
        die("list", line);
      branch_take(fake, &world.threads[number - 1], from, to, (unsigned)kind);
    } else if (strncmp(line, "# steps ", 8) != 0 && strncmp(line, "# instructions ", 15) != 0 &&
               strncmp(line, "# not-taken ", 12) != 0) {
      die("list", line);
    }
  }
  return true;
}

/* ---- the whole ---- */

/* Runs the oracle. Returns what waitpid(2) says. */
static int oracle_run(const char *list, char **program)
{
  char *words[64] = {(char *)(uintptr_t)ORACLE, (char *)(uintptr_t)list};
  int status;
  pid_t child;

  for (unsigned i = 0; program[i] && i < 60; i++)
    words[2 + i] = program[i];
  child = fork();
  if (child == 0) {
    execv(ORACLE, words);
    _exit(125);
  }
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  return status;
}

static int trace_make(const char *output, char **program)
{
  struct source_options options = {.kind = world.is_pt ? SOURCE_PT : SOURCE_BTS, .aux_size = SOURCE_AUX_LEAST};
  struct source_problem problem;
  struct lb_trace_writer *writer;
  struct source_sink sink;
  struct source *source;
  struct fake fake;
  int r;

  fake_init(&fake);
  fake.produce = list_produce;
  fake.pmu =
    world.is_pt ? "/sys/bus/event_source/devices/intel_pt/type" : "/sys/bus/event_source/devices/intel_bts/type";
  if (lb_trace_writer_open(output, &writer) < 0)
    die(output, "cannot be written");
  lb_trace_writer_meta(writer, &(struct lb_trace_meta){"source", "process"});
  lb_trace_writer_meta(writer, &(struct lb_trace_meta){"recorder", source_word(options.kind)});
  sink = source_sink_trace(writer);
  r = source_start(&fake.kernel, &options, program[0], program, environ, &sink, &source, &problem);
  if (r < 0)
    die("source", problem.text);
  while (r >= 0 && !source_state(source)->is_over)
    r = source_step(source, 1);
  if (r >= 0)
    r = source_finish(source);
  source_free(source);
  fake_done(&fake);
  return r < 0 ? r : lb_trace_writer_close(writer);
}

int main(int argc, char **argv)
{
  size_t length = strlen(argv[0]);
  char list[] = "/tmp/hardware_record.XXXXXX";
  int fd, status, r;

  if (argc > 1 && strcmp(argv[1], "record") != 0)
    execv(LBR, argv); /* reading traces is lbr's business */
  if (argc < 7 || strcmp(argv[3], "-o") != 0 || strcmp(argv[5], "--") != 0)
    die("usage", "NAME record --quiet -o TRACE -- PROGRAM [ARGUMENT]...");
  world.is_pt = length > 2 && !strcmp(argv[0] + length - 2, "pt");
  world.is_quiet = length > 5 && !strcmp(argv[0] + length - 5, "quiet");
  world.path = argv[6];
  for (unsigned i = 0; i < THREADS_MAX; i++)
    world.threads[i] = (struct thread){.process = FAKE_PROCESS, .id = FAKE_PROCESS + i, .is_off = true};
  image_read(argv[6]);
  fd = mkstemp(list);
  if (fd < 0)
    die(list, strerror(errno));
  close(fd);
  status = oracle_run(list, argv + 6);
  world.list = fopen(list, "re");
  unlink(list);
  if (!world.list)
    die(list, "there is none");
  r = trace_make(argv[4], argv + 6);
  if (r < 0)
    die(argv[4], lb_strerror(r));
  if (WIFEXITED(status) && WEXITSTATUS(status) > 128)
    raise(WEXITSTATUS(status) - 128);
  return WEXITSTATUS(status);
}
