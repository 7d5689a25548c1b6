/* SPDX-License-Identifier: Apache-2.0
 *
 * --save and --load: the whole machine in a file, so that a run can continue where another one ended.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "session/machine.h"
#include "session/new_file.h"

/* ---- --load ---- */

static int load_complain(const char *name, int error)
{
  if (error == LB_E_NOT_MACHINE)
    message("%s: not a saved machine; 'lbr machine --save FILE' makes one", name);
  else if (error == LB_E_TRUNCATED)
    message("%s: truncated", name);
  else if (error == LB_E_DAMAGED)
    message("%s: damaged: a checksum is wrong, or the state is impossible", name);
  else if (error == LB_E_NO_CPU || error == LB_E_NO_UNIT)
    message("%s: the CPU of the machine is not in the catalogue of this lbr", name);
  else if (error == -ENOMEM)
    message("%s: no memory for this machine", name);
  else
    message("%s: %s", name, lb_strerror(error));
  return error;
}

static int contradiction(const char *name, const char *option, const char *what)
{
  message("%s: %s does not match: the saved machine has %s", name, option, what);
  return -EINVAL;
}

/* The machine is as it was saved. Options on the command line must agree with it. */
static int arguments_agree(const struct machine_arguments *arguments, const struct machine_config *config)
{
  static const char *const predictors[] = {
    [PREDICTOR_NONE] = "none", [PREDICTOR_2BIT] = "2bit", [PREDICTOR_GSHARE] = "gshare"};
  const char *name = arguments->load;
  char ram[32], cpus[32];

  snprintf(cpus, sizeof(cpus), "%u", config->cpus);
  snprintf(ram, sizeof(ram), "%llu", (unsigned long long)(config->ram >> 20));
  if (arguments->cpu && arguments->cpu != config->model)
    return contradiction(name, "--cpu", config->model->name);
  if (arguments->cpus && arguments->cpus != config->cpus)
    return contradiction(name, "--cpus", cpus);
  if (arguments->gdb && config->cpus > 1) {
    message("%s: --gdb debugs a machine with one processor: the saved machine has %u", name, config->cpus);
    return -EINVAL;
  }
  if (arguments->ram && arguments->ram != config->ram)
    return contradiction(name, "--ram", ram);
  if (arguments->names_predictor && arguments->predictor != config->predictor)
    return contradiction(name, "--predictor", predictors[config->predictor]);
  if (arguments->recorder_options & ~config->recorder_options)
    return contradiction(name, "--option", "other readings of the manuals");
  if (arguments->has_test_device && !config->has_test_device)
    return contradiction(name, "--test-device", "no such device");
  return 0;
}

static int limit_check(const struct machine_session *session)
{
  const struct machine_arguments *arguments = session->arguments;
  uint64_t done = machine_retired(session->machine);

  if (!arguments->until_instructions || arguments->until_instructions > done)
    return 0;
  message("%s: the machine was saved after %llu instructions: --until insns= counts from power-on", arguments->load,
          (unsigned long long)done);
  return -EINVAL;
}

/* A saved kernel includes its symbols. */
static void symbols_load(struct machine_session *session)
{
  struct machine_image kernel = machine_kernel(session->machine);

  if (!session->symbols && !session->arguments->symbols && kernel.size)
    (void)symbol_table_read(kernel.bytes, kernel.size, &session->symbols);
}

int machine_session_load(struct machine_session *session, struct machine_arguments *arguments,
                         const struct machine_host *host)
{
  struct machine_file file = {0};
  const struct machine_config *config;
  int r = machine_file_open(&file, arguments->load);

  if (r < 0)
    return r;
  r = machine_restore(file.bytes, file.size, host, &session->machine);
  machine_file_close(&file);
  if (r < 0)
    return load_complain(arguments->load, r);
  config = machine_config(session->machine);
  r = arguments_agree(arguments, config);
  if (r >= 0)
    r = limit_check(session);
  arguments->cpu = config->model;
  symbols_load(session);
  return r;
}

/* ---- --save ---- */

int machine_session_save(struct machine_session *session)
{
  const char *name = session->arguments->save;
  struct new_file file;
  int r;

  if (session->end == END_SHUTDOWN || session->end == END_UNIMPLEMENTED || session->end == END_FAILED) {
    message("%s: not saved: a machine that ended like this cannot be resumed", name);
    return -EINVAL;
  }
  r = new_file_open(&file, name, name, "");
  if (r >= 0) {
    uint64_t size;

    r = machine_save(session->machine, new_file_write, &file);
    size = file.size;
    r = new_file_close(&file, r);
    if (r < 0)
      message("%s: cannot save the machine: %s", name, lb_strerror(r));
    else if (isatty(STDERR_FILENO))
      message("%s: the machine after %llu instructions, %.1f MB", name,
              (unsigned long long)machine_retired(session->machine), (double)size * 1e-6);
  }
  new_file_done(&file);
  return r;
}
