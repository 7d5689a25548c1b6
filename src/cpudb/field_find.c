/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields of a register by name or by bit.
 */
#include <strings.h>

#include "cpudb/cpudb.h"
#include "lastbranch/error.h"

static bool field_fits(const struct lb_field *field, const struct cpudb_field_question *question)
{
  if (question->name && strcasecmp(question->name, field->name) != 0)
    return false;
  return question->bit < 0 || (question->bit >= field->low && question->bit <= field->high);
}

int cpudb_field_find(const struct lb_cpu *cpu, const struct cpudb_field_question *question, struct lb_field *ret_field)
{
  struct lb_field field;

  for (unsigned i = 0; lb_cpu_field(cpu, question->id, i, &field) >= 0; i++)
    if (field_fits(&field, question)) {
      *ret_field = field;
      return 0;
    }
  return LB_E_NO_FIELD;
}

bool cpudb_has_field(const struct lb_cpu *cpu, const void *data)
{
  const struct cpudb_field_question *question = data;
  struct lb_field field;

  return lb_cpu_register(cpu, question->id).count && cpudb_field_find(cpu, question, &field) >= 0;
}
