#include "config/egress_section.hpp"

#include "config/class_file.hpp"
#include "config/config_files.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace hearth::config {
namespace {

using extensions::EgressSettings;

class EgressSectionTest : public ConfigFilesTest {
 protected:
  [[nodiscard]] std::string egress_mistake(const std::string& section) const {
    return class_mistake("class: c\negress: {" + section + "}\n");
  }
};

TEST_F(EgressSectionTest, PatternsAreCheckedWhenTheFileIsRead) {
  EXPECT_EQ(egress_mistake(R"(allow: ["http://a.example"])"),
            "classes/c.yaml:2:18: egress.allow: expected a list of hosts and networks such as "
            R"(["api.example.com", "*.example.com", "10.0.0.0/8"], found "http://a.example")");
  EXPECT_EQ(egress_mistake(R"(deny: ["10.0.0.0/40"])"),
            "classes/c.yaml:2:17: egress.deny: expected a list of hosts and networks such as "
            R"(["api.example.com", "*.example.com", "10.0.0.0/8"], found "10.0.0.0/40")");
}

TEST_F(EgressSectionTest, AProxyIsAnHttpUrlWithAPort) {
  for (const std::string proxy :
       {"proxy.example:3128", "https://proxy.example:3128", "http://proxy.example",
        "http://me:secret@proxy.example:3128", "http://proxy.example:3128/x"}) {
    EXPECT_EQ(egress_mistake("proxy: '" + proxy + "'"),
              "classes/c.yaml:2:17: egress.proxy: expected a proxy such as "
              "http://proxy.example:3128, found \"" +
                  proxy + "\"");
  }
}

TEST_F(EgressSectionTest, ACredentialsFileMustBeThereAndHoldOne) {
  EXPECT_EQ(egress_mistake("secrets: {key: missing}"),
            "classes/c.yaml:2:25: egress.secrets.key: cannot open classes/missing: No such file or "
            "directory");
  put("classes/key", "s3cret and more\n");
  EXPECT_EQ(egress_mistake("secrets: {key: key}"),
            "classes/c.yaml:2:25: egress.secrets.key: classes/key holds no credential: one line, "
            "\"Name: value\" or a token without spaces");
  EXPECT_EQ(egress_mistake("secrets: [key]"),
            "classes/c.yaml:2:19: egress.secrets: expected a mapping of names to files, found a "
            "list");
}

TEST_F(EgressSectionTest, TheServerFileHasCredentialsForDefinitions) {
  put("openai.key", "s3cret\n");
  put("server.yaml", "secrets: {openai: openai.key}\n");
  EXPECT_EQ(load().server.secrets.at("openai"), path("openai.key"));
  put("server.yaml", "secrets: {openai: gone.key}\n");
  const auto missing = load_config(path("server.yaml"));
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().front().message.find("secrets.openai: cannot open"), std::string::npos);
  EXPECT_TRUE(load_server_file(path("server.yaml"))) << "for commands that only look for a server";
  put("server.yaml", "secrets: [openai.key]\n");
  EXPECT_FALSE(load_config(path("server.yaml")));
}

TEST_F(EgressSectionTest, ADefinitionOnDiskUsesOnlyTheseCredentials) {
  put("key", "s3cret\n");
  const ForClasses server{.secrets = {{"openai", path("key")}}};
  put("definitions/c.yaml", R"({"class":"c","egress":{"secrets":["openai"]}})");
  const auto load_both = [&] {
    return load_class_files(path("classes"), false, {}, path("definitions"), {}, server);
  };
  ASSERT_TRUE(load_both());
  EXPECT_EQ(load_both()->at("c").settings.egress.secrets.at("openai"), path("key"));
  put("definitions/c.yaml", R"({"class":"c","egress":{"secrets":{"openai":"../key"}}})");
  EXPECT_FALSE(load_both());
}

TEST_F(EgressSectionTest, LimitsHaveTheirBoundsAndNames) {
  EXPECT_EQ(egress_mistake("limits: {per_day: 1}"),
            "classes/c.yaml:2:19: unknown key \"egress.limits.per_day\"; the keys here are "
            "requests_per_minute, concurrent and bytes_per_day");
  EXPECT_EQ(class_c("egress: {limits: {concurrent: 100000}}\n").settings.egress.limits.concurrent,
            100'000U);
  EXPECT_NE(egress_mistake("limits: {concurrent: 0}").find("egress.limits.concurrent"),
            std::string::npos);
}

// A version of settings is its text. The addresses that agents may reach are no part of a trial.
TEST_F(EgressSectionTest, TheTextOfSettingsHasNoneOfIt) {
  put("classes/key", "s3cret\n");
  const auto settings = class_c(
                            "egress: {allow: [a.example], secrets: {key: key}, "
                            "limits: {bytes_per_day: 1GiB}}\n")
                            .settings;
  EXPECT_EQ(settings_text(settings), "{}");
}

TEST_F(EgressSectionTest, ATextThatHasItIsReadWithoutItsFiles) {
  const auto read =
      read_settings_text(R"({"egress":{"allow":["a.example"],"secrets":{"key":"/gone"}}})").value();
  EXPECT_EQ(read.egress.secrets.at("key"), "/gone");
}

}  // namespace
}  // namespace hearth::config
