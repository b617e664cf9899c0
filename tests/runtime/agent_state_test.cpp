// The transition table, and what a real shard does with an agent in each state. Promises to
// clients: agent_slot_test.cpp and the other agent_slot tests.
#include "runtime/agent_state.hpp"

#include "fakes.hpp"
#include "support/fake_sync_calls.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Answer;
using testing::kUsualAgent;
using testing::ShardFixture;

constexpr std::array kEveryState = {
    AgentState::kCold,      AgentState::kAwaitingRoom, AgentState::kAwaitingVersion,
    AgentState::kCondemned, AgentState::kOpened,       AgentState::kWaking,
    AgentState::kLive,      AgentState::kLeaving,      AgentState::kEnding};
static_assert(kEveryState.size() == kAgentStates);

std::string_view to_string(AgentState state) {
  switch (state) {
    case AgentState::kCold: return "cold";
    case AgentState::kAwaitingRoom: return "awaiting room";
    case AgentState::kAwaitingVersion: return "awaiting version";
    case AgentState::kCondemned: return "condemned";
    case AgentState::kOpened: return "opened";
    case AgentState::kWaking: return "waking";
    case AgentState::kLive: return "live";
    case AgentState::kLeaving: return "leaving";
    case AgentState::kEnding: return "ending";
  }
  return "unknown";
}

// ---- the table ----------------------------------------------------------------------------------

const std::set<std::string> kEdges = {
    "cold - awaiting room",   "cold - awaiting version", "cold - condemned",
    "cold - opened",          "cold - waking",           "awaiting room - cold",
    "awaiting room - waking", "awaiting version - cold", "condemned - cold",
    "opened - ending",        "waking - live",           "waking - ending",
    "live - leaving",         "live - ending",           "leaving - ending",
    "ending - cold",
};

TEST(AgentStateTableTest, HasTheseEdgesAndNoOthers) {
  std::set<std::string> edges;
  for (const AgentState from : kEveryState) {
    for (const AgentState to : kEveryState) {
      if (follows(from, to))
        edges.insert(std::string(to_string(from)) + " - " + std::string(to_string(to)));
    }
  }
  EXPECT_EQ(edges, kEdges);
}

TEST(AgentLifeDeathTest, AStateThatDoesNotFollowIsABugAndSaysSo) {
  AgentLife life;
  EXPECT_DEATH(life.enter(Cold{}), "does not follow");
  EXPECT_DEATH(life.enter(Live{}), "does not follow");
}

TEST(AgentLifeTest, AnAgentThatIsOnlyOpenIsInMemoryUntilItIsGone) {
  AgentLife life;
  EXPECT_FALSE(life.in_memory() || life.is_only_open());
  EXPECT_EQ(life.live(), nullptr);
  EXPECT_EQ(life.version(), nullptr);
  const auto served = std::make_shared<const ServedClass>();
  life.enter(Opened{{.served = served}});
  EXPECT_TRUE(life.in_memory() && life.is_only_open());
  EXPECT_EQ(life.live(), nullptr) << "its database could not be opened";
  EXPECT_EQ(life.version(), served.get());
  Ending ending{{.served = served}};
  ending.from = AgentState::kOpened;
  life.enter(std::move(ending));
  EXPECT_TRUE(life.in_memory() && life.is_only_open());
  life.enter(Cold{});
  EXPECT_FALSE(life.in_memory() || life.is_only_open());
}

TEST(IntentTest, WithoutAnIdleMomentTheAgentLeavesBeforeItsNextEvent) {
  Live live;
  EXPECT_FALSE(live.leaves_before_event());
  live.intent = Intent{EvictReason::kCodeUpdate, true};
  EXPECT_FALSE(live.leaves_before_event());
  live.intent = Intent{EvictReason::kCodeUpdate, false};
  EXPECT_TRUE(live.leaves_before_event());
}

TEST(CandidacyTest, CountsFromItsBeginningToItsEndOnce) {
  const auto trial = std::make_shared<VersionTrial>(1U, false);
  const auto other = std::make_shared<VersionTrial>(1U, false);
  {
    Candidacy first = candidacy_in(trial);
    EXPECT_EQ(trial->candidates, 1U);
    Candidacy moved = std::move(first);
    EXPECT_EQ(trial->candidates, 1U);
    moved = candidacy_in(other);
    EXPECT_EQ(trial->candidates, 0U);
    EXPECT_EQ(other->candidates, 1U);
    moved = {};
    EXPECT_FALSE(moved);
    EXPECT_EQ(other->candidates, 0U);
    moved = candidacy_in(trial);
  }
  EXPECT_EQ(trial->candidates, 0U);
}

