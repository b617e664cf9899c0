#pragma once
// Owns one file descriptor.

#include <unistd.h>

#include <utility>

namespace hearth {

// Lifetime  Closed when destroyed. -1 is "none".
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~FileDescriptor() { reset(); }
  FileDescriptor(FileDescriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      reset();
      descriptor_ = std::exchange(other.descriptor_, -1);
    }
    return *this;
  }

  [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }
  [[nodiscard]] int get() const { return descriptor_; }
  void reset() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }

 private:
  int descriptor_ = -1;
};

// From now on no process that this one starts inherits its descriptors, except the three standard
// ones. For those that libraries or the process's parent have opened without close-on-exec. What
// the host opens itself is made with it, because another thread may start a process at any moment.
//   Failure   Without /proc it does nothing.
void keep_from_children();

}  // namespace hearth
