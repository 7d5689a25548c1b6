/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr cache: the translations that recordings keep for later ones (process/store.h).
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "process/process.h"
#include "report/report.h"

enum action { ACTION_LIST, ACTION_CLEAR, ACTION_DISABLE, ACTION_ENABLE };

static const char *const actions[] = {"list", "clear", "disable", "enable"};

struct arguments {
  bool has_action;
  enum action action;
  struct shared_options shared;
};

static const struct argp_child children[] = {SHARED_JSON, SHARED_OUTPUT, SHARED_COMMON, {0}};

static void action_parse(struct arguments *arguments, const char *word, struct argp_state *state)
{
  if (arguments->has_action)
    argp_error(state, "one action at a time");
  for (unsigned i = 0; i < sizeof(actions) / sizeof(*actions); i++)
    if (!strcmp(word, actions[i])) {
      arguments->action = (enum action)i;
      arguments->has_action = true;
      return;
    }
  argp_error(state, "unknown action '%s'; choose list, clear, disable or enable", word);
}

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct arguments *arguments = state->input;

  switch (key) {
  case ARGP_KEY_INIT:
    shared_options_give(state, children, &arguments->shared);
    break;
  case ARGP_KEY_ARG:
    action_parse(arguments, argument, state);
    break;
  case ARGP_KEY_END:
    if (arguments->shared.is_json && arguments->action != ACTION_LIST)
      argp_error(state, "--json is for the list");
    break;
  default:
    return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

const struct argp cache_argp = {
  .parser = option_parse,
  .args_doc = "[list|clear|disable|enable]",
  .doc =
    "Show, clear, disable or enable the cache: translated code of recorded programs, which lets the next recording of a "
    "program start faster.",
  .children = children,
};

/* ---- the list ---- */

static void time_put(struct page *page, int64_t seconds)
{
  char text[32] = "";
  time_t time = (time_t)seconds;
  struct tm parts;

  if (localtime_r(&time, &parts))
    strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &parts);
  page_put(page, "used", text);
}

static void file_put(struct page *page, const struct store_file *file)
{
  page_row(page, false);
  page_put_count(page, "bytes", file->size);
  page_put_count(page, "paths", file->units);
  time_put(page, file->used);
  page_put(page, "state", file->is_old ? "other" : "current");
  page_put(page, "program", file->program[0] ? file->program : NULL);
  page_row_end(page);
}

static int list_print(const char *path, bool is_json)
{
  static const struct page_column columns[] = {{"bytes", 11}, {"paths", 8},   {"last used", 16},
                                               {"for", 7},    {"program", 0}, {NULL, 0}};
  struct store_list list;
  struct page page;
  int r = store_list(path, &list);

  if (r < 0)
    return r;
  cli_page_open(&page, is_json, cli_wants_color());
  page_put(&page, "folder", path);
  page_put_flag(&page, "enabled", !store_is_disabled(path));
  page_put_count(&page, "programs", list.count);
  page_put_count(&page, "bytes", list.size);
  page_put_count(&page, "bytes_at_most", store_size_most());
  page_table(&page, "files", columns);
  for (size_t i = 0; i < list.count; i++)
    file_put(&page, &list.files[i]);
  page_table_end(&page);
  page_close(&page);
  store_list_done(&list);
  return 0;
}

/* ---- all ---- */

static int clear(const char *path)
{
  int64_t freed = store_clear(path);

  if (freed >= 0)
    printf("%lld bytes freed\n", (long long)freed);
  return freed < 0 ? (int)freed : 0;
}

static int act(const char *path, const struct arguments *arguments)
{
  switch (arguments->action) {
  case ACTION_CLEAR:
    return clear(path);
  case ACTION_DISABLE:
    return store_set_disabled(path, true);
  case ACTION_ENABLE:
    return store_set_disabled(path, false);
  default:
    return list_print(path, arguments->shared.is_json);
  }
}

int cmd_cache(int argc, char **argv)
{
  struct arguments arguments = {0};
  char path[STORE_PATH_MOST];
  int r;

  argp_parse(&cache_argp, argc, argv, 0, NULL, &arguments);
  if (!store_path(path)) {
    cli_error("there is no folder for the cache: set HOME or XDG_CACHE_HOME to an absolute path");
    return CLI_FAILURE;
  }
  r = act(path, &arguments);
  if (r >= 0)
    return CLI_OK;
  if (r == -EPERM)
    cli_error("%s is not used: it, or the folder that it is in, belongs to another user or can be written to by others",
              path);
  else
    cli_error("%s: %s", path, strerror(-r));
  return CLI_FAILURE;
}
