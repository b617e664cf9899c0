// Tools: their schemas and kinds. How they run: turn_test.cpp.
#include <hearth/chat/tool.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace hearth::chat {
namespace {

struct Booking {
  std::string city;
  std::optional<int> nights;
  std::vector<std::string> guests;
  HEARTH_FIELDS(city, nights, guests)
  HEARTH_REQUIRED(city)
};

TEST(ToolTest, TheSchemaOfTheInputIsThatOfItsType) {
  const Json schema = json_schema<Booking>();
  EXPECT_EQ(schema.at("type"), "object");
  EXPECT_EQ(schema.at("required"), Json::array({"city"}));
  EXPECT_EQ(schema.at("properties").at("city").at("type"), "string");
  EXPECT_EQ(schema.at("properties").at("guests").at("type"), "array");
}

TEST(ToolTest, EachEffectHasItsKind) {
  EXPECT_STREQ(tool_kind_name(Effect::kRead), "chat.tool.read");
  EXPECT_STREQ(tool_kind_name(Effect::kIdempotent), "chat.tool.idempotent");
  EXPECT_STREQ(tool_kind_name(Effect::kKeyed), "chat.tool.keyed");
  EXPECT_STREQ(tool_kind_name(Effect::kUnsafe), "chat.tool.unsafe");
  EXPECT_STREQ(tool_kind_name(Effect::kProbe), "chat.tool.unsafe");
}

}  // namespace
}  // namespace hearth::chat
