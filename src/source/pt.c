/* SPDX-License-Identifier: Apache-2.0
 *
 * Intel PT with libipt: the packet layer makes each chunk independent (pt_chunk.c). The query layer tells whether
 * conditional branches were taken, the targets of indirect ones, and other events. This file follows the code in
 * between. (libipt's own instruction layer does not distinguish a taken branch to the next instruction from one that
 * was not taken.) Packets are hostile input: packets that cannot be followed become a gap, and decoding continues at
 * the next PSB.
 */
#include "source/pt.h"

#include <errno.h>
#include <intel-pt.h>
#include <stdlib.h>
#include <string.h>

#include "source/flow.h"
#include "source/pt_chunk.h"

#define STEPS_MAX (1u << 16) /* instructions without packets: more are implausible */

struct pt_walk {
  struct tasks *tasks;
  struct task_thread *thread;
  struct pt_query_decoder *decoder;
  int status; /* of the last query: negative, or enum pt_status_flag */
  bool is_on; /* in user mode, at `ip` */
  uint64_t ip;
  unsigned steps; /* since the last query */
  bool has_event;
  struct pt_event event;
};

/* ---- events ---- */

static int walk_on(struct pt_walk *walk, uint64_t ip)
{
  walk->is_on = true;
  walk->ip = ip;
  return flow_enter(walk->tasks, walk->thread, ip);
}

static void walk_off(struct pt_walk *walk)
{
  walk->is_on = false;
  flow_leave(walk->thread, walk->ip);
}

static int walk_overflow(struct pt_walk *walk)
{
  const struct pt_event *event = &walk->event;
  int r = flow_lose(walk->tasks, walk->thread, 0);

  walk->is_on = !event->ip_suppressed;
  walk->ip = event->variant.overflow.ip;
  return r;
}

/* Tells the address of an event, if it has one that must be reached first. */
static bool event_place(const struct pt_event *event, uint64_t *ret_ip)
{
  if (event->type == ptev_async_disabled)
    *ret_ip = event->variant.async_disabled.at;
  else if (event->type == ptev_async_branch)
    *ret_ip = event->variant.async_branch.from;
  else
    return false;
  return true;
}

/* Applies an event whose address has been reached. Returns 0, or negative. */
static int event_apply(struct pt_walk *walk)
{
  const struct pt_event *event = &walk->event;

  walk->has_event = false;
  switch (event->type) {
  case ptev_enabled:
    return walk_on(walk, event->variant.enabled.ip);
  case ptev_disabled:
  case ptev_async_disabled:
    walk_off(walk);
    return 0;
  case ptev_async_branch:
    if (event->ip_suppressed) {
      walk_off(walk);
      return 0;
    }
    flow_leave(walk->thread, walk->ip);
    return walk_on(walk, event->variant.async_branch.to);
  case ptev_overflow:
    return walk_overflow(walk);
  default: /* modes, times, power: irrelevant for branches */
    return 0;
  }
}

/* ---- the code ---- */

static bool is_direct(int kind)
{
  return kind == LB_BRANCH_NEAR_REL_JMP || kind == LB_BRANCH_NEAR_REL_CALL;
}

static bool is_indirect(int kind)
{
  return kind == LB_BRANCH_NEAR_IND_JMP || kind == LB_BRANCH_NEAR_IND_CALL || kind == LB_BRANCH_NEAR_RET ||
         kind == LB_BRANCH_FAR_JMP || kind == LB_BRANCH_FAR_CALL || kind == LB_BRANCH_FAR_RET || kind == LB_BRANCH_IRET;
}

static int walk_jump(struct pt_walk *walk, uint64_t to, unsigned kind)
{
  uint64_t from = walk->ip;

  walk->ip = to;
  return flow_branch(walk->tasks, walk->thread, from, to, kind, 0);
}

static int walk_conditional(struct pt_walk *walk, const struct task_instruction *instruction)
{
  int taken = 0;

  walk->steps = 0;
  walk->status = pt_qry_cond_branch(walk->decoder, &taken);
  if (walk->status < 0)
    return 0;
  if (taken)
    return walk_jump(walk, instruction->target, LB_BRANCH_JCC);
  walk->ip += instruction->length;
  return 0;
}

static int walk_indirect(struct pt_walk *walk, unsigned kind)
{
  uint64_t to = 0;

  walk->steps = 0;
  walk->status = pt_qry_indirect_branch(walk->decoder, &to);
  if (walk->status < 0)
    return 0;
  if (walk->status & pts_ip_suppressed) { /* the target is not traced */
    walk_off(walk);
    return 0;
  }
  return walk_jump(walk, to, kind);
}

