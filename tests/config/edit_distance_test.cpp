#include "config/edit_distance.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace hearth::config {
namespace {

TEST(EditDistanceTest, CountsEachKindOfSlipOnce) {
  EXPECT_EQ(edit_distance("listen", "listen"), 0U);
  EXPECT_EQ(edit_distance("lisen", "listen"), 1U);    // missing
  EXPECT_EQ(edit_distance("listenn", "listen"), 1U);  // one too many
  EXPECT_EQ(edit_distance("lisken", "listen"), 1U);   // wrong
  EXPECT_EQ(edit_distance("litsen", "listen"), 1U);   // swapped
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(NearestTest, FindsTheOneWithTheFewestMistakes) {
  constexpr std::array<std::string_view, 4> kKeys = {"max_frame", "max_body", "max_name", "listen"};
  EXPECT_EQ(nearest("max_frames", kKeys), "max_frame");
  EXPECT_EQ(nearest("max-name", kKeys), "max_name");
  EXPECT_EQ(nearest("lsiten", kKeys), "listen");
}

TEST(NearestTest, OffersNothingThatIsNoSlip) {
  constexpr std::array<std::string_view, 3> kKeys = {"listen", "data", "log"};
  EXPECT_EQ(nearest("frobnicate", kKeys), "");
  EXPECT_EQ(nearest("", kKeys), "");
  EXPECT_EQ(nearest("xyz", kKeys), "");
  EXPECT_EQ(nearest(std::string(1'000'000, 'a'), kKeys), "");
}

}  // namespace
}  // namespace hearth::config
