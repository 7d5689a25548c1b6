/* SPDX-License-Identifier: Apache-2.0
 *
 * Common parts of the pages of `lbr cpu` and `lbr decode`: models, aliases, addresses, fields.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "report/cpu_page.h"
#include "report/register.h"

#define LAST_STEPPING 15

void cpu_page_bits(struct page *page, const char *key, unsigned high, unsigned low)
{
  if (high == low)
    page_putf(page, key, "%u", low);
  else
    page_putf(page, key, "%u:%u", high, low);
}

/* "06_55_0-4": the form that lb_cpu_find accepts, except for the ranges. */
static void put_model(struct page *page, const struct lb_model *model, const struct lb_cpu *cpu)
{
  char vendor[16] = "", models[8] = "", steppings[8] = "";

  if (model->vendor != cpu->vendor)
    snprintf(vendor, sizeof(vendor), "%s:", lb_vendor_name(model->vendor));
  for (char *letter = vendor; *letter; letter++)
    *letter = (char)tolower((unsigned char)*letter);
  if (model->last_model != model->first_model)
    snprintf(models, sizeof(models), "-%02X", (unsigned)model->last_model);
  if (model->first_stepping == model->last_stepping)
    snprintf(steppings, sizeof(steppings), "_%X", (unsigned)model->first_stepping);
  else if (model->first_stepping > 0 || model->last_stepping < LAST_STEPPING)
    snprintf(steppings, sizeof(steppings), "_%X-%X", (unsigned)model->first_stepping, (unsigned)model->last_stepping);
  page_item(page, "%s%02X_%02X%s%s", vendor, (unsigned)model->family, (unsigned)model->first_model, models, steppings);
}

void cpu_page_models(struct page *page, const struct lb_cpu *cpu)
{
  const struct lb_model *model;

  page_list(page, "models");
  for (size_t i = 0; (model = lb_model_at(i)); i++)
    if (model->cpu == cpu)
      put_model(page, model, cpu);
  page_list_end(page);
}

void cpu_page_aliases(struct page *page, const struct lb_cpu *cpu)
{
  const char *rest = cpu->aliases;

  page_list(page, "aliases");
  for (size_t length; (length = strcspn(rest += strspn(rest, " "), " ")) > 0; rest += length)
    page_item(page, "%.*s", (int)length, rest);
  page_list_end(page);
}

void cpu_page_lbr_fmt(struct page *page, const struct lb_cpu *cpu)
{
  if (cpu->lbr_fmt < 0)
    page_put(page, "lbr_fmt", NULL);
  else
    page_put_number(page, "lbr_fmt", (unsigned)cpu->lbr_fmt);
}

void cpu_page_range_text(struct lb_register_range range, char *buffer, size_t size)
{
  uint32_t last = range.first + (range.count - 1) * range.stride;

  if (range.count == 1)
    snprintf(buffer, size, "0x%x", range.first);
  else if (range.stride == 1)
    snprintf(buffer, size, "0x%x to 0x%x", range.first, last);
  else
    snprintf(buffer, size, "0x%x to 0x%x, %u apart", range.first, last, (unsigned)range.stride);
}

void cpu_page_register_range(struct page *page, const char *key, struct lb_register_range range)
{
  char text[64];

  if (range.count == 0) {
    page_absent(page, key);
  } else if (page->is_json) {
    page_section(page, key, NULL);
    page_put_hex(page, "first", range.first);
    page_put_number(page, "count", range.count);
    page_put_number(page, "stride", range.stride);
    page_section_end(page);
  } else {
    cpu_page_range_text(range, text, sizeof(text));
    page_put(page, key, text);
  }
}

void cpu_page_msr(struct page *page, const char *key, uint32_t msr)
{
  if (msr)
    page_put_hex(page, key, msr);
  else
    page_absent(page, key);
}

void cpu_page_fields(struct page *page, const struct lb_cpu *cpu, enum lb_register id, const uint64_t *value)
{
  static const struct page_column plain[] = {{"bits", 6}, {"name", 24}, {"meaning", 0}, {NULL, 0}};
  static const struct page_column valued[] = {{"bits", 6}, {"name", 24}, {"value", 6}, {"meaning", 0}, {NULL, 0}};
  struct lb_field field;

  page_table(page, "fields", value ? valued : plain);
  for (unsigned i = 0; lb_cpu_field(cpu, id, i, &field) >= 0; i++) {
    page_row(page, false);
    cpu_page_bits(page, "bits", field.high, field.low);
    page_put(page, "name", field.name);
    if (value)
      page_put_hex(page, "value", (*value & cpudb_field_mask(&field)) >> field.low);
    page_put(page, "meaning", field.meaning);
    page_row_end(page);
  }
  page_table_end(page);
}

void cpu_page_basis(struct page *page, unsigned basis, const char *evidence)
{
  page_put(page, "basis", lb_basis_name(basis));
  page_put(page, "evidence", evidence);
}
