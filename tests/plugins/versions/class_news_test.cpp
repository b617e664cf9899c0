#include "plugins/versions/class_news.hpp"

#include "runtime/fakes.hpp"
#include "support/recording_logger.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace hearth::plugins {
namespace {

TEST(UnlistedKindsTest, ALimitOfAKindThatTheClassDoesNotListIsDoubtful) {
  runtime::testing::Script script;
  script.operations = {{"charge", durable::Effect::kUnsafe}};
  ClassVersion version;
  version.served = std::make_shared<const runtime::ServedClass>(
      runtime::ServedClass{"shop", std::make_shared<runtime::testing::ScriptedClass>(script), {}});
  hearth::testing::RecordingLogger logger;
  config::ClassConfig config;
  config.settings.operations.kinds["charge"].per_day = 1;
  version.settings = std::make_shared<const config::ClassConfig>(config);
  warn_of_unlisted_kinds(logger, version);
  EXPECT_TRUE(logger.events().empty());
  config.settings.operations.kinds["chrge"].per_day = 1;
  version.settings = std::make_shared<const config::ClassConfig>(config);
  warn_of_unlisted_kinds(logger, version);
  EXPECT_TRUE(logger.contains("config.doubtful"));
  EXPECT_TRUE(logger.contains("for them: chrge"));
}

}  // namespace
}  // namespace hearth::plugins
