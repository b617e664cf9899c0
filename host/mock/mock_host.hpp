#pragma once
// A host without sockets and threads, for the unit tests of agents: the server's own storage,
// durable work and extensions, with a clock that the test moves (hearth/testing/host.hpp).

#include "base/mutex.hpp"
#include "extensions/abi_host.hpp"
#include "extensions/agent_context.hpp"
#include "extensions/watched_tables.hpp"
#include "mock/live_instance.hpp"
#include "mock/mock_router.hpp"
#include "mock/mock_sub_agents.hpp"
#include "mock/stored_agent.hpp"
#include "mock/world.hpp"

#include <hearth/testing/mock.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hearth::mock {

// Promises
//  P1 One at a time  Events and results are delivered one after the other, never from inside a
//                    function of the host.
//  P2 Strict         Lent bytes become invalid as soon as the ABI allows, and functions that are
//                    called on a wrong thread are refused.
//  P3 By hand        Time passes only in advance(), where each thing that is due happens at its own
//                    time.
//
// Threads   The one that made it; [any] functions of the ABI: all.
class MockHost final : public testing::detail::MockHost,
                       private Instances,
                       private extensions::AgentDirectory,
                       private extensions::AbiWatcher {
 public:
  MockHost();
  ~MockHost() override;

  // ---- testing::detail::MockHost ----
  testing::detail::MockAgent& add(const hearth_class& definition, std::string agent_class,
                                  std::string name, std::string options) override;
  [[nodiscard]] const hearth_host* table() const override { return &table_.host; }
  void settle() override;
  void advance(std::uint64_t nanoseconds) override;
  void set_wall(std::int64_t unix_ms) override;
  void fire(std::string_view schedule) override;
  void seed(std::uint64_t seed) override { world_.random.seed(seed); }
  [[nodiscard]] const std::vector<std::string>& log() const override { return world_.log.lines(); }
  void fail_submit(hearth_status status) override { submit_status_ = status; }
  void fail_start_fiber(hearth_status status) override { start_fiber_status_ = status; }
  void hold_offload(bool hold) override;
  void on_fetch(std::function<testing::FetchReply(const testing::SentRequest&)> reply) override {
    world_.http.answer_with(std::move(reply));
  }

 private:
  // Instances
  extensions::AgentHandle next_handle() override { return ++last_handle_; }
  void add(LiveInstance& instance) override;
  void remove(const LiveInstance& instance) override;
  LiveInstance* find_instance(extensions::AgentHandle handle) override;

  // AgentDirectory
  Found find(extensions::AgentHandle handle) override;
  bool post(extensions::AgentHandle handle, std::uint64_t token) override;

  // AbiWatcher
  std::optional<hearth_status> enter(const extensions::AbiCall& call) override;
  void lent(const extensions::AbiCall& call, hearth_bytes* bytes) override;
  void left(const extensions::AbiCall& call) override;
  [[nodiscard]] const extensions::AbiHost& abi() const override { return abi_; }

  StoredAgent& agent_of(const hearth_class& definition, storage::AgentKey key, std::string options);
  // The callee of the call; made if the host knows its class. Null: there is none.
  [[nodiscard]] StoredAgent* find_callee(const extensions::AgentCall& call);
  [[nodiscard]] Result<std::string> class_name(std::string_view named) const;
  [[nodiscard]] bool on_its_thread() const { return std::this_thread::get_id() == thread_; }
  // The agent that a function of the host is called for; null: the call may not reach it.
  [[nodiscard]] LiveInstance* instance_of(const extensions::AbiCall& call);
  // Takes one step that is due; false: no step is due.
  bool step();
  bool deliver_post();
  void advance_by(std::chrono::nanoseconds time);

  const std::thread::id thread_ = std::this_thread::get_id();
  const std::filesystem::path directory_;
  World world_{*this};
  MockRouter router_{world_,
                     [this](const extensions::AgentCall& call) { return find_callee(call); },
                     [this](std::string_view named) { return class_name(named); }};
  MockSubAgents sub_agents_{world_, agents_};
  extensions::AbiHost abi_;
  extensions::WatchedTable table_;
  hearth_status submit_status_ = HEARTH_OK;
  hearth_status start_fiber_status_ = HEARTH_OK;

  std::map<extensions::AgentHandle, LiveInstance*> instances_;
  extensions::AgentHandle last_handle_ = 0;
  Mutex mutex_;
  std::deque<std::pair<extensions::AgentHandle, std::uint64_t>> posts_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<StoredAgent>> agents_;
  std::size_t turn_ = 0;  // the agent of `agents_` that took the last step
  std::vector<StoredAgent*>
      called_;  // those of `agents_` that a call has made and no test has asked for
};

}  // namespace hearth::mock
