/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr machine: boots a PC whose processor records branches. Joins the machine to files and terminal, runs it, and shows
 * what came of it.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/machine_options.h"
#include "gdb/gdb.h"
#include "session/session.h"

#define MACHINE_DIED 3       /* exit status */
#define HEARD_MAX (1u << 20) /* bytes of the serial line that are kept */
#define SYMBOLS_SIZE_MAX (512u << 20)

static struct machine *signal_machine;

/* ---- what the machine says ---- */

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

/* ---- what it starts with ---- */

/* The files of the command line, by what they turned out to be. */
struct files {
  struct machine_file floppy, disk, kernel, flat, modules[MODULES_MAX];
  struct machine_file started; /* the kernel as the machine keeps it: unpacked, if it is compressed */
};

static int image_open(const struct machine_arguments *arguments, struct files *files)
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
    cli_error("%s: it looks like another %s, and there is one already; name the option that is meant", arguments->image,
              sort == IMAGE_FLOPPY ? "floppy"
              : sort == IMAGE_DISK ? "disk"
                                   : "program to start");
    machine_file_close(&file);
    return -EINVAL;
  }
  *places[sort] = file;
  return 0;
}

static int files_open(const struct machine_arguments *arguments, struct files *files)
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
    cli_error("%s is no kernel: --append and --initrd are for one", arguments->image);
    r = -EINVAL;
  }
  return r;
}

static void files_close(struct files *files)
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

/* ---- making the machine ---- */

static int new_complain(const struct machine_arguments *arguments, int error)
{
  if (error == LB_E_NO_UNIT)
    cli_error("%s has no branch-recording unit; 'lbr cpu --list' shows those that have one", arguments->cpu->title);
  else if (error == -ENOMEM)
    cli_error("no memory for this machine; --ram gives it less");
  else if (error == LB_E_TOO_BIG)
    cli_error("an image is too big: a floppy has 2.88 MB at most, a disk 8 GiB");
  else
    cli_error("the machine cannot be made: %s", lb_strerror(error));
  return error;
}

/* Symbols and layout are read from the unpacked kernel. A kernel without symbols is not an error. */
static void kernel_use(struct machine_session *session, struct files *files)
{
  struct machine_image kernel = machine_kernel(session->machine);

  files->started = (struct machine_file){files->kernel.name, kernel.bytes, kernel.size};
  if (!session->symbols && !session->arguments->symbols)
    (void)symbol_table_read(kernel.bytes, kernel.size, &session->symbols);
}

static int kernel_load(struct machine_session *session, struct files *files)
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
    cli_error("%s: %s", files->kernel.name, why ? why : lb_strerror(r));
  else
    kernel_use(session, files);
  return r;
}

/* A file that --flat would run, but that nobody means to run as it is. */
static bool flat_is_refused(const struct machine_file *file)
{
  if (file->size >= 4 && !memcmp(file->bytes, "\177ELF", 4))
    cli_error(
      "%s: an ELF file; 'objcopy -O binary' makes flat bytes of it, --kernel starts one with a multiboot header",
      file->name);
  else if (machine_file_is_text(file))
    cli_error(
      "%s: this is text; --flat wants the bytes of a program, as 'objcopy -O binary' or 'nasm -f bin' writes them",
      file->name);
  else
    return false;
  return true;
}

static int flat_load(struct machine_session *session, const struct files *files)
{
  struct machine_image image = image_of(&files->flat);
  int r;

  if (flat_is_refused(&files->flat))
    return -EINVAL;
  r = machine_load_flat(session->machine, &image, session->arguments->flat_address);
  if (r == LB_E_TOO_BIG)
    cli_error("%s: %zu bytes at 0x%llx do not lie in the guest's memory; choose another address or more --ram",
              files->flat.name, image.size, (unsigned long long)session->arguments->flat_address);
  else if (r < 0)
    cli_error("%s: %s", files->flat.name, lb_strerror(r));
  return r;
}

static int session_make(struct machine_session *session, struct machine_arguments *arguments, struct files *files)
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
    return session_load(session, arguments, &host);
  r = machine_new(&config, &host, &session->machine);
  if (r < 0)
    return new_complain(arguments, r);
  if (files->kernel.bytes)
    return kernel_load(session, files);
  return files->flat.bytes ? flat_load(session, files) : 0;
}

