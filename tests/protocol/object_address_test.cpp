#include "protocol/object_address.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::protocol {
namespace {

TEST(ObjectAddressTest, O18_AllSpellingsOfAnIdNameOneAgent) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"user-1", "user-1"},
      {"u%2f1", "u%2F1"},
      {"u%2F1", "u%2F1"},
      {"u/1", "u%2F1"},
      {"a%20b", "a%20b"},
      {"a b", "a%20b"},
      {"%61", "a"},
      {"100%", "100%25"},
      {"%2e%2e%2fx", "..%2Fx"},
      {"\xC3\xA9", "%C3%A9"},
      {"%c3%a9", "%C3%A9"},
      {"a:b@c!$&'()*+,;=~|[]", "a:b@c!$&'()*+,;=~|[]"},
      {"a\\b", "a%5Cb"},
      {"\"#<>?^`{}", "%22%23%3C%3E%3F%5E%60%7B%7D"},
  };
  for (const auto& [id, name] : kNames) {
    EXPECT_EQ(object_name(id), name);
    EXPECT_EQ(object_name_of_text(object_id(name)), name) << "the id comes back";
  }
}

TEST(ObjectAddressTest, O18_ANameThatNoClientCanUseIsNone) {
  constexpr std::size_t kMax = 12;
  EXPECT_EQ(reachable_object_name("\xC3\xA9\xC3\xA9", kMax).value(), "%C3%A9%C3%A9");
  constexpr std::pair<std::string_view, std::string_view> kRefused[] = {
      {"\xC3\xA9\xC3\xA9x", "the agent name is too long"},
      {"%00x", "the agent name contains a control character"},
      {"%FF", "the agent name is not valid UTF-8"},
      {"%2E%2E", "the agent name must not be . or .."},
      {"", "the agent name is empty"},
  };
  for (const auto& [id, why] : kRefused) {
    const auto name = reachable_object_name(id, kMax);
    ASSERT_TRUE(name.has_error()) << id;
    EXPECT_EQ(name.error().code, Errc::kInvalidArgument);
    EXPECT_EQ(name.error().message, why);
  }
}

TEST(ObjectAddressTest, O3_ArgumentsAreAnArrayOrOneValue) {
  constexpr std::pair<std::string_view, std::string_view> kArguments[] = {
      {"", "[]"},           {" \n", "[]"},
      {"[]", "[]"},         {" [1, 2] ", "[1, 2]"},
      {"5", "[5]"},         {"null", "[null]"},
      {"\"a\"", "[\"a\"]"}, {R"({"amount": 5})", R"([{"amount": 5}])"},
  };
  for (const auto& [json, arguments] : kArguments) {
    EXPECT_EQ(positional_arguments(json), arguments);
    EXPECT_EQ(read_object_arguments(json).value(), arguments);
    if (json.find_first_not_of(" \n") == std::string_view::npos) continue;
    const auto call = read_object_call(R"({"method":"m","args":)" + std::string(json) + "}");
    EXPECT_EQ(call.value().arguments, arguments);
  }
}

TEST(ObjectAddressTest, ACallNamesItsMethodAndMayLackArguments) {
  const auto call = read_object_call(R"({"other":1,"method":"a\u0062"})");
  EXPECT_EQ(call.value().method, "ab");
  EXPECT_EQ(call.value().arguments, "[]");
  for (const std::string_view wrong : {"", "[]", "{", R"({"args":[]})", R"({"method":5})", "\xff"})
    EXPECT_EQ(read_object_call(wrong).error().code, Errc::kInvalidArgument) << wrong;
  for (const std::string_view wrong : {"{", "a", "\xff", "[1,"})
    EXPECT_EQ(read_object_arguments(wrong).error().code, Errc::kInvalidArgument) << wrong;
}

TEST(ObjectAddressTest, AnswersHaveOneShape) {
  EXPECT_EQ(object_success("5"), R"({"success":true,"data":5,"result":5})");
  EXPECT_EQ(object_success(""), R"({"success":true,"data":null,"result":null})");
  EXPECT_EQ(object_data("[]"), R"({"success":true,"data":[]})");
  EXPECT_EQ(object_failure("c", "a \"b\"", true),
            R"({"success":false,"error":"a \"b\"","code":"c","retryable":true})");
  EXPECT_TRUE(object_failure("c", "d", false).ends_with(R"("retryable":false})"));
}

}  // namespace
}  // namespace hearth::protocol