// ---- the walk -----------------------------------------------------------------------------------

// All but kOpened, which nothing can meet: it begins and ends in one task of the shard.
constexpr std::array kWalkedStates = {
    AgentState::kCold,      AgentState::kAwaitingRoom, AgentState::kAwaitingVersion,
    AgentState::kCondemned, AgentState::kWaking,       AgentState::kLive,
    AgentState::kLeaving,   AgentState::kEnding};

// What a walk needs beside the state.
enum class Ground : std::uint8_t {
  kUsual,
  kFull,  // there is room for no other agent
  kWork,  // the agent has a callback that is due in two seconds
};

// An agent "a" that is brought into a state, and then meets one thing. A client is connected to it.
class Walk {
 public:
  explicit Walk(AgentState state, Ground ground = Ground::kUsual)
      : shard_({}, {}, &syncs_, state == AgentState::kCondemned ? 1 : 0) {
    const bool is_full = state == AgentState::kAwaitingRoom || ground == Ground::kFull;
    ClassSettings settings;
    settings.evict_grace = seconds(10);
    settings.idle_timeout = seconds(5);
    shard_.restart({.max_live_agents = is_full ? 1U : 10U}, settings);
    shard_.script.on_event = [this](HostCalls& host, const AgentEvent& event) -> Result<void> {
      if (event.kind == EventKind::kStart && start_fails_)
        return host.complete(event.call, Error{Errc::kPlugin, "no"});
      if (event.kind == EventKind::kRequest && event.name == "evict") EXPECT_TRUE(host.evict());
      if (event.kind == EventKind::kRequest && event.name == "destroy") EXPECT_TRUE(host.destroy());
      if (event.kind == EventKind::kRequest && event.name == "break")
        host.storage_failed("the disk is gone");
      if (event.kind == EventKind::kRequest && event.name == "plan") plan(host);
      if (event.call != 0 && event.kind == held_) held_call_ = event.call;
      if (event.call == 0 || event.kind == held_) return {};
      return complete(host, event);
    };
    shard_.script.on_create = [this](HostCalls&) -> Result<void> {
      if (std::exchange(loses_descriptors_, false)) throw OutOfDescriptors("taken");
      return {};
    };
    shard_.script.on_result = [this](HostCalls& host, const OperationResult&) {
      EXPECT_TRUE(host.complete(std::exchange(held_call_, 0), held_outcome_));
    };
    served_ = shard_.runtime().classes().find("counter");
    if (ground == Ground::kWork) have_work();
    bring_into(state);
  }
  // Whatever happened: each caller was told once, and nothing is left.
  ~Walk() {
    syncs_.let_go();
    shard_.restart();
    EXPECT_EQ(shard_.script.alive, 0);
    for (const auto& answer : answers_) EXPECT_TRUE(answer->end) << "nobody was told";
  }
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  [[nodiscard]] AgentState state() { return shard().admin().standing(kUsualAgent).state; }
  [[nodiscard]] Shard& shard() { return shard_.shard(); }
  [[nodiscard]] ClassRegistry& classes() { return shard_.runtime().classes(); }
  [[nodiscard]] const std::shared_ptr<const ServedClass>& served() const { return served_; }
  void ask(const std::string& what = "GET", const std::string& name = "a") {
    answers_.push_back(shard_.request(what, "", name));
  }
  // The START or EVICT that was brought into progress, of "a" or of the one that it waits for.
  void complete_held(const Result<std::string_view>& outcome) {
    if (held_call_ == 0) return;
    held_ = {};
    held_outcome_ = outcome;
    shard_.runtime().post(shard_.script.host->handle(), 1);
  }
  void lose_descriptors() { loses_descriptors_ = true; }
  [[nodiscard]] ConnectionId client() const { return client_; }
  void connect() { client_ = shard_.connect().id; }
  void replace_version() {
    classes().put(std::make_shared<const ServedClass>(
        ServedClass{"counter", served_->agent_class, served_->settings}));
  }
  void settle() { shard_.settle(); }
  void let_pass(milliseconds time) { shard_.loop.advance(time); }
  void let_files_go() {
    syncs_.let_go();
    shard_.loop.settle_until([this] { return state() != AgentState::kCondemned; });
  }

