/* SPDX-License-Identifier: Apache-2.0
 *
 * oracle [-d] LIST PROGRAM [ARGUMENT]...: steps a program from the first instruction of its dynamic linker to its end,
 * one instruction at a time, and writes every taken branch of all its threads and children to the file LIST. It shares
 * nothing with the process recorder but src/isa, and is what that is measured by. 10,000 to 30,000 steps a second. With
 * -d the program is executed by descriptor: what the kernel puts on top of its stack is then /dev/fd/N, not its path.
 * The exit status is the program's (128 + signal when one killed it), 125 when the list is not to be trusted or the
 * program not to be started, 126 when tracing is not permitted here.
 *
 * LIST: a line is "THREAD FROM TO KIND", or a remark that begins with '#'. Threads are numbered from 1 in order of
 * creation, whatever process they are in. Addresses are hexadecimal with 0x. KIND is a word of branch_kind.def:
 *
 * - jcc: a taken one; LOOPcc and JrCXZ too. Taken to the next instruction counts; what is not taken is not listed.
 *
 * - call, call_ind, ret, jmp, jmp_ind, call_far, jmp_far, retf, iret (IRETQ): from the instruction to its target.
 *
 * - syscall: from SYSCALL to the instruction behind it, once it has entered the kernel, even if it never comes back
 *   there (exit, execve). A call that a signal interrupted and that the kernel does again of its own accord is one
 *   line; if a handler ran in between, it is two.
 *
 * - int: INT 0x80, in the same way.
 *
 * - int3: to the instruction behind it, which is where the signal comes from.
 *
 * - interrupt: a signal, from the address in its frame, where the program will go on, to the handler.
 *
 * - iret: also rt_sigreturn, which has no syscall line: from its SYSCALL to where the program goes on.
 *
 * An instruction that faults makes no line of its own; the iterations of a string instruction make none. Remarks:
 *
 * - "# THREAD exec ADDRESS": the program, or another one in its place, begins there.
 *
 * - "# THREAD fork CREATOR ADDRESS", vfork, clone: a new thread begins there.
 *
 * - "# THREAD exit STATUS", "# THREAD signal NUMBER": its end. "# THREAD replaced": another of its process did execve.
 *
 * - "# instructions NUMBER", "# not-taken NUMBER": of all threads, those that were executed to their end (a string
 *   instruction counts once, whatever it repeats; SYSCALL counts, one that faults does not), and conditional branches.
 *
 * - "# steps NUMBER": the last line; how many stops there were.
 *
 * Within a thread lines are in order; between threads the order is that of one run. Addresses repeat: there is no
 * randomisation. What the program could notice of being stepped: time; SIGTRAP, if it ignores it or has it pending
 * while blocked; job control (it does not stay stopped); rseq sections and transactions that never get to their end.
 * Not understood, and ended with 125: the vsyscall page.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "tracee.h"

enum { EXIT_BROKEN = 125, EXIT_FORBIDDEN = 126 };
enum { CALL_STOP = SIGTRAP | 0x80 }; /* PTRACE_O_TRACESYSGOOD */

static FILE *list;
static struct tracee *tracees;
static unsigned tracee_count;
static unsigned long long stop_count, instruction_count, not_taken_count;

static _Noreturn void die(int status, const char *what, const char *why)
{
  fprintf(stderr, "oracle: %s: %s\n", what, why);
  exit(status);
}

static void write_branch(const struct tracee *tracee, uint64_t from, uint64_t to, unsigned kind)
{
  fprintf(list, "%u 0x%llx 0x%llx %s\n", tracee->number, (unsigned long long)from, (unsigned long long)to,
          lb_branch_kind_name(kind));
}

static void resume(struct tracee *tracee, int signal)
{
  int r = tracee_resume(tracee, signal);
  if (r < 0 && r != -ESRCH) /* no such thread: killed meanwhile, wait will tell */
    die(EXIT_BROKEN, "resume", strerror(-r));
}

static void look(struct tracee *tracee)
{
  int r = tracee_look(tracee);
  if (r < 0 && r != -ESRCH)
    die(EXIT_BROKEN, "registers", strerror(-r));
}

