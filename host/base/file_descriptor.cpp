#include "base/file_descriptor.hpp"

#include <fcntl.h>

#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>

namespace hearth {

void keep_from_children() {
  std::error_code failure;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", failure), end;
       !failure && entry != end; entry.increment(failure)) {
    const std::string name = entry->path().filename().native();
    int number = 0;
    std::from_chars(name.data(), name.data() + name.size(), number);
    if (number > STDERR_FILENO) ::fcntl(number, F_SETFD, FD_CLOEXEC);
  }
}

}  // namespace hearth
