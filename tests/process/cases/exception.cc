/* SPDX-License-Identifier: Apache-2.0
 *
 * C++ exceptions, which find their way by return addresses on the stack: in the program, through a shared library, in
 * threads, and out of the handler of a fault. Also backtrace(3), which reads the same.
 */
#include <csignal>
#include <execinfo.h>
#include <pthread.h>
#include <stdexcept>
#include <string>

#include "case.h"

void library_throw(int depth, std::string &log);
void library_call(void (*function)(int), int value, std::string &log);

static void throw_number(int value)
{
  throw value;
}

static int thrown()
{
  unsigned sum = 0;
  for (int i = 0; i < 500; i++) {
    try {
      if (i % 3 == 0)
        throw i;
      if (i % 3 == 1)
        throw std::string(static_cast<size_t>(i), 'x');
      throw std::runtime_error("runtime");
    } catch (int value) {
      sum += static_cast<unsigned>(value);
    } catch (const std::string &text) {
      sum += static_cast<unsigned>(text.size()) * 3;
    } catch (const std::exception &error) {
      sum += static_cast<unsigned>(error.what()[0]);
    }
  }
  say("%u\n", sum);
  return 0;
}

static int library()
{
  std::string log;
  try {
    library_throw(5, log);
  } catch (const std::exception &error) {
    say("%s %s\n", error.what(), log.c_str());
  }
  try {
    library_call(throw_number, 8, log);
  } catch (int value) {
    say("%d %s\n", value, log.c_str());
  }
  return 0;
}

static int again()
{
  try {
    try {
      throw_number(4);
    } catch (...) {
      say("first\n");
      throw;
    }
  } catch (int value) {
    say("second %d\n", value);
  }
  return 0;
}

static void *thread_throw(void *argument)
{
  for (int i = 0; i < 100; i++) {
    try {
      throw_number(i);
    } catch (int value) {
      *static_cast<int *>(argument) += value;
    }
  }
  return nullptr;
}

static int threads()
{
  pthread_t made[4];
  int sums[4] = {};
  for (int i = 0; i < 4; i++)
    pthread_create(&made[i], nullptr, thread_throw, &sums[i]);
  for (pthread_t thread : made)
    pthread_join(thread, nullptr);
  say("%d %d %d %d\n", sums[0], sums[1], sums[2], sums[3]);
  return 0;
}

static void on_fault(int signal)
{
  sigset_t set; /* the handler is not left by rt_sigreturn */
  sigemptyset(&set);
  sigaddset(&set, signal);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  throw std::runtime_error("a fault");
}

/* Through the frame of the signal: needs -fnon-call-exceptions, and the return address that the kernel puts there. */
static int fault()
{
  volatile int *volatile nowhere = nullptr;
  std::signal(SIGSEGV, on_fault);
  for (int i = 0; i < 3; i++) {
    try {
      *nowhere = 1;
    } catch (const std::exception &error) {
      say("%s\n", error.what());
    }
  }
  return 0;
}

static int uncaught()
{
  throw std::logic_error("nobody catches it");
}

static int depth;

static void on_trace(int)
{
  void *places[100];
  depth = backtrace(places, 100);
}

__attribute__((noinline)) static int nest(int count)
{
  if (count == 0)
    return raise(SIGUSR1);
  int result = nest(count - 1);
  return result + (depth == 0);
}

static int trace()
{
  void *places[4];
  std::signal(SIGUSR1, on_trace);
  backtrace(places, 4);
  nest(10);
  int first = depth;
  nest(20);
  say("%d more\n", depth - first);
  return 0;
}

static const struct test_case cases[] = {
  {"thrown", thrown}, {"library", library},   {"again", again}, {"threads", threads},
  {"fault", fault},   {"uncaught", uncaught}, {"trace", trace},
};

int main(int argc, char **argv)
{
  return case_main(cases, ARRAY_LENGTH(cases), argc, argv);
}
