#pragma once
// Permissions of files mean nothing to root. A test about them runs as somebody else for a moment.

#include <sys/fsuid.h>
#include <unistd.h>

#include <stdexcept>

namespace hearth::testing {

// While it lives, this thread meets files as the user "nobody" does, if the process is root's;
// otherwise it does nothing. Other threads are not affected, and the process is still root's to
// geteuid().
class Unprivileged {
 public:
  Unprivileged() {
    if (::geteuid() != 0) return;
    ::setfsuid(kNobody);
    // It tells the one before, and nothing of failure: only another call does.
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
