#include "storage/descriptors.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace hearth::storage {

bool can_open_files(unsigned count) {
  std::vector<int> taken;
  taken.reserve(count);
  bool are_there = true;
  while (are_there && taken.size() < count) {
    // It opens no file, so that a missing file does not look like a lack of descriptors.
    const int fd =
        taken.empty() ? ::eventfd(0, EFD_CLOEXEC) : ::fcntl(taken.front(), F_DUPFD_CLOEXEC, 0);
    if (fd >= 0) {
      taken.push_back(fd);
      continue;
    }
    are_there = errno != EMFILE && errno != ENFILE;
    break;
  }
  for (const int fd : taken) ::close(fd);
  return are_there;
}

}  // namespace hearth::storage
