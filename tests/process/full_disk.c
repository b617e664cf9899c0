// Loaded into a server (LD_PRELOAD): a disk that is full below the directory FULL_DISK as long as
// the file FULL_DISK_WHILE is there.
//
//   fails with ENOSPC   growth of a file, a new directory, a second name of a file
//   works               a new file, unless FULL_DISK_INODES is set: only blocks are missing;
//                       overwriting the bytes of a file, shrinking it, removing it
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_full(void) {
  const char* const marker = getenv("FULL_DISK_WHILE");
  const int kept = errno;
  const int full = marker != NULL && access(marker, F_OK) == 0;
  errno = kept;
  return full;
}

static int is_below(const char* path) {
  const char* const directory = getenv("FULL_DISK");
  const size_t length = directory == NULL ? 0 : strlen(directory);
  return length > 0 && strncmp(path, directory, length) == 0 && path[length] == '/';
}

// Of a path as it is given, in a directory that is there.
static int is_path_below(const char* path) {
  char parent[PATH_MAX];
  char real[PATH_MAX];
  if (snprintf(parent, sizeof parent, "%s", path) >= PATH_MAX) return 0;
  char* const slash = strrchr(parent, '/');
  if (slash == NULL) return 0;
  slash[1] = '\0';
  const int kept = errno;
  const int below = realpath(parent, real) != NULL && is_below(strcat(real, "/"));
  errno = kept;
  return below;
}

static int needs_room(const char* path) {
  struct stat status;
  const int kept = errno;
  const int is_new = lstat(path, &status) != 0;
  errno = kept;
  return is_new && is_full() && is_path_below(path);
}

static int refuse(void) {
  errno = ENOSPC;
  return -1;
}

// Whether the file would have to be longer than it is.
static int cannot_reach(int descriptor, off_t end) {
  char link[64];
  char path[PATH_MAX];
  struct stat status;
  if (!is_full()) return 0;
  const int kept = errno;
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  const int cannot = is_below(path) && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
                     end > status.st_size;
  errno = kept;
  return cannot;
}

static off_t position(int descriptor) {
  struct stat status;
  const int kept = errno;
  const int flags = fcntl(descriptor, F_GETFL);
  off_t at = lseek(descriptor, 0, SEEK_CUR);
  if (flags >= 0 && (flags & O_APPEND) != 0 && fstat(descriptor, &status) == 0) at = status.st_size;
  errno = kept;
  return at;
}

#define REAL(CALL, ...)            \
  static int (*real)(__VA_ARGS__); \
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, #CALL)

#define OPENS(CALL)                                                                       \
  int CALL(const char* path, int flags, ...) {                                            \
    REAL(CALL, const char*, int, ...);                                                    \
    va_list more;                                                                         \
    va_start(more, flags);                                                                \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;  \
    va_end(more);                                                                         \
    if ((flags & O_CREAT) != 0 && getenv("FULL_DISK_INODES") != NULL && needs_room(path)) \
      return refuse();                                                                    \
    return real(path, flags, mode);                                                       \
  }
OPENS(open)
OPENS(open64)

#define MAKES_TEMPORARY(CALL)                                                       \
  int CALL(char* template, int flags) {                                             \
    REAL(CALL, char*, int);                                                         \
    if (getenv("FULL_DISK_INODES") != NULL && is_full() && is_path_below(template)) \
      return refuse();                                                              \
    return real(template, flags);                                                   \
  }
MAKES_TEMPORARY(mkostemp)
MAKES_TEMPORARY(mkostemp64)

int mkdir(const char* path, mode_t mode) {
  REAL(mkdir, const char*, mode_t);
  return needs_room(path) ? refuse() : real(path, mode);
}

int link(const char* from, const char* to) {
  REAL(link, const char*, const char*);
  return needs_room(to) ? refuse() : real(from, to);
}

#define TRUNCATES(CALL, SIZE)                                                  \
  int CALL(int descriptor, SIZE size) {                                        \
    REAL(CALL, int, SIZE);                                                     \
    return cannot_reach(descriptor, size) ? refuse() : real(descriptor, size); \
  }
TRUNCATES(ftruncate, off_t)
TRUNCATES(ftruncate64, off64_t)

ssize_t write(int descriptor, const void* from, size_t size) {
  static ssize_t (*real)(int, const void*, size_t);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "write");
  if (is_full() && cannot_reach(descriptor, position(descriptor) + (off_t)size)) return refuse();
  return real(descriptor, from, size);
}

#define WRITES_AT(CALL, OFFSET)                                                           \
  ssize_t CALL(int descriptor, const void* from, size_t size, OFFSET at) {                \
    static ssize_t (*real)(int, const void*, size_t, OFFSET);                             \
    if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, #CALL);                           \
    return cannot_reach(descriptor, at + (off_t)size) ? refuse()                          \
                                                      : real(descriptor, from, size, at); \
  }
WRITES_AT(pwrite, off_t)
WRITES_AT(pwrite64, off64_t)
