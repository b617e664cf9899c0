#include "extensions/abi_fixture.hpp"
#include "extensions/basics.hpp"
#include "extensions/sub_agents_port.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::extensions {
namespace {

using namespace testing;

// Writes down what it is asked.
class FakeSubAgents final : public SubAgents {
 public:
  std::vector<std::string> asked;
  std::vector<SubAgent> found;

  std::vector<SubAgent> list(const storage::AgentKey& above, const storage::AgentKey& after,
                             std::size_t limit) override {
    asked.push_back("list " + above.name + " after " + after.agent_class + " " + after.name + " " +
                    std::to_string(limit));
    return found;
  }
  Result<void> destroy(const storage::AgentKey& key, AgentHandle by) override {
    asked.push_back("destroy " + key.agent_class + " " + key.name + " by " + std::to_string(by));
    if (key.own_name() == "nobody") return Error{Errc::kNotFound, "there is no such sub-agent"};
    return {};
  }
};

// Made before the fixture that lends it to its agent.
struct OnePort {
  FakeSubAgents port_;
};

class SubAgentsExtensionTest : OnePort, public AbiHostTest {
 protected:
  SubAgentsExtensionTest() : AbiHostTest({.sub_agents = &port_}) {}

  std::string list(const hearth_subagents_filter* filter) { return lent(table_.list, filter); }
  hearth_status destroy(std::string_view agent_class, std::string_view name) {
    return table_.destroy(host_, kAgent, slice(agent_class), slice(name));
  }

  using OnePort::port_;
  const hearth_subagents_v1& table_ = kSubAgentsTable;
};

TEST_F(SubAgentsExtensionTest, ListsThoseRightBelowWithTheirOwnNames) {
  port_.found = {{agent_.key().child("Chat", "a/\"b\""), 12}, {agent_.key().child("Bot", "c"), 13}};
  EXPECT_EQ(list(nullptr), R"([{"class":"Chat","name":"a/\"b\"","created_at":12},)"
                           R"({"class":"Bot","name":"c","created_at":13}])");
  hearth_subagents_filter filter = {.struct_size = sizeof filter,
                                    .limit = 7,
                                    .after_class = slice("Chat"),
                                    .after_name = slice("x/y")};
  list(&filter);
  const std::string below = agent_.key().prefix_below();
  EXPECT_EQ(port_.asked, (Lines{"list " + agent_.key().name + " after   100",
                                "list " + agent_.key().name + " after Chat " + below + "x%2Fy 7"}));
}

TEST_F(SubAgentsExtensionTest, AFilterThatIsWrongIsRefused) {
  hearth_subagents_filter filter = {
      .struct_size = 0, .limit = 0, .after_class = kNothing, .after_name = kNothing};
  EXPECT_EQ(list(&filter), "HEARTH_E_INVALID");
  filter.struct_size = sizeof filter;
  filter.limit = 1001;
  EXPECT_EQ(list(&filter), "HEARTH_E_INVALID");
  filter.limit = 0;
  filter.after_name = slice(kNotUtf8);
  EXPECT_EQ(list(&filter), "HEARTH_E_INVALID");
}

TEST_F(SubAgentsExtensionTest, DestroysOneRightBelow) {
  EXPECT_EQ(destroy("Chat", "a/b"), HEARTH_OK);
  EXPECT_EQ(port_.asked, Lines{"destroy Chat " + agent_.key().prefix_below() + "a%2Fb by 41"});
  EXPECT_EQ(destroy("Chat", "nobody"), HEARTH_E_NOT_FOUND);
  for (const auto& [agent_class, name] : std::vector<std::pair<std::string_view, std::string_view>>{
           {"../etc", "a"}, {"Chat", ""}, {"Chat", "\n"}, {"", "a"}})
    EXPECT_EQ(destroy(agent_class, name), HEARTH_E_NOT_FOUND) << agent_class << " " << name;
  EXPECT_EQ(port_.asked.size(), 2U) << "names that cannot be are not looked for";
  EXPECT_EQ(destroy("Chat", kNotUtf8), HEARTH_E_INVALID);
}

TEST_F(SubAgentsExtensionTest, TheWayToARootIsItself) {
  hearth_bytes path{};
  ASSERT_EQ(table_.path(host_, kAgent, &path), HEARTH_OK);
  EXPECT_EQ(view(path), R"([{"class":")" + agent_.key().agent_class + R"(","name":")" +
                            agent_.key().name + R"("}])");
}

class SubAgentsWithoutPortTest : public AbiHostTest {};

TEST_F(SubAgentsWithoutPortTest, AHostThatKeepsNoneSaysSo) {
  hearth_bytes json{};
  const hearth_subagents_v1& table = kSubAgentsTable;
  EXPECT_EQ(table.list(host_, kAgent, nullptr, &json), HEARTH_E_UNSUPPORTED);
  EXPECT_EQ(table.destroy(host_, kAgent, slice("Chat"), slice("a")), HEARTH_E_UNSUPPORTED);
}

}  // namespace
}  // namespace hearth::extensions
