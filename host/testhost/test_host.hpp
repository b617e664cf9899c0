#pragma once
// The server's runtime without sockets and threads, for the unit tests of agents
// (hearth/testing/host.hpp): one shard on a loop and a clock that the test moves.

#include "extensions/abi_host.hpp"
#include "extensions/watched_tables.hpp"
#include "runtime/runtime.hpp"
#include "storage/agent_key.hpp"
#include "storage/data_directory.hpp"
#include "telemetry/metrics.hpp"
#include "testhost/http_replies.hpp"
#include "testhost/parts.hpp"
#include "testhost/test_agent.hpp"
#include "testhost/test_class.hpp"

#include <hearth/testing/mock.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::testhost {

// Promises
//  P1 By hand  Time passes only in advance(), where each thing that is due happens at its own time.
//  P2 Strict   Lent bytes become invalid as soon as the ABI allows, and a plugin that misuses the
//              SDK or the ABI fails the test.
//
// Threads   The one that made it; [any] functions of the ABI: all.
class TestHost final : public testing::detail::MockHost,
                       private Instances,
                       private extensions::AgentDirectory,
                       private extensions::AbiWatcher {
 public:
  TestHost();
  ~TestHost() override;

  // ---- testing::detail::MockHost ----
  testing::detail::MockAgent& add(const hearth_class& definition, std::string agent_class,
                                  std::string name, std::string options) override;
  [[nodiscard]] const hearth_host* table() const override { return &table_.host; }
  void settle() override;
  void advance(std::uint64_t nanoseconds) override {
    advance_by(std::chrono::nanoseconds(nanoseconds));
  }
  void set_wall(std::int64_t unix_ms) override { loop_.time.set_wall(unix_ms); }
  void fire(std::string_view schedule) override;
  void seed(std::uint64_t seed) override { random_.seed(seed); }
  [[nodiscard]] const std::vector<std::string>& log() const override { return log_.lines(); }
  void fail_submit(hearth_status status) override { submit_status_ = status; }
  void fail_start_fiber(hearth_status status) override { start_fiber_status_ = status; }
  void hold_offload(bool hold) override;
  void on_fetch(std::function<testing::FetchReply(const testing::SentRequest&)> reply) override {
    http_.answer_with(std::move(reply));
  }

  // ---- for its agents ----
  // Of the process, which this starts if it was killed.
  [[nodiscard]] runtime::Shard& shard() {
    if (!runtime_) start_process();
    return runtime_->shard(0);
  }
  [[nodiscard]] TestLoop& loop() { return loop_; }
  // The agent of this key, of a class with this definition from now on.
  TestAgent& agent_of(const hearth_class& definition, const storage::AgentKey& key,
                      std::string options);
  // From now on agents of this class have this code, or handle one call at a time. Those in memory
  // leave it for that.
  void serve(const std::string& agent_class, const hearth_class& definition);
  void set_serial(const std::string& agent_class, bool serial);
  [[nodiscard]] bool reads_bodies(const std::string& agent_class) const {
    return classes_.at(agent_class).code->reads_bodies();
  }
  void advance_by(std::chrono::nanoseconds time);
  // As kill -9 of the process: all agents lose what they have in memory. The next event, or
  // moment, starts it again: a test may set the clock before.
  void kill();
  // Expires with the process, whose answers then reach no caller.
  [[nodiscard]] std::weak_ptr<bool> process() {
    static_cast<void>(shard());
    return alive_;
  }
  // Null: the instance has left.
  [[nodiscard]] runtime::LiveAgent* find_live(extensions::AgentHandle handle) {
    return runtime_ ? runtime_->shard(0).find_agent(handle) : nullptr;
  }

 private:
  // Instances
  std::string came(TestInstance& instance) override;
  void left(TestInstance& instance) override;
  void misused(std::string what) override;

  // AgentDirectory
  Found find(extensions::AgentHandle handle) override;
  bool post(extensions::AgentHandle handle, std::uint64_t token) override;

  // AbiWatcher
  std::optional<hearth_status> enter(const extensions::AbiCall& call) override;
  void lent(const extensions::AbiCall& call, hearth_bytes* bytes) override;
  void left(const extensions::AbiCall& call) override;
  [[nodiscard]] const extensions::AbiHost& abi() const override { return abi_; }

  struct Served {
    std::shared_ptr<const TestClass> code;
    bool serial = false;
  };
  void put(const std::string& agent_class);
  void start_process();
  void stop_process();
  void note_line(std::string_view event, std::span<const LogField> fields);
  [[nodiscard]] TestAgent& agent_at(const storage::AgentKey& key);
  // The instance that a function of the host is called for; null: the call may not reach it.
  [[nodiscard]] TestInstance* instance_of(const extensions::AbiCall& call);
  // Takes one step that is due without the clock; false: none is.
  bool step();

  const std::filesystem::path directory_;
  TestLoop loop_;
  SeededRandom random_;
  TestLog log_;
  Metrics metrics_;
  HttpReplies http_{loop_.time};
  extensions::AbiHost abi_;
  extensions::WatchedTable table_;
  hearth_status submit_status_ = HEARTH_OK;
  hearth_status start_fiber_status_ = HEARTH_OK;
  bool hold_offload_ = false;
  std::string misuse_;   // of the SDK or the ABI, by the code of an agent: the test fails
  std::string failure_;  // of an agent's storage

  std::map<std::string, Served> classes_;  // by their names
  std::vector<std::unique_ptr<TestAgent>> agents_;
  std::map<extensions::AgentHandle, TestInstance*> instances_;
  int process_ = 1;  // the directory of the present one, or of the next
  std::shared_ptr<bool> alive_;
  bool has_alarms_ = false;  // agents are woken when their time has come
  std::optional<storage::DataDirectory> data_;
  std::unique_ptr<runtime::Runtime> runtime_;
};

}  // namespace hearth::testhost
