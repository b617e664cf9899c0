// State and connections on the mock host.

#include "one_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using hearth::Json;
using hearth::Task;
using hearth::testing::Host;

struct Settings {
  int volume = 3;
  std::string name = "radio";
  HEARTH_FIELDS(volume, name)
};

class Radio : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Radio>& m) {
    m.add("louder", &Radio::louder);
    m.add("put", &Radio::put);
    m.add("look", &Radio::look);
    m.add("forget", &Radio::unset_state);
    m.add("forget_and_undo", &Radio::forget_and_undo);
    m.add("attach", &Radio::attach);
    m.add("attach_nested", &Radio::attach_nested);
    m.add("attached", &Radio::attached);
    m.add("count", &Radio::count);
    m.add("find", &Radio::find);
    m.add("shout", &Radio::shout);
    m.add("whisper", &Radio::whisper);
    m.add("header", &Radio::header);
    m.add("tag_late", &Radio::tag_late);
    m.add("bad_text", &Radio::bad_text);
    m.add("hang_up", &Radio::hang_up);
  }
  Json initial_state() override { return Settings(); }

  void on_connecting(hearth::Connecting& client) override {
    if (client.query("ro")) client.set_readonly();
    if (client.query("raw")) client.set_no_protocol();
    if (const auto tag = client.query("tag")) client.add_tag(*tag);
    if (const auto code = client.query("code"))
      client.refuse(static_cast<unsigned>(std::stoi(*code)), "no");
    if (client.query("throw")) throw hearth::Error(HEARTH_E_FORBIDDEN, "not you");
    if (const auto token = client.header("X-Token"); token && *token != "right")
      client.refuse(4401, "bad token");
  }
  void validate_state(const Json& next, std::optional<hearth::Connection> source) override {
    if (next.value("volume", 0) > 10)
      throw std::runtime_error(source ? "too loud, " + source->id() : "too loud");
  }
  Task<void> on_state_changed(Json next, std::optional<hearth::Connection> source) override {
    changes.push_back((source ? source->id() : "agent") + " " + hearth::to_text(next["volume"]));
    return {};
  }

  int louder() {
    auto settings = state<Settings>();
    ++settings.volume;
    set_state(settings);
    return settings.volume;
  }
  void put(Json next) { set_state(next); }
  Json look() { return state(); }
  Json forget_and_undo() {
    {
      const auto undone = transaction();
      unset_state();
    }
    return state();
  }
  void attach(Json value) { caller()->set_attachment(value); }
  void attach_nested(int levels) {
    Json value;
    for (int level = 0; level < levels; ++level) value = Json::array({std::move(value)});
    attach(value);
  }
  Json attached() { return caller()->attachment(); }
  std::size_t count(std::string tag) { return connections(tag).size(); }
  bool find(std::string id) { return connection(id).has_value(); }
  void shout(std::string text, bool except_me) {
    if (except_me)
      broadcast(text, {*caller()});
    else
      broadcast(text);
  }
  void whisper(std::string tag, Json value) { broadcast_to(tag, value); }
  std::optional<std::string> header(std::string name) { return caller()->header(name); }
  void tag_late() {
    hearth::Connecting client(activation(), caller()->number());
    client.add_tag("late");
  }
  void bad_text() { caller()->send("\xff"); }
  std::vector<bool> hang_up() {
    const auto client = *caller();
    const bool first = client.close(4000, "bye");
    return {first, client.close(4000, "again"), client.send("too late")};
  }

  std::vector<std::string> changes;
};

// Its handler sets the state whenever it has changed.
class Restless : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Restless>& m) { m.add("begin", &Restless::begin); }
  void begin() { set_state(Json(0)); }
  Task<void> on_state_changed(Json next, std::optional<hearth::Connection>) override {
    ++handled;
    if (waits) co_await sleep(std::chrono::milliseconds(0));
    set_state(Json(next.get<int>() + 1));
  }
  bool waits = false;
  int handled = 0;
};

// Its handler answers each change with one of its own, and has begun a fiber that changes it often.
class Poller : public hearth::Agent {
 public:
  static constexpr int kRounds = 300;
  static void methods(hearth::Methods<Poller>& m) { m.add("begin", &Poller::begin); }
  void begin() { set_state(Json(1)); }
  Task<void> on_state_changed(Json next, std::optional<hearth::Connection>) override {
    if (!std::exchange(has_begun, true)) {
      start_fiber("poller", [this](hearth::FiberContext&) -> Task<void> {
        for (rounds = 1; rounds <= kRounds; ++rounds) {
          co_await sleep(std::chrono::milliseconds(0));
          set_state(Json(rounds));
        }
      });
    }
    if (next.get<int>() > 0) set_state(Json(-next.get<int>()));
    return {};
  }
  bool has_begun = false;
  int rounds = 0;
};

class StateTest : public OneAgent<Radio> {};

