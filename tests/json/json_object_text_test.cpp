#include "json/json_object_text.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace hearth {
namespace {

TEST(JsonObjectTextTest, MembersStandInTheirOrder) {
  JsonObjectText inner;
  inner.number("n", -1).flag("is", true).flag("not", false);
  JsonObjectText object;
  object.text("t", "a \"b\"").json("inner", inner.take());
  EXPECT_EQ(object.take(), R"({"t":"a \"b\"","inner":{"n":-1,"is":true,"not":false}})");
}

TEST(JsonObjectTextTest, AnAbsentValueIsNull) {
  JsonObjectText object;
  object.text_or_null("a", std::nullopt).text_or_null("b", "x");
  object.number_or_null("c", std::nullopt).number_or_null("d", 0);
  object.json_or_null("e", std::nullopt).json_or_null("f", "[]");
  EXPECT_EQ(object.take(), R"({"a":null,"b":"x","c":null,"d":0,"e":null,"f":[]})");
}

TEST(JsonObjectTextTest, AnObjectMayBeEmpty) {
  EXPECT_EQ(JsonObjectText().take(), "{}");
}

}  // namespace
}  // namespace hearth
