#pragma once
// Bytes that are lent and then made useless, so that a plugin which keeps a pointer is noticed.

#include <hearth/abi.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::testing {

// Lends copies of exactly the right size. recall() overwrites what was lent with 0xDD; under AddressSanitizer
// it is freed at once, so that the first wrong read is reported where it happens.
class Slices {
 public:
  Slices() = default;
  Slices(const Slices&) = delete;
  Slices& operator=(const Slices&) = delete;
  ~Slices() { recall(); }

  [[nodiscard]] hearth_bytes lend(std::string_view bytes) {
    if (bytes.empty()) return {nullptr, 0};
    Buffer buffer = {std::make_unique<char[]>(bytes.size()), bytes.size()};
    std::copy(bytes.begin(), bytes.end(), buffer.bytes.get());
    lent_.push_back(std::move(buffer));
    return {lent_.back().bytes.get(), bytes.size()};
  }

  void recall() noexcept {
    for (Buffer& buffer : lent_) {
      std::fill_n(buffer.bytes.get(), buffer.size, '\xDD');
      if (kKept > 0) recalled_.push_back(std::move(buffer));
    }
    lent_.clear();
    while (recalled_.size() > kKept) recalled_.pop_front();
  }

 private:
  struct Buffer {
    std::unique_ptr<char[]> bytes;
    std::size_t size;
  };
#if defined(__SANITIZE_ADDRESS__)
  static constexpr std::size_t kKept = 0;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  static constexpr std::size_t kKept = 0;
#else
  static constexpr std::size_t kKept = 64;
#endif
#else
  static constexpr std::size_t kKept = 64;
#endif

  std::vector<Buffer> lent_;
  std::deque<Buffer> recalled_;
};

}  // namespace hearth::testing
