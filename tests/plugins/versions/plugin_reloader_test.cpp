// Class files that change while the server runs, also while an agent's code blocks a loop.
#include "plugins/versions/plugin_reloader.hpp"

#include "protocol/class_segment.hpp"
#include "server/one_loop_fixture.hpp"
#include "support/built.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hearth::plugins {
namespace {

using Outcomes = PluginReloader::Outcomes;
using What = PluginReloader::Outcome::What;

class PluginReloaderTest : public server::OneLoopTest {
 protected:
  explicit PluginReloaderTest(std::chrono::milliseconds patience = std::chrono::seconds(10)) {
    std::filesystem::create_directory(classes());
    put("class: counter\n");
    loop_.start();
    LoadReport report =
        loader_.load_directories({hearth::testing::built::bundled_directory()}).value();
    for (const LoadedPlugin& plugin : report.plugins) {
      for (const auto& agent_class : plugin.classes) runtime_.classes().add(describe(agent_class));
    }
    ReloadSettings settings;
    settings.directories = directories_of({hearth::testing::built::bundled_directory()}, classes());
    settings.watch = false;
    settings.rollout.patience = patience;
    settings.configuration = &configuration_;
    settings.describe = [this](const auto& agent_class) { return describe(agent_class); };
    reloader_.emplace(report, loader_, runtime_, clock_, logger_, metrics_, std::move(settings));
  }
  ~PluginReloaderTest() override {
    reloader_.reset();
    stop();
  }

  [[nodiscard]] std::filesystem::path classes() const { return temporary_.path() / "classes"; }
  void put(const std::string& text, const std::string& name = "counter.yaml") const {
    std::ofstream(classes() / name) << text;
  }
  runtime::ServedClass describe(const std::shared_ptr<const runtime::AgentClass>& agent_class) {
    return {.segment = protocol::kebab_case(agent_class->name()),
            .agent_class = agent_class,
            .settings = configuration_.of(agent_class->name())->settings};
  }
  Result<Outcomes> reload(const std::string& segment = "counter") {
    std::promise<Result<Outcomes>> promise;
    const bool accepted = reloader_->reload(
        segment, [&promise](Result<Outcomes> answer) { promise.set_value(std::move(answer)); });
    EXPECT_TRUE(accepted);
    return promise.get_future().get();
  }
  // Until no agent is on its way; the reloader looks often.
  void wait_until_settled() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!reloader_->moving().empty() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    EXPECT_TRUE(reloader_->moving().empty());
  }

  ClassConfiguration configuration_{classes(), {}, ledger_};
  std::optional<PluginReloader> reloader_;
};

TEST_F(PluginReloaderTest, AClassIsServedWithWhatItsFileSays) {
  put("class: counter\noptions: {start: 5}\n");
  const auto outcome = reload().value().at(0);
  EXPECT_EQ(outcome.what, What::kNewSettings);
  EXPECT_EQ(outcome.agent_class, "Counter");
  EXPECT_EQ(outcome.keys, std::vector<std::string>{"options.start"});
  EXPECT_EQ(outcome.note, "");
  wait_until_settled();
  EXPECT_EQ(runtime_.classes().find("counter")->settings.options, R"({"start":5})");
}

TEST_F(PluginReloaderTest, ALimitOfAKindThatTheClassDoesNotListIsWarnedOf) {
  put("class: counter\noperations: {kinds: {chrge: {per_day: 1}}}\n");
  ASSERT_TRUE(reload());
  wait_until_settled();
  EXPECT_TRUE(logger_.contains("config.doubtful class=Counter"));
  EXPECT_TRUE(logger_.contains("for them: chrge"));
}

TEST_F(PluginReloaderTest, ALoopThatDoesNotAnswerIsNamedAndNotWaitedFor) {
  std::promise<void> go_on;
  loop_.post([held = go_on.get_future().share()] { held.wait(); });
  put("class: counter\noptions: {start: 5}\n");
  const auto outcomes = reload();
  EXPECT_EQ(reloader_->moving(), std::vector<std::string>{"Counter"});
  EXPECT_TRUE(reload()) << "it still answers";
  go_on.set_value();
  EXPECT_EQ(outcomes.value().at(0).note,
            "shard 0 does not answer: its agents follow when it goes on");
  wait_until_settled();
}

TEST_F(PluginReloaderTest, AMistakeIsAnOutcomeAndARefusalUntilItIsMended) {
  put("class: counter\ndurability: disk\n");
  const auto outcome = reload().value().at(0);
  EXPECT_EQ(outcome.what, What::kRefused);
  ASSERT_EQ(reloader_->refusals().size(), 1U);
  EXPECT_EQ(reloader_->refusals()[0].rule, "config");
  EXPECT_EQ(reloader_->refusals()[0].reason, outcome.reason);
  put("class: counter\n");
  EXPECT_TRUE(reload());
  EXPECT_TRUE(reloader_->refusals().empty());
}

TEST_F(PluginReloaderTest, AClassThatNoLibraryServesHasItsSettingsRead) {
  put("class: hoped-for\noptions: {start: 5}\n", "hoped.yaml");
  EXPECT_EQ(reload("hoped-for").error().code, Errc::kNotFound);
  EXPECT_EQ(configuration_.of("hoped-for")->settings.options, R"({"start":5})");
  EXPECT_TRUE(runtime_.classes().is_expected("hoped-for"));
  EXPECT_EQ(runtime_.classes().find("counter")->settings.options, "{}");
  std::filesystem::remove(classes() / "hoped.yaml");
  EXPECT_EQ(reload("hoped-for").error().code, Errc::kNotFound);
  EXPECT_EQ(configuration_.of("hoped-for")->settings.options, "{}");
  EXPECT_FALSE(runtime_.classes().is_expected("hoped-for")) << "nobody is to come back for it";
  put("class: hoped-for\naliases: [chat-room]\n", "hoped.yaml");
  EXPECT_EQ(reload("hoped-for").value().at(0).what, What::kRefused);
}

