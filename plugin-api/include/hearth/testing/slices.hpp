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

// Lends copies of exactly the right size. recall() overwrites what was lent with 0xDD; under
// AddressSanitizer it is freed at once, so that the first wrong read is reported where it happens.
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

  void recall() noexcept { recall_first(lent_.size()); }

  // Recalls, at its end, what was lent before it began: a function of the host may be given a part
  // of that.
  class RecallAtEnd {
   public:
    explicit RecallAtEnd(Slices& slices) : slices_(slices), count_(slices.lent_.size()) {}
    RecallAtEnd(const RecallAtEnd&) = delete;
    RecallAtEnd& operator=(const RecallAtEnd&) = delete;
    ~RecallAtEnd() { slices_.recall_first(count_); }

   private:
    Slices& slices_;
    const std::size_t count_;
  };

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

  void recall_first(std::size_t count) noexcept {
    const auto end = lent_.begin() + static_cast<std::ptrdiff_t>(std::min(count, lent_.size()));
    for (auto buffer = lent_.begin(); buffer != end; ++buffer) {
      std::fill_n(buffer->bytes.get(), buffer->size, '\xDD');
      if (kKept > 0) recalled_.push_back(std::move(*buffer));
    }
    lent_.erase(lent_.begin(), end);
    while (recalled_.size() > kKept) recalled_.pop_front();
  }

  std::vector<Buffer> lent_;
  std::deque<Buffer> recalled_;
};

}  // namespace hearth::testing
