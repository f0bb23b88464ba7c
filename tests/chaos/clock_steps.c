// SPDX-License-Identifier: Apache-2.0
// A library preloaded in one process that changes what it reads from the clocks: the time of day
// jumps by up to a day in both directions, the monotonic clock forwards by up to an hour. The
// machine's clocks do not change.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static unsigned state;
static long ahead, forwards;

static unsigned next(void) {
  if (state == 0) {
    const char* seed = getenv("CHAOS_CLOCK_SEED");
    state = (seed ? (unsigned)atoi(seed) : 1U) | 1U;
  }
  state = state * 1664525U + 1013904223U;
  return state >> 8;
}

int clock_gettime(clockid_t clock, struct timespec* out) {
  const int result = (int)syscall(SYS_clock_gettime, clock, out);
  if (result == 0 && next() % 8 == 0) {
    ahead = (long)(next() % 172800U) - 86400;
    forwards += next() % 3600U;
  }
  if (result == 0) {
    out->tv_sec += clock == CLOCK_REALTIME ? ahead : clock == CLOCK_MONOTONIC ? forwards : 0;
  }
  return result;
}

time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(struct timeval* restrict out, void* restrict zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}
