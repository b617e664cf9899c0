#pragma once
// Bytes that are lent and later made invalid, to find a plugin that keeps a pointer too long.

#include <hearth/abi.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

namespace hearth::testhost {

// Lends copies of exactly the right size. recall() overwrites them with 0xDD. In a program with
// AddressSanitizer it frees them at once, so that the first wrong read is reported where it
// happens.
class LentBytes {
 public:
  LentBytes() = default;
  LentBytes(const LentBytes&) = delete;
  LentBytes& operator=(const LentBytes&) = delete;
  ~LentBytes() { recall(); }

  [[nodiscard]] hearth_bytes lend(std::string_view bytes);
  void recall() noexcept { recall_first(count()); }

  // For a function of the host whose arguments point into bytes that were lent before. When it
  // returns, recall_first() takes back those older bytes, and not the bytes that the function has
  // lent itself.
  [[nodiscard]] std::size_t count() const { return lent_.size(); }
  void recall_first(std::size_t count) noexcept;

 private:
  struct Buffer {
    std::unique_ptr<char[]> bytes;
    std::size_t size;
  };

  std::vector<Buffer> lent_;
  std::deque<Buffer> recalled_;  // the latest ones, so that their memory is not reused soon
};

}  // namespace hearth::testhost
