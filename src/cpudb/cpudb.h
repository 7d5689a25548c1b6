/* SPDX-License-Identifier: Apache-2.0
 *
 * The catalogue, as other folders see it: all of it is public. The data are the .def files beside this header, the
 * contract is lastbranch/cpudb.h.
 */
#ifndef CPUDB_CPUDB_H
#define CPUDB_CPUDB_H

#include "lastbranch/cpudb.h"

#endif