/* The tracee with this thread id, made if need be. */
static struct tracee *tracee_get(pid_t id)
{
  struct tracee *tracee = tracees;
  while (tracee && tracee->id != id)
    tracee = tracee->link;
  if (tracee)
    return tracee;
  tracee = calloc(1, sizeof(*tracee));
  if (!tracee)
    die(EXIT_BROKEN, "memory", strerror(ENOMEM));
  *tracee = (struct tracee){.id = id, .is_mask_stale = true, .link = tracees};
  return tracees = tracee;
}

static void tracee_drop(struct tracee *tracee)
{
  struct tracee **link = &tracees;
  while (*link != tracee)
    link = &(*link)->link;
  *link = tracee->link;
  free(tracee);
}

static void step_fail(const struct tracee *tracee, const struct step *step, uint64_t to)
{
  fprintf(stderr, "oracle: thread %u went from 0x%llx (%s) to 0x%llx\n", tracee->number,
          (unsigned long long)step->address, step->kind >= 0 ? lb_branch_kind_name((unsigned)step->kind) : "no branch",
          (unsigned long long)to);
  exit(EXIT_BROKEN);
}

/* Takes the TF of a step, which is not the program's, out of flags in memory: what PUSHF stored, or a signal frame. */
static void hide_trap_flag(const struct tracee *tracee, uint64_t address)
{
  uint8_t byte; /* bits 15:8 of the flags */
  if (tracee->owns_trap_flag)
    return;
  if (tracee_read(tracee, address + 1, &byte, 1))
    die(EXIT_BROKEN, "flags", "cannot read them on the stack");
  uint8_t clean = byte & (uint8_t) ~(EFLAGS_TF >> 8);
  if (clean != byte && tracee_write(tracee, address + 1, &clean, 1))
    die(EXIT_BROKEN, "flags", "cannot write them on the stack");
}

/* A conditional branch to the next instruction looks the same taken or not: the flags decide, and check all the others.
 */
static void write_conditional(const struct tracee *tracee, const struct step *step, uint64_t to)
{
  bool is_taken = step_is_taken(step, &tracee->registers);
  if (to != (is_taken ? step_target(step) : step->address + (uint64_t)step->length))
    step_fail(tracee, step, to);
  if (is_taken)
    write_branch(tracee, step->address, to, LB_BRANCH_JCC);
  else
    not_taken_count++;
}

/* The thread has executed what it was about to (registers and next still say what), and is at `to`. */
static void write_step(struct tracee *tracee, uint64_t to, uint64_t stack, uint64_t flags)
{
  struct step step = tracee->next;
  for (; step_loads_ss(&step) && to != step.address + (uint64_t)step.length; instruction_count++)
    tracee_decode(tracee, step.address + (uint64_t)step.length, &step);
  instruction_count += step.kind >= 0 || to != step.address; /* else a string instruction repeats */
  if (step_stores_flags(&step))
    hide_trap_flag(tracee, stack);
  if (step_loads_flags(&step))
    tracee->owns_trap_flag = flags & EFLAGS_TF;
  if (step.kind == LB_BRANCH_JCC)
    write_conditional(tracee, &step, to);
  else if (step.kind >= 0)
    write_branch(tracee, step.address, to, (unsigned)step.kind);
  else if (to - step.address > (uint64_t)(step.length > 0 ? step.length : ISA_LENGTH_MAX))
    step_fail(tracee, &step, to); /* the same address is right: a string instruction repeats */
}

/* Before and after a system call. Linux does a call again if it ended with ERESTARTSYS, -NOINTR, -NOHAND or
 * -RESTARTBLOCK, numbers that programs never see; rt_sigreturn sets orig_rax to -1. */
