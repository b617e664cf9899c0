// The mock host is strict: a plugin that breaks the rules of abi.h fails its unit tests.

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#ifdef __has_feature
#define HEARTH_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#else
#define HEARTH_ADDRESS_SANITIZER 0
#endif

namespace {

using hearth::testing::Host;

class MockHostTest : public ::testing::Test {
 protected:
  Host host;
};

// Keeps what it was lent.
struct Keeper {
  hearth_bytes name;
  hearth_bytes state;
};
Keeper keeper;  // NOLINT

class Keeps : public hearth::Agent {
 public:
  Keeps() {
    const auto& tables = activation().tables();
    keeper.state = {nullptr, 0};
    EXPECT_EQ(tables.state->set_default(tables.host, activation().id(), {"{\"a\":1}", 7}),
              HEARTH_OK);
    EXPECT_EQ(tables.state->get(tables.host, activation().id(), &keeper.state), HEARTH_OK);
    first = std::string(hearth::detail::view(keeper.state));
    hearth_bytes again = {nullptr, 0};
    EXPECT_EQ(tables.state->get(tables.host, activation().id(), &again), HEARTH_OK);
    kept_is_void = keeper.state.ptr != again.ptr;
#if !defined(__SANITIZE_ADDRESS__) && !HEARTH_ADDRESS_SANITIZER
    // (With AddressSanitizer the read itself is reported.)
    EXPECT_EQ(hearth::detail::view(keeper.state), std::string(keeper.state.len, '\xDD'));
#endif
  }
  std::string first;
  bool kept_is_void = false;
};

TEST_F(MockHostTest, BytesOfTheHostAreVoidAtTheNextCall) {
  auto agent = host.create<Keeps>("k");
  EXPECT_EQ(agent.as<Keeps>().first, "{\"a\":1}");
  EXPECT_TRUE(agent.as<Keeps>().kept_is_void);
}

TEST_F(MockHostTest, TheClockMovesOnlyByHand) {
  auto agent = host.create<Keeps>("k");
  auto& keeps = agent.as<Keeps>();
  const auto before = keeps.now();
  const auto uptime = keeps.uptime();
  host.advance(std::chrono::minutes(5));
  EXPECT_EQ(keeps.now() - before, std::chrono::minutes(5));
  EXPECT_EQ(keeps.uptime() - uptime, std::chrono::minutes(5));
  host.set_wall(before);
  EXPECT_EQ(keeps.now(), before);
  EXPECT_EQ(keeps.uptime() - uptime, std::chrono::minutes(5));
}

TEST_F(MockHostTest, FunctionsOfAGoneAgentAnswerGone) {
  auto agent = host.create<Keeps>("k");
  const hearth_agent id = agent.as<Keeps>().activation().id();
  agent.evict();
  hearth_bytes text = {nullptr, 0};
  EXPECT_EQ(host.table()->last_error(host.table(), id, &text), HEARTH_E_GONE);
  EXPECT_EQ(host.table()->complete(host.table(), id, 1, HEARTH_OK, {nullptr, 0}), HEARTH_E_GONE);
}

TEST_F(MockHostTest, AnExtensionItDoesNotHaveIsNull) {
  EXPECT_EQ(host.table()->get_extension(host.table(), "hearth.nothing/1"), nullptr);
  EXPECT_NE(host.table()->get_extension(host.table(), HEARTH_EXT_SQL), nullptr);
}

class Rests : public hearth::Agent {
 public:
  hearth::Task<void> on_start() override {
    for (;;) co_await sleep(std::chrono::milliseconds(0));
  }
};

TEST_F(MockHostTest, AnAgentThatNeverRestsIsAnErrorNotAHang) {
  EXPECT_THROW(host.create<Rests>("r"), std::runtime_error);
}

// Has something of every kind to lose.
class Mortal : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Mortal>& m) {
    m.add("fill", &Mortal::fill);
    m.add("end", &Mortal::end);
    m.add("wait", &Mortal::wait);
  }
  hearth::Task<void> on_close(hearth::Connection, unsigned, std::string, bool) override {
    log.info("told of a close");
    return {};
  }
  void fill() {
    set_state({{"a", 1}});
    sql("CREATE TABLE notes (text TEXT)");
    held_ = keep_alive();
    start_fiber("work", [this](hearth::FiberContext& fiber) { return work(fiber); });
  }
  std::string end() {
    destroy();
    set_state(2);
    return "gone";
  }
  hearth::Task<void> wait() { co_await sleep(std::chrono::hours(1)); }

 private:
  hearth::Task<void> work(hearth::FiberContext& fiber) {
    fiber.stash(1);
    co_await sleep(std::chrono::hours(1));
  }
  std::optional<hearth::KeepAlive> held_;
};

