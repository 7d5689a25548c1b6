/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the page of `lbr cpu NAME` that is about performance counters, and the events that the model counts.
 */
#include <stdio.h>

#include "report/cpu_page.h"

static void put_absent_events(struct page *page, const struct lb_pmu *pmu)
{
  static const char *const events[] = {
    "core cycles", "instructions retired",        "reference cycles",      "LLC references",
    "LLC misses",  "branch instructions retired", "branch misses retired", "topdown slots",
  };

  page_list(page, "absent_events");
  for (unsigned i = 0; i < pmu->events && i < sizeof(events) / sizeof(events[0]); i++)
    if (pmu->absent >> i & 1)
      page_item(page, "%s", events[i]);
  page_list_end(page);
}

static void put_pmu(struct page *page, const struct lb_cpu *cpu)
{
  static const char *const kinds[] = {
    [LB_PMU_NONE] = "none",          [LB_PMU_P6] = "P6",   [LB_PMU_P4] = "Pentium 4",
    [LB_PMU_ARCH] = "architectural", [LB_PMU_AMD] = "AMD", [LB_PMU_AMD_V2] = "AMD version 2",
  };
  const struct lb_pmu *pmu = cpu->pmu;

  page_section(page, "pmu", "Performance counters");
  page_put(page, "kind", kinds[pmu->kind]);
  page_put_number(page, "version", pmu->version);
  page_put_number(page, "counters", pmu->counters);
  page_put_number(page, "width", pmu->width);
  page_put_number(page, "fixed_counters", pmu->fixed);
  page_put_number(page, "fixed_width", pmu->fixed_width);
  put_absent_events(page, pmu);
  page_put_hex(page, "status_clear_mask", pmu->status_clear);
  cpu_page_basis(page, pmu->basis, pmu->evidence);
  page_section_end(page);
}

static const char *event_code_text(const struct lb_pmu_event *event, char *buffer, size_t size)
{
  int length = snprintf(buffer, size, event->select > 0xFF ? "%03XH" : "%02XH", event->select);

  if (event->has_mask)
    length += snprintf(buffer + length, size - (size_t)length, "/%02XH", event->mask);
  if (event->mask_2)
    snprintf(buffer + length, size - (size_t)length, "/%02XH", event->mask_2);
  return buffer;
}

static void put_events(struct page *page, const struct lb_cpu *cpu)
{
  static const struct page_column columns[] = {{"event", 11}, {"PEBS", 5}, {"name", 0}, {NULL, 0}};
  struct lb_pmu_event event;
  char code[32];

  page_section(page, "events", "Counter events that the model counts: event select, unit mask");
  page_table(page, "list", columns);
  for (unsigned i = 0; lb_cpu_event(cpu, i, &event) == 0; i++) {
    page_row(page, false);
    page_put(page, "code", event_code_text(&event, code, sizeof(code)));
    page_put_flag(page, "precise", event.is_precise);
    page_put(page, "name", event.name);
    page_row_end(page);
  }
  page_table_end(page);
  page_put(page, "evidence", lb_cpu_event_source(cpu));
  page_section_end(page);
}

void cpu_page_counters(struct page *page, const struct lb_cpu *cpu)
{
  put_pmu(page, cpu);
  put_events(page, cpu);
}
