#pragma once
// Bytes that are lent and then made useless, so that a plugin which keeps a pointer is noticed.

#include <hearth/abi.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

namespace hearth::mock {

// Lends copies of exactly the right size. recall() overwrites them with 0xDD; in a program with
// AddressSanitizer they are freed at once, so that the first wrong read is reported where it
// happens.
class LentBytes {
 public:
  LentBytes() = default;
  LentBytes(const LentBytes&) = delete;
  LentBytes& operator=(const LentBytes&) = delete;
  ~LentBytes() { recall(); }

  [[nodiscard]] hearth_bytes lend(std::string_view bytes);
  void recall() noexcept { recall_first(count()); }

  // A function of the host may be given a part of what was lent before: that is recalled when the
  // function returns, and what the function has lent itself is not.
  [[nodiscard]] std::size_t count() const { return lent_.size(); }
  void recall_first(std::size_t count) noexcept;

 private:
  struct Buffer {
    std::unique_ptr<char[]> bytes;
    std::size_t size;
  };

  std::vector<Buffer> lent_;
  std::deque<Buffer> recalled_;  // the last ones, so that their memory is not used again soon
};

}  // namespace hearth::mock