/* Executes one instruction. An event that belongs to a branch is due when there are no more packets about earlier
 * branches. */
static int walk_step(struct pt_walk *walk)
{
  struct task_instruction instruction = tasks_instruction(walk->tasks, walk->thread, walk->ip);
  bool is_bound = walk->has_event && walk->event.type == ptev_disabled;

  if (!instruction.length || ++walk->steps > STEPS_MAX) {
    walk->status = -pte_nomap;
    return 0;
  }
  if (instruction.kind < 0) {
    walk->ip += instruction.length;
    return 0;
  }
  if (is_direct(instruction.kind))
    return walk_jump(walk, instruction.target, (unsigned)instruction.kind);
  if (is_bound)
    return event_apply(walk);
  if (instruction.kind == LB_BRANCH_JCC)
    return walk_conditional(walk, &instruction);
  if (is_indirect(instruction.kind))
    return walk_indirect(walk, (unsigned)instruction.kind);
  walk->status = -pte_bad_query; /* a system call after which tracing continues */
  return 0;
}

/* Continues until the packets end, or are invalid. */
static int walk_packets(struct pt_walk *walk)
{
  uint64_t place;
  int r = 0;

  while (walk->status >= 0 && r >= 0) {
    if (!walk->has_event && walk->status & pts_event_pending) {
      walk->status = pt_qry_event(walk->decoder, &walk->event, sizeof(walk->event));
      walk->has_event = walk->status >= 0;
      walk->steps = 0;
      continue;
    }
    bool is_here =
      walk->has_event && (event_place(&walk->event, &place) ? !walk->is_on || place == walk->ip
                                                            : walk->event.type != ptev_disabled || !walk->is_on);
    if (is_here)
      r = event_apply(walk);
    else if (walk->is_on)
      r = walk_step(walk);
    else
      walk->status = walk->status & pts_eos ? -pte_eos : -pte_bad_query;
  }
  return r;
}

/* ---- a chunk ---- */

/* Starts at each PSB where that is necessary. */
static int walk_chunk(struct pt_walk *walk)
{
  int r = 0;

  for (bool is_first = true; r >= 0; is_first = false) {
    walk->has_event = false;
    walk->steps = 0;
    walk->status = pt_qry_sync_forward(walk->decoder, &walk->ip);
    if (walk->status < 0)
      return is_first && walk->status == -pte_eos ? 0 : flow_lose(walk->tasks, walk->thread, 0);
    if (!is_first || (!(walk->status & pts_ip_suppressed) && walk->thread->is_begun))
      r = flow_lose(walk->tasks, walk->thread, 0);
    walk->is_on = !(walk->status & pts_ip_suppressed);
    if (r >= 0)
      r = walk_packets(walk);
    if (r >= 0 && walk->status == -pte_eos && !walk->is_on)
      return 0;
    if (r >= 0 && walk->status == -pte_eos) /* in the middle */
      return flow_lose(walk->tasks, walk->thread, 0);
  }
  return r;
}

static struct pt_config config_make(const struct pt_model *model, uint8_t *bytes, size_t size)
{
  struct pt_config config = {.size = sizeof(config), .begin = bytes, .end = bytes + size};

  if (model->is_intel) {
    config.cpu = (struct pt_cpu){.vendor = pcv_intel,
                                 .family = (uint16_t)model->family,
                                 .model = (uint8_t)model->model,
                                 .stepping = (uint8_t)model->stepping};
    pt_cpu_errata(&config.errata, &config.cpu);
  }
  return config;
}

int pt_decode(struct tasks *tasks, struct task_thread *thread, const struct pt_model *model, struct pt_state *state,
              const uint8_t *bytes, size_t size)
{
  struct pt_walk walk = {.tasks = tasks, .thread = thread};
  uint8_t *chunk = malloc(size + PT_CHUNK_HEAD);
  struct pt_config config;
  size_t length;
  int r = -ENOMEM;

  if (!chunk)
    return r;
  length = pt_chunk_make(state, bytes, size, chunk);
  config = config_make(model, chunk, length);
  walk.decoder = length ? pt_qry_alloc_decoder(&config) : NULL;
  if (walk.decoder)
    r = walk_chunk(&walk);
  else if (!length)
    r = size ? flow_lose(tasks, thread, 0) : 0;
  pt_qry_free_decoder(walk.decoder);
  free(chunk);
  return r;
}
