// Loaded into a command (LD_PRELOAD): a file system that does not know RENAME_EXCHANGE.
#include <errno.h>
#include <stdio.h>

int renameat2(int from_directory, const char* from, int to_directory, const char* to,
              unsigned int flags) {
  if (flags == 0) return renameat(from_directory, from, to_directory, to);
  errno = EINVAL;
  return -1;
}
