/* A machine's clock that is set while a process runs: the time of day is moved by the seconds that a file holds. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static time_t moved_by(void) {
  const char *path = getenv("FLEETWRIGHT_CLOCK_MOVED_BY");
  FILE *file = path ? fopen(path, "r") : NULL;
  long seconds = 0;
  if (file) {
    if (fscanf(file, "%ld", &seconds) != 1) seconds = 0;
    fclose(file);
  }
  return seconds;
}

int clock_gettime(clockid_t id, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(id, now);
  if (result == 0 && id == CLOCK_REALTIME) now->tv_sec += moved_by();
  return result;
}
