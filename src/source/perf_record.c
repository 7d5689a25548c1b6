/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of perf_event_open(2): takes them out of a ring and parses them. Nothing is trusted: sizes are checked before
 * bytes are read, and a ring with invalid counts is skipped up to its head.
 */
#include "source/perf_record.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "lastbranch/branch.h"

#define HEAD_SIZE 8u /* struct perf_event_header: type u32, misc u16, size u16 */

/* ---- the ring ---- */

int perf_ring_copy(const struct perf_ring *ring, uint64_t offset, uint64_t size, void *buffer)
{
  uint64_t place, first;

  if (!ring->size || size > ring->size)
    return -EBADMSG;
  place = offset % ring->size;
  first = size < ring->size - place ? size : ring->size - place;
  memcpy(buffer, ring->bytes + place, (size_t)first);
  memcpy((uint8_t *)buffer + first, ring->bytes, (size_t)(size - first));
  return 0;
}

int perf_ring_next(const struct perf_ring *ring, uint64_t head, uint64_t *tail, uint8_t *buffer)
{
  uint64_t left = head - *tail;
  uint16_t size = 0;

  if (!left)
    return 0;
  if (left >= HEAD_SIZE && left <= ring->size && perf_ring_copy(ring, *tail, HEAD_SIZE, buffer) >= 0)
    size = (uint16_t)(bytes_get_u32(buffer + 4) >> 16);
  if (size < HEAD_SIZE || size > left) {
    *tail = head;
    return -EBADMSG;
  }
  perf_ring_copy(ring, *tail, size, buffer);
  *tail += size;
  return size;
}

/* ---- fields ---- */

/* The bytes of a record from start to end. Reads past the end give 0 and set `is_short`. */
struct fields {
  const uint8_t *at, *end;
  bool is_short;
};

static const uint8_t *fields_bytes(struct fields *fields, uint64_t size)
{
  const uint8_t *at = fields->at;

  if (size > (uint64_t)(fields->end - fields->at)) {
    fields->is_short = true;
    fields->at = fields->end;
    return NULL;
  }
  fields->at += size;
  return at;
}

static uint64_t fields_u64(struct fields *fields)
{
  const uint8_t *at = fields_bytes(fields, 8);

  return at ? bytes_get_u64(at) : 0;
}

static uint32_t fields_u32(struct fields *fields)
{
  const uint8_t *at = fields_bytes(fields, 4);

  return at ? bytes_get_u32(at) : 0;
}

/* A text that is terminated within the fields. */
static const char *fields_text(struct fields *fields)
{
  const uint8_t *zero = memchr(fields->at, 0, (size_t)(fields->end - fields->at));
  const char *text = (const char *)fields->at;

  if (!zero) {
    fields->is_short = true;
    return "";
  }
  fields->at = zero + 1;
  return text;
}

/* ---- process, thread and time ---- */

static unsigned id_size(uint64_t type)
{
  static const uint64_t fields[] = {PERF_SAMPLE_TID,       PERF_SAMPLE_TIME, PERF_SAMPLE_ID,
                                    PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU,  PERF_SAMPLE_IDENTIFIER};
  unsigned size = 0;

  for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
    size += type & fields[i] ? 8 : 0;
  return size;
}

/* Parses the struct sample_id at the end of every record that is not a sample. The fields then end before it. */
static void id_parse(const struct perf_layout *layout, struct fields *fields, struct perf_record *record)
{
  unsigned size = layout->sample_id_all ? id_size(layout->sample_type) : 0;
  struct fields id = *fields;

  if (size > (size_t)(fields->end - fields->at)) {
    fields->is_short = true;
    return;
  }
  fields->end -= size;
  id.at = fields->end;
  if (!size)
    return;
  if (layout->sample_type & PERF_SAMPLE_TID) {
    record->process = fields_u32(&id);
    record->thread = fields_u32(&id);
  }
  if (layout->sample_type & PERF_SAMPLE_TIME)
    record->time = fields_u64(&id);
  if (layout->sample_type & PERF_SAMPLE_ID)
    fields_u64(&id);
  if (layout->sample_type & PERF_SAMPLE_STREAM_ID)
    fields_u64(&id);
  if (layout->sample_type & PERF_SAMPLE_CPU)
    record->cpu = fields_u32(&id);
}

/* ---- samples ---- */

