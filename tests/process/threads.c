/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of libc that come and go, one after the other and together. Who waits for whom differs from run to run, and
 * with it the branches of libc; those of this file are always the same.
 */
#include <pthread.h>

#define TOGETHER 3

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static __thread unsigned own;
static unsigned sum;

static unsigned work(unsigned n)
{
  for (unsigned i = 0; i < n; i++)
    own += i;
  return own;
}

static void *alone(void *argument)
{
  sum += work(*(unsigned *)argument);
  return NULL;
}

static void *together(void *argument)
{
  unsigned result = work(*(unsigned *)argument);
  pthread_barrier_wait(&barrier);
  pthread_mutex_lock(&mutex);
  sum += result;
  pthread_mutex_unlock(&mutex);
  return NULL;
}

int main(void)
{
  pthread_t threads[TOGETHER];
  unsigned n = 5; /* 0 + 1 + 2 + 3 + 4 = 10 */
  for (int i = 0; i < 2; i++) {
    pthread_create(&threads[0], NULL, alone, &n);
    pthread_join(threads[0], NULL);
  }
  pthread_barrier_init(&barrier, NULL, TOGETHER);
  for (int i = 0; i < TOGETHER; i++)
    pthread_create(&threads[i], NULL, together, &n);
  for (int i = 0; i < TOGETHER; i++)
    pthread_join(threads[i], NULL);
  return sum != 10 * (2 + TOGETHER);
}
