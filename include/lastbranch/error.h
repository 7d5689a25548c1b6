/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors. A function that can fail returns an int: >= 0 on success, negative on failure. A failure of the system is
 * -errno; a failure of the library itself is a code from error.def. Out-parameters are named ret_..., stand last, and
 * are untouched on failure.
 */
#ifndef LASTBRANCH_ERROR_H
#define LASTBRANCH_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

enum lb_error {
#define LB_ERROR(name, number, text) LB_E_##name = -(number),
#include "lastbranch/error.def"
#undef LB_ERROR
};

/* The sentence for an error of either sort, without a full stop. Takes the negative value as returned. For a number
 * that is no error: "unknown error". Never NULL; the text is static. */
const char *lb_strerror(int error);

#ifdef __cplusplus
}
#endif
#endif
