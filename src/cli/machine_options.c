/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of `lbr machine`.
 */
#include "cli/machine_options.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "gdb/gdb.h"
#include "lastbranch/recorder.h"
#include "machine/machine.h"

enum {
  KEY_RAM = 0x100,
  KEY_CPUS,
  KEY_FDA,
  KEY_HDA,
  KEY_KERNEL,
  KEY_APPEND,
  KEY_INITRD,
  KEY_FLAT,
  KEY_SERIAL,
  KEY_SCREEN,
  KEY_UNTIL,
  KEY_SYMBOLS,
  KEY_TRACE,
  KEY_BUS,
  KEY_PREDICTOR,
  KEY_OPTION,
  KEY_TEST_DEVICE,
  KEY_LOAD,
  KEY_SAVE,
  KEY_GDB,
  KEY_WAIT,
};

static const struct argp_option options[] = {
  {NULL, 0, NULL, 0, "Machine:", 1},
  {"cpu", 'c', "NAME", 0, "Processor of the machine (default: skylake; 'lbr cpu --list' shows all)", 0},
  {"cpus", KEY_CPUS, "N", 0, "Number of processors, 1 to 8 (default: 1); they run in turn", 0},
  {"ram", KEY_RAM, "MB", 0, "Memory size in MiB (default: 128)", 0},
  {"predictor", KEY_PREDICTOR, "KIND", 0, "Branch predictor model: none (default), 2bit or gshare", 0},
  {NULL, 'o', "NAME", OPTION_HIDDEN, NULL, 0}, /* everywhere else -o is --output */
  {"option", KEY_OPTION, "NAME", 0,
   "Use another reading of the manuals than the default ('lbr cpu NAME' lists them). May be repeated", 0},
  {"test-device", KEY_TEST_DEVICE, NULL, 0, "Add the device that kvm-unit-tests looks for", 0},
  {NULL, 0, NULL, 0, "Boot:", 2},
  {"fda", KEY_FDA, "IMAGE", 0, "Image of the floppy", 0},
  {"hda", KEY_HDA, "IMAGE", 0, "Image of the hard disk", 0},
  {"kernel", KEY_KERNEL, "FILE", 0, "Multiboot or Linux kernel", 0},
  {"append", KEY_APPEND, "STRING", 0, "Command line of the kernel", 0},
  {"initrd", KEY_INITRD, "FILE", 0, "Module for the kernel, or Linux's initrd. May be repeated", 0},
  {"flat", KEY_FLAT, "FILE@ADDRESS", 0, "Load FILE at ADDRESS and start there", 0},
  {"load", KEY_LOAD, "FILE", 0, "Resume a machine saved with --save", 0},
  {NULL, 0, NULL, 0, "Connections, and when to stop:", 3},
  {"serial", KEY_SERIAL, "WHERE", 0, "Connect the serial line to stdio, none or a file", 0},
  {"screen", KEY_SCREEN, "MODE", 0, "Show the screen: live, final (at the end), all (all of text memory) or none", 0},
  {"until", KEY_UNTIL, "WHEN", 0,
   "Stop at: idle, halt, insns=N, seconds=S (of your clock), text=STRING. May be repeated", 0},
  {"gdb", KEY_GDB, "PORT|unix:PATH", 0, "Accept connections of a debugger there, at any time", 0},
  {"wait", KEY_WAIT, NULL, 0, "With --gdb: wait for the debugger before the first instruction", 0},
  {NULL, 0, NULL, 0, "Output and files:", 4},
  {"dump", 'd', "WHAT,...", 0, "Print at the end: lbr, ds, bts, pebs, regs, msrs", 0},
  {"format", 'f', "FORMAT", 0,
   "Format of --dump: for lbr table (default), windbg, windbg-old or json; for the others json", 0},
  {"symbols", KEY_SYMBOLS, "FILE", 0, "Take the names of addresses from FILE: an ELF file or a map", 0},
  {"trace", KEY_TRACE, "FILE", 0, "Write every branch of the guest to a trace", 0},
  {"bus", KEY_BUS, "FILE", 0, "Write branch trace messages to FILE, one per line; - is standard output", 0},
  {"save", KEY_SAVE, "FILE", 0, "Save the whole machine at the end, for --load", 0},
  {0},
};

static const struct argp_child children[] = {SHARED_JSON, SHARED_COMMON, {0}};

/* The result of parsing the command line. */
struct machine_line {
  struct machine_arguments *arguments;
  struct machine_show *show;
  struct shared_options shared;
};

/* ---- parsing ---- */

