/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of `lbr cpu` without a name: the host's CPU, its recording features as CPUID shows them beside those that
 * the catalogue expects, and which of them can be used from here.
 */
#include <limits.h>

#include "report/cpu_page.h"
#include "source/source.h"

static void put_identity(struct page *page, const struct hardware_host *host)
{
  page_title(page, "This machine");
  page_put(page, "vendor", host->vendor_text);
  page_put(page, "brand", *host->brand ? host->brand : NULL);
  page_putf(page, "model", "%02X_%02X", host->family, host->model);
  page_put_number(page, "stepping", host->stepping);
  if (host->is_virtual)
    page_putf(page, "virtual_machine", "%s (%s)", host->hypervisor_name, host->hypervisor);
  else
    page_put(page, "virtual_machine", NULL);
  if (host->cpu || page->is_json) {
    page_put(page, "cpu", host->cpu ? host->cpu->name : NULL);
    page_put(page, "title", host->cpu ? host->cpu->title : NULL);
  } else {
    page_put(page, "cpu", "not in the catalogue");
  }
}

static void put_kernel(struct page *page, const struct hardware_host *host)
{
  if (host->perf_event_paranoid == INT_MIN)
    page_put(page, "perf_event_paranoid", NULL);
  else
    page_put_signed(page, "perf_event_paranoid", host->perf_event_paranoid);
  page_put_flag(page, "seccomp_filter", host->has_seccomp);
  page_put_number(page, "kernel_branch_stack", host->kernel_branches > 0 ? (unsigned)host->kernel_branches : 0);
  if (host->has_perf_capabilities)
    page_put_hex(page, "perf_capabilities", host->perf_capabilities);
  else
    page_absent(page, "perf_capabilities");
}

static void put_findings(struct page *page, const struct hardware_host *host)
{
  static const struct page_column columns[] = {{"facility", 20}, {"usable", 8}, {"why", 0}, {NULL, 0}};

  page_section(page, "usable", "Usable from here");
  page_table(page, "facilities", columns);
  for (unsigned i = 0; i < HARDWARE_FACILITIES; i++) {
    const struct hardware_finding *finding = &host->findings[i];

    page_row(page, finding->verdict == HARDWARE_YES);
    if (page->is_json)
      page_put(page, "name", hardware_facility_word(i));
    else
      page_put(page, "name", hardware_facility_title(i));
    page_put(page, "usable", hardware_verdict_word(finding->verdict));
    page_put(page, "why", finding->reason);
    if (*finding->advice)
      page_put_note(page, "advice", finding->advice);
    else
      page_absent(page, "advice");
    page_row_end(page);
  }
  page_table_end(page);
  page_section_end(page);
}

/* The values of --source of lbr run and lbr record that work here. */
static void put_sources(struct page *page, const struct hardware_host *host)
{
  static const struct page_column columns[] = {{"--source", 12}, {"usable", 8}, {"what", 0}, {NULL, 0}};

  page_section(page, "recording", "Sources for 'lbr run' and 'lbr record'");
  page_table(page, "sources", columns);
  for (unsigned i = SOURCE_SOFTWARE; i < SOURCES; i++) {
    const char *reason, *advice;
    bool is_usable = source_is_usable(host, i, &reason, &advice);

    page_row(page, is_usable);
    page_put(page, "name", source_word(i));
    page_put_flag(page, "usable", is_usable);
    page_put(page, "what", source_title(i));
    if (!is_usable)
      page_put_note(page, "why", reason);
    else
      page_absent(page, "why");
    page_row_end(page);
  }
  page_table_end(page);
  page_section_end(page);
}

/* Fields that are 0 here and that the catalogue does not expect are left out of the text; JSON has them all. */
static void put_cpuid(struct page *page, const struct hardware_host *host)
{
  static const char *const registers[] = {"EAX", "EBX", "ECX", "EDX"};
  static const struct page_column columns[] = {
    {"CPUID", 28}, {"here", 6}, {"catalogue", 10}, {"meaning", 0}, {NULL, 0}};

  page_section(page, "machinery", "What CPUID shows");
  page_table(page, "cpuid", columns);
  for (unsigned i = 0; i < HARDWARE_CPUID_FIELDS; i++) {
    const struct hardware_cpuid_place *place = hardware_cpuid_place(i);
    uint32_t expected = 0;
    bool has_expected = hardware_cpuid_expected(host, i, &expected);

    if (!page->is_json && !host->cpuid[i] && !expected)
      continue;
    page_row(page, false);
    if (place->high == place->low)
      page_putf(page, "place", "%X:%s[%u]", place->leaf, registers[place->reg], place->low);
    else
      page_putf(page, "place", "%X:%s[%u:%u]", place->leaf, registers[place->reg], place->high, place->low);
    page_put_number(page, "here", host->cpuid[i]);
    if (has_expected)
      page_put_number(page, "catalogue", expected);
    else
      page_put(page, "catalogue", NULL);
    page_putf(page, "meaning", "%s: %s", place->name, place->meaning);
    page_row_end(page);
  }
  page_table_end(page);
  page_section_end(page);
}

void cpu_page_host(struct page *page, const struct hardware_host *host)
{
  put_identity(page, host);
  put_kernel(page, host);
  put_findings(page, host);
  put_sources(page, host);
  put_cpuid(page, host);
  page_blank(page);
  if (host->cpu)
    page_remark(page, "'lbr cpu %s' shows the catalogue entry of this CPU.", host->cpu->name);
  else
    page_remark(page, "'lbr cpu --list' shows the CPUs of the catalogue; any of them can be modelled here.");
}
