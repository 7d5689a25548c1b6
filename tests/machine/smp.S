/* SPDX-License-Identifier: Apache-2.0
 *
 * Two processors, flat 32-bit code at 1 MiB; more of them come up and stop. Writes a letter to port 0xE9 for each thing that
 * went as it should, then 0 to port 0xF4, or the number of the step that did not.
 *   A  INIT and SIPI to all others start them, with APIC IDs of their own
 *   B  IPIs there and back, to a processor that is halted
 *      by its ID, as one of a logical set, by lowest priority among all, to all but the sender
 *   C  code that one of them changed while the other had run it, and the other way round
 *   D  a page that the other had read lies elsewhere now, after an IPI whose handler says INVLPG
 *   E  LBR on one of them does not see the other's branches
 *   F  LOCK counts what both add at the same time
 */
.code32
.set APIC, 0xFEE00000
.set IDT, 0x2000
.set DIRECTORY, 0x4000
.set TABLE, 0x5000
.set VARIABLES, 0x6000
.set ONLINE, VARIABLES      /* processors that came up */
.set OTHER, VARIABLES + 4   /* APIC ID of the one that takes part */
.set COMMAND, VARIABLES + 8 /* what it is to do; 0: done */
.set RESULT, VARIABLES + 12
.set PINGS, VARIABLES + 16 /* IPIs that came in there, */
.set PONGS, VARIABLES + 20 /* and here */
.set SUM, VARIABLES + 24
.set START, 0x8000
.set LINEAR, 0x400000
.set FRAME, 0x1A0000
.set STACKS, 0x1B0000
.set ROUNDS, 5000

.globl _start
_start:
  mov $STACKS, %esp
  mov $IDT, %edi
  xor %eax, %eax
  mov $0x5000, %ecx
  rep stosb
  mov $IDT + 8 * 0x40, %edi
  mov $on_ping, %eax
  call gate
  mov $on_pong, %eax
  call gate
  mov $on_shootdown, %eax
  call gate

  movl $0x000083, DIRECTORY
  movl $TABLE + 3, DIRECTORY + 4
  movl $0xFEC0009B, DIRECTORY + 4 * (APIC >> 22)
  movl $FRAME + 3, TABLE
  movl $0x11111111, FRAME
  movl $0x22222222, FRAME + 0x1000
  call begin
  mov $0xFF, %al
  out %al, $0x21
  out %al, $0xA1

  mov $start, %esi
  mov $START, %edi
  mov $start_end - start, %ecx
  rep movsb
  mov $1, %ebp
  movl $0xC4500, APIC + 0x300
  movl $0xC4600 + (START >> 12), APIC + 0x300
1:pause
  cmpl $0, ONLINE
  je 1b
  cmpl $1, OTHER
  jne fail
  mov $'A', %al
  out %al, $0xE9

  mov $2, %ebp
  mov $1, %ebx
  movl $0xFF, APIC + 0x80 /* of lower priority is the other */
2:mov %ebx, %eax
  and $3, %eax
  mov icrs(,%eax,8), %edx
  mov %edx, APIC + 0x310
  mov icrs + 4(,%eax,8), %edx
  mov %edx, APIC + 0x300
  movl $0, APIC + 0x80
3:sti
  hlt
  cli
  cmp %ebx, PONGS
  jb 3b
  cmp %ebx, PINGS
  jne fail
  movl $0xFF, APIC + 0x80
  inc %ebx
  cmp $20, %ebx
  jbe 2b
  movl $0, APIC + 0x80
  mov $'B', %al
  out %al, $0xE9

  mov $3, %ebp
  mov $5, %ebx
4:mov %ebx, number + 1
  mov $1, %eax
  call order
  cmp %ebx, RESULT
  jne fail
  mov $2, %eax /* it changes what is run here */
  call order
  call own_number
  add %ebx, %ebx
  cmp %ebx, %eax
  jne fail
  shr %ebx
  inc %ebx
  cmp $25, %ebx
  jb 4b
  mov $'C', %al
  out %al, $0xE9

  mov $4, %ebp
  mov $3, %eax
  call order
  cmpl $0x11111111, RESULT
  jne fail
  movl $FRAME + 0x1003, TABLE
  mov PINGS, %ebx
  movl $0x01000000, APIC + 0x310
  movl $0x4042, APIC + 0x300
5:pause
  cmp %ebx, PINGS
  je 5b
  mov $3, %eax
  call order
  cmpl $0x22222222, RESULT
  jne fail
  mov $'D', %al
  out %al, $0xE9

  mov $5, %ebp
  movl $4, COMMAND
6:cmpl $0, COMMAND /* branches while the other records */
  jne 6b
  cmpl $0, RESULT
  jne fail
  mov $'E', %al
  out %al, $0xE9

  mov $6, %ebp
  movl $5, COMMAND
  call count
