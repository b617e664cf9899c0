#pragma once
// One agent of a test host, as a test sees it.

#include "extensions/agent_context.hpp"
#include "runtime/live_agent.hpp"
#include "runtime/shard.hpp"
#include "storage/agent_key.hpp"
#include "testhost/test_client.hpp"

#include <hearth/testing/mock.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::testhost {

class TestHost;
class TestInstance;

// Threads   The test's.
// Lifetime  Its host outlives it.
class TestAgent final : public testing::detail::MockAgent {
 public:
  TestAgent(TestHost& host, storage::AgentKey key);

  // ---- testing::detail::MockAgent ----
  std::shared_ptr<const CallRecord> call(std::uint64_t client, std::string_view method,
                                         std::string_view arguments, std::string claims) override;
  void cancel(const CallRecord& call) override;
  std::shared_ptr<const CallRecord> request(std::string_view method, std::string_view path,
                                            std::string_view body, testing::Headers headers,
                                            std::string claims) override;
  std::shared_ptr<testing::detail::Upload> upload(std::string_view method, std::string_view path,
                                                  testing::Headers headers,
                                                  std::string claims) override;
  std::shared_ptr<ClientRecord> connect(std::string_view query, std::string id,
                                        testing::Headers headers, std::string claims) override;
  void receive(const ClientRecord& client, std::string_view frame, bool binary) override;
  void set_state(ClientRecord& client, std::string_view json) override;
  void hold(ClientRecord& client, bool hold) override;
  void leave(ClientRecord& client, unsigned code, std::string reason, bool clean) override;
  void wake() override;
  void evict(std::uint32_t reason, std::uint64_t grace_ns) override;
  void kill() override;
  void become(const hearth_class& definition) override;
  [[nodiscard]] void* instance() const override;
  [[nodiscard]] int activations() const override { return activations_; }
  [[nodiscard]] bool destroyed() const override { return is_destroyed_; }
  [[nodiscard]] std::optional<std::string> state() override;
  [[nodiscard]] std::string query(const std::string& sql) override;
  [[nodiscard]] std::vector<testing::FiberRecord> fibers() override;
  [[nodiscard]] std::string fiber_records() override;
  [[nodiscard]] std::string schedules() override;
  [[nodiscard]] std::string queue() override;
  [[nodiscard]] const std::vector<std::string>& steps() const override { return steps_; }
  [[nodiscard]] std::size_t keep_alive() const override;
  [[nodiscard]] std::uint32_t schema_version() override;
  [[nodiscard]] std::size_t unfinished() const override;
  [[nodiscard]] std::size_t clients() const override;
  void set_serial(bool serial) override;
  void set_options(std::string options) override { options_ = std::move(options); }
  testing::detail::MockAgent& below(const hearth_class& definition, std::string agent_class,
                                    std::string_view name, std::string options) override;
  std::shared_ptr<const CallRecord> ask_for_sub_agent(std::string_view agent_class,
                                                      std::string_view name, std::string_view query,
                                                      testing::Headers headers) override;

  // ---- for the host ----
  [[nodiscard]] const storage::AgentKey& key() const { return key_; }
  [[nodiscard]] const std::string& options() const { return options_; }
  void came(TestInstance& instance);
  void left(const TestInstance& instance);
  // A line of the runtime about this agent.
  void note_step(std::string step) { steps_.push_back(std::move(step)); }
  void note_failed_start(std::string why);
  void note_destroyed() { is_destroyed_ = true; }
  // Ends the turn of what the test did to the instance itself (AgentHandle::as()).
  void end_turn();
  // Copies flags and tags that the agent has set into the records of its clients.
  void show_clients();
  // The process is killed: no close reaches its clients.
  void lose_clients();
  // When the schedule with this id is due, in Unix milliseconds; absent: there is none.
  [[nodiscard]] std::optional<std::int64_t> due_of(std::string_view schedule);

 private:
  using Visitor = std::function<void(extensions::AgentContext&)>;
  // Calls it with the agent's data, in memory or not. Throws what it throws, and runtime_error if
  // the data cannot be read now.
  void visit(const Visitor& visitor);
  [[nodiscard]] runtime::LiveAgent* live() const;
  // Null: there is no open one of this number.
  [[nodiscard]] std::shared_ptr<TestClient> client_of(std::uint64_t number) const;
  [[nodiscard]] std::unique_ptr<runtime::RequestHead> head(std::string_view path,
                                                           testing::Headers headers,
                                                           std::string claims) const;

  TestHost& host_;
  const storage::AgentKey key_;
  const std::string segment_;
  const std::string target_;  // "/agents/agent-under-test/<name>"; for a sub-agent the topmost
                              // agent's, and "/sub/agent-under-test/<own name>"
  std::string options_ = "{}";
  TestInstance* instance_ = nullptr;  // null: it is not in memory
  mutable bool is_touched_ = false;   // the test has the instance
  std::string failed_start_;          // why the last start failed; empty: it did not
  std::map<std::uint64_t, std::shared_ptr<TestClient>> clients_;  // by number
  std::vector<std::string> steps_;
  int activations_ = 0;
  bool is_destroyed_ = false;
};

// "agent-under-test" for AgentUnderTest.
[[nodiscard]] std::string segment_of(std::string_view agent_class);

}  // namespace hearth::testhost