static void stack_parse(const struct perf_layout *layout, struct fields *fields, struct perf_branch_stack *stack)
{
  uint64_t count = fields_u64(fields);

  stack->hardware_index = UINT64_MAX;
  if (layout->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX)
    stack->hardware_index = fields_u64(fields);
  if (count > PERF_RECORD_SIZE_MAX / PERF_BRANCH_SIZE)
    fields->is_short = true;
  else
    stack->entries = fields_bytes(fields, count * PERF_BRANCH_SIZE);
  stack->count = stack->entries ? count : 0;
}

/* Parses only the fields that we ask for. Fields after the branch stack, and fields of variable size before it, are
 * unknown. */
static void sample_parse(const struct perf_layout *layout, struct fields *fields, struct perf_record *record)
{
  const uint64_t type = layout->sample_type;

  record->kind = PERF_SAMPLE;
  if (type & PERF_SAMPLE_IDENTIFIER)
    fields_u64(fields);
  if (type & PERF_SAMPLE_IP)
    record->sample.ip = fields_u64(fields);
  if (type & PERF_SAMPLE_TID) {
    record->process = fields_u32(fields);
    record->thread = fields_u32(fields);
  }
  if (type & PERF_SAMPLE_TIME)
    record->time = fields_u64(fields);
  if (type & PERF_SAMPLE_ADDR)
    fields_u64(fields);
  if (type & PERF_SAMPLE_ID)
    fields_u64(fields);
  if (type & PERF_SAMPLE_STREAM_ID)
    fields_u64(fields);
  if (type & PERF_SAMPLE_CPU)
    record->cpu = (uint32_t)fields_u64(fields);
  if (type & PERF_SAMPLE_PERIOD)
    fields_u64(fields);
  if (type & (PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW))
    fields->is_short = true;
  else if (type & PERF_SAMPLE_BRANCH_STACK)
    stack_parse(layout, fields, &record->sample.stack);
}

/* ---- other records ---- */

static void map_parse(struct fields *fields, bool is_second, unsigned misc, struct perf_record *record)
{
  record->kind = PERF_MAP;
  record->map.process = fields_u32(fields);
  record->map.thread = fields_u32(fields);
  record->map.address = fields_u64(fields);
  record->map.size = fields_u64(fields);
  record->map.offset = fields_u64(fields);
  record->map.is_executable = !(misc & PERF_RECORD_MISC_MMAP_DATA);
  if (is_second) {
    fields_bytes(fields, 24); /* device and inode, or the build-id */
    record->map.is_executable = fields_u32(fields) & PROT_EXEC;
    fields_u32(fields);
  }
  record->map.path = fields_text(fields);
}

static void task_parse(struct fields *fields, struct perf_record *record)
{
  record->task.process = fields_u32(fields);
  record->task.parent = fields_u32(fields);
  record->task.thread = fields_u32(fields);
  record->task.parent_thread = fields_u32(fields);
  fields_u64(fields);
}

static void comm_parse(struct fields *fields, unsigned misc, struct perf_record *record)
{
  record->kind = PERF_COMM;
  record->comm.process = fields_u32(fields);
  record->comm.thread = fields_u32(fields);
  record->comm.is_exec = misc & PERF_RECORD_MISC_COMM_EXEC;
  record->comm.name = fields_text(fields);
}

static void aux_parse(struct fields *fields, struct perf_record *record)
{
  record->kind = PERF_AUX;
  record->aux.offset = fields_u64(fields);
  record->aux.size = fields_u64(fields);
  record->aux.flags = (uint32_t)fields_u64(fields);
}

static void rest_parse(unsigned type, unsigned misc, struct fields *fields, struct perf_record *record)
{
  switch (type) {
  case PERF_RECORD_MMAP:
  case PERF_RECORD_MMAP2:
    map_parse(fields, type == PERF_RECORD_MMAP2, misc, record);
    break;
  case PERF_RECORD_COMM:
    comm_parse(fields, misc, record);
    break;
  case PERF_RECORD_FORK:
  case PERF_RECORD_EXIT:
    record->kind = type == PERF_RECORD_FORK ? PERF_FORK : PERF_EXIT;
    task_parse(fields, record);
    break;
  case PERF_RECORD_LOST:
    record->kind = PERF_LOST;
    fields_u64(fields); /* the event */
    record->lost.count = fields_u64(fields);
    break;
  case PERF_RECORD_LOST_SAMPLES:
    record->kind = PERF_LOST;
    record->lost.count = fields_u64(fields);
    break;
  case PERF_RECORD_AUX:
    aux_parse(fields, record);
    break;
  case PERF_RECORD_ITRACE_START:
    record->kind = PERF_START;
    record->start.process = fields_u32(fields);
    record->start.thread = fields_u32(fields);
    break;
  case PERF_RECORD_THROTTLE:
  case PERF_RECORD_UNTHROTTLE:
    record->kind = type == PERF_RECORD_THROTTLE ? PERF_THROTTLE : PERF_UNTHROTTLE;
    break;
  default:
    break;
  }
}