static void arguments_check(const struct machine_line *line, struct argp_state *state)
{
  const struct machine_arguments *a = line->arguments;
  bool is_serial_stdio = a->serial && !strcmp(a->serial, "stdio"), is_bus_stdout = a->bus && !strcmp(a->bus, "-");
  unsigned starts = !!a->kernel + !!a->flat + !!a->image;

  if (a->load && (starts || a->floppy || a->disk || a->append || a->module_count))
    argp_error(state,
               "--load excludes images, disks and kernels: it continues with those that the machine was started with");
  if (!starts && !a->floppy && !a->disk && !a->load)
    argp_error(state, "name something to boot: an image, --fda, --hda, --kernel, --flat or --load");
  if (a->kernel && a->flat)
    argp_error(state, "--kernel and --flat exclude each other");
  if ((a->append || a->module_count) && !a->kernel && !a->image)
    argp_error(state, "--append and --initrd need --kernel");
  if (line->show->is_json && (is_serial_stdio || is_bus_stdout))
    argp_error(state, "--json takes standard output: --serial and --bus need a file");
  if (a->wants_wait && !a->gdb)
    argp_error(state, "--wait needs --gdb");
  if (a->gdb && a->cpus > 1)
    argp_error(state, "--gdb needs a machine with one processor: --cpus 1");
  if (line->show->is_json && a->screen == SCREEN_LIVE)
    argp_error(state, "--json and --screen live exclude each other");
  if (a->screen == SCREEN_LIVE && is_serial_stdio)
    argp_error(state, "--screen live takes the terminal: --serial needs a file or none");
  if (a->screen == SCREEN_LIVE && is_bus_stdout)
    argp_error(state, "--screen live takes the terminal: --bus needs a file");
}

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  static const char *const predictors[] = {
    [PREDICTOR_NONE] = "none", [PREDICTOR_2BIT] = "2bit", [PREDICTOR_GSHARE] = "gshare", NULL};
  static const char *const screens[] = {"live", "final", "all", "none", NULL};
  struct machine_line *line = state->input;
  struct machine_arguments *arguments = line->arguments;

  switch (key) {
  case ARGP_KEY_INIT:
    shared_options_give(state, children, &line->shared);
    break;
  case 'c':
    arguments->cpu = cli_option_cpu(argument);
    break;
  case KEY_CPUS:
    arguments->cpus = (unsigned)machine_option_number("--cpus", argument, 1, MACHINE_CPUS, state);
    break;
  case KEY_RAM:
    arguments->ram = machine_option_number("--ram", argument, 2, 65536, state) << 20;
    break;
  case KEY_PREDICTOR:
    arguments->predictor = (enum predictor_kind)machine_option_word("predictor", argument, predictors, state);
    arguments->names_predictor = true;
    break;
  case KEY_TEST_DEVICE:
    arguments->has_test_device = true;
    break;
  case 'o':
    option_renamed("-o", "--option");
    /* fall through */
  case KEY_OPTION:
    machine_option_recorder(arguments, argument, state);
    break;
  case KEY_FDA:
    arguments->floppy = argument;
    break;
  case KEY_HDA:
    arguments->disk = argument;
    break;
  case KEY_KERNEL:
    arguments->kernel = argument;
    break;
  case KEY_APPEND:
    arguments->append = argument;
    break;
  case KEY_INITRD:
    machine_option_module(arguments, argument, state);
    break;
  case KEY_FLAT:
    machine_option_flat(arguments, argument, state);
    break;
  case KEY_SERIAL:
    arguments->serial = argument;
    break;
  case KEY_SCREEN:
    arguments->screen = (enum screen_mode)(machine_option_word("screen", argument, screens, state) + SCREEN_LIVE);
    break;
  case KEY_UNTIL:
    machine_option_until(arguments, argument, state);
    break;
  case 'd':
    machine_option_dump(line->show, argument, state);
    break;
  case 'f':
    line->show->format = option_format(argument, state);
    break;
  case KEY_SYMBOLS:
    arguments->symbols = argument;
    break;
  case KEY_TRACE:
    arguments->trace = argument;
    break;
  case KEY_LOAD:
    arguments->load = argument;
    break;
  case KEY_SAVE:
    arguments->save = argument;
    break;
  case KEY_BUS:
    arguments->bus = argument;
    break;
  case KEY_GDB:
    if (!gdb_listen_is_place(argument))
      argp_error(state, "--gdb takes a port number or unix:PATH, not '%s'", argument);
    arguments->gdb = argument;
    break;
  case KEY_WAIT:
    arguments->wants_wait = true;
    break;
  case ARGP_KEY_ARG:
    if (state->arg_num > 0)
      argp_error(state, "too many arguments: '%s'", argument);
    arguments->image = argument;
    break;
  case ARGP_KEY_END:
    line->show->is_json = line->shared.is_json;
    arguments_check(line, state);
    break;
  default:
    return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

const struct argp machine_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "[IMAGE]",
  .doc =
    "Boot a PC whose processor records branches. IMAGE is a floppy if it has the size of one, a kernel if it is an ELF file or a Linux bzImage or has a multiboot header, and otherwise a hard disk. Changes that the guest makes to a disk are not saved.\vWithout --until the guest runs until it can make no more progress (with a live screen: until Ctrl-]; with --gdb: until you end it). Exit status: 0, or 2*V+1 for a guest that wrote V to port 0xF4; 1 for a failure; 2 for a usage error; 3 for a triple fault or an instruction that is not implemented.",
  .children = children,
};

void machine_arguments_read(struct machine_arguments *ret_arguments, struct machine_show *ret_show, int argc,
                            char **argv)
{
  struct machine_line line = {.arguments = ret_arguments, .show = ret_show};

  *ret_arguments = (struct machine_arguments){0};
  *ret_show = (struct machine_show){.format = REPORT_TABLE};
  shared_options_init(&line.shared);
  argp_parse(&machine_argp, argc, argv, 0, NULL, &line);
  if (!ret_arguments->cpu && !ret_arguments->load)
    ret_arguments->cpu = cli_option_cpu("skylake");
}

void machine_arguments_done(struct machine_arguments *arguments)
{
  free(arguments->flat);
}
