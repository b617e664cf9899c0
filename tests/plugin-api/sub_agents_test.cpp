// Agents below agents, on the mock host.

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace {

using hearth::Json;
using hearth::Response;
using hearth::Task;
using hearth::testing::AgentHandle;
using hearth::testing::Host;

class MailFolder : public hearth::Agent {
 public:
  static void methods(hearth::Methods<MailFolder>& m) {
    m.add("add", &MailFolder::add);
    m.add("add_below", &MailFolder::add_below);
    m.add("add_above", &MailFolder::add_above);
    m.add("add_to", &MailFolder::add_to);
    m.add("below", &MailFolder::below);
    m.add("destroy_below", &MailFolder::destroy_below);
    m.add("destroy_itself", &MailFolder::destroy_itself);
    m.add("path", &MailFolder::path);
  }
  Task<std::optional<Response>> on_sub_agent(hearth::SubAgentName child,
                                             const hearth::Request& request) override {
    if (child.name == "hidden" && request.header("X-Key") != "open")
      throw hearth::Error(HEARTH_E_FORBIDDEN, "not " + child.class_name + " " + child.name);
    if (child.name == "locked") {
      Response refusal = Response::json({{"sign_in", "at the door"}}, 401);
      refusal.add_header("WWW-Authenticate", "Bearer realm=\"inbox\"");
      co_return refusal;
    }
    if (child.name == "praised") co_return Response::text("well done", 200);
    if (child.name == "garbled") {
      Response refusal(401);
      refusal.add_header("no header", "");
      co_return refusal;
    }
    co_return std::nullopt;
  }

  int add(int by) {
    const int sum = (state().is_null() ? 0 : state().get<int>()) + by;
    set_state(sum);
    return sum;
  }
  Task<int> add_below(std::string child, int by) {
    co_return co_await sub_agent("MailFolder", child).call<int>("add", by);
  }
  Task<int> add_above(int by) { co_return co_await parent_agent().call<int>("add", by); }
  // The sum, or the code of the error.
  Task<int> add_to(std::string name, int by) {
    try {
      co_return co_await agent("mail-folder", name).call<int>("add", by);
    } catch (const hearth::HostError& error) {
      co_return error.code();
    }
  }
  std::vector<std::string> below() {
    std::vector<std::string> names;
    for (const auto& each : sub_agents().list()) names.push_back(each.class_name + " " + each.name);
    return names;
  }
  bool destroy_below(const std::string& child) { return sub_agents().destroy("MailFolder", child); }
  void destroy_itself() { destroy(); }
  std::string path() {
    std::string text = std::string(name());
    for (const auto& each : sub_agents().path()) text += "/" + each.name;
    return text;
  }
};

class SubAgentsTest : public ::testing::Test {
 protected:
  using Names = std::vector<std::string>;
  [[nodiscard]] static Names below(AgentHandle& agent) { return agent.call("below"); }

  Host host_;
  AgentHandle inbox_ = host_.create<MailFolder>("inbox");
};

TEST_F(SubAgentsTest, OneIsMadeByACallAndHasANameAndAStateOfItsOwn) {
  EXPECT_EQ(inbox_.call("add_below", "a/b", 3), 3);
  AgentHandle made = inbox_.create_below<MailFolder>("a/b");
  EXPECT_EQ(made.state(), 3) << "the one that the call has made";
  EXPECT_EQ(made.call("path"), "a/b/inbox/a/b");
  EXPECT_EQ(made.call("add_above", 1), 1);
  EXPECT_EQ(inbox_.state(), 1);
  AgentHandle root = host_.create<MailFolder>("a/b");
  EXPECT_EQ(root.state(), Json()) << "one of the same name that is below nobody is another";
}

TEST_F(SubAgentsTest, AWayLeadsToItsOwnTreeAndMakesItsOwnChildrenAlone) {
  AgentHandle stranger = host_.create<MailFolder>("stranger");
  EXPECT_EQ(inbox_.call("add_to", "mail-folder/inbox/a", 3), 3);
  EXPECT_EQ(inbox_.call("add_to", "MailFolder/inbox/a", 1), 4) << "another spelling of one place";
  EXPECT_EQ(stranger.call("add_to", "MailFolder/inbox/a", 1), HEARTH_E_FORBIDDEN);
  EXPECT_EQ(stranger.call("add_to", "MailFolder/nobody/a", 1), HEARTH_E_FORBIDDEN);
  EXPECT_EQ(inbox_.call("add_to", "NoClass/inbox/a", 1), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(inbox_.call("add_to", "MailFolder/inbox/", 1), HEARTH_E_INVALID);
  EXPECT_EQ(inbox_.call("add_to", "MailFolder/inbox/MailFolder/a/b", 1), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(below(inbox_), Names{"MailFolder a"});
}

TEST_F(SubAgentsTest, AnAgentListsThoseRightBelow) {
  EXPECT_EQ(below(inbox_), Names());
  AgentHandle later = inbox_.create_below<MailFolder>("b");
  inbox_.create_below<MailFolder>("a");
  later.create_below<MailFolder>("deep");
  EXPECT_EQ(below(inbox_), (Names{"MailFolder a", "MailFolder b"}));
  EXPECT_EQ(below(later), Names{"MailFolder deep"});
}

TEST_F(SubAgentsTest, WhatIsDestroyedTakesAllBelowAlong) {
  AgentHandle folder = inbox_.create_below<MailFolder>("folder");
  AgentHandle deep = folder.create_below<MailFolder>("deep");
  deep.call("add", 1);
  folder.evict();
  EXPECT_EQ(inbox_.call("destroy_below", "folder"), true);
  EXPECT_EQ(below(inbox_), Names());
  EXPECT_EQ(inbox_.call("destroy_below", "folder"), false);
  EXPECT_TRUE(folder.destroyed());
  EXPECT_TRUE(deep.destroyed());
  EXPECT_FALSE(deep.is_live());
  EXPECT_EQ(deep.state(), Json());

  EXPECT_EQ(inbox_.call("add_below", "folder", 2), 2) << "the next call makes a new one";
  EXPECT_EQ(below(inbox_), Names{"MailFolder folder"});
  inbox_.start("destroy_itself");
  EXPECT_TRUE(inbox_.destroyed());
  EXPECT_EQ(below(inbox_), Names());
}

TEST_F(SubAgentsTest, TheAgentAboveIsAskedAboutClients) {
  EXPECT_EQ(inbox_.ask_for_sub_agent("MailFolder", "open").status, 200U);
  const auto refused = inbox_.ask_for_sub_agent("MailFolder", "hidden");
  EXPECT_EQ(refused.status, 403U);
  EXPECT_EQ(refused.json().at("error").at("message"), "not MailFolder hidden");
  EXPECT_EQ(inbox_.ask_for_sub_agent("MailFolder", "hidden", "", {{"X-Key", "open"}}).status, 200U);
}

TEST_F(SubAgentsTest, TheAgentAboveRefusesWithAResponseOfItsOwn) {
  const auto refused = inbox_.ask_for_sub_agent("MailFolder", "locked");
  EXPECT_EQ(refused.status, 401U);
  EXPECT_EQ(refused.header("WWW-Authenticate"), "Bearer realm=\"inbox\"");
  EXPECT_EQ(refused.json(), (Json{{"sign_in", "at the door"}}));
  EXPECT_EQ(inbox_.ask_for_sub_agent("MailFolder", "open").body, "");
}

TEST_F(SubAgentsTest, AResponseThatIsNoRefusalLetsNobodyThrough) {
  for (const char* name : {"praised", "garbled"}) {
    const auto refused = inbox_.ask_for_sub_agent("MailFolder", name);
    EXPECT_EQ(refused.status, 500U) << name;
  }
  EXPECT_EQ(inbox_.ask_for_sub_agent("MailFolder", "praised").json().at("error").at("message"),
            "on_sub_agent refuses with a status of 400 or more, not with 200");
}

TEST_F(SubAgentsTest, ANameThatCannotBeIsRefused) {
  EXPECT_THROW(inbox_.create_below<MailFolder>(""), std::runtime_error);
  EXPECT_THROW(inbox_.create_below<MailFolder>("a\n"), std::runtime_error);
}

}  // namespace
