#pragma once
// A process that may open only a few files more.

#include <sys/resource.h>
#include <unistd.h>

#include <vector>

namespace hearth::testing {

// While an object lives, this process can open at most so many more files.
class FewDescriptors {
 public:
  explicit FewDescriptors(unsigned left) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    std::vector<int> taken;  // free numbers below the highest one count too
    for (unsigned i = 0; i < left; ++i) taken.push_back(::dup(0));
    const int lowest_free = ::dup(0);
    ::close(lowest_free);
    for (const int fd : taken) ::close(fd);
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(lowest_free);
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace hearth::testing
