#pragma once
// Permissions of files do not bind root. A test about them runs as another user for a moment.

#include <sys/fsuid.h>
#include <unistd.h>

#include <stdexcept>

namespace hearth::testing {

// In a process of root: while the object lives, this thread opens files as the user with the id
// 65534 does. Otherwise the object does nothing. Other threads are not affected, and geteuid()
// still returns root.
class Unprivileged {
 public:
  Unprivileged() {
    if (::geteuid() != 0) return;
    ::setfsuid(kNobody);
    // It returns the earlier id, and no error: only a second call shows whether it worked.
    if (::setfsuid(kNobody) != static_cast<int>(kNobody))
      throw std::runtime_error("cannot become nobody");
  }
  ~Unprivileged() { ::setfsuid(::geteuid()); }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  static constexpr uid_t kNobody = 65534;
};

}  // namespace hearth::testing
