#include "runtime/class_registry.hpp"

#include "fakes.hpp"

#include <gtest/gtest.h>

namespace hearth::runtime {
namespace {

TEST(ClassRegistryTest, ASegmentBelongsToTheFirstWhoAddsIt) {
  testing::Script script;
  ClassRegistry classes;
  const auto counter = std::make_shared<testing::ScriptedClass>(script);
  EXPECT_TRUE(classes.add({"counter", counter, {}}));
  EXPECT_FALSE(classes.add({"counter", std::make_shared<testing::ScriptedClass>(script), {}}));
  EXPECT_EQ(classes.find("counter")->agent_class, counter);
  EXPECT_EQ(classes.find("other"), nullptr);
}

TEST(ClassRegistryTest, WhoeverUsesAClassKeepsItAfterItWasCleared) {
  testing::Script script;
  ClassRegistry classes;
  classes.add({"counter", std::make_shared<testing::ScriptedClass>(script), {}});
  const auto held = classes.find("counter");
  classes.clear();
  EXPECT_EQ(classes.find("counter"), nullptr);
  EXPECT_EQ(held->agent_class->name(), "Counter");
  EXPECT_TRUE(classes.all().empty());
}

}  // namespace
}  // namespace hearth::runtime
