#include "server/expected_classes.hpp"

#include "runtime/fakes.hpp"
#include "storage/directory.hpp"
#include "support/recording_logger.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>

namespace hearth::server {
namespace {

class ExpectedClassesTest : public ::testing::Test {
 protected:
  // A life of the server in which libraries have these classes.
  void live(std::initializer_list<std::string> served) {
    classes_ = std::make_unique<runtime::ClassRegistry>();
    config::ClassConfigs settings;
    for (const char* name : {"chat-room", "Never"}) settings[name].settings.kv.max_keys = 7;
    expect_classes(*classes_, data_, settings, logger_);
    for (const std::string& segment : served)
      classes_->add({segment, std::make_shared<runtime::testing::ScriptedClass>(script_), {}});
  }

  runtime::testing::Script script_;
  hearth::testing::TempDirectory directory_;
  storage::DataDirectory data_ = storage::DataDirectory::open(directory_.path() / "data").value();
  hearth::testing::RecordingLogger logger_;
  std::unique_ptr<runtime::ClassRegistry> classes_;
};

TEST_F(ExpectedClassesTest, AClassThatWasServedIsKnownForEverThoughItHasNoAgents) {
  live({});
  EXPECT_TRUE(classes_->is_expected("chat-room"));
  EXPECT_FALSE(classes_->had_library("chat-room")) << "it has settings, and no more";
  live({"chat-room"});
  for (int life = 0; life < 2; ++life) {
    live({});
    EXPECT_TRUE(classes_->had_library("ChatRoom")) << life;
    EXPECT_FALSE(classes_->had_library("never")) << life;
    EXPECT_TRUE(classes_->is_expected("never")) << life;
    EXPECT_EQ(classes_->last_settings("chat-room").kv.max_keys, 7U) << life;
  }
}

TEST_F(ExpectedClassesTest, AClassWithAgentsHadALibrary) {
  storage::Directory(data_.directory_path(), data_.directory_vfs()).record({"Counter", "a"}, 1);
  live({});
  EXPECT_TRUE(classes_->is_expected("counter"));
  EXPECT_TRUE(classes_->had_library("counter"));
}

TEST_F(ExpectedClassesTest, AClassWithoutSettingsAndAgentsIsNotExpectedForHavingBeenServed) {
  live({"counter"});
  live({});
  EXPECT_FALSE(classes_->is_expected("counter"));
}

}  // namespace
}  // namespace hearth::server
