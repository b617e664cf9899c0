// Loaded into a server (LD_PRELOAD): records its calls of the kernel's timers, and plays a machine
// that is suspended.
//
// Each call of timerfd_settime appends a line with the thread's name to the file that TIME_RECORD
// names.
// SIGRTMIN: the machine was suspended for TIME_SUSPENSION seconds. CLOCK_BOOTTIME with its timers
// and the wall clock have gone on; CLOCK_MONOTONIC has stood still. Send it while the server waits.
// TIME_AHEAD: the wall clock is so many seconds ahead of the machine's.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_DESCRIPTORS 1024

static _Atomic long slept;                   /* seconds */
static _Atomic long ahead;                   /* seconds */
static _Atomic int is_boot[MAX_DESCRIPTORS]; /* a timer of CLOCK_BOOTTIME */
static struct itimerspec
    moments[MAX_DESCRIPTORS]; /* what it was last set to, as the server sees time */

static int set_for_real(int descriptor, int flags, const struct itimerspec* value,
                        struct itimerspec* old) {
  struct itimerspec real = *value;
  if (descriptor < MAX_DESCRIPTORS && is_boot[descriptor] && (flags & TFD_TIMER_ABSTIME) &&
      real.it_value.tv_sec != 0) {
    real.it_value.tv_sec -= slept;
    if (real.it_value.tv_sec < 0) real.it_value = (struct timespec){0, 1};
  }
  return (int)syscall(SYS_timerfd_settime, descriptor, flags, &real, old);
}

static void wake_up(int signal_number) {
  (void)signal_number;
  slept += atol(getenv("TIME_SUSPENSION"));
  for (int i = 0; i < MAX_DESCRIPTORS; ++i)
    if (is_boot[i]) set_for_real(i, TFD_TIMER_ABSTIME, &moments[i], NULL);
}

__attribute__((constructor)) static void prepare(void) {
  if (getenv("TIME_SUSPENSION") != NULL) signal(SIGRTMIN, wake_up);
  if (getenv("TIME_AHEAD") != NULL) ahead = atol(getenv("TIME_AHEAD"));
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  /* Not looked up with dlsym(): AddressSanitizer asks for the time before it can allocate. */
  const int result = (int)syscall(SYS_clock_gettime, clock, now);
  if (clock == CLOCK_BOOTTIME || clock == CLOCK_REALTIME) now->tv_sec += slept;
  if (clock == CLOCK_REALTIME) now->tv_sec += ahead;
  return result;
}

int timerfd_create(int clock, int flags) {
  const int descriptor = (int)syscall(SYS_timerfd_create, clock, flags);
  if (descriptor >= 0 && descriptor < MAX_DESCRIPTORS)
    is_boot[descriptor] = clock == CLOCK_BOOTTIME;
  return descriptor;
}

int timerfd_settime(int descriptor, int flags, const struct itimerspec* value,
                    struct itimerspec* old) {
  const char* const path = getenv("TIME_RECORD");
  if (path != NULL) {
    char line[32] = "";
    prctl(PR_GET_NAME, line);
    strcat(line, "\n");
    const int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || write(file, line, strlen(line)) < 0) abort();
    close(file);
  }
  if (descriptor < MAX_DESCRIPTORS) moments[descriptor] = *value;
  return set_for_real(descriptor, flags, value, old);
}