TEST_F(StateTest, TheInitialStateIsShownAndNotStored) {
  EXPECT_EQ(agent_.connect().state(), Json({{"volume", 3}, {"name", "radio"}}));
  EXPECT_EQ(agent_.call("look"), Json({{"volume", 3}, {"name", "radio"}}));
}

TEST_F(StateTest, AChangeIsStoredAndShownToAllButTheOnesWithoutTheProtocol) {
  auto one = agent_.connect();
  auto raw = agent_.connect("raw=1");
  EXPECT_EQ(one.call("louder"), 4);
  EXPECT_EQ(one.state()["volume"], 4);
  EXPECT_TRUE(raw.state().is_null());
  agent_.evict();
  EXPECT_EQ(agent_.call("louder"), 5);
}

TEST_F(StateTest, AClientsChangeIsSeenByTheAgentAtOnce) {
  auto client = agent_.connect({}, "ann");
  EXPECT_EQ(agent_.call("look")["volume"], 3);
  client.set_state({{"volume", 7}});
  EXPECT_EQ(agent_.call("look")["volume"], 7);
  EXPECT_EQ(agent_.call("louder"), 8);
  EXPECT_EQ(agent_.as<Radio>().changes, (std::vector<std::string>{"ann 7", "agent 8"}));
}

TEST_F(StateTest, TheCheckRunsForClientsAndForTheAgentItself) {
  auto client = agent_.connect();
  client.set_state({{"volume", 11}});
  EXPECT_EQ(client.errors(), std::vector<std::string>{"State update rejected"});
  EXPECT_EQ(agent_.start("put", Json({{"volume", 11}})).error(), "too loud");
  EXPECT_EQ(agent_.call("look")["volume"], 3);
}

TEST_F(StateTest, AReadonlyClientChangesNothingNeitherDirectlyNorThroughAMethod) {
  auto client = agent_.connect("ro=1");
  client.set_state({{"volume", 1}});
  EXPECT_EQ(client.errors(), std::vector<std::string>{"Connection is readonly"});
  EXPECT_EQ(client.start("louder").error(), "Connection is readonly");
  EXPECT_EQ(agent_.call("louder"), 4);
  EXPECT_EQ(client.state()["volume"], 4);
}

TEST_F(StateTest, ATooLargeStateIsAnErrorAndTheOldOneStays) {
  EXPECT_EQ(agent_.start("put", Json({{"name", std::string(3'000'000, 'x')}})).error(),
            "the state is larger than 2097152 bytes");
  EXPECT_EQ(agent_.call("look")["volume"], 3);
}

// ---- connections

