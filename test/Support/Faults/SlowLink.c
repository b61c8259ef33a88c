/* Large copies of memory take as long as over a slower link, for a benchmark of
 * what is copied between a device's memory and the host's on a CPU: the thread
 * sleeps, as a device's copy engine takes no core.
 *
 *   SLOW_LINK   bytes a second
 *   SLOW_LEAST  smaller copies are left as they are (default: 256 KiB)
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double rate;
static size_t least = 256 << 10;

__attribute__((constructor)) static void readVariables(void) {
  const char *bytes = getenv("SLOW_LEAST"), *link = getenv("SLOW_LINK");
  if (bytes)
    least = strtoull(bytes, NULL, 10);
  if (link)
    rate = strtod(link, NULL);
}

static void waitUntil(struct timespec begin, double seconds) {
  long long ns = begin.tv_nsec + (long long)(seconds * 1e9);
  struct timespec end = {begin.tv_sec + ns / 1000000000, ns % 1000000000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) != 0) {
  }
}

void *memcpy(void *to, const void *from, size_t bytes) {
  if (rate <= 0 || bytes < least)
    return memmove(to, from, bytes);
  struct timespec begin;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  memmove(to, from, bytes);
  waitUntil(begin, (double)bytes / rate);
  return to;
}
