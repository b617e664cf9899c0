#include "protocol/request_query.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth::protocol {
namespace {

TEST(RequestQueryTest, FindsTheFirstOfSeveralValues) {
  EXPECT_EQ(query_value("a=1&b=2&a=3", "a", 10), "1");
  EXPECT_EQ(query_value("a=1&b=2&a=3", "b", 10), "2");
  EXPECT_EQ(query_value("a=1&b=2", "c", 10), std::nullopt);
}

TEST(RequestQueryTest, ResolvesPlusAndPercentInNamesAndValues) {
  EXPECT_EQ(query_value("q=a+b%20c%2Bd%3d", "q", 20), "a b c+d=");
  EXPECT_EQ(query_value("%71+x=1", "q x", 20), "1");
}

TEST(RequestQueryTest, KeepsAPercentSignThatEscapesNothing) {
  EXPECT_EQ(percent_decode("100%"), "100%");
  EXPECT_EQ(percent_decode("%zz%4"), "%zz%4");
  EXPECT_EQ(percent_decode("%+1%-1% 1"), "%+1%-1% 1");
  EXPECT_EQ(percent_decode("%%41"), "%A");
}

TEST(RequestQueryTest, DecodesOnlyOnce) {
  EXPECT_EQ(percent_decode("%252e"), "%2e");
}

TEST(RequestQueryTest, ReadsAPairWithoutEqualsAsEmpty) {
  EXPECT_EQ(query_value("flag&x=1", "flag", 10), "");
  EXPECT_EQ(query_value("flag=", "flag", 10), "");
  EXPECT_EQ(query_value("&&flag", "flag", 10), "");
  EXPECT_EQ(query_value("", "flag", 10), std::nullopt);
}

TEST(RequestQueryTest, SplitsAtTheFirstEqualsOnly) {
  EXPECT_EQ(query_value("a=b=c", "a", 10), "b=c");
}

TEST(RequestQueryTest, GivesNoValueAboveTheLimit) {
  EXPECT_EQ(query_value("a=12345", "a", 5), "12345");
  EXPECT_EQ(query_value("a=123456", "a", 5), std::nullopt);
}

TEST(ConnectionIdTest, IsTheClientsChoice) {
  EXPECT_EQ(connection_id("_pk=0f8fad5b-d9cb-469f-a165-70867728950e&x=1"),
            "0f8fad5b-d9cb-469f-a165-70867728950e");
  EXPECT_EQ(connection_id("x=1&_pk=my+tab"), "my tab");
}

TEST(ConnectionIdTest, TakesOneTo128Bytes) {
  EXPECT_EQ(connection_id("_pk="), std::nullopt);
  EXPECT_EQ(connection_id("x=1"), std::nullopt);
  const std::string longest(kMaxConnectionIdBytes, 'a');
  EXPECT_EQ(connection_id("_pk=" + longest), longest);
  EXPECT_EQ(connection_id("_pk=" + longest + "a"), std::nullopt);
}

TEST(ConnectionIdTest, CountsTheDecodedBytes) {
  std::string written;
  for (std::size_t i = 0; i < kMaxConnectionIdBytes; ++i) written += "%41";
  EXPECT_EQ(connection_id("_pk=" + written), std::string(kMaxConnectionIdBytes, 'A'));
}

TEST(ConnectionIdTest, RefusesWhatCannotBePrinted) {
  for (const char* query : {"_pk=a%00b", "_pk=%0a", "_pk=%7f", "_pk=%c3%a9", "_pk=%ff"}) {
    EXPECT_EQ(connection_id(query), std::nullopt) << query;
  }
}

TEST(TransportTest, IsOtherOnlyWhenNamed) {
  EXPECT_TRUE(asks_for_other_transport("_pk=1&__agents_transport=capnweb"));
  EXPECT_FALSE(asks_for_other_transport("_pk=1&__agents_transport="));
  EXPECT_FALSE(asks_for_other_transport("_pk=1"));
}

}  // namespace
}  // namespace hearth::protocol
