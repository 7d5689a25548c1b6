/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast the machine runs: the load (guest/load.c) with recording off, with LBR, with LBR and a performance counter
 * (as perf has it), and with LBR and BTS, beside Bochs and QEMU's TCG where they are installed. QEMU stands there
 * twice: as it is, and with its blocks not chained, as something that looks at every branch would have it. The load
 * tells of each program's begin and end on the serial port; the time in between is the CPU time of the emulator's
 * process, so that a busy host matters little. Instructions are counted by our interpreter, for all. At the end, how
 * long `lbr machine` takes for a guest whose first instruction ends it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench_peer.h"
#include "lastbranch/error.h"
#include "machine/machine.h"

#define PROGRAMS 5

static const char *const program_names[PROGRAMS] = {"sieve", "crc", "sort", "recursion", "dispatch"};

struct result {
  bool is_whole; /* the load came to its end */
  double seconds[PROGRAMS];
  uint64_t instructions[PROGRAMS];
  char sums[PROGRAMS][16];
};

/* ---- what the load says ---- */

struct listener {
  struct result *result;
  char line[128];
  size_t length;
  double seconds; /* at the begin of a program */
  uint64_t instructions;
};

static int program_find(const char *name)
{
  for (int i = 0; i < PROGRAMS; i++)
    if (!strncmp(name, program_names[i], strlen(program_names[i])))
      return i;
  return -1;
}

static void listener_line(struct listener *listener, double seconds, uint64_t instructions)
{
  struct result *result = listener->result;
  const char *line = listener->line;
  int program;

  if (!strncmp(line, "begin ", 6)) {
    listener->seconds = seconds;
    listener->instructions = instructions;
  } else if (!strncmp(line, "end ", 4) && (program = program_find(line + 4)) >= 0) {
    result->seconds[program] = seconds - listener->seconds;
    result->instructions[program] = instructions - listener->instructions;
    const char *sum = strrchr(line, ' ') + 1;
    snprintf(result->sums[program], sizeof(result->sums[program]), "%.8s", sum);
    result->is_whole = program == PROGRAMS - 1;
  }
}

static void listener_take(struct listener *listener, char letter, double seconds, uint64_t instructions)
{
  if (letter == '\n') {
    listener->line[listener->length] = 0;
    listener_line(listener, seconds, instructions);
    listener->length = 0;
  } else if (letter != '\r' && listener->length < sizeof(listener->line) - 1) {
    listener->line[listener->length++] = letter;
  }
}

/* ---- our machine ---- */

struct own {
  struct listener listener;
  struct machine *machine;
};

