// Loaded into a server (LD_PRELOAD): holds back calls that wait for the device. As long as the pipe
// HELD_SYNCS is there, such a call writes "a sync is held back" to stderr and waits until a test
// opens the pipe for writing.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <stdio.h>
#include <stdlib.h>

int fsync(int descriptor);
int fdatasync(int descriptor);

static void wait_at_pipe(void) {
  const char* const path = getenv("HELD_SYNCS");
  if (path == NULL || access(path, F_OK) != 0) return;
  dprintf(2, "a sync is held back\n");
  const int pipe = open(path, O_RDONLY | O_CLOEXEC);
  if (pipe >= 0) close(pipe);
}

#define HELD(CALL)                            \
  int CALL(int descriptor) {                  \
    int (*real)(int);                         \
    *(void**)&real = dlsym(RTLD_NEXT, #CALL); \
    wait_at_pipe();                           \
    return real(descriptor);                  \
  }
HELD(fsync)
HELD(fdatasync)
