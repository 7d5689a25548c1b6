/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables that the .def files make, for the files of this folder: one enum and one array per kind of row. cpudb.c
 * defines them.
 */
#ifndef CPUDB_TABLES_H
#define CPUDB_TABLES_H

#include "cpudb/cpudb.h"

enum cpudb_class {
#define LB_LBR_CLASS(row, ...) CLASS_##row,
#include "cpudb/lbr_class.def"
#undef LB_LBR_CLASS
  CLASS_ROWS,
};

enum cpudb_debugctl {
#define LB_DEBUGCTL_LAYOUT(row, ...) DEBUGCTL_##row,
#include "cpudb/debugctl.def"
#undef LB_DEBUGCTL_LAYOUT
  DEBUGCTL_ROWS,
};

enum cpudb_pmu {
#define LB_PMU_ROW(row, ...) PMU_##row,
#include "cpudb/pmu.def"
#undef LB_PMU_ROW
  PMU_ROWS,
};

enum cpudb_ds {
#define LB_DS_ROW(row, ...) DS_##row,
#include "cpudb/ds.def"
#undef LB_DS_ROW
  DS_ROWS,
};

extern const struct lb_lbr_class cpudb_classes[CLASS_ROWS];
extern const struct lb_debugctl cpudb_debugctls[DEBUGCTL_ROWS];
extern const struct lb_pmu cpudb_pmus[PMU_ROWS];
extern const struct lb_ds cpudb_dss[DS_ROWS];
extern const struct lb_cpu cpudb_cpus[CPUDB_CPUS];

#endif
