#include "server/config_warnings.hpp"

#include "base/files.hpp"
#include "support/recording_logger.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>

namespace hearth::server {
namespace {

using std::filesystem::perms;

class ConfigWarningsTest : public ::testing::Test {
 protected:
  ConfigWarningsTest() { config_.server.data = directory_.path() / "data"; }

  std::filesystem::path put(const std::string& name, const std::string& text,
                            perms mode = perms{0600}) {
    const auto file = directory_.path() / name;
    EXPECT_TRUE(write_file_atomically(file, text, mode));
    return file;
  }
  runtime::ClassSettings& shop() { return config_.classes["Shop"].settings; }
  // Of all warnings, one after the other; the file of Shop is shop.yaml.
  std::string told() {
    if (config_.classes.contains("Shop")) config_.classes["Shop"].file = "shop.yaml";
    std::string text;
    for (const ConfigWarning& each : config_warnings(config_)) text += to_string(each) + '\n';
    return text;
  }

  testing::TempDirectory directory_;
  config::Config config_;
};

TEST_F(ConfigWarningsTest, AGoodConfigurationHasNone) {
  config_.server.auth.token_file = put("tokens", "0123456789abcdef-old");
  shop().auth.type = ProofKind::kToken;
  EXPECT_EQ(told(), "");
}

TEST_F(ConfigWarningsTest, FilesThatOthersReadAreNamed) {
  struct Row {
    const char* event;
    std::function<void(config::Config&, const std::filesystem::path&)> use;
    perms wrong{0640};
  };
  const Row rows[] = {
      {"admin.token_readable",
       [](auto& it, const auto& file) { it.server.admin.token_file = file; }},
      {"admin.token_readable",
       [](auto& it, const auto& file) { it.server.objects.token_file = file; }},
      {"auth.tokens_readable",
       [](auto& it, const auto& file) { it.server.auth.token_file = file; }},
      {"server.secret_readable",
       [](auto& it, const auto& file) { it.server.secrets["openai"] = file; }, perms{0604}},
      {"class.secret_readable",
       [](auto& it, const auto& file) {
         it.classes["Shop"].settings.egress.secrets["openai"] = file;
       }},
  };
  for (const Row& row : rows) {
    const config::Config before = config_;
    row.use(config_, put("file", "s3cret-0123456789", row.wrong));
    EXPECT_NE(told().find(std::string("chmod 600 the file (") + row.event), std::string::npos)
        << row.event << told();
    EXPECT_EQ(told().find("s3cret"), std::string::npos);
    std::filesystem::permissions(directory_.path() / "file", perms{0600});
    EXPECT_EQ(told(), "") << row.event;
    std::filesystem::remove(directory_.path() / "file");
    EXPECT_EQ(told(), "") << row.event;
    config_ = before;
  }
}

TEST_F(ConfigWarningsTest, TheDataDirectoryIsForTheServerAlone) {
  EXPECT_EQ(told(), "") << "there is none";
  std::filesystem::create_directory(config_.server.data);
  for (const unsigned mode : {0755U, 0750U, 0701U, 0720U}) {
    std::filesystem::permissions(config_.server.data, perms{mode});
    EXPECT_NE(told().find("(server.data_readable data="), std::string::npos) << mode;
  }
  std::filesystem::permissions(config_.server.data, perms{0700});
  EXPECT_EQ(told(), "");
  (void)put("data/admin.token", "0123456789abcdef", perms{0644});
  EXPECT_NE(told().find("admin.token_readable"), std::string::npos) << "the server's own";
}

TEST_F(ConfigWarningsTest, KeysThatOthersCanReadAndSignWith) {
  struct Case {
    std::string text;
    bool is_secret;
  };
  const Case cases[] = {
      {R"({"keys":[{"kty":"EC"},{"kty":"oct","k":"c2VjcmV0"}]})", true},
      {R"({"kty":"oct","k":"c2VjcmV0"})", true},
      {R"({"keys":[{"kty":"OKP","x":"a","d":"b"}]})", true},
      {"-----BEGIN PRIVATE KEY-----\n", true},
      {R"({"keys":[{"kty":"OKP","x":"a"}]})", false},
      {"-----BEGIN PUBLIC KEY-----\n", false},
      {"[1]", false},
      {R"({"keys":1})", false},
  };
  for (const Case& each : cases) {
    for (const bool is_readable : {true, false}) {
      config_.server.auth.keys_file = put("keys", each.text, perms{is_readable ? 0644U : 0600U});
      EXPECT_EQ(told().find("auth.keys_readable") != std::string::npos,
                each.is_secret && is_readable)
          << each.text;
    }
  }
}

TEST_F(ConfigWarningsTest, AClassThatNoClientReaches) {
  const std::string closed = " (class.nobody_may_connect class=Shop)\n";
  const auto is_closed = [&](AuthRules auth) {
    shop().auth = std::move(auth);
    return told().ends_with(closed) && told().starts_with("shop.yaml: its auth.");
  };
  EXPECT_TRUE(is_closed({.type = ProofKind::kToken, .name = {}}));
  EXPECT_TRUE(is_closed({.type = ProofKind::kJwt, .name = {}}));
  EXPECT_TRUE(is_closed({.type = ProofKind::kObjectsKey, .name = {}}));
  EXPECT_TRUE(is_closed({.type = std::nullopt, .name = "{sub}"}));
  EXPECT_FALSE(is_closed({.type = std::nullopt, .name = ""}));
}

TEST_F(ConfigWarningsTest, ObjectsThatAreGuardedAtOneDoorOnly) {
  const auto is_open = [this] { return told().find("class.objects_open") != std::string::npos; };
  shop().is_object = true;
  shop().auth.type = ProofKind::kNone;
  EXPECT_FALSE(is_open()) << "there is no key";
  config_.server.objects.token_file = put("key", "0123456789abcdef");
  EXPECT_TRUE(is_open());
  shop().auth.type = std::nullopt;
  EXPECT_TRUE(is_open()) << "as the server says";
  shop().auth.type = ProofKind::kObjectsKey;
  EXPECT_FALSE(is_open());
  shop().auth.type = ProofKind::kNone;
  shop().is_object = false;
  EXPECT_FALSE(is_open());
}

TEST_F(ConfigWarningsTest, TheLogHasTheSameWords) {
  config_.server.objects.all_classes = true;
  shop().auth.type = ProofKind::kJwt;
  hearth::testing::RecordingLogger logger;
  const auto warnings = config_warnings(config_);
  for (const ConfigWarning& each : warnings) write(each, logger);
  EXPECT_TRUE(logger.contains("warn config.doubtful advice=")) << told();
  EXPECT_TRUE(logger.contains("warn class.nobody_may_connect class=Shop file="));
  EXPECT_EQ(logger.count(""), warnings.size());
}

}  // namespace
}  // namespace hearth::server
