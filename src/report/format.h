/* SPDX-License-Identifier: Apache-2.0
 *
 * The formats in which a recorder is printed.
 */
#ifndef REPORT_FORMAT_H
#define REPORT_FORMAT_H

enum report_format {
  REPORT_TABLE,
  REPORT_WINDBG,     /* the layout of the WinDbg extension for this CPU: old for combined registers, else new */
  REPORT_WINDBG_OLD, /* the layout of extension 1.0.0.2, made for the Pentium M */
  REPORT_JSON,
  REPORT_FORMATS,
};

/* "table", "windbg", "windbg-old", "json"; NULL past the last. */
const char *report_format_name(unsigned format);

/* The format with this name. Returns >= 0, or -EINVAL. */
int report_format_find(const char *word);

#endif
