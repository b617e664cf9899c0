#include "net/credited_body.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace hearth::net {
namespace {

TEST(CreditedBodyTest, PiecesComeInOrderWhileThereIsCredit) {
  CreditedBody body(3, 100);
  EXPECT_FALSE(body.is_full());
  EXPECT_TRUE(body.add("ab"));
  EXPECT_FALSE(body.is_full());
  EXPECT_TRUE(body.add("cdef"));
  EXPECT_TRUE(body.is_full());
  EXPECT_EQ(body.take(), "ab");
  EXPECT_EQ(body.take(), "cdef") << "the last one overdraws";
  EXPECT_FALSE(body.has_credit());
  EXPECT_TRUE(body.add("g"));
  EXPECT_EQ(body.take(), std::nullopt);
  body.credit(3);
  EXPECT_FALSE(body.has_credit()) << "what was overdrawn is paid first";
  body.credit(1);
  EXPECT_EQ(body.take(), "g");
  EXPECT_TRUE(body.is_empty());
}

TEST(CreditedBodyTest, WithoutCreditItIsFull) {
  const CreditedBody body(0, 100);
  EXPECT_TRUE(body.is_full());
  EXPECT_TRUE(body.is_empty());
}

TEST(CreditedBodyTest, TheWholeBodyIsBounded) {
  CreditedBody body(100, 5);
  EXPECT_TRUE(body.add("abc"));
  EXPECT_EQ(body.take(), "abc");
  EXPECT_FALSE(body.add("def"));
  EXPECT_TRUE(body.add("de"));
  EXPECT_TRUE(body.add(""));
  EXPECT_EQ(body.take(), "de");
  EXPECT_TRUE(body.is_empty());
}

TEST(CreditedBodyTest, AuthorsMayGiveTheLargestCreditAgainAndAgain) {
  for (const std::size_t all : {std::size_t{INT64_MAX}, SIZE_MAX}) {
    CreditedBody body(all, 100);
    for (const char* piece : {"a", "b", "c"}) {
      EXPECT_TRUE(body.add(piece));
      EXPECT_EQ(body.take(), piece);
      body.credit(all);
    }
  }
}

}  // namespace
}  // namespace hearth::net
