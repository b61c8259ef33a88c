/* Data moves as slowly as over a slower link. The thread that moves it sleeps,
 * as a device's copy engine and a network's adapter take no core.
 *
 * Large copies of memory, for a benchmark of what is copied between a device's
 * memory and the host's on a CPU:
 *   SLOW_LINK     bytes a second
 *   SLOW_LEAST    smaller copies are left as they are (default: 256 KiB)
 *
 * What a process sends to others by sockets, all of it over one link:
 *   SLOW_SOCKETS  bytes a second
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

static double rate, socketRate;
static size_t least = 256 << 10;
static pthread_mutex_t ofLink = PTHREAD_MUTEX_INITIALIZER;
static struct timespec isFree; /* when it has carried what was sent */

__attribute__((constructor)) static void readVariables(void) {
  const char *bytes = getenv("SLOW_LEAST"), *copies = getenv("SLOW_LINK"),
             *sockets = getenv("SLOW_SOCKETS");
  if (bytes)
    least = strtoull(bytes, NULL, 10);
  if (copies)
    rate = strtod(copies, NULL);
  if (sockets)
    socketRate = strtod(sockets, NULL);
}

static struct timespec later(struct timespec begin, double seconds) {
  long long ns = begin.tv_nsec + (long long)(seconds * 1e9);
  struct timespec end = {begin.tv_sec + ns / 1000000000, ns % 1000000000};
  return end;
}

static void waitUntil(struct timespec end) {
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) != 0) {
  }
}

void *memcpy(void *to, const void *from, size_t bytes) {
  if (rate <= 0 || bytes < least)
    return memmove(to, from, bytes);
  struct timespec begin;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  memmove(to, from, bytes);
  waitUntil(later(begin, (double)bytes / rate));
  return to;
}

static int isBefore(struct timespec a, struct timespec b) {
  return a.tv_sec < b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec < b.tv_nsec);
}

/* Until the link, which carries one message after the other, has carried these
 * too. */
static void carry(size_t bytes) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  pthread_mutex_lock(&ofLink);
  if (isBefore(isFree, now))
    isFree = now;
  isFree = later(isFree, (double)bytes / socketRate);
  struct timespec end = isFree;
  pthread_mutex_unlock(&ofLink);
  waitUntil(end);
}

/* In small parts, so that one arrives while the next one is on its way. */
ssize_t send(int to, const void *data, size_t bytes, int flags) {
  static const size_t most = 16 << 10;
  if (socketRate <= 0)
    return sendto(to, data, bytes, flags, NULL, 0);
  ssize_t sent = sendto(to, data, bytes < most ? bytes : most, flags, NULL, 0);
  if (sent > 0)
    carry((size_t)sent);
  return sent;
}