/* ---- what it is joined to ---- */

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
    cli_error("%s: no symbols in it; an ELF file that is not stripped or a map ('nm' writes one) is wanted", name);
  else if (r == LB_E_BAD_SYNTAX)
    cli_error("%s: neither an ELF file nor a map of symbols ('nm' writes one)", name);
  else if (r < 0)
    cli_error("%s: %s", name, lb_strerror(r));
  return r;
}

static int outputs_open(struct machine_session *session)
{
  const struct machine_arguments *arguments = session->arguments;
  bool is_stdio = arguments->serial && !strcmp(arguments->serial, "stdio");
  bool is_json = arguments->is_json || arguments->format == REPORT_JSON;
  bool is_default = !arguments->serial && !is_json && session->screen != SCREEN_LIVE;

  if (arguments->save && !strcmp(arguments->save, "-")) {
    cli_error("--save wants a file: standard output is the guest's");
    return -EINVAL;
  }
  if (arguments->bus && output_open(arguments->bus, &session->bus) < 0)
    return -EIO;
  session->reads_stdin = is_stdio;
  session->is_serial_text = is_default;
  if (is_stdio || is_default)
    session->serial = stdout;
  else if (arguments->serial && strcmp(arguments->serial, "none") != 0)
    return output_open(arguments->serial, &session->serial);
  return 0;
}

static int outputs_close(struct machine_session *session)
{
  int r = output_close(session->arguments->bus, session->bus);
  int s = session->serial == stdout ? 0 : output_close(session->arguments->serial, session->serial);

  return r < 0 ? r : s;
}

static void signal_handler(int signal)
{
  session_signal = signal;
  machine_stop(signal_machine);
}

/* The first one ends the run and everything is printed; a second one ends the program. */
static void signals_catch(struct machine_session *session)
{
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  struct sigaction action = {.sa_handler = signal_handler, .sa_flags = (int)SA_RESETHAND};

  signal_machine = session->machine;
  for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
    sigaction(signals[i], &action, NULL);
}

/* ---- the end ---- */

static int session_status(const struct machine_session *session)
{
  const char *wanted = session->arguments->until_text;

  if (session->end == END_FAILED)
    return CLI_FAILURE;
  if (session->end == END_SHUTDOWN || session->end == END_UNIMPLEMENTED)
    return MACHINE_DIED;
  if (session->end == END_EXIT)
    return (int)((machine_exit_value(session->machine) << 1 | 1) & 0xFF); /* as QEMU's isa-debug-exit */
  if (session->end == END_ASLEEP) {
    cli_error("the guest sleeps (ACPI S3), and nothing will wake it: no alarm of the real-time clock is enabled");
    return CLI_FAILURE;
  }
  if (session->end == END_INTERRUPTED)
    return session_signal ? 128 + session_signal : CLI_OK;
  if (wanted && session->end != END_TEXT) {
    cli_error("'%s' was not seen before the guest ended (%s)", wanted, session_end_name(session->end));
    return CLI_FAILURE;
  }
  if (machine_has_no_boot(session->machine) && session->end != END_TEXT && session->end != END_OFF) {
    cli_error(
      "no bootable device: no drive has a boot sector (55 AA at its end), or what it booted gave up by INT 18h");
    return CLI_FAILURE;
  }
  return CLI_OK;
}

static void events_complain(const struct machine_view *view)
{
  struct text text = {0};

  if (machine_text_unmodelled(view, &text))
    cli_error("counter events programmed but not modelled: %s; they count 0, and 'lbr cpu %s' lists those that count",
              text_string(&text), machine_cpu(view->machine)->model->name);
  text_done(&text);
}

/* A guest died: everything that may tell why, on stderr. */
static void death_show(struct machine_session *session)
{
  struct machine_view view = session_view(session);
  struct machine_result result = session_result(session);
  const char *reason = machine_stop_reason(session->machine);
  struct text text = {0};

  cli_error("%s%s%s, after %llu instructions", session->end == END_SHUTDOWN ? "the guest shut down" : "not implemented",
            *reason ? ": " : "", reason, (unsigned long long)machine_retired(session->machine));
  machine_text_death(&view, &result, &text);
  fputs(text_string(&text), stderr);
  text_done(&text);
}

