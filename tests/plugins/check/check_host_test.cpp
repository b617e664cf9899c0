#include "plugins/check/check_host.hpp"

#include "extensions/registry.hpp"
#include "json/json.hpp"
#include "plugins/check/check_agent.hpp"
#include "support/temp_directory.hpp"

#include <hearth/ext/clock.h>
#include <hearth/ext/fetch.h>
#include <hearth/ext/fibers.h>
#include <hearth/ext/queue.h>
#include <hearth/ext/schedule.h>
#include <hearth/ext/sql.h>
#include <hearth/ext/state.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace hearth::plugins {
namespace {

using hearth::testing::TempDirectory;

hearth_bytes bytes_of(std::string_view text) {
  return {text.data(), text.size()};
}
std::string text_of(hearth_bytes bytes) {
  return {static_cast<const char*>(bytes.ptr), bytes.len};
}

// A host with one agent whose code runs.
class CheckHostTest : public ::testing::Test {
 protected:
  CheckHostTest() { use({}); }
  void use(HostVariant variant, bool guarded = false, std::uint64_t seed = 1) {
    agent_.reset();
    check_.emplace("it.so", std::move(variant), memory_, guarded ? &memory_ : nullptr, seed);
    agent_.emplace(*check_, check_->next_handle(), storage::AgentKey{"Check", "it"},
                   directory_.path() / "it.db", false);
    agent_->load();
    check_->set_running(&*agent_);
    host_ = check_->table();
    handle_ = agent_->handle();
  }
  template <class Table>
  const Table& extension(const char* id) {
    const auto* const table = static_cast<const Table*>(host_->get_extension(host_, id));
    if (table == nullptr) throw std::runtime_error(id);
    return *table;
  }
  // Adds an item to the queue.
  hearth_status push_tick(hearth_bytes& record) {
    hearth_queue_request request{};
    request.struct_size = sizeof request;
    request.callback = bytes_of("tick");
    return extension<hearth_queue_v1>(HEARTH_EXT_QUEUE).push(host_, handle_, &request, &record);
  }
  extensions::CallId accepted(extensions::EventKind kind) {
    const extensions::CallId call = agent_->add_call(kind);
    agent_->open_calls()[call].state = CheckCall::State::kAccepted;
    return call;
  }
  std::string blamed() {
    const auto all = check_->blamed();
    return all.empty() ? "" : all.front();
  }

