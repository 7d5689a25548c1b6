/* SPDX-License-Identifier: Apache-2.0
 *
 * The events that the guest's performance counters count, and those that they were set to count although they are not
 * modelled: such a counter does not advance, and the user is told.
 */
#include <inttypes.h>

#include "base/base.h"
#include "machine/machine.h"
#include "report/machine_page.h"

#define EVENTS_MAX (MACHINE_CPUS * LB_UNMODELLED_MAX)

/* In the notation of the vendors' manuals: event select, then the unit mask. */
static int event_text(const struct lb_cpu *cpu, uint64_t select, struct text *text)
{
  struct lb_event_code code = lb_cpu_event_code(cpu, select);

  if (cpu->pmu->kind == LB_PMU_P4)
    return text_addf(text, "ESCR select %u event %02XH mask %XH", (unsigned)(select >> 32),
                     (unsigned)(select >> 25 & 0x3F), (unsigned)(select >> 9 & 0xFFFF));
  text_addf(text, code.select > 0xFF ? "%03XH/%02XH" : "%02XH/%02XH", code.select, code.mask);
  return code.mask_2 ? text_addf(text, "/%02XH", code.mask_2) : 0;
}

/* Collects the events of all processors that are not modelled, each once. Returns their number. */
static unsigned unmodelled(const struct machine_view *view, uint64_t events[EVENTS_MAX])
{
  unsigned count = 0, known;

  for (unsigned i = 0; i < machine_cpu_count(view->machine); i++) {
    uint64_t select;

    machine_show(view->machine, i);
    for (unsigned k = 0; lb_recorder_unmodelled(&machine_cpu(view->machine)->recorder, k, &select) == 0; k++) {
      for (known = 0; known < count && events[known] != select; known++)
        ;
      if (known == count && count < EVENTS_MAX)
        events[count++] = select;
    }
  }
  machine_show(view->machine, 0);
  return count;
}

unsigned machine_text_unmodelled(const struct machine_view *view, struct text *text)
{
  const struct lb_cpu *cpu = machine_cpu(view->machine)->model;
  uint64_t events[EVENTS_MAX];
  unsigned count = unmodelled(view, events);

  for (unsigned i = 0; i < count; i++) {
    text_add(text, i ? ", " : "");
    event_text(cpu, events[i], text);
  }
  return count;
}

void machine_page_events(const struct machine_view *view, struct page *page)
{
  const struct lb_cpu *cpu = machine_cpu(view->machine)->model;
  uint64_t events[EVENTS_MAX];
  unsigned count = unmodelled(view, events);

  page_list(page, "unmodelled_events");
  for (unsigned i = 0; i < count; i++) {
    struct text text = {0};

    event_text(cpu, events[i], &text);
    page_item(page, "%s", text_string(&text));
    text_done(&text);
  }
  page_list_end(page);
}

/* ---- monitor events ---- */

static int counter_text(const struct lb_recorder *recorder, unsigned i, struct text *output)
{
  uint64_t select = 0, count = 0;

  if (lb_recorder_counter(recorder, i, &select, &count) < 0 || !(select & 0xFF))
    return 0;
  const struct lb_pmu_event *event = lb_cpu_event_find(lb_recorder_cpu(recorder), select);
  text_addf(output, "counter %u: ", i);
  event_text(lb_recorder_cpu(recorder), select, output);
  return text_addf(output, " %s%s, %" PRIu64 "\n", event ? event->name : "is not modelled",
                   select & UINT64_C(1) << 22 ? "" : " (disabled)", count);
}

int machine_text_events(const struct machine_view *view, struct text *output)
{
  const struct lb_recorder *recorder = &machine_cpu(view->machine)->recorder;
  const struct lb_pmu *pmu = lb_recorder_cpu(recorder)->pmu;
  size_t before = output->length;
  struct text text = {0};
  int r = 0;

  for (unsigned i = 0; r >= 0 && i < pmu->counters && pmu->kind != LB_PMU_P4; i++)
    r = counter_text(recorder, i, output);
  if (machine_text_unmodelled(view, &text))
    r = text_addf(output, "counter events programmed but not modelled: %s\n", text_string(&text));
  else if (r >= 0 && output->length == before)
    r = text_add(output, "no event select is programmed\n");
  text_done(&text);
  return r;
}
