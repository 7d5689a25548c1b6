/* SPDX-License-Identifier: Apache-2.0
 *
 * The template of the page of `lbr view`, as data of the program.
 */
#include <cet.h> /* the note without which the linker drops that of all other objects */
.section .rodata
.global view_html, view_html_end, view_css, view_css_end, view_script, view_script_end
view_html:
  .incbin "page.html"
view_html_end:
  .byte 0
view_css:
  .incbin "page.css"
view_css_end:
  .byte 0
view_script:
  .incbin "read.js"
  .incbin "time.js"
  .incbin "draw.js"
  .incbin "order.js"
  .incbin "move.js"
  .incbin "search.js"
  .incbin "tables.js"
  .incbin "start.js"
view_script_end:
  .byte 0

.section .note.GNU-stack, "", @progbits
