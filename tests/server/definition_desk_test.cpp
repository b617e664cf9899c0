#include "server/definition_desk.hpp"

#include "config/definitions.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::server {
namespace {

using Mode = DefinitionDesk::Mode;

class DefinitionDeskTest : public ::testing::Test {
 protected:
  DefinitionDeskTest() { std::filesystem::create_directory(path("classes")); }
  ~DefinitionDeskTest() override { desk_.stop(); }

  [[nodiscard]] std::filesystem::path path(const std::string& name) const {
    return directory_.path() / name;
  }
  // "ok", or the word for why not.
  std::string set(const std::string& body, Mode mode = Mode::kCreate) {
    std::promise<std::string> told;
    desk_.set("", body, mode, [&told](const Result<std::string>& answer) {
      told.set_value(answer ? "ok" : std::string(to_string(answer.error().code)));
    });
    return told.get_future().get();
  }
  [[nodiscard]] std::optional<std::string> kept(const std::string& segment) const {
    std::ifstream file(config::definition_file(config::definitions_directory(path("")), segment));
    if (!file) return std::nullopt;
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  testing::TempDirectory directory_;
  std::unique_ptr<Logger> logger_ = make_null_logger();
  DefinitionDesk::Served served_;
  std::vector<std::string> reloaded_;
  plugins::ReloadOutcomes outcomes_;  // of the next rollouts
  DefinitionDesk desk_{
      path(""),
      path("classes"),
      {.secrets = {{"openai", "/run/openai.key"}}},
      [this] { return served_; },
      [this](const std::string& agent_class, const DefinitionDesk::Reloaded& done) {
        reloaded_.push_back(agent_class);
        done(std::exchange(outcomes_, {}));
      },
      *logger_};
};

TEST_F(DefinitionDeskTest, WhatAKilledServerWasWritingIsRemovedAtTheNextStart) {
  const auto directory = config::definitions_directory(path(""));
  std::filesystem::create_directories(directory);
  const auto file = config::definition_file(directory, "counter");
  std::ofstream(file.native() + ".unfinished-x1Y2z3") << "class: C";
  std::ofstream(file) << "class: Counter\n";
  DefinitionDesk next(path(""), path("classes"), {}, [this] { return served_; }, {}, *logger_);
  next.stop();
  EXPECT_FALSE(std::filesystem::exists(file.native() + ".unfinished-x1Y2z3"));
  EXPECT_TRUE(kept("counter"));
}

TEST_F(DefinitionDeskTest, OnlyCredentialsOfTheServerFileMayBeUsed) {
  const std::string begin = R"({"class":"counter","egress":{"allow":["evil.example"],"secrets":)";
  for (const char* secrets : {R"({"x":"/etc/hostname"})", R"({"openai":"openai"})", R"("openai")",
                              R"(["other"])", R"(["openai","/etc/hostname"])", "[1]"}) {
    EXPECT_EQ(set(begin + secrets + "}}"), "invalid_argument") << secrets;
    EXPECT_FALSE(kept("counter")) << secrets;
  }
  EXPECT_EQ(set(begin + R"(["openai"]}})"), "ok");
  EXPECT_TRUE(kept("counter"));
}

TEST_F(DefinitionDeskTest, AnAliasThatLeadsToAServedClassIsRefusedAndNothingIsWritten) {
  served_ = {{"chat-room", "ChatRoom"}};
  EXPECT_EQ(set(R"({"class":"counter","aliases":["chat-room"]})"), "invalid_argument");
  EXPECT_FALSE(kept("counter"));
  EXPECT_TRUE(reloaded_.empty());
  EXPECT_EQ(set(R"({"class":"counter","aliases":["another"]})"), "ok");
  EXPECT_TRUE(kept("counter"));
  EXPECT_EQ(reloaded_, std::vector<std::string>({"counter"}));
}

TEST_F(DefinitionDeskTest, WhatIsWrongTogetherWithAnotherDefinitionLeavesWhatWasThere) {
  ASSERT_EQ(set(R"({"class":"one","aliases":["shared"]})"), "ok");
  ASSERT_EQ(set(R"({"class":"two"})"), "ok");
  const auto before = kept("two");
  EXPECT_EQ(set(R"({"class":"two","aliases":["shared"]})", Mode::kReplace), "invalid_argument");
  EXPECT_EQ(kept("two"), before);
  const std::string large(1'100'000, 'x');
  EXPECT_EQ(set(R"({"class":"two","options":{"a":")" + large + R"("}})", Mode::kReplace),
            "invalid_argument");
  EXPECT_EQ(kept("two"), before);
}

TEST_F(DefinitionDeskTest, WhatTheReloaderRefusesIsPutBack) {
  ASSERT_EQ(set(R"({"class":"two"})"), "ok");
  const auto before = kept("two");
  const auto refuse = [this](const std::string& segment) {
    outcomes_ = {{.file = config::definition_file(config::definitions_directory(path("")), segment),
                  .what = plugins::ReloadOutcome::What::kRefused}};
  };
  refuse("two");
  EXPECT_EQ(set(R"({"class":"two","idle_timeout":"5s"})", Mode::kReplace), "invalid_argument");
  EXPECT_EQ(kept("two"), before);
  EXPECT_EQ(reloaded_.size(), 3U) << "its mistakes are told no more";
  refuse("three");
  EXPECT_EQ(set(R"({"class":"three"})"), "invalid_argument");
  EXPECT_FALSE(kept("three"));
}

}  // namespace
}  // namespace hearth::server