 private:
  void bring_into(AgentState state) {
    switch (state) {
      case AgentState::kCold: {
        be_live();
        shard().admin().evict(kUsualAgent);
        settle();
        break;
      }
      case AgentState::kAwaitingRoom: {  // behind another one, which takes its time to leave
        answers_.push_back(shard_.request("GET", "", "b"));
        settle();
        held_ = EventKind::kEvict;
        shard().admin().evict({"Counter", "b"});
        connect();
        break;
      }
      case AgentState::kAwaitingVersion: {
        served_->starts->undecided_until = shard_.loop.clock().steady_now() + seconds(60);
        start_fails_ = true;
        connect();
        settle();
        start_fails_ = false;
        break;
      }
      case AgentState::kCondemned: {  // its files go on another thread, which waits for the device
        be_live();
        shard().admin().evict(kUsualAgent);
        shard_.loop.settle_until([this] { return this->state() == AgentState::kCold; });
        syncs_.hold();
        EXPECT_TRUE(shard().admin().destroy(kUsualAgent));
        ask();
        break;
      }
      case AgentState::kOpened: break;
      case AgentState::kWaking: {
        held_ = EventKind::kStart;
        connect();
        settle();
        break;
      }
      case AgentState::kLive: be_live(); break;
      case AgentState::kLeaving: {
        be_live();
        held_ = EventKind::kEvict;
        shard().admin().evict(kUsualAgent);
        settle();
        break;
      }
      case AgentState::kEnding: {
        be_live();
        shard().versions().expel(served_, EvictReason::kCodeUpdate);
        break;
      }
    }
    ASSERT_EQ(this->state(), state);
  }
  void be_live() {
    connect();
    settle();
  }
  void have_work() {
    ask("plan");
    settle();
    shard().admin().evict(kUsualAgent);
    shard_.loop.settle_until([this] { return state() == AgentState::kCold; });
  }
  static void plan(HostCalls& host) {
    durable::ScheduleRequest request;
    request.type = durable::ScheduleType::kDelay;
    request.callback = "tick";
    request.when_ms = 2'000;
    EXPECT_TRUE(host.create_schedule(request));
  }

  std::optional<EventKind> held_;  // events of this kind are not completed
  bool start_fails_ = false;
  bool loses_descriptors_ = false;  // the next instance finds none
  CallId held_call_ = 0;
  Result<std::string_view> held_outcome_ = std::string_view();
  ConnectionId client_ = 0;
  std::vector<std::shared_ptr<Answer>> answers_;
  std::shared_ptr<const ServedClass> served_;
  hearth::testing::FakeSyncCalls syncs_;
  ShardFixture shard_;
};

// The letters of kWalkedStates. C: cold, R: awaiting room, V: awaiting version, X: condemned,
// W: waking, L: live, G: leaving, E: ending.
constexpr std::string_view kLettersOfWalked = "CRVXWLGE";

// What happens to an agent of each of these states, and the state that each is in once all ready
// work has run. "LRVXWLGL": the cold one is live then, the one that awaits room still does, ...
struct Meeting {
  const char* what;
  std::string_view then;
  std::function<void(Walk&)> act;
  Ground ground = Ground::kUsual;
};

std::ostream& operator<<(std::ostream& out, const Meeting& meeting) {
  return out << meeting.what;
}

