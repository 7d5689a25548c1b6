/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts every error of the library into words: our own codes from error.def, all others with the system's text.
 */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "lastbranch/error.h"

#define ERRNO_MAX 4095 /* the kernel's MAX_ERRNO; error.def begins above it */

#define LB_ERROR(name, number, text) _Static_assert((number) > ERRNO_MAX, #name " collides with errno values");
#include "lastbranch/error.def"
#undef LB_ERROR

const char *lb_strerror(int error)
{
  switch (error) {
#define LB_ERROR(name, number, text)                                                                                   \
  case LB_E_##name:                                                                                                    \
    return text;
#include "lastbranch/error.def"
#undef LB_ERROR
  }
  if (error == -EFBIG) /* the system's text, "File too large", does not tell which limit */
    return "file size limit reached (ulimit -f)";
  /* strerrordesc_np is static and thread-safe, and NULL for a number without a text; strerror may be neither. */
  const char *text = error < 0 && error >= -ERRNO_MAX ? strerrordesc_np(-error) : NULL;

  return text ? text : "unknown error";
}
