#pragma once
// A class that is removed while its agents live, and comes back.

#include "runtime/fakes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>

namespace hearth::runtime::testing {

class AbsentClassTest : public ::testing::Test {
 protected:
  // Removes the class and its agents.
  void take_away() {
    served_ = shard_.runtime().classes().remove("counter");
    shard_.versions().leave(served_, EvictReason::kPluginRemoved, false);
    shard_.settle();
  }
  void put_back() {
    shard_.runtime().classes().put(served_);
    shard_.versions().class_is_back("counter");
    shard_.settle();
  }
  [[nodiscard]] std::ptrdiff_t seen(const std::string& what) const {
    return std::ranges::count(shard_.script.history, what);
  }

  std::shared_ptr<const ServedClass> served_;
  ShardFixture shard_;
};

}  // namespace hearth::runtime::testing
