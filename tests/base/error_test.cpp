#include "base/error.hpp"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string_view>

namespace hearth {
namespace {

TEST(ErrorTest, EveryCodeHasItsOwnName) {
  std::set<std::string_view> names;
  for (int code = 1; code <= 13; ++code) names.insert(to_string(static_cast<Errc>(code)));
  EXPECT_EQ(names.size(), 13U);
  EXPECT_EQ(to_string(Errc::kNotFound), "not_found");
}

TEST(ErrorTest, LookingAtAFailedResultWithoutAskingThrowsItsMessage) {
  const Result<int> failed = Error{Errc::kConflict, "taken"};
  try {
    static_cast<void>(failed.value());
    FAIL() << "value() returned";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "unchecked Result: taken");
  }
}

}  // namespace
}  // namespace hearth