static double seconds_of(clockid_t clock)
{
  struct timespec now;

  return clock_gettime(clock, &now) ? 0 : (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void own_serial(void *data, uint8_t byte)
{
  struct own *own = data;

  listener_take(&own->listener, (char)byte, seconds_of(CLOCK_PROCESS_CPUTIME_ID),
                cpu_retired(machine_cpu(own->machine)));
}

static int file_read(const char *path, struct machine_image *image)
{
  static uint8_t bytes[1 << 20];

  FILE *file = fopen(path, "rb");
  if (!file)
    return -errno;
  *image = (struct machine_image){bytes, fread(bytes, 1, sizeof(bytes), file)};
  fclose(file);
  return 0;
}

static bool own_run(const char *path, const char *recording, struct result *result)
{
  struct own own = {.listener = {.result = result}};
  const struct machine_host host = {.data = &own, .serial = own_serial};
  struct machine_config config = {.ram = 64 << 20};
  struct machine_image kernel;
  const struct machine_limit limit = {.instructions = UINT64_C(20000000000), .until_idle = true};
  const char *why = "";
  int r = file_read(path, &kernel);

  if (r >= 0)
    r = lb_cpu_find("skylake", &config.model);
  if (r >= 0)
    r = machine_new(&config, &host, &own.machine);
  if (r >= 0)
    r = machine_load_kernel(own.machine, &kernel, recording, NULL, NULL, 0, &why);
  if (r < 0)
    fprintf(stderr, "bench_machine: %s: %s %s\n", path, lb_strerror(r), why);
  else
    machine_run(own.machine, &limit);
  machine_free(own.machine);
  return r >= 0 && result->is_whole;
}

/* ---- others ---- */

/* Reads what a peer's serial port sends until it ends or is silent for too long. */
static void peer_listen(const struct bench_peer *peer, struct result *result)
{
  struct listener listener = {.result = result};
  struct pollfd poller = {.fd = peer->serial, .events = POLLIN};
  char letters[256];
  clockid_t clock;

  if (clock_getcpuclockid(peer->process, &clock))
    return;
  while (!result->is_whole && poll(&poller, 1, 120000) > 0) {
    ssize_t count = read(peer->serial, letters, sizeof(letters));
    double now = seconds_of(clock);

    if (count <= 0)
      return;
    for (ssize_t i = 0; i < count; i++)
      listener_take(&listener, letters[i], now, 0);
  }
}

static bool peer_run(bench_peer_start *start, const char *image, struct result *result)
{
  struct bench_peer peer;

  if (start(image, &peer) < 0)
    return false;
  peer_listen(&peer, result);
  bench_peer_end(&peer);
  return result->is_whole;
}

/* ---- the table ---- */

enum { OFF, LBR, COUNTER, BTS, BOCHS, QEMU, NOCHAIN, COLUMNS };

static const char *const titles[COLUMNS] = {"off", "LBR", "LBR+count", "LBR+BTS", "Bochs", "QEMU TCG", "nochain"};

static void cell_print(const struct result *result, uint64_t instructions, double seconds)
{
  if (result->is_whole && seconds > 0)
    printf(" %9.1f", (double)instructions / seconds / 1e6);
  else
    printf(" %9s", "-");
}

static void table_print(unsigned bits, const struct result *results)
{
  uint64_t all = 0;
  double total[COLUMNS] = {0};

  printf("%u-bit load: million instructions per second\n%-10s %9s", bits, "", "million");
  for (unsigned column = 0; column < COLUMNS; column++)
    printf(" %9s", titles[column]);
  printf("\n");
  for (unsigned i = 0; i < PROGRAMS; i++) {
    uint64_t instructions = results[OFF].instructions[i];

    printf("%-10s %9.1f", program_names[i], (double)instructions / 1e6);
    for (unsigned column = 0; column < COLUMNS; column++) {
      cell_print(&results[column], instructions, results[column].seconds[i]);
      total[column] += results[column].seconds[i];
    }
    all += instructions;
    printf("\n");
  }
  printf("%-10s %9.1f", "all", (double)all / 1e6);
  for (unsigned column = 0; column < COLUMNS; column++)
    cell_print(&results[column], all, total[column]);
  printf("\n");
  if (results[BOCHS].is_whole && total[LBR] > 0)
    printf("with LBR on, %.2f times as fast as Bochs (wanted: 4)\n", total[BOCHS] / total[LBR]);
  if (results[NOCHAIN].is_whole && total[LBR] > 0)
    printf("with LBR on, %.2f times as fast as QEMU without chained blocks (wanted: 3)\n", total[NOCHAIN] / total[LBR]);
}

/* A load that computes something else somewhere has measured nothing. */
static bool sums_agree(const struct result *results)
{
  bool is_good = true;

  for (unsigned column = 0; column < COLUMNS; column++)
    for (unsigned i = 0; i < PROGRAMS && results[column].is_whole; i++)
      if (strcmp(results[column].sums[i], results[OFF].sums[i])) {
        printf("%s computes another sum in %s: %s, not %s\n", titles[column], program_names[i], results[column].sums[i],
               results[OFF].sums[i]);
        is_good = false;
      }
  return is_good;
}

static bool bench_run(unsigned bits)
{
  static const char *const recordings[] = {"off", "lbr", "lbr count", "bts"};
  struct result results[COLUMNS];
  char kernel[4096], image[4096];
  bool is_good = true;

  memset(results, 0, sizeof(results));
  snprintf(kernel, sizeof(kernel), "%s/load-%u.elf", LB_LOADS, bits);
  snprintf(image, sizeof(image), "%s/load-%u.img", LB_LOADS, bits);
  for (unsigned i = OFF; i <= BTS; i++)
    is_good &= own_run(kernel, recordings[i], &results[i]);
  peer_run(bench_bochs_start, image, &results[BOCHS]);
  peer_run(bench_qemu_start, image, &results[QEMU]);
  peer_run(bench_qemu_nochain_start, image, &results[NOCHAIN]);
  table_print(bits, results);
  return sums_agree(results) && is_good;
}

/* ---- from the command to the guest ---- */

#define STARTS 20

/* Wall-clock time of a process, in milliseconds; < 0 when it cannot be started or does not end with `status`. */
static double process_time(char *const *arguments, int status)
{
  int ended;
  double begin = seconds_of(CLOCK_MONOTONIC);
  pid_t process = fork();

  if (process == 0) {
    execvp(arguments[0], arguments);
    _exit(127);
  }
  if (process < 0 || waitpid(process, &ended, 0) < 0 || !WIFEXITED(ended) || WEXITSTATUS(ended) != status)
    return -1;
  return 1e3 * (seconds_of(CLOCK_MONOTONIC) - begin);
}

static double best_time(char *const *arguments, int status)
{
  double best = -1;

  for (unsigned i = 0; i < STARTS; i++) {
    double time = process_time(arguments, status);

    if (time < 0)
      return time;
    best = best < 0 || time < best ? time : best;
  }
  return best;
}

/* A guest of one instruction: OUT 0xF4, AL, which makes the exit status 2 * AL + 1. */
static bool bench_start(void)
{
  static const uint8_t guest[] = {0xE6, 0xF4};
  char path[] = "/tmp/bench-start-XXXXXX", flat[64];
  int file = mkstemp(path);
  bool is_written = file >= 0 && write(file, guest, sizeof(guest)) == sizeof(guest);

  snprintf(flat, sizeof(flat), "--flat=%s@0x7c00", path);
  char *arguments[] = {LB_LBR, "machine", "--screen=none", "--serial=none", flat, NULL};
  double time = is_written ? best_time(arguments, 1) : -1;
  double nothing = best_time((char *[]){"true", NULL}, 0);
  if (file >= 0) {
    close(file);
    unlink(path);
  }
  if (time < 0)
    printf("lbr machine: the guest of one instruction did not run\n");
  else
    printf("lbr machine with a guest of one instruction: %.1f ms (wanted: 20), true: %.1f ms; best of %d\n", time,
           nothing, STARTS);
  return time >= 0;
}

int main(void)
{
  bool is_good = true;

  setvbuf(stdout, NULL, _IOLBF, 0);
  signal(SIGPIPE, SIG_IGN);
  bench_peers_name(stdout);
  is_good &= bench_run(32);
  is_good &= bench_run(64);
  is_good &= bench_start();
  return is_good ? 0 : 1;
}