int perf_record_parse(const struct perf_layout *layout, const uint8_t *bytes, size_t size,
                      struct perf_record *ret_record)
{
  struct fields fields = {bytes + HEAD_SIZE, bytes + size, false};
  struct perf_record record;

  if (size < HEAD_SIZE)
    return -EBADMSG;
  memset(&record, 0, sizeof(record));
  if (bytes_get_u32(bytes) == PERF_RECORD_SAMPLE) {
    sample_parse(layout, &fields, &record);
  } else {
    id_parse(layout, &fields, &record);
    rest_parse(bytes_get_u32(bytes), bytes_get_u32(bytes + 4) & 0xFFFF, &fields, &record);
  }
  if (fields.is_short)
    return -EBADMSG;
  *ret_record = record;
  return 0;
}

/* ---- branches ---- */

struct perf_branch perf_branch_get(const uint8_t bytes[PERF_BRANCH_SIZE])
{
  uint64_t flags = bytes_get_u64(bytes + 16);

  return (struct perf_branch){
    .from = bytes_get_u64(bytes),
    .to = bytes_get_u64(bytes + 8),
    .is_mispredicted = flags & 1,
    .is_predicted = flags >> 1 & 1,
    .is_in_tx = flags >> 2 & 1,
    .is_abort = flags >> 3 & 1,
    .cycles = (uint16_t)(flags >> 4),
    .type = flags >> 20 & 15,
    .speculation = flags >> 24 & 3,
    .new_type = flags >> 26 & 15,
    .privilege = flags >> 30 & 7,
  };
}

unsigned perf_branch_kind(const struct perf_branch *branch)
{
  static const uint8_t kinds[16] = {
    [PERF_BR_UNKNOWN] = LB_BRANCH_UNKNOWN,     [PERF_BR_COND] = LB_BRANCH_JCC,
    [PERF_BR_UNCOND] = LB_BRANCH_NEAR_REL_JMP, [PERF_BR_IND] = LB_BRANCH_NEAR_IND_JMP,
    [PERF_BR_CALL] = LB_BRANCH_NEAR_REL_CALL,  [PERF_BR_IND_CALL] = LB_BRANCH_NEAR_IND_CALL,
    [PERF_BR_RET] = LB_BRANCH_NEAR_RET,        [PERF_BR_SYSCALL] = LB_BRANCH_SYSCALL,
    [PERF_BR_SYSRET] = LB_BRANCH_SYSRET,       [PERF_BR_COND_CALL] = LB_BRANCH_UNKNOWN,
    [PERF_BR_COND_RET] = LB_BRANCH_UNKNOWN,    [PERF_BR_ERET] = LB_BRANCH_IRET,
    [PERF_BR_IRQ] = LB_BRANCH_INTERRUPT,       [PERF_BR_SERROR] = LB_BRANCH_UNKNOWN,
    [PERF_BR_NO_TX] = LB_BRANCH_UNKNOWN,       [PERF_BR_EXTEND_ABI] = LB_BRANCH_UNKNOWN,
  };

  return branch->is_abort ? LB_BRANCH_TSX_ABORT : kinds[branch->type & 15];
}

uint64_t perf_branch_filter(uint32_t kinds)
{
  static const struct {
    uint32_t kinds;
    uint64_t bits;
  } filters[] = {
    {1u << LB_BRANCH_JCC, PERF_SAMPLE_BRANCH_COND},
    {1u << LB_BRANCH_NEAR_REL_CALL, PERF_SAMPLE_BRANCH_CALL},
    {1u << LB_BRANCH_NEAR_IND_CALL, PERF_SAMPLE_BRANCH_IND_CALL},
    {1u << LB_BRANCH_NEAR_RET, PERF_SAMPLE_BRANCH_ANY_RETURN},
    {1u << LB_BRANCH_NEAR_IND_JMP, PERF_SAMPLE_BRANCH_IND_JUMP},
  };
  uint64_t bits = 0;

  for (size_t i = 0; i < sizeof(filters) / sizeof(*filters); i++)
    if (kinds & filters[i].kinds) {
      bits |= filters[i].bits;
      kinds &= ~filters[i].kinds;
    }
  return kinds || !bits ? PERF_SAMPLE_BRANCH_ANY : bits;
}
