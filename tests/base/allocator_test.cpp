#include "base/allocator.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>

namespace hearth {
namespace {

TEST(AllocatorTest, CountsWhatIsAllocatedOrSaysNothing) {
  constexpr std::size_t kBytes = 100'000;
  const std::size_t before = allocated_bytes();
  const auto block = std::make_unique<std::byte[]>(kBytes);
  EXPECT_GE(allocated_bytes(), before == 0 ? 0 : before + kBytes) << "0: of a sanitizer";
}

}  // namespace
}  // namespace hearth