static void handle_call(struct tracee *tracee)
{
  struct user_regs_struct registers;
  if (ptrace(PTRACE_GETREGS, tracee->id, 0, &registers))
    return;
  tracee->is_in_call = !tracee->is_in_call;
  if (tracee->is_in_call) {
    instruction_count += !tracee->is_interrupted;
    tracee->is_sigreturn = tracee->next.kind == LB_BRANCH_SYSCALL && registers.orig_rax == SYS_rt_sigreturn;
    if (!tracee->is_sigreturn && !tracee->is_interrupted)
      write_branch(tracee, tracee->next.address, registers.rip, (unsigned)tracee->next.kind);
    tracee->is_interrupted = false;
  } else {
    int64_t result = (int64_t)registers.rax;
    tracee->is_interrupted =
      (int64_t)registers.orig_rax >= 0 && (result == -512 || result == -513 || result == -514 || result == -516);
    if (tracee->is_sigreturn) {
      write_branch(tracee, tracee->next.address, registers.rip, LB_BRANCH_IRET);
      tracee->owns_trap_flag = registers.eflags & EFLAGS_TF;
    }
    tracee->is_sigreturn = false;
    look(tracee);
  }
  resume(tracee, 0);
}

/* At the first instruction of a handler, whose third argument is the ucontext_t, SA_SIGINFO or not. */
static void handle_entry(struct tracee *tracee)
{
  uint64_t from;
  look(tracee);
  uint64_t context = tracee->registers.rdx;
  if (tracee_read(tracee, context + offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]), &from, sizeof(from)))
    die(EXIT_BROKEN, "signal", "cannot read the frame");
  write_branch(tracee, from, tracee->registers.rip, LB_BRANCH_INTERRUPT);
  hide_trap_flag(tracee, context + offsetof(ucontext_t, uc_mcontext.gregs[REG_EFL]));
  tracee->owns_trap_flag = false;
  tracee->is_interrupted = false;
  tracee->is_mask_stale = true;
  resume(tracee, 0);
}

/* The trap of a step. Some hypervisors now and then lose the bit of DR6 that says so; the kernel then takes the trap
 * for a breakpoint, although no breakpoint instruction is there. */
static bool is_trap_of_step(const struct tracee *tracee, int signal, const siginfo_t *info)
{
  bool is_lost = info->si_code == TRAP_BRKPT && !step_is_breakpoint(&tracee->next);

  return signal == SIGTRAP && (info->si_code == TRAP_TRACE || is_lost);
}

/* Stopped by a signal: that of the step, or one for the program, whether or not it executed something before. */
static void handle_signal(struct tracee *tracee, int signal)
{
  siginfo_t info;
  struct user_regs_struct registers;
  if (ptrace(PTRACE_GETSIGINFO, tracee->id, 0, &info)) {
    resume(tracee, 0); /* a group stop */
    return;
  }
  if (signal == SIGTRAP && info.si_code == SIGTRAP) {
    handle_entry(tracee);
    return;
  }
  if (ptrace(PTRACE_GETREGS, tracee->id, 0, &registers))
    return;
  bool is_step = is_trap_of_step(tracee, signal, &info);
  bool is_ours = is_step && !tracee->owns_trap_flag; /* its own TF makes the same trap */
  if (is_step || registers.rip != tracee->registers.rip) {
    write_step(tracee, registers.rip, registers.rsp, registers.eflags);
    look(tracee);
  }
  resume(tracee, is_ours ? 0 : signal);
}

static void tracee_start(struct tracee *tracee)
{
  look(tracee);
  tracee->owns_trap_flag = tracee->registers.eflags & EFLAGS_TF;
  fprintf(list, "# %u %s %u 0x%llx\n", tracee->number, tracee->manner, tracee->creator,
          (unsigned long long)tracee->registers.rip);
  resume(tracee, 0);
}

/* A thread tells that it made another; that one may have stopped already. */
static void handle_creation(struct tracee *tracee, int event)
{
  unsigned long id;
  if (ptrace(PTRACE_GETEVENTMSG, tracee->id, 0, &id))
    return;
  struct tracee *made = tracee_get((pid_t)id);
  made->number = ++tracee_count;
  made->creator = tracee->number;
  made->manner = event == PTRACE_EVENT_FORK ? "fork" : event == PTRACE_EVENT_VFORK ? "vfork" : "clone";
  if (made->has_stopped)
    tracee_start(made);
  resume(tracee, 0);
}

