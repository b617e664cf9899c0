// Loaded into a server (LD_PRELOAD): records which threads wait for the device. Each call appends a
// line "<thread's name> <call>" to the file that SYNC_RECORD names.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int fsync(int descriptor);
int fdatasync(int descriptor);
int syncfs(int descriptor);
int ftruncate(int descriptor, off_t size);
int ftruncate64(int descriptor, off64_t size);
int msync(void* from, size_t bytes, int flags);
int sync_file_range(int descriptor, off64_t from, off64_t bytes, unsigned int flags);

static void record(const char* call) {
  const char* const path = getenv("SYNC_RECORD");
  char name[17] = "";
  char line[64];
  if (path == NULL) return;
  prctl(PR_GET_NAME, name);
  const int size = snprintf(line, sizeof line, "%s %s\n", name, call);
  const int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || write(file, line, (size_t)size) != size) abort();
  close(file);
}

#define RECORDED(CALL)                        \
  int CALL(int descriptor) {                  \
    int (*real)(int);                         \
    *(void**)&real = dlsym(RTLD_NEXT, #CALL); \
    record(#CALL);                            \
    return real(descriptor);                  \
  }
RECORDED(fsync)
RECORDED(fdatasync)
RECORDED(syncfs)

#define RECORDED_WITH_SIZE(CALL, SIZE)        \
  int CALL(int descriptor, SIZE size) {       \
    int (*real)(int, SIZE);                   \
    *(void**)&real = dlsym(RTLD_NEXT, #CALL); \
    record(#CALL);                            \
    return real(descriptor, size);            \
  }
RECORDED_WITH_SIZE(ftruncate, off_t)
RECORDED_WITH_SIZE(ftruncate64, off64_t)

int msync(void* from, size_t bytes, int flags) {
  int (*real)(void*, size_t, int);
  *(void**)&real = dlsym(RTLD_NEXT, "msync");
  record("msync");
  return real(from, bytes, flags);
}

int sync_file_range(int descriptor, off64_t from, off64_t bytes, unsigned int flags) {
  int (*real)(int, off64_t, off64_t, unsigned int);
  *(void**)&real = dlsym(RTLD_NEXT, "sync_file_range");
  record("sync_file_range");
  return real(descriptor, from, bytes, flags);
}
