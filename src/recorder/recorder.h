/* SPDX-License-Identifier: Apache-2.0
 *
 * The recording unit for the other folders: its public header is the whole interface.
 */
#ifndef RECORDER_RECORDER_H
#define RECORDER_RECORDER_H

#include "lastbranch/recorder.h" /* IWYU pragma: export */

#endif