  TempDirectory directory_;
  GuardedMemory memory_;
  std::optional<CheckHost> check_;
  std::optional<CheckAgent> agent_;
  const hearth_host* host_ = nullptr;
  hearth_agent handle_ = 0;
};

TEST_F(CheckHostTest, HasEveryExtensionThatAServerHas) {
  for (const extensions::Registered& each : extensions::registered_extensions())
    EXPECT_NE(host_->get_extension(host_, std::string(each.id).c_str()), nullptr) << each.id;
  EXPECT_EQ(host_->get_extension(host_, "hearth.moon/1"), nullptr);
  EXPECT_EQ(host_->get_extension(host_, nullptr), nullptr);
}

TEST_F(CheckHostTest, TakesARequestToAnotherServerThatNeverLeaves) {
  hearth_fetch_request request{};
  request.struct_size = sizeof request;
  request.url = bytes_of("https://a.example/");
  std::uint64_t id = 0;
  const auto& fetch = extension<hearth_fetch_v1>(HEARTH_EXT_FETCH);
  ASSERT_EQ(fetch.start(host_, handle_, &request, 7, &id), HEARTH_OK);
  ASSERT_EQ(agent_->operations().size(), 1U);
  EXPECT_EQ(agent_->operations().front().operation, std::uint32_t{HEARTH_OP_FETCH});
  EXPECT_TRUE(agent_->operations().front().is_remote);
  request.url = bytes_of("nowhere");
  EXPECT_EQ(fetch.start(host_, handle_, &request, 7, &id), HEARTH_E_INVALID);
}

TEST_F(CheckHostTest, IdsComeFromTheSeed) {
  const auto id_with = [this](std::uint64_t seed) {
    use({}, false, seed);
    hearth_bytes record{};
    if (push_tick(record) != HEARTH_OK) return Json();
    return parse_json(text_of(record)).value().at("id");  // its life is never committed
  };
  const Json id = id_with(7);
  EXPECT_TRUE(id.is_string());
  EXPECT_EQ(id_with(7), id);
  EXPECT_NE(id_with(8), id);
}

TEST_F(CheckHostTest, HidesExtensionsAndShortensItsTable) {
  HostVariant variant;
  variant.hidden = {"hearth.sql/1"};
  variant.struct_size = 40;
  variant.abi_minor = 7;
  use(variant);
  EXPECT_EQ(host_->get_extension(host_, "hearth.sql/1"), nullptr);
  EXPECT_NE(host_->get_extension(host_, "hearth.state/1"), nullptr);
  EXPECT_EQ(host_->struct_size, 40U);
  EXPECT_EQ(host_->abi_minor, 7);
  EXPECT_STREQ(memory_.label_at(static_cast<const void*>(&host_->submit)),
               "the host's table behind its struct_size");
}

TEST_F(CheckHostTest, WorksAsTheServersDoes) {
  const auto& state = extension<hearth_state_v1>(HEARTH_EXT_STATE);
  EXPECT_EQ(state.set(host_, handle_, 0, bytes_of("{\"n\":1}")), HEARTH_OK);
  hearth_bytes json{};
  ASSERT_EQ(state.get(host_, handle_, &json), HEARTH_OK);
  EXPECT_EQ(text_of(json), "{\"n\":1}");
  EXPECT_EQ(state.set(host_, handle_, 0, bytes_of("{")), HEARTH_E_INVALID);
  EXPECT_EQ(state.set(host_, handle_, 0, {static_cast<const char*>(json.ptr) + 5, 1}), HEARTH_OK)
      << "a part of what it has lent";
  EXPECT_EQ(agent_->changed_states().back().json, "1");
  const auto& savepoints = extension<hearth_sql_v1>(HEARTH_EXT_SQL);
  std::uint32_t savepoint = 0;
  ASSERT_EQ(savepoints.begin_savepoint(host_, handle_, &savepoint), HEARTH_OK);
  ASSERT_EQ(state.set(host_, handle_, 0, bytes_of("2")), HEARTH_OK);
  ASSERT_EQ(savepoints.rollback_savepoint(host_, handle_, savepoint), HEARTH_OK);
  ASSERT_EQ(state.get(host_, handle_, &json), HEARTH_OK);
  EXPECT_EQ(text_of(json), "1");
  EXPECT_EQ(agent_->changed_states().back().json, "1");

  const auto& sql = extension<hearth_sql_v1>(HEARTH_EXT_SQL);
  hearth_statement statement = 0;
  ASSERT_EQ(sql.prepare(host_, handle_, bytes_of("SELECT 6 * 7"), &statement), HEARTH_OK);
  ASSERT_EQ(sql.step(host_, handle_, statement), HEARTH_ROW);
  std::int64_t value = 0;
  ASSERT_EQ(sql.column_int64(host_, handle_, statement, 0, &value), HEARTH_OK);
  EXPECT_EQ(value, 42);
  EXPECT_GT(extension<hearth_clock_v1>(HEARTH_EXT_CLOCK).wall_ms(host_), 0);
  EXPECT_EQ(blamed(), "");
}

TEST_F(CheckHostTest, DurableWorkOfAnEarlierLifeComesBack) {
  hearth_bytes record{};
  ASSERT_EQ(push_tick(record), HEARTH_OK);
  hearth_fiber fiber = 0;
  const auto& fibers = extension<hearth_fibers_v1>(HEARTH_EXT_FIBERS);
  hearth_fiber_start work{};
  work.struct_size = sizeof work;
  work.name = bytes_of("work");
  ASSERT_EQ(fibers.start(host_, handle_, &work, &fiber, &record), HEARTH_OK);
  ASSERT_EQ(fibers.stash(host_, handle_, fiber, bytes_of("5")), HEARTH_OK);
  agent_->end_turn();

  use({});
  std::vector<extensions::EventKind> kinds;
  while (const auto due = agent_->next_work()) kinds.push_back(due->kind);
  EXPECT_EQ(kinds.size(), 2U);
  EXPECT_NE(std::ranges::find(kinds, extensions::EventKind::kQueueItem), kinds.end());
  EXPECT_NE(std::ranges::find(kinds, extensions::EventKind::kFibersRecovered), kinds.end())
      << "the plan of the fibers' recovery";
}

TEST_F(CheckHostTest, CompletingTwiceOrWhatWasRefusedIsBlamed) {
  const extensions::CallId call = accepted(extensions::EventKind::kMessage);
  EXPECT_EQ(host_->complete(host_, handle_, call, HEARTH_OK, {}), HEARTH_OK);
  EXPECT_EQ(blamed(), "");
  EXPECT_EQ(host_->complete(host_, handle_, call, HEARTH_OK, {}), HEARTH_E_GONE);
  EXPECT_NE(blamed().find("twice"), std::string::npos);

  use({});
  const extensions::CallId refused = agent_->add_call(extensions::EventKind::kMessage);
  agent_->open_calls()[refused].state = CheckCall::State::kRefused;
  EXPECT_EQ(host_->complete(host_, handle_, refused, HEARTH_OK, {}), HEARTH_E_GONE);
  EXPECT_NE(blamed().find("refused"), std::string::npos);
}

TEST_F(CheckHostTest, ALateCompletionIsNoMisbehaviour) {
  const extensions::CallId call = accepted(extensions::EventKind::kCall);
  agent_->open_calls()[call].state = CheckCall::State::kCancelled;
  EXPECT_EQ(host_->complete(host_, handle_, call, HEARTH_OK, bytes_of("1")), HEARTH_E_GONE);
  EXPECT_EQ(host_->complete(host_, handle_, 987, HEARTH_OK, {}), HEARTH_E_GONE);
  EXPECT_EQ(blamed(), "");
}

TEST_F(CheckHostTest, AnAnswerThatIsNoJsonIsBlamed) {
  const extensions::CallId call = accepted(extensions::EventKind::kCall);
  EXPECT_EQ(host_->complete(host_, handle_, call, HEARTH_OK, bytes_of("no")), HEARTH_E_INVALID);
  EXPECT_NE(blamed().find("no JSON"), std::string::npos);
}

TEST_F(CheckHostTest, CallsOutOfPlaceAreBlamed) {
  check_->set_running(nullptr);
  EXPECT_EQ(host_->emit(host_, handle_, 1, {}), HEARTH_E_WRONG_THREAD);
  EXPECT_NE(blamed().find("not running"), std::string::npos);

  use({});
  std::thread([this] { host_->complete(host_, handle_, 1, HEARTH_OK, {}); }).join();
  EXPECT_NE(blamed().find("thread of its own"), std::string::npos);

  use({});
  agent_.reset();
  EXPECT_EQ(host_->complete(host_, handle_, 1, HEARTH_OK, {}), HEARTH_E_GONE);
  EXPECT_NE(blamed().find("destroyed"), std::string::npos);

  use({});
  check_->close();
  host_->get_extension(host_, "hearth.sql/1");
  EXPECT_NE(blamed().find("after deinit()"), std::string::npos);
}

TEST_F(CheckHostTest, PostsFromAnyThreadArriveInOrder) {
  std::thread([this] {
    EXPECT_EQ(host_->post(host_, handle_, 5), HEARTH_OK);
    EXPECT_EQ(host_->post(host_, handle_, 6), HEARTH_OK);
  }).join();
  const auto posts = check_->take_posts();
  ASSERT_EQ(posts.size(), 2U);
  EXPECT_EQ(posts[0].second, 5U);
  EXPECT_EQ(posts[1].second, 6U);
  EXPECT_TRUE(check_->take_posts().empty());
  EXPECT_EQ(blamed(), "");
}

TEST_F(CheckHostTest, TheChosenCallFailsAndNoOther) {
  const auto& state = extension<hearth_state_v1>(HEARTH_EXT_STATE);
  check_->inject({.at = 2, .status = HEARTH_E_BUSY, .submit_only = false});
  EXPECT_EQ(state.set(host_, handle_, 0, bytes_of("1")), HEARTH_OK);
  EXPECT_EQ(state.set(host_, handle_, 0, bytes_of("2")), HEARTH_E_BUSY);
  EXPECT_EQ(state.set(host_, handle_, 0, bytes_of("3")), HEARTH_OK);
  EXPECT_EQ(check_->faulted(), "hearth.state/1 set");
  EXPECT_EQ(check_->calls(), 3U);
}

TEST_F(CheckHostTest, SubmitAloneCanFail) {
  check_->inject({.at = 1, .status = HEARTH_E_LIMIT, .submit_only = true});
  const auto& state = extension<hearth_state_v1>(HEARTH_EXT_STATE);
  EXPECT_EQ(state.set(host_, handle_, 0, bytes_of("1")), HEARTH_OK);
  const std::uint64_t time = 1;
  std::uint64_t id = 0;
  const hearth_bytes request = {&time, sizeof time};
  EXPECT_EQ(host_->submit(host_, handle_, HEARTH_OP_SLEEP, request, 7, &id), HEARTH_E_LIMIT);
  EXPECT_EQ(host_->submit(host_, handle_, HEARTH_OP_SLEEP, request, 7, &id), HEARTH_OK);
  EXPECT_EQ(agent_->operations().size(), 1U);
}

TEST_F(CheckHostTest, OperationsAreCheckedAsTheServerDoes) {
  const std::uint64_t time = 1;
  const hearth_bytes request = {&time, sizeof time};
  std::uint64_t id = 0;
  EXPECT_EQ(host_->submit(host_, handle_, 4711, request, 7, &id), HEARTH_E_UNSUPPORTED);
  EXPECT_EQ(host_->submit(host_, handle_, HEARTH_OP_OFFLOAD, request, 7, &id),
            HEARTH_E_UNSUPPORTED);
  EXPECT_EQ(host_->submit(host_, handle_, HEARTH_OP_SLEEP, bytes_of("x"), 7, &id),
            HEARTH_E_INVALID);
  agent_->creating = true;
  EXPECT_EQ(host_->submit(host_, handle_, HEARTH_OP_SLEEP, request, 7, &id), HEARTH_E_FORBIDDEN);
  agent_->creating = false;
  ASSERT_EQ(host_->submit(host_, handle_, HEARTH_OP_SLEEP, request, 7, &id), HEARTH_OK);
  EXPECT_EQ(host_->cancel(host_, handle_, id), HEARTH_OK);
  EXPECT_EQ(host_->cancel(host_, handle_, id), HEARTH_E_GONE);
}

TEST_F(CheckHostTest, WhileAnAgentIsDestroyedItsFunctionsAnswerClosing) {
  agent_->destroying = true;
  hearth_bytes text{};
  EXPECT_EQ(host_->emit(host_, handle_, 1, {}), HEARTH_E_CLOSING);
  EXPECT_EQ(host_->last_error(host_, handle_, &text), HEARTH_OK);
  EXPECT_EQ(host_->cancel(host_, handle_, 1), HEARTH_E_GONE);
  EXPECT_EQ(blamed(), "");
}

TEST_F(CheckHostTest, WhatAGuardedHostGivesIsInItsMemory) {
  use({}, true);
  const auto& state = extension<hearth_state_v1>(HEARTH_EXT_STATE);
  ASSERT_EQ(state.set(host_, handle_, 0, bytes_of("[1]")), HEARTH_OK);
  hearth_bytes json{};
  ASSERT_EQ(state.get(host_, handle_, &json), HEARTH_OK);
  EXPECT_EQ(text_of(json), "[1]");
  EXPECT_STREQ(memory_.label_at(json.ptr), "what hearth.state/1 get gave");
}

}  // namespace
}  // namespace hearth::plugins