TEST_F(StateTest, AttachmentsOutliveAnEviction) {
  auto client = agent_.connect();
  EXPECT_TRUE(client.call("attached").is_null());
  client.call("attach", Json({{"nick", "ann"}}));
  agent_.evict();
  EXPECT_EQ(client.call("attached")["nick"], "ann");
  EXPECT_EQ(client.start("attach", std::string(20'000, 'x')).error(),
            "an attachment has at most 16 KiB");
  client.call("attach_nested", hearth::kMaxJsonDepth);
  EXPECT_TRUE(client.start("attached").done());
  EXPECT_EQ(client.start("attach_nested", hearth::kMaxJsonDepth + 1).error(),
            "JSON is nested too deeply");
}

TEST_F(StateTest, TagsSelectConnections) {
  auto one = agent_.connect("tag=blue", "one");
  auto two = agent_.connect("tag=blue", "two");
  auto three = agent_.connect("tag=one", "three");
  EXPECT_EQ(one.tags(), (std::vector<std::string>{"one", "blue"}));
  EXPECT_EQ(agent_.call("count", ""), 3);
  EXPECT_EQ(agent_.call("count", "blue"), 2);
  EXPECT_EQ(agent_.call("find", "two"), true);
  EXPECT_EQ(agent_.call("find", "blue"), false);
  agent_.call("whisper", "blue", Json({{"a", 1}}));
  EXPECT_EQ(one.take_received().at(0), R"({"a":1})");
  EXPECT_EQ(two.take_received().size(), 1U);
  EXPECT_TRUE(three.take_received().empty());
  EXPECT_TRUE(one.start("tag_late").failed());
}

TEST_F(StateTest, ABroadcastReachesAllButTheExceptions) {
  auto one = agent_.connect();
  auto two = agent_.connect();
  one.call("shout", "hey", true);
  EXPECT_TRUE(one.take_received().empty());
  EXPECT_EQ(two.take_received().at(0), "hey");
  one.call("shout", "all", false);
  EXPECT_EQ(one.take_received().size(), 1U);
}

TEST_F(StateTest, ARefusedClientIsClosedWithItsCodeAndNeverConnected) {
  const auto refused = agent_.connect("code=4409");
  EXPECT_EQ(refused.close_code(), 4409U);
  EXPECT_EQ(refused.close_reason(), "no");
  EXPECT_EQ(agent_.connect("throw=1").close_code(), 4403U);
  EXPECT_EQ(agent_.connect({}, {}, {{"x-token", "wrong"}}).close_code(), 4401U);
  EXPECT_FALSE(agent_.connect({}, {}, {{"x-token", "right"}}).closed());
  EXPECT_EQ(agent_.clients(), 1U);
}

TEST_F(StateTest, HeadersAreGoneOnceConnected) {
  auto client = agent_.connect({}, {}, {{"x-other", "1"}});
  EXPECT_TRUE(client.call("header", "x-other").is_null());
}

TEST_F(StateTest, SendingToOneWhoLeftIsNoError) {
  auto client = agent_.connect();
  EXPECT_EQ(client.call("hang_up"), Json({true, false, false}));
  EXPECT_EQ(client.close_code(), 4000U);
}

TEST_F(StateTest, AHandlerThatAlwaysChangesTheStateIsRefusedInTheEnd) {
  for (const bool waits : {false, true}) {
    auto restless = host_.create<Restless>(waits ? "a" : "b");
    restless.as<Restless>().waits = waits;
    for (const int handled : {101, 202}) {
      restless.call("begin");
      host_.advance(std::chrono::milliseconds(1));
      EXPECT_EQ(restless.as<Restless>().handled, handled) << waits;
      EXPECT_EQ(restless.state(), Json(100)) << waits;
    }
  }
}

TEST_F(StateTest, AFiberThatAHandlerHasBegunMayChangeItForEver) {
  auto poller = host_.create<Poller>("p");
  poller.call("begin");
  host_.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(poller.as<Poller>().rounds, Poller::kRounds + 1);
  EXPECT_EQ(poller.state(), Json(-Poller::kRounds)) << "the handler's answer was never refused";
}

TEST_F(StateTest, TextThatIsNotUtf8IsAnError) {
  auto client = agent_.connect();
  EXPECT_EQ(client.start("bad_text").error(),
            "a slice has a length but no bytes, or a text is not UTF-8");
}

TEST(UnsetStateTest, ItIsTheInitialOneAgain) {
  Host host;
  auto agent = host.create<Radio>("a");
  auto client = agent.connect();
  auto raw = agent.connect("raw=1");
  EXPECT_EQ(client.call("louder"), 4);
  EXPECT_EQ(client.state().at("volume"), 4);
  EXPECT_EQ(client.call("forget_and_undo").at("volume"), 4);
  client.call("forget");
  EXPECT_EQ(client.state(), Json(Settings()));
  EXPECT_EQ(client.call("look"), Json(Settings()));
  EXPECT_EQ(agent.sql("SELECT count(*) FROM cf_agents_state"), Json({{0}}));
  EXPECT_EQ(agent.as<Radio>().changes, (std::vector<std::string>{"agent 4", "agent 3"}));
  agent.evict();
  EXPECT_EQ(agent.call("look"), Json(Settings()));
  auto reader = agent.connect("ro=1");
  EXPECT_THROW(reader.call("forget"), hearth::testing::CallError);
}

// Without a hook for the initial state there is none again.
class Blank : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Blank>& m) {
    m.add("put", &Blank::set_state);
    m.add("forget", &Blank::unset_state);
  }
  Task<void> on_state_changed(Json next, std::optional<hearth::Connection> /*source*/) override {
    changes.push_back(std::move(next));
    return {};
  }
  std::vector<Json> changes;
};

TEST(UnsetStateTest, WithoutAnInitialStateThereIsNoneAgain) {
  Host host;
  auto agent = host.create<Blank>("a");
  auto client = agent.connect();
  client.call("forget");
  client.call("put", Json({{"a", 1}}));
  EXPECT_EQ(client.state(), Json({{"a", 1}}));
  client.call("forget");
  EXPECT_EQ(client.state(), Json());
  EXPECT_EQ(agent.as<Blank>().changes, (std::vector<Json>{nullptr, {{"a", 1}}, nullptr}));
}

// The class names the type of its state.
class Typed : public hearth::Agent {
 public:
  struct State {
    int volume = 3;
    HEARTH_FIELDS(volume)
  };
  static void methods(hearth::Methods<Typed>& m) { m.add("volume", &Typed::volume); }
  int volume() { return state<State>().volume; }
};

TEST(TypedStateTest, AClientWritesOnlyWhatTheAgentCanRead) {
  Host host;
  auto agent = host.create<Typed>("a");
  auto client = agent.connect();
  std::size_t refused = 0;
  for (const Json& bad : {Json({{"volume", "x"}}), Json(7), Json(), Json::array()}) {
    client.set_state(bad);
    EXPECT_EQ(client.errors().size(), ++refused) << hearth::to_text(bad);
  }
  client.set_state({{"volume", 7}});
  EXPECT_EQ(agent.call("volume"), 7);
}

}  // namespace
