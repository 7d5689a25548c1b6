/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of stress that wait in the kernel: in pipes, for time to pass, for descriptors and for signals. None of them
 * gets a signal, so no call may end with EINTR, and none may end before its time.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <unistd.h>

#include "stress.h"

/* ---- pipes ---- */

static __thread int own_pipe[2];

void pipe_begin(unsigned number)
{
  (void)number;
  if (pipe2(own_pipe, O_CLOEXEC))
    failed("pipe: errno %d", errno);
}

static void value_write(int fd, unsigned value)
{
  ssize_t size = write(fd, &value, sizeof(value));

  if (size != sizeof(value))
    failed("write gives %zd, errno %d", size, errno);
}

static unsigned value_read(int fd)
{
  unsigned value;
  ssize_t size = read(fd, &value, sizeof(value));

  if (size != sizeof(value))
    failed("read gives %zd, errno %d", size, errno);
  return value;
}

void pipe_once(unsigned number)
{
  static __thread unsigned written;

  (void)number;
  value_write(own_pipe[1], ++written);
  unsigned value = value_read(own_pipe[0]);
  if (value != written)
    failed("read %u from a pipe, not %u", value, written);
}

/* Two threads: the one blocks in read(2) until the other writes. */
static int block_pipe[2];

void wait_prepare(void)
{
  if (pipe2(block_pipe, O_CLOEXEC))
    failed("pipe: errno %d", errno);
}

void block_read_once(unsigned number)
{
  static unsigned count;
  unsigned value = value_read(block_pipe[0]);

  (void)number;
  if (!is_over() && value != ++count)
    failed("read %u, not %u", value, count);
}

void block_write_once(unsigned number)
{
  static unsigned count;

  (void)number;
  sleep_for(20000);
  value_write(block_pipe[1], ++count);
}

void block_read_end(void)
{
  value_write(block_pipe[1], 0);
}

/* ---- time ---- */

/* To a moment, by the clock that can be set; sleep_for() takes the other way. */
static void sleep_until(double seconds)
{
  double end = now(CLOCK_REALTIME) + seconds;
  const struct timespec time = {.tv_sec = (time_t)end, .tv_nsec = (long)((end - (double)(time_t)end) * 1e9)};
  int error = clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &time, NULL);

  if (error)
    failed("clock_nanosleep: %d", error);
  if (now(CLOCK_REALTIME) < end - 1e-5)
    failed("clock_nanosleep has ended too early");
}

void sleep_once(unsigned number)
{
  sleep_for(70000 + 1000 * (long)number);
  sleep_until(0.03);
}

/* ---- descriptors that are never ready ---- */

static __thread int silent, set_of_one;

void poll_begin(unsigned number)
{
  struct epoll_event event = {.events = EPOLLIN};

  (void)number;
  silent = eventfd(0, EFD_CLOEXEC);
  set_of_one = epoll_create1(EPOLL_CLOEXEC);
  if (silent < 0 || set_of_one < 0 || epoll_ctl(set_of_one, EPOLL_CTL_ADD, silent, &event))
    failed("epoll: errno %d", errno);
}

static void expect_nothing(const char *what, int result, double start, double seconds)
{
  if (result)
    failed("%s gives %d, errno %d", what, result, errno);
  time_check(what, start, seconds);
}

void poll_once(unsigned number)
{
  struct pollfd one = {.fd = silent, .events = POLLIN};
  struct timeval time = {.tv_usec = 10000};
  struct epoll_event event;
  fd_set set;

  (void)number;
  double start = now(CLOCK_MONOTONIC);
  expect_nothing("epoll_wait", epoll_wait(set_of_one, &event, 1, 30), start, 0.03);
  start = now(CLOCK_MONOTONIC);
  expect_nothing("poll", poll(&one, 1, 20), start, 0.02);
  FD_ZERO(&set);
  FD_SET(silent, &set);
  start = now(CLOCK_MONOTONIC);
  expect_nothing("select", select(silent + 1, &set, NULL, NULL, &time), start, 0.01);
}

/* ---- a signal that never comes ---- */

void wait_once(unsigned number)
{
  const struct timespec time = {.tv_nsec = 20000000};
  double start = now(CLOCK_MONOTONIC);
  sigset_t set;

  (void)number;
  sigemptyset(&set);
  sigaddset(&set, SIGNAL_NEVER);
  int result = sigtimedwait(&set, NULL, &time);
  if (result >= 0 || errno != EAGAIN)
    failed("sigtimedwait gives %d, errno %d", result, errno);
  time_check("sigtimedwait", start, 0.02);
}
