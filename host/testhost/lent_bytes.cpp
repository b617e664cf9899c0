#include "testhost/lent_bytes.hpp"

#include <algorithm>
#include <utility>

// A function of AddressSanitizer's runtime. The library is built without it, and may be linked with
// it.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): its name
extern "C" __attribute__((weak)) void __asan_init();

namespace hearth::testhost {
namespace {

std::size_t most_kept() {
  constexpr std::size_t kKept = 64;
  return __asan_init != nullptr ? 0 : kKept;
}

}  // namespace

hearth_bytes LentBytes::lend(std::string_view bytes) {
  if (bytes.empty()) return {nullptr, 0};
  Buffer buffer = {std::make_unique<char[]>(bytes.size()), bytes.size()};
  std::copy(bytes.begin(), bytes.end(), buffer.bytes.get());
  lent_.push_back(std::move(buffer));
  return {lent_.back().bytes.get(), bytes.size()};
}

void LentBytes::recall_first(std::size_t count) noexcept {
  const auto end = lent_.begin() + static_cast<std::ptrdiff_t>(std::min(count, lent_.size()));
  for (auto buffer = lent_.begin(); buffer != end; ++buffer) {
    std::fill_n(buffer->bytes.get(), buffer->size, '\xDD');
    if (most_kept() > 0) recalled_.push_back(std::move(*buffer));
  }
  lent_.erase(lent_.begin(), end);
  while (recalled_.size() > most_kept()) recalled_.pop_front();
}

}  // namespace hearth::testhost