7:pause
  cmpl $0, COMMAND
  jne 7b
  cmpl $2 * ROUNDS, SUM
  jne fail
  mov $'F', %al
  out %al, $0xE9
  xor %ebp, %ebp
fail:
  mov %ebp, %eax
  out %eax, $0xF4
8:hlt
  jmp 8b

/* Destination and command: physical; logical, flat; lowest priority of all; all but this one. */
icrs:
  .long 0x01000000, 0x4040, 0x02000000, 0x4840, 0xFF000000, 0x4940, 0, 0xC4040

/* The other one does what EAX says, and has done it. */
order:
  mov %eax, COMMAND
1:pause
  cmpl $0, COMMAND
  jne 1b
  ret

count:
  mov $ROUNDS, %ecx
1:lock incl SUM
  loop 1b
  ret

/* ---- of both ---- */

begin:
  lgdt gdtr
  lidt idtr
  mov $DIRECTORY, %eax
  mov %eax, %cr3
  mov %cr4, %eax
  or $0x10, %eax
  mov %eax, %cr4
  mov %cr0, %eax
  or $0x80000000, %eax
  mov %eax, %cr0
  movl $0x1FF, APIC + 0xF0
  ret

/* An interrupt gate to EAX at EDI, which moves on. */
gate:
  mov %ax, (%edi)
  movw $8, 2(%edi)
  movw $0x8E00, 4(%edi)
  shr $16, %eax
  mov %ax, 6(%edi)
  add $8, %edi
  ret

on_pong:
  incl PONGS
  movl $0, APIC + 0xB0
  iret

/* ---- of the other ---- */

on_ping:
  incl PINGS
  movl $0, APIC + 0xB0
  movl $0, APIC + 0x310
  movl $0x4041, APIC + 0x300
  iret

on_shootdown:
  invlpg LINEAR
  incl PINGS
  movl $0, APIC + 0xB0
  iret

other:
  mov $0x10, %ax
  mov %ax, %ds
  mov %ax, %es
  mov %ax, %ss
  mov $1, %eax
  cpuid
  shr $24, %ebx
  mov %ebx, %eax
  shl $12, %eax
  lea STACKS(%eax), %esp
  call begin
  mov APIC + 0x20, %eax
  shr $24, %eax
  cmp %ebx, %eax
  jne stop
  cmp $1, %eax
  jne stop
  mov %eax, OTHER
  movl $0x02000000, APIC + 0xD0
  lock incl ONLINE

  /* the first IPIs find it halted */
1:sti
  hlt
  cli
  cmpl $20, PINGS
  jb 1b
  sti
2:pause
  mov COMMAND, %eax
  cmp $1, %eax
  je do_number
  cmp $2, %eax
  je do_change
  cmp $3, %eax
  je do_read
  cmp $4, %eax
  je do_record
  cmp $5, %eax
  jne 2b
  call count
done:
  movl $0, COMMAND
  jmp 2b

do_number:
  call number
  mov %eax, RESULT
  jmp done

do_change:
  call number
  add %eax, %eax
  mov %eax, own_number + 1
  jmp done

do_read:
  mov LINEAR, %eax
  mov %eax, RESULT
  jmp done

/* Records so long that the other one has its turn meanwhile; 0 for a result when all records are from here. */
do_record:
  mov $0x1D9, %ecx
  mov $1, %eax
  xor %edx, %edx
  wrmsr
  mov $3000, %ecx
3:jmp 4f
4:loop 3b
  mov $0x1D9, %ecx
  xor %eax, %eax
  wrmsr
  xor %edi, %edi
  mov $0x680, %ecx
5:rdmsr
  cmp $do_record, %eax
  jb 6f
  cmp $do_record_end, %eax
  jb 7f
6:inc %edi
7:inc %ecx
  cmp $0x6A0, %ecx
  jb 5b
  mov %edi, RESULT
  jmp done
do_record_end:

stop:
  cli
  hlt
  jmp stop

.code16
start:
  cli
  lgdtl %cs:gdtr_copy - start
  mov %cr0, %eax
  or $1, %eax
  mov %eax, %cr0
  ljmpl $8, $other
gdtr_copy:
  .word 3 * 8 - 1
  .long gdt
start_end:

.balign 8
gdt:
  .quad 0, 0x00CF9B000000FFFF, 0x00CF93000000FFFF
gdtr:
  .word 3 * 8 - 1
  .long gdt
idtr:
  .word 0x43 * 8 - 1
  .long IDT
.code32

/* Code that is changed: nothing else lies in its pages. */
.balign 4096
number:
  mov $0, %eax
  ret

.balign 4096
own_number:
  mov $0, %eax
  ret
.balign 4096