static void session_show(struct machine_session *session)
{
  struct report_output output = cli_output();
  struct machine_view view = session_view(session);
  struct machine_result result = session_result(session);

  if (session->arguments->is_json) {
    output.wants_color = false;
    machine_page_result(&view, &result, &output);
    return;
  }
  if (session->is_serial_text)
    serial_text_end(&session->serial_text, stdout);
  if (session->serial == stdout && session->heard.length && session->heard.data[session->heard.length - 1] != '\n')
    putchar('\n');
  if (session->screen != SCREEN_NONE)
    machine_page_screen(&view, session->screen == SCREEN_ALL, &output);
  machine_page_dumps(&view, session->arguments->format, &output);
  events_complain(&view);
  if (isatty(STDERR_FILENO) && session->end != END_SHUTDOWN && session->end != END_UNIMPLEMENTED)
    cli_error("ended: %s, after %llu instructions in %.2f s", session_end_name(session->end),
              (unsigned long long)machine_retired(session->machine), session->seconds);
}

static int session_run_and_show(struct machine_session *session, struct machine_gdb *gdb)
{
  int status;

  signals_catch(session);
  if (session->screen == SCREEN_LIVE || session->is_serial_live)
    session_run_live(session);
  else
    session_run(session);
  machine_gdb_close(gdb);
  if (machine_trace_close(session) < 0)
    session->end = END_FAILED;
  session_show(session);
  if (session->end == END_SHUTDOWN || session->end == END_UNIMPLEMENTED)
    death_show(session);
  status = session_status(session);
  if (session->arguments->save && session_save(session) < 0 && status == CLI_OK)
    status = CLI_FAILURE;
  return outputs_close(session) < 0 ? CLI_FAILURE : status;
}

/* What the user did not say follows from what was said, and from where the output goes. */
static int session_begin(struct machine_session *session, struct machine_arguments *arguments)
{
  bool is_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
  bool has_limit = arguments->until_instructions || arguments->until_seconds > 0;
  bool has_until = has_limit || arguments->until_idle || arguments->until_halt || arguments->until_text;

  session->screen = arguments->screen;
  if (session->screen == SCREEN_LIVE && !is_terminal) {
    cli_error("--screen live wants a terminal for input and output; --screen final needs none");
    return CLI_USAGE;
  }
  if (session->screen == SCREEN_DEFAULT) {
    bool is_taken = arguments->is_json || (arguments->serial && !strcmp(arguments->serial, "stdio")) ||
                    (arguments->bus && !strcmp(arguments->bus, "-"));

    session->screen = is_terminal && !is_taken ? SCREEN_LIVE : SCREEN_FINAL;
    if (arguments->format == REPORT_JSON && !arguments->is_json)
      session->screen = SCREEN_NONE; /* standard output is for the objects */
  }
  session->is_serial_live = is_terminal && arguments->serial && !strcmp(arguments->serial, "stdio");
  /* Where there is nobody to type, and no debugger to wait for, neither text nor HLT comes from a guest that does
   * nothing any more. */
  if (session->screen != SCREEN_LIVE && !session->is_serial_live && !arguments->gdb &&
      (!has_until || arguments->until_text || arguments->until_halt))
    arguments->until_idle = true;
  return CLI_OK;
}

int cmd_machine(int argc, char **argv)
{
  struct machine_arguments arguments;
  struct machine_session *session = calloc(1, sizeof(*session));
  struct machine_gdb *gdb = NULL;
  struct files files = {0};
  int status;

  if (!session) {
    cli_error("no memory");
    return CLI_FAILURE;
  }
  machine_arguments_read(&arguments, argc, argv);
  session->arguments = &arguments;
  status = session_begin(session, &arguments);
  if (status == CLI_OK) {
    status = CLI_FAILURE;
    if (files_open(&arguments, &files) >= 0 && symbols_open(session) >= 0 && outputs_open(session) >= 0 &&
        session_make(session, &arguments, &files) >= 0 &&
        (!arguments.trace || machine_trace_open(session, &files.started, argc, argv) >= 0) &&
        (!arguments.gdb || machine_gdb_open(session, &files.started, &gdb) >= 0)) {
      status = session_run_and_show(session, gdb);
      gdb = NULL;
    }
  }
  machine_gdb_close(gdb);
  machine_trace_close(session);
  machine_free(session->machine);
  symbol_table_free(session->symbols);
  text_done(&session->heard);
  files_close(&files);
  free(session);
  machine_arguments_done(&arguments);
  return status;
}
