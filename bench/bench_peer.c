/* SPDX-License-Identifier: Apache-2.0
 *
 * Starting Bochs and QEMU without a screen. Debian's Bochs has its debugger built in, which waits for a command, and
 * stumbles over a missing sound card; both are dealt with in the configuration that is written for each run.
 */
#include "bench_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BOCHS_BIOS "/usr/share/bochs/BIOS-bochs-latest"
#define BOCHS_VGA "/usr/share/vgabios/vgabios.bin"
#define BOCHS_TERM "/usr/lib/x86_64-linux-gnu/bochs/plugins/libbx_term_gui.so"
#define SERIAL_FD 3

static bool program_is_there(const char *name)
{
  const char *path = getenv("PATH");
  char file[4096];

  while (path && *path) {
    size_t length = strcspn(path, ":");

    snprintf(file, sizeof(file), "%.*s/%s", (int)length, path, name);
    if (!access(file, X_OK))
      return true;
    path += length + (path[length] == ':');
  }
  return false;
}

static bool bochs_is_there(void)
{
  return program_is_there("bochs") && !access(BOCHS_BIOS, R_OK) && !access(BOCHS_VGA, R_OK) &&
         !access(BOCHS_TERM, R_OK);
}

/* First line that a command prints. */
static void version_print(FILE *file, const char *name, const char *command)
{
  char line[256] = "";

  FILE *pipe = popen(command, "r");
  if (pipe && !fgets(line, sizeof(line), pipe))
    line[0] = 0;
  if (pipe)
    pclose(pipe);
  line[strcspn(line, "\n")] = 0;
  fprintf(file, "%s: %s\n", name, line[0] ? line : "of unknown version");
}

void bench_peers_name(FILE *file)
{
  if (bochs_is_there())
    version_print(file, "Bochs", "dpkg-query -W -f '${Version}' bochs 2>/dev/null");
  else
    fprintf(file, "Bochs: not installed (Debian: bochs bochsbios vgabios bochs-term; tools/install-deps bench)\n");
  if (program_is_there("qemu-system-x86_64"))
    version_print(file, "QEMU", "qemu-system-x86_64 --version 2>/dev/null");
  else
    fprintf(file, "QEMU: not installed (Debian: qemu-system-x86; tools/install-deps bench)\n");
}

/* ---- processes ---- */

/* The child: nothing to read, nobody listens but at the serial port. */
static void child_run(char *const *arguments, int serial, bool is_stdout)
{
  int nothing = open("/dev/null", O_RDWR);
  int moved = fcntl(serial, F_DUPFD, 10);

  dup2(nothing, 0);
  dup2(is_stdout ? moved : nothing, 1);
  dup2(nothing, 2);
  dup2(moved, SERIAL_FD);
  close(moved);
  setenv("TERM", "vt100", 1);
  execvp(arguments[0], arguments);
  _exit(127);
}

static int child_start(char *const *arguments, bool is_stdout, struct bench_peer *peer)
{
  int ends[2];

  if (pipe2(ends, O_CLOEXEC) < 0)
    return -errno;
  peer->process = fork();
  if (peer->process == 0)
    child_run(arguments, ends[1], is_stdout);
  close(ends[1]);
  peer->serial = ends[0];
  if (peer->process < 0) {
    close(ends[0]);
    return -errno;
  }
  return 0;
}

static void scratch_remove(struct bench_peer *peer)
{
  static const char *const names[] = {"config", "commands", "log"};
  char path[4200];

  for (size_t i = 0; peer->scratch && i < sizeof(names) / sizeof(names[0]); i++) {
    snprintf(path, sizeof(path), "%s/%s", peer->scratch, names[i]);
    unlink(path);
  }
  if (peer->scratch)
    rmdir(peer->scratch);
  free(peer->scratch);
  peer->scratch = NULL;
}

void bench_peer_end(struct bench_peer *peer)
{
  kill(peer->process, SIGKILL);
  waitpid(peer->process, NULL, 0);
  close(peer->serial);
  scratch_remove(peer);
}

/* ---- QEMU ---- */

static int qemu_start(const char *image, bool chains, struct bench_peer *peer)
{
  char drive[4300];

  *peer = (struct bench_peer){0};
  if (!program_is_there("qemu-system-x86_64"))
    return -ENOENT;
  snprintf(drive, sizeof(drive), "file=%s,format=raw,if=ide,snapshot=on", image);
  char *arguments[] = {"qemu-system-x86_64",
                       "-accel",
                       "tcg",
                       "-m",
                       "64",
                       "-nodefaults",
                       "-display",
                       "none",
                       "-vga",
                       "std",
                       "-serial",
                       "stdio",
                       "-no-reboot",
                       "-device",
                       "isa-debug-exit,iobase=0xf4,iosize=4",
                       "-drive",
                       drive,
                       chains ? NULL : "-d",
                       "nochain",
                       "-D",
                       "/dev/null",
                       NULL};
  return child_start(arguments, true, peer);
}

int bench_qemu_start(const char *image, struct bench_peer *peer)
{
  return qemu_start(image, true, peer);
}

int bench_qemu_nochain_start(const char *image, struct bench_peer *peer)
{
  return qemu_start(image, false, peer);
}

/* ---- Bochs ---- */

static int text_write(const char *folder, const char *name, const char *text)
{
  char path[4200];

  snprintf(path, sizeof(path), "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  if (!file)
    return -errno;
  fputs(text, file);
  return fclose(file) ? -errno : 0;
}

static int bochs_configure(const char *folder, const char *image)
{
  char text[8192];

  snprintf(text, sizeof(text),
           "config_interface: textconfig\ndisplay_library: term\nmegs: 64\nboot: disk\n"
           "romimage: file=" BOCHS_BIOS "\nvgaromimage: file=" BOCHS_VGA "\n"
           "ata0-master: type=disk, path=%s, mode=volatile, cylinders=20, heads=16, spt=63\n"
           "com1: enabled=1, mode=file, dev=/dev/fd/%d\nlog: %s/log\n"
           "cpu: ips=200000000\nclock: sync=none\nspeaker: enabled=0\n"
           "sound: waveoutdrv=dummy, waveindrv=dummy, midioutdrv=dummy\n"
           "panic: action=fatal\nerror: action=ignore\ninfo: action=ignore\ndebug: action=ignore\n",
           image, SERIAL_FD, folder);
  int r = text_write(folder, "config", text);
  return r < 0 ? r : text_write(folder, "commands", "c\n");
}

int bench_bochs_start(const char *image, struct bench_peer *peer)
{
  char folder[] = "/tmp/bench-bochs-XXXXXX", config[64], commands[64];

  *peer = (struct bench_peer){0};
  if (!bochs_is_there())
    return -ENOENT;
  if (!mkdtemp(folder))
    return -errno;
  peer->scratch = strdup(folder);
  snprintf(config, sizeof(config), "%s/config", folder);
  snprintf(commands, sizeof(commands), "%s/commands", folder);
  char *arguments[] = {"bochs", "-q", "-f", config, "-rc", commands, NULL};
  int r = bochs_configure(folder, image);
  if (r >= 0)
    r = child_start(arguments, false, peer);
  if (r < 0)
    scratch_remove(peer);
  return r;
}