std::vector<Meeting> meetings() {
  return {
      {"nothing", "CRVXWLGC", [](Walk&) {}},
      {"a request", "LRVXWLGL", [](Walk& walk) { walk.ask(); }},
      {"START or EVICT that completes", "CLVXLLCC",
       [](Walk& walk) { walk.complete_held(std::string_view()); }},
      {"START or EVICT that fails", "CLVXCLCC",
       [](Walk& walk) { walk.complete_held(Error{Errc::kPlugin, "no"}); }},
      {"a client that comes", "LRVXWLGL", [](Walk& walk) { walk.connect(); }},
      {"a client that leaves", "LRCXWLGL",
       [](Walk& walk) { walk.shard().disconnected(walk.client(), 1001, "", true); }},
      {"a frame", "LRVXWLGL",
       [](Walk& walk) { walk.shard().message(walk.client(), "hi", FrameKind::kText); }},
      {"an alarm", "LRVXWLGL", [](Walk& walk) { walk.let_pass(seconds(3)); }, Ground::kWork},
      {"another agent that needs its room", "CRVXWCGC", [](Walk& walk) { walk.ask("GET", "c"); },
       Ground::kFull},
      {"descriptors that are lost as it wakes, and a request", "RRVXWLGR",
       [](Walk& walk) {
         walk.lose_descriptors();
         walk.ask();
       }},
      {"a request in which it evicts itself", "CRVXWCGC", [](Walk& walk) { walk.ask("evict"); }},
      {"a request in which it destroys itself", "CRVXWCGC",
       [](Walk& walk) { walk.ask("destroy"); }},
      {"a request in which its storage breaks", "CRVXWCGC", [](Walk& walk) { walk.ask("break"); }},
      {"an eviction", "CRVXWCGC", [](Walk& walk) { walk.shard().admin().evict(kUsualAgent); }},
      {"a destruction", "CRLXWCGC",
       [](Walk& walk) { (void)walk.shard().admin().destroy(kUsualAgent); }},
      {"the end of the removal of its files", "CRVLWLGC", [](Walk& walk) { walk.let_files_go(); }},
      {"another version that replaces its own", "CRVXWCGC",
       [](Walk& walk) {
         walk.replace_version();
         walk.shard().versions().leave(walk.served(), EvictReason::kCodeUpdate, false);
       }},
      {"another version that it goes to when it is idle", "CRVXWCGC",
       [](Walk& walk) {
         walk.replace_version();
         walk.shard().versions().leave(walk.served(), EvictReason::kCodeUpdate, true);
       }},
      {"a version on trial that it may try", "CRVXWLGC",
       [](Walk& walk) {
         walk.replace_version();
         walk.shard().versions().begin_trial(walk.served(),
                                             std::make_shared<VersionTrial>(1U, false));
       }},
      {"an expulsion", "CLVXWCCC",
       [](Walk& walk) { walk.shard().versions().expel(walk.served(), EvictReason::kHung); }},
      {"a trial that ends for another version", "CRLXWLGC",
       [](Walk& walk) {
         walk.replace_version();
         walk.served()->starts->undecided_until = SteadyTime{};
         walk.shard().versions().trial_is_over("counter");
       }},
      {"a trial that ends for its version", "CRCXWLGC",
       [](Walk& walk) {
         walk.served()->starts->undecided_until = SteadyTime{};
         walk.shard().versions().trial_is_over("counter");
       }},
      {"a class that goes away, and a request", "CCVXWLGC",
       [](Walk& walk) {
         walk.classes().remove("counter");
         walk.ask();
       }},
      {"a class that comes back", "CRVXWLGC",
       [](Walk& walk) { walk.shard().versions().class_is_back("counter"); }},
      {"a class that is given up", "CCCXWLGC",
       [](Walk& walk) {
         walk.classes().remove("counter");
         walk.classes().give_up("counter");
         walk.shard().versions().class_is_gone("counter");
       }},
      {"time without events", "CCVXWCGC", [](Walk& walk) { walk.let_pass(milliseconds(5'500)); }},
      {"much time", "CCCXCCCC", [](Walk& walk) { walk.let_pass(milliseconds(70'000)); }},
      {"the end of the server", "CCCXWCGC",
       [](Walk& walk) { walk.shard().stop(SteadyTime::max(), [] {}); }},
  };
}

class AgentWalkTest : public ::testing::TestWithParam<Meeting> {};

TEST_P(AgentWalkTest, InEachStateAnAgentGoesOnAsTheTableSays) {
  for (std::size_t i = 0; i < kWalkedStates.size(); ++i) {
    Walk walk(kWalkedStates.at(i), GetParam().ground);
    GetParam().act(walk);
    walk.settle();
    const AgentState then = kWalkedStates.at(kLettersOfWalked.find(GetParam().then.at(i)));
    EXPECT_EQ(to_string(walk.state()), to_string(then))
        << GetParam().what << " meets one that is " << to_string(kWalkedStates.at(i));
  }
}

INSTANTIATE_TEST_SUITE_P(All, AgentWalkTest, ::testing::ValuesIn(meetings()),
                         [](const auto& meeting) {
                           std::string name;
                           for (const char* at = meeting.param.what; *at != '\0'; ++at)
                             name += std::isalnum(*at) != 0 ? *at : '_';
                           return name;
                         });

}  // namespace
}  // namespace hearth::runtime
