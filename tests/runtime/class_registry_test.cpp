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

TEST(ClassRegistryTest, AClassThatWasServedIsExpectedForEver) {
  testing::Script script;
  ClassRegistry classes;
  EXPECT_FALSE(classes.is_expected("counter"));
  classes.add({"counter", std::make_shared<testing::ScriptedClass>(script), {}});
  EXPECT_TRUE(classes.is_expected("counter"));
  classes.remove("counter");
  EXPECT_TRUE(classes.is_expected("counter")) << "while it is awaited";
  classes.give_up("counter");
  EXPECT_EQ(classes.find("counter"), nullptr);
  EXPECT_TRUE(classes.is_expected("counter")) << "when nobody waits any more";
  EXPECT_FALSE(classes.is_expected("other"));
}

TEST(ClassRegistryTest, AClassThatWasPutIsExpectedAsOneThatWasAdded) {
  testing::Script script;
  ClassRegistry classes;
  classes.put(std::make_shared<const ServedClass>(
      ServedClass{"counter", std::make_shared<testing::ScriptedClass>(script), {}}));
  classes.remove("counter");
  EXPECT_TRUE(classes.is_expected("counter"));
}

TEST(ClassRegistryTest, ExpectingAClassServesNothingAndAwaitsNothing) {
  testing::Script script;
  ClassRegistry classes;
  classes.expect("counter");
  EXPECT_TRUE(classes.is_expected("counter"));
  EXPECT_EQ(classes.find("counter"), nullptr);
  EXPECT_FALSE(classes.is_awaited("counter"));
  EXPECT_TRUE(classes.all().empty());
  EXPECT_TRUE(classes.add({"counter", std::make_shared<testing::ScriptedClass>(script), {}}))
      << "its segment is free";
}

}  // namespace
}  // namespace hearth::runtime
