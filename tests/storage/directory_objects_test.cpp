#include "storage/directory.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hearth::storage {
namespace {

class DirectoryObjectsTest : public ::testing::Test {
 protected:
  std::vector<std::string> names(std::string_view agent_class, const AgentKey& after = {},
                                 std::size_t limit = 100) {
    std::vector<std::string> found;
    for (const ObjectEntry& each : directory_.list_objects(agent_class, after, limit))
      found.push_back(each.key.agent_class + each.key.name);
    return found;
  }

  const testing::TempDirectory temp_;
  Directory directory_{temp_.path() / "host.db"};
};

TEST_F(DirectoryObjectsTest, AnObjectKeepsItsIdAndItsBeginning) {
  EXPECT_TRUE(directory_.record_object({"A", "x"}, "id-1", 100));
  EXPECT_FALSE(directory_.record_object({"A", "x"}, "id-2", 200));
  directory_.note_active({"A", "x"}, 300);
  directory_.note_active({"A", "y"}, 300);
  const auto found = directory_.object(AgentKey{"A", "x"}).value();
  EXPECT_EQ(found.uuid, "id-1");
  EXPECT_EQ(found.created_at_ms, 100);
  EXPECT_EQ(found.last_active_ms, 300);
  EXPECT_EQ(directory_.object(std::string_view("id-1"))->key, (AgentKey{"A", "x"}));
  EXPECT_FALSE(directory_.object(std::string_view("id-2")));
  EXPECT_FALSE(directory_.object(AgentKey{"A", "y"}));
}

TEST_F(DirectoryObjectsTest, O17_AListingGoesThroughAllClassesInPages) {
  int id = 0;
  for (const char* agent_class : {"B", "A"}) {
    for (const char* name : {"2", "1", "3"})
      directory_.record_object({agent_class, name}, std::to_string(id++), 1);
  }
  EXPECT_EQ(names(""), (std::vector<std::string>{"A1", "A2", "A3", "B1", "B2", "B3"}));
  EXPECT_EQ(names("", {"A", "2"}, 2), (std::vector<std::string>{"A3", "B1"}));
  EXPECT_EQ(names("B", {"B", "1"}), (std::vector<std::string>{"B2", "B3"}));
  EXPECT_EQ(names("B"), (std::vector<std::string>{"B1", "B2", "B3"}));
}

TEST_F(DirectoryObjectsTest, O15_WhatIsForgottenIsNoObjectAnyMore) {
  for (const char* name : {"1", "2"}) {
    directory_.record({"A", name}, 1);
    directory_.record_object({"A", name}, name, 1);
  }
  EXPECT_TRUE(directory_.forget({"A", "1"}));
  directory_.forget_condemned({"A", "2"});
  EXPECT_TRUE(names("").empty());
}

}  // namespace
}  // namespace hearth::storage
