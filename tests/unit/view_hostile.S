/* SPDX-License-Identifier: Apache-2.0
 *
 * A program for test_view.sh whose names want to be a part of the page that shows them. So does this text, which the
 * page shows as source: </script><script>document.title='pwned'</script>
 */
.text
.global _start
.type _start, @function
_start:
  mov $157, %eax /* prctl(PR_SET_NAME) */
  mov $15, %edi
  lea name(%rip), %rsi
  syscall
  call .Lfirst
  call .Lsecond
  mov $60, %eax
  xor %edi, %edi
  syscall
.size _start, . - _start

.Lfirst:
  nop /* </script><img src=x onerror=document.title='pwned'> */
  ret
.Lsecond:
  nop
  ret

.set "</script><img/src=x/onerror=document.title='pwned'>", .Lfirst
.type "</script><img/src=x/onerror=document.title='pwned'>", @function
.size "</script><img/src=x/onerror=document.title='pwned'>", 2
.set "<!--<script>document.title='pwned'</script>", .Lsecond
.type "<!--<script>document.title='pwned'</script>", @function
.size "<!--<script>document.title='pwned'</script>", 2

name:
  .asciz "</script><b>&#"