/* A program begins, inside execve. The thread that called it takes the id of the first thread of its process. */
static void handle_exec(struct tracee *tracee)
{
  unsigned long id;
  if (ptrace(PTRACE_GETEVENTMSG, tracee->id, 0, &id))
    return;
  if ((pid_t)id != tracee->id) {
    struct tracee *caller = tracee_get((pid_t)id);
    fprintf(list, "# %u replaced\n", tracee->number);
    caller->id = tracee->id;
    tracee_drop(tracee);
    tracee = caller;
  }
  tracee->is_in_call = true;
  tracee->owns_trap_flag = false;
  look(tracee);
  fprintf(list, "# %u exec 0x%llx\n", tracee->number, (unsigned long long)tracee->registers.rip);
  resume(tracee, 0);
}

static void handle_stop(struct tracee *tracee, int status)
{
  int signal = WSTOPSIG(status);
  int event = status >> 16;
  bool is_first = !tracee->has_stopped;
  tracee->has_stopped = true;
  stop_count++;
  if (is_first && tracee->number)
    tracee_start(tracee);
  else if (is_first)
    return; /* until its creator tells */
  else if (event == PTRACE_EVENT_EXEC)
    handle_exec(tracee);
  else if (event)
    handle_creation(tracee, event);
  else if (signal == CALL_STOP)
    handle_call(tracee);
  else
    handle_signal(tracee, signal);
}

static void handle_end(struct tracee *tracee, int status)
{
  if (WIFEXITED(status))
    fprintf(list, "# %u exit %d\n", tracee->number, WEXITSTATUS(status));
  else
    fprintf(list, "# %u signal %d\n", tracee->number, WTERMSIG(status));
  tracee_drop(tracee);
}

/* Until the last thread is gone. Returns the exit status of process `first`. */
static int follow(pid_t first)
{
  int status, result = EXIT_BROKEN;
  for (pid_t id; (id = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR;) {
    if (id > 0 && WIFSTOPPED(status)) {
      handle_stop(tracee_get(id), status);
    } else if (id > 0) {
      handle_end(tracee_get(id), status);
      if (id == first)
        result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
  }
  return result;
}

static _Noreturn void run(char **arguments, bool is_by_descriptor)
{
  if (personality(ADDR_NO_RANDOMIZE) < 0 || ptrace(PTRACE_TRACEME, 0, 0, 0)) {
    fprintf(stderr, "oracle: tracing is not permitted: %s\n", strerror(errno));
    _exit(EXIT_FORBIDDEN);
  }
  raise(SIGSTOP);
  if (is_by_descriptor)
    fexecve(open(arguments[0], O_RDONLY | O_CLOEXEC), arguments, environ);
  else
    execv(arguments[0], arguments);
  fprintf(stderr, "oracle: %s: %s\n", arguments[0], strerror(errno));
  _exit(EXIT_BROKEN);
}

/* Starts the program; its first stop that is listed is the end of execve. */
static pid_t start(char **arguments, bool is_by_descriptor)
{
  int status;
  pid_t id = fork();
  if (id == 0)
    run(arguments, is_by_descriptor);
  if (id < 0 || waitpid(id, &status, 0) != id)
    die(EXIT_BROKEN, "fork", strerror(errno));
  if (WIFEXITED(status))
    exit(WEXITSTATUS(status));
  if (ptrace(PTRACE_SETOPTIONS, id, 0,
             PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
               PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC) ||
      ptrace(PTRACE_CONT, id, 0, 0))
    die(EXIT_FORBIDDEN, "tracing is not permitted", strerror(errno));
  struct tracee *tracee = tracee_get(id);
  tracee->number = ++tracee_count;
  tracee->has_stopped = true;
  return id;
}

int main(int argc, char **argv)
{
  bool is_by_descriptor = argc > 1 && !strcmp(argv[1], "-d");
  argv += is_by_descriptor;
  if (argc - is_by_descriptor < 3)
    die(EXIT_BROKEN, "usage", "oracle [-d] LIST PROGRAM [ARGUMENT]...");
  list = fopen(argv[1], "we");
  if (!list)
    die(EXIT_BROKEN, argv[1], strerror(errno));
  int result = follow(start(argv + 2, is_by_descriptor));
  fprintf(list, "# instructions %llu\n# not-taken %llu\n", instruction_count, not_taken_count);
  fprintf(list, "# steps %llu\n", stop_count);
  if (fclose(list))
    die(EXIT_BROKEN, argv[1], strerror(errno));
  return result;
}