TEST_F(MockHostTest, NothingIsLeftOfAnAgentThatDestroysItself) {
  auto agent = host.create<Mortal>("m");
  auto client = agent.connect();
  client.call("fill");
  auto waiting = client.start("wait");
  EXPECT_FALSE(agent.destroyed());
  EXPECT_EQ(client.call("end"), "gone") << "the answer leaves";
  EXPECT_TRUE(agent.destroyed());
  EXPECT_FALSE(agent.is_live()) << "though it was kept alive and worked";
  EXPECT_TRUE(agent.state().is_null());
  EXPECT_TRUE(agent.fibers().empty());
  EXPECT_EQ(agent.keep_alive(), 0U);
  EXPECT_EQ(agent.sql("SELECT count(*) FROM sqlite_schema WHERE name = 'notes'")[0][0], 0);
  EXPECT_EQ(client.close_code(), 4410U);
  EXPECT_EQ(agent.clients(), 0U);
  EXPECT_TRUE(waiting.failed());
  EXPECT_NE(waiting.error().find("the agent was destroyed"), std::string::npos) << waiting.error();
  host.advance(std::chrono::hours(2));
  EXPECT_EQ(agent.activations(), 1) << "nothing wakes it";
  EXPECT_TRUE(host.log().empty()) << host.log().back();

  agent.call("fill");  // an agent of the same name, from nothing
  EXPECT_EQ(agent.activations(), 2);
}

class Speaker : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Speaker>& m) {
    m.stream("count", &Speaker::count);
    m.add("say", &Speaker::say);
    m.add("tell", &Speaker::tell);
    m.add("close", &Speaker::close);
    m.add("told", &Speaker::told);
    m.add("say_to_all_but", &Speaker::say_to_all_but);
  }
  hearth::Task<int> count(hearth::Stream& out, int last) {
    int number = 0;
    while (number < last && co_await out.drained()) out.send(++number);
    co_return number;
  }
  void say(std::string text) { broadcast(text); }
  // Sends a frame at the pace of its reader, up to `last`.
  hearth::Task<void> tell(std::string id, int last) {
    const auto reader = *connection(id);
    told_ = 0;
    bool open = true;
    while (open && told_ < last) {
      reader.send(std::to_string(++told_));
      open = co_await reader.drained();
    }
    if (!open) told_ = -told_;
  }
  void close(std::string id) { connection(id)->close(); }
  // How many frames; negative: its reader has left.
  int told() { return told_; }
  void say_to_all_but(std::string text, std::vector<std::string> ids) {
    std::vector<hearth::Connection> except;
    for (const std::string& id : ids) except.push_back(*connection(id));
    broadcast(text, except);
    broadcast_to("a", text, std::span(except).first(0));
  }

 private:
  int told_ = 0;
};

TEST_F(MockHostTest, AHeldClientReadsNothing) {
  auto agent = host.create<Speaker>("s");
  auto slow = agent.connect();
  auto other = agent.connect();
  slow.hold(true);
  agent.call("say", "one");
  agent.call("say", "two");
  EXPECT_TRUE(slow.received().empty());
  EXPECT_EQ(other.received().size(), 2U);
  const auto call = slow.start("count", 3);
  const auto quick = other.start("count", 3);
  EXPECT_EQ(quick.value(), 3);
  EXPECT_TRUE(call.parts().empty());
  slow.hold(false);
  EXPECT_EQ(call.value(), 3);
  ASSERT_EQ(slow.received().size(), 2U);
  EXPECT_EQ(slow.received()[1], "two");
}

TEST_F(MockHostTest, DrainedWaitsForAHeldClientUntilItReadsOrIsClosed) {
  auto agent = host.create<Speaker>("s");
  auto slow = agent.connect({}, "slow");
  slow.hold(true);
  auto telling = agent.start("tell", "slow", 3);
  EXPECT_FALSE(telling.done());
  EXPECT_EQ(agent.call("told"), 1);
  slow.hold(false);
  EXPECT_TRUE(telling.done());
  EXPECT_EQ(agent.call("told"), 3);
  EXPECT_EQ(slow.received().size(), 3U);

  slow.hold(true);
  telling = agent.start("tell", "slow", 3);
  EXPECT_FALSE(telling.done());
  agent.call("close", "slow");
  EXPECT_TRUE(telling.done());
  EXPECT_EQ(agent.call("told"), -1);
  auto leaver = agent.connect({}, "leaver");
  leaver.hold(true);
  telling = agent.start("tell", "leaver", 3);
  leaver.close();
  EXPECT_EQ(agent.call("told"), -1);
}

TEST_F(MockHostTest, ACallOfAHeldClientThatLeavesIsNotHeld) {
  auto agent = host.create<Speaker>("s");
  auto slow = agent.connect();
  slow.hold(true);
  const auto call = slow.start("count", 3);
  EXPECT_FALSE(call.done());
  slow.close();
  EXPECT_EQ(agent.unfinished(), 0U);
}

TEST_F(MockHostTest, ABroadcastLeavesOutAsManyAsItIsTold) {
  auto agent = host.create<Speaker>("s");
  auto a = agent.connect({}, "a");
  auto b = agent.connect({}, "b");
  auto c = agent.connect({}, "c");
  agent.call("say_to_all_but", "x", std::vector{"a", "c"});
  EXPECT_EQ(a.received().size(), 1U) << "by its tag";
  EXPECT_EQ(b.received().size(), 1U);
  EXPECT_TRUE(c.received().empty());
}

}  // namespace
