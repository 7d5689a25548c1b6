/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates a machine from the files that it starts with, and connects its symbols, its serial line and its bus.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "session/machine.h"

#define HEARD_MAX (1u << 20) /* bytes of the serial line's output that are kept */
#define SYMBOLS_SIZE_MAX (512u << 20)

/* ---- output of the machine ---- */

static void heard_add(struct machine_session *session, uint8_t byte)
{
  const char *wanted = session->arguments->until_text;
  struct text *heard = &session->heard;
  char letter = byte ? (char)byte : ' ';
  size_t length;

  if (heard->length >= HEARD_MAX) {
    memmove(heard->data, heard->data + HEARD_MAX / 2, heard->length - HEARD_MAX / 2);
    heard->length -= HEARD_MAX / 2;
    session->heard_dropped += HEARD_MAX / 2;
  }
  text_add_bytes(heard, &letter, 1);
  length = wanted ? strlen(wanted) : 0;
  if (length && heard->length >= length && !memcmp(heard->data + heard->length - length, wanted, length)) {
    session->has_text = true;
    machine_stop(session->machine);
  }
}

static void hear_serial(void *data, uint8_t byte)
{
  struct machine_session *session = data;

  if (session->serial && session->is_serial_text)
    serial_text_put(&session->serial_text, byte, session->serial);
  else if (session->serial)
    fputc(byte, session->serial);
  heard_add(session, byte);
}

static void hear_bus(void *data, const struct lb_message *message)
{
  struct machine_session *session = data;

  fprintf(session->bus, "%12llu ns  branch trace message  0x%016llx -> 0x%016llx\n",
          session->machine ? (unsigned long long)machine_time(session->machine) : 0, (unsigned long long)message->from,
          (unsigned long long)message->to);
}

/* ---- files ---- */

static int image_open(const struct machine_arguments *arguments, struct machine_files *files)
{
  struct machine_file file = {0};
  struct machine_file *places[] = {
    [IMAGE_FLOPPY] = &files->floppy, [IMAGE_DISK] = &files->disk, [IMAGE_KERNEL] = &files->kernel};
  enum image_sort sort;

  if (!arguments->image)
    return 0;
  if (machine_file_open(&file, arguments->image) < 0)
    return -EINVAL;
  sort = machine_file_sort(&file);
  if (places[sort]->bytes || (sort == IMAGE_KERNEL && files->flat.bytes)) {
    message("%s: it looks like another %s, but there is one already; say with an option what it is", arguments->image,
            sort == IMAGE_FLOPPY ? "floppy"
            : sort == IMAGE_DISK ? "disk"
                                 : "program to start");
    machine_file_close(&file);
    return -EINVAL;
  }
  *places[sort] = file;
  return 0;
}

static int files_open(const struct machine_arguments *arguments, struct machine_files *files)
{
  int r = 0;

  if (arguments->floppy)
    r = machine_file_open(&files->floppy, arguments->floppy);
  if (r >= 0 && arguments->disk)
    r = machine_file_open(&files->disk, arguments->disk);
  if (r >= 0 && arguments->kernel)
    r = machine_file_open(&files->kernel, arguments->kernel);
  if (r >= 0 && arguments->flat)
    r = machine_file_open(&files->flat, arguments->flat);
  for (size_t i = 0; r >= 0 && i < arguments->module_count; i++)
    r = machine_file_open(&files->modules[i], arguments->modules[i]);
  if (r >= 0)
    r = image_open(arguments, files);
  if (r >= 0 && !files->kernel.bytes && (arguments->append || arguments->module_count)) {
    message("%s is not a kernel: --append and --initrd need one", arguments->image);
    r = -EINVAL;
  }
  return r;
}

static void files_close(struct machine_files *files)
{
  machine_file_close(&files->floppy);
  machine_file_close(&files->disk);
  machine_file_close(&files->kernel);
  machine_file_close(&files->flat);
  for (size_t i = 0; i < MODULES_MAX; i++)
    machine_file_close(&files->modules[i]);
}

static struct machine_image image_of(const struct machine_file *file)
{
  return (struct machine_image){file->bytes, file->size};
}

/* ---- creation ---- */

static int new_complain(const struct machine_arguments *arguments, int error)
{
  if (error == LB_E_NO_UNIT)
    message("%s has no branch-recording unit; 'lbr cpu --list' shows those that have one", arguments->cpu->title);
  else if (error == -ENOMEM)
    message("no memory for this machine; --ram gives it less");
  else if (error == LB_E_TOO_BIG)
    message("an image is too big: a floppy has at most 2.88 MB, a disk at most 8 GiB");
  else
    message("the machine cannot be made: %s", lb_strerror(error));
  return error;
}

/* Symbols and layout are read from the unpacked kernel. A kernel without symbols is not an error. */
static void kernel_use(struct machine_session *session, struct machine_files *files)
{
  struct machine_image kernel = machine_kernel(session->machine);

  files->started = (struct machine_file){files->kernel.name, kernel.bytes, kernel.size};
  if (!session->symbols && !session->arguments->symbols)
    (void)symbol_table_read(kernel.bytes, kernel.size, &session->symbols);
}

static int kernel_load(struct machine_session *session, struct machine_files *files)
{
  const struct machine_arguments *arguments = session->arguments;
  struct machine_image kernel = image_of(&files->kernel), modules[MODULES_MAX];
  struct text command = {0};
  const char *why = NULL;
  int r;

  for (size_t i = 0; i < arguments->module_count; i++)
    modules[i] = image_of(&files->modules[i]);
  if (!machine_is_linux(&kernel))
    text_addf(&command, "%s%s", files->kernel.name, arguments->append ? " " : "");
  text_add(&command, arguments->append ? arguments->append : "");
  r = machine_load_kernel(session->machine, &kernel, text_string(&command), modules, arguments->modules,
                          arguments->module_count, &why);
  text_done(&command);
  if (r < 0)
    message("%s: %s", files->kernel.name, why ? why : lb_strerror(r));
  else
    kernel_use(session, files);
  return r;
}