class PatientReloaderTest : public PluginReloaderTest {
 protected:
  PatientReloaderTest() : PluginReloaderTest(std::chrono::milliseconds(500)) {}

  // How long new settings of these classes take while the loop does not answer.
  auto time_of(const std::vector<std::string>& names, const std::string& settings) {
    std::promise<void> go_on;
    loop_.post([held = go_on.get_future().share()] { held.wait(); });
    for (const std::string& name : names)
      put("class: " + name + "\n" + settings + "\n", name + ".yaml");
    const auto began = std::chrono::steady_clock::now();
    const auto outcomes = reload("");
    const auto took = std::chrono::steady_clock::now() - began;
    go_on.set_value();
    std::size_t told = 0;
    for (const auto& outcome : outcomes.value()) {
      if (outcome.what != What::kNewSettings) continue;
      EXPECT_EQ(outcome.note, "shard 0 does not answer: its agents follow when it goes on");
      ++told;
    }
    EXPECT_EQ(told, names.size());
    wait_until_settled();
    return took;
  }
};

TEST_F(PatientReloaderTest, ALoopThatDoesNotAnswerIsWaitedForOnceForAllClasses) {
  const auto one = time_of({"counter"}, "idle_timeout: 6s");
  const auto seven = time_of({"counter", "chat-room", "payments", "rate-limiter", "reminders",
                              "research", "session-cache"},
                             "idle_timeout: 7s");
  EXPECT_LT(seven, 3 * one);
}

TEST_F(PluginReloaderTest, AnAliasIsThereAtOnceAndMovesNoAgent) {
  const auto before = runtime_.classes().find("counter");
  put("class: counter\naliases: [tally]\n");
  const auto outcome = reload().value().at(0);
  EXPECT_EQ(outcome.what, What::kNewSettings);
  EXPECT_EQ(outcome.keys, std::vector<std::string>{"aliases"});
  EXPECT_TRUE(reloader_->moving().empty());
  EXPECT_EQ(runtime_.classes().find_for_client("tally"), before);
  EXPECT_EQ(runtime_.classes().find("counter"), before) << "another version would move the agents";
  put("class: counter\n");
  EXPECT_TRUE(reload());
  EXPECT_EQ(runtime_.classes().find_for_client("tally"), nullptr);
}

TEST_F(PluginReloaderTest, WhoMayConnectHoldsAtOnceAndMovesNoAgent) {
  const auto before = runtime_.classes().find("counter");
  const auto type = [this] { return runtime_.classes().entry_rules("counter")->auth.type; };
  put("class: counter\nauth: {type: token}\n");
  const auto outcome = reload().value().at(0);
  EXPECT_EQ(outcome.keys, std::vector<std::string>{"auth.type"});
  EXPECT_TRUE(reloader_->moving().empty());
  EXPECT_EQ(runtime_.classes().find("counter"), before) << "another version would move the agents";
  EXPECT_EQ(type(), ProofKind::kToken);
  put("class: counter\nauth: {type: jwt}\noptions: {start: 5}\n");
  EXPECT_TRUE(reload());
  EXPECT_EQ(type(), ProofKind::kJwt) << "also while the other settings are on trial";
  wait_until_settled();
  put("class: counter\nauth: {type: basic}\n");
  EXPECT_TRUE(reload());
  EXPECT_EQ(type(), ProofKind::kJwt) << "a mistake changes nothing";
}

TEST_F(PluginReloaderTest, WhereAgentsMayGoHoldsAtOnceAndMovesNoAgent) {
  const auto before = runtime_.classes().find("counter");
  const auto allowed = [this] { return runtime_.classes().egress("counter")->allow; };
  put("class: counter\negress: {allow: [a.example]}\n");
  const auto outcome = reload().value().at(0);
  EXPECT_EQ(outcome.keys, std::vector<std::string>{"egress.allow"});
  EXPECT_TRUE(reloader_->moving().empty());
  EXPECT_EQ(runtime_.classes().find("counter"), before) << "another version would move the agents";
  EXPECT_EQ(allowed(), std::vector<std::string>{"a.example"});
  put("class: counter\negress: {allow: [b.example]}\noptions: {start: 5}\n");
  EXPECT_TRUE(reload());
  EXPECT_EQ(allowed(), std::vector<std::string>{"b.example"})
      << "also while the other settings are on trial";
  wait_until_settled();
}

TEST_F(PluginReloaderTest, AnAliasThatIsTheSegmentOfAServedClassIsRefused) {
  put("class: counter\naliases: [chat-room]\noptions: {start: 5}\n");
  const auto outcome = reload().value().at(0);
  EXPECT_EQ(outcome.what, What::kRefused);
  EXPECT_NE(outcome.reason.find("already leads to the class \"ChatRoom\""), std::string::npos)
      << outcome.reason;
  EXPECT_EQ(runtime_.classes().find("counter")->settings.options, "{}");
}

}  // namespace
}  // namespace hearth::plugins
