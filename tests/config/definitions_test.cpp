#include "config/definitions.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace hearth::config {
namespace {

TEST(DefinitionsTest, ADefinitionIsAClassFile) {
  const auto read =
      read_definition(R"({"class":"counter","idle_timeout_seconds":0.5,"alarms":{"max_alarms":5}})")
          .value();
  EXPECT_EQ(read.agent_class, "counter");
  EXPECT_EQ(
      read.text,
      R"({"alarms":{"max_alarms":5},"class":"counter","idle_timeout":"500ms","objects":true})");
  EXPECT_NE(read_definition(R"({"class":"c","objects":false})")->text.find("false"),
            std::string::npos);
}

TEST(DefinitionsTest, CredentialsAreNamesOfTheServerFile) {
  const ForClasses server{.secrets = {{"openai", "/run/openai.key"}}};
  EXPECT_TRUE(read_definition(R"({"class":"c","egress":{"secrets":["openai"]}})", server));
  const std::pair<const char*, const char*> cases[] = {
      {R"({"openai":"/etc/passwd"})", "names of credentials that the server file has"},
      {R"(["other"])", "the server file has no credential \"other\" in `secrets`"},
      {R"(["/etc/passwd"])", "names of credentials that the server file has"},
  };
  for (const auto& [secrets, reason] : cases) {
    const auto read = read_definition(
        R"({"class":"c","egress":{"secrets":)" + std::string(secrets) + "}}", server);
    EXPECT_NE(read.error().message.find(reason), std::string::npos) << read.error().message;
  }
}

TEST(DefinitionsTest, WhatIsNoneIsRefusedWithItsReason) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "the body must be"},
      {"[]", "the body must be"},
      {"{}", "class"},
      {R"({"class":"a b"})", "class"},
      {R"({"class":5})", "class"},
      {R"({"class":"counter","idle_timeout_seconds":"5"})", "idle_timeout_seconds"},
      {R"({"class":"counter","idle_timeout_seconds":-1})", "idle_timeout_seconds"},
      {R"({"class":"counter","idle_timeout_seconds":5,"idle_timeout":"5s"})", "in place of"},
      {R"({"class":"counter","idle_timeout":"soon"})", "idle_timeout"},
      {R"({"class":"counter","idle":1})", "unknown key"},
  };
  for (const auto& [body, reason] : cases) {
    const auto read = read_definition(body);
    EXPECT_EQ(read.error().code, Errc::kInvalidArgument) << body;
    EXPECT_NE(read.error().message.find(reason), std::string::npos) << read.error().message;
  }
  for (const char* body : {R"({"class":"counter","image":"node:22-alpine"})",
                           R"({"class":"counter","init_command":["node"]})"})
    EXPECT_EQ(read_definition(body).error().code, Errc::kUnsupported) << body;
}

TEST(DefinitionsTest, OptionsAreNotShownAndNamesAreNoPaths) {
  EXPECT_EQ(shown_definition(R"({"class":"c","options":{"key":"secret"}})"),
            Json::parse(R"({"class":"c"})"));
  const auto file = definition_file("/d", "counter");
  EXPECT_EQ(file.parent_path(), "/d");
  EXPECT_EQ(file.filename().string().find("counter"), std::string::npos);
  EXPECT_NE(file, definition_file("/d", "counter2"));
}

}  // namespace
}  // namespace hearth::config