/* Whether the user is unlikely to want this file run as a flat image, although --flat would run it. */
static bool flat_is_refused(const struct machine_file *file)
{
  if (file->size >= 4 && !memcmp(file->bytes, "\177ELF", 4))
    message("%s: an ELF file; 'objcopy -O binary' makes flat bytes of it, --kernel starts one with a multiboot header",
            file->name);
  else if (machine_file_is_text(file))
    message(
      "%s: this is text; --flat wants the bytes of a program, as 'objcopy -O binary' or 'nasm -f bin' writes them",
      file->name);
  else
    return false;
  return true;
}

static int flat_load(struct machine_session *session, const struct machine_files *files)
{
  struct machine_image image = image_of(&files->flat);
  int r;

  if (flat_is_refused(&files->flat))
    return -EINVAL;
  r = machine_load_flat(session->machine, &image, session->arguments->flat_address);
  if (r == LB_E_TOO_BIG)
    message("%s: %zu bytes at 0x%llx do not lie in the guest's memory; choose another address or more --ram",
            files->flat.name, image.size, (unsigned long long)session->arguments->flat_address);
  else if (r < 0)
    message("%s: %s", files->flat.name, lb_strerror(r));
  return r;
}

static int session_make(struct machine_session *session, struct machine_arguments *arguments,
                        struct machine_files *files)
{
  struct machine_config config = {
    .model = arguments->cpu,
    .cpus = arguments->cpus,
    .ram = arguments->ram,
    .recorder_options = arguments->recorder_options,
    .predictor = arguments->predictor,
    .has_test_device = arguments->has_test_device,
    .floppy = image_of(&files->floppy),
    .disk = image_of(&files->disk),
  };
  struct machine_host host = {
    .data = session, .serial = hear_serial, .debug = hear_serial, .bus = session->bus ? hear_bus : NULL};
  int r;

  if (arguments->load)
    return machine_session_load(session, arguments, &host);
  r = machine_new(&config, &host, &session->machine);
  if (r < 0)
    return new_complain(arguments, r);
  if (files->kernel.bytes)
    return kernel_load(session, files);
  return files->flat.bytes ? flat_load(session, files) : 0;
}

/* ---- connections ---- */

static int symbols_open(struct machine_session *session)
{
  const char *name = session->arguments->symbols;
  struct machine_file file = {0};
  int r;

  if (!name)
    return 0;
  r = machine_file_open(&file, name);
  if (r < 0)
    return r;
  r = file.size > SYMBOLS_SIZE_MAX ? LB_E_TOO_BIG : symbol_table_read(file.bytes, file.size, &session->symbols);
  machine_file_close(&file);
  if (r == LB_E_NO_SYMBOLS)
    message("%s: no symbols in it; an ELF file that is not stripped or a map ('nm' writes one) is wanted", name);
  else if (r == LB_E_BAD_SYNTAX)
    message("%s: neither an ELF file nor a map of symbols ('nm' writes one)", name);
  else if (r < 0)
    message("%s: %s", name, lb_strerror(r));
  return r;
}

static int outputs_open(struct machine_session *session)
{
  const struct machine_arguments *arguments = session->arguments;
  bool is_stdio = arguments->serial && !strcmp(arguments->serial, "stdio");
  bool is_default = !arguments->serial && !session->is_json && session->screen != SCREEN_LIVE;

  if (arguments->save && !strcmp(arguments->save, "-")) {
    message("--save wants a file: standard output is the guest's");
    return -EINVAL;
  }
  if (arguments->bus && machine_output_open(arguments->bus, session->console, &session->bus) < 0)
    return -EIO;
  session->reads_stdin = is_stdio;
  session->is_serial_text = is_default;
  if (is_stdio || is_default)
    session->serial = session->console;
  else if (arguments->serial && strcmp(arguments->serial, "none") != 0)
    return machine_output_open(arguments->serial, session->console, &session->serial);
  return 0;
}

int machine_session_close_outputs(struct machine_session *session)
{
  int r = machine_output_close(session->arguments->bus, session->console, session->bus);
  int s = session->serial == session->console
            ? 0
            : machine_output_close(session->arguments->serial, session->console, session->serial);

  return r < 0 ? r : s;
}

int machine_session_open(struct machine_session *session, struct machine_arguments *arguments)
{
  struct machine_files *files = &session->files;
  int r;

  session->arguments = arguments;
  r = files_open(arguments, files);
  if (r >= 0)
    r = symbols_open(session);
  if (r >= 0)
    r = outputs_open(session);
  return r < 0 ? r : session_make(session, arguments, files);
}

void machine_session_close(struct machine_session *session)
{
  machine_trace_close(session);
  machine_free(session->machine);
  symbol_table_free(session->symbols);
  text_done(&session->heard);
  files_close(&session->files);
}

/* ---- signals ---- */

static struct machine *signal_machine;

static void signal_handler(int signal)
{
  machine_session_signal = signal;
  machine_stop(signal_machine);
}

/* The first signal ends the run, and everything is printed. A second one ends the program. */
void machine_session_catch_signals(struct machine_session *session)
{
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  struct sigaction action = {.sa_handler = signal_handler, .sa_flags = (int)SA_RESETHAND};

  signal_machine = session->machine;
  for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
    sigaction(signals[i], &action, NULL);
}
