#pragma once
// An agent of a mock host: its stored data, its clients, and its instance while it is in memory.

#include "durable/wake.hpp"
#include "extensions/call_order.hpp"
#include "extensions/class_settings.hpp"
#include "mock/clients.hpp"
#include "mock/live_instance.hpp"
#include "mock/work_steps.hpp"
#include "mock/world.hpp"
#include "storage/agent_key.hpp"

#include <hearth/testing/mock.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::mock {

// Lifetime  The world outlives it.
// Threads   The test's.
class StoredAgent final : public testing::detail::MockAgent {
 public:
  StoredAgent(World& world, const hearth_class& definition, std::filesystem::path file,
              storage::AgentKey key, std::string options);
  ~StoredAgent() override;

  // ---- MockAgent ----
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
  void hold(ClientRecord& client, bool hold) override {
    Clients::hold(client, hold);
    world_.settle();
  }
  void set_state(ClientRecord& client, std::string_view json) override;
  void leave(ClientRecord& client, unsigned code, std::string reason, bool clean) override;

  void wake() override;
  void evict(std::uint32_t reason, std::uint64_t grace_ns) override;
  void kill() override;
  void become(const hearth_class& definition) override;
  [[nodiscard]] void* instance() const override { return live_ ? live_->instance() : nullptr; }
  [[nodiscard]] int activations() const override { return activations_; }
  [[nodiscard]] bool destroyed() const override { return destructions_ > 0; }

  [[nodiscard]] std::optional<std::string> state() override;
  [[nodiscard]] std::string query(const std::string& sql) override;
  [[nodiscard]] std::vector<testing::FiberRecord> fibers() override;
  [[nodiscard]] std::string fiber_records() override;
  [[nodiscard]] std::string schedules() override;
  [[nodiscard]] std::string queue() override;
  [[nodiscard]] const std::vector<std::string>& steps() const override { return steps_.steps(); }
  [[nodiscard]] std::size_t keep_alive() const override;
  [[nodiscard]] std::uint32_t schema_version() override;
  [[nodiscard]] std::size_t unfinished() const override { return live_ ? live_->unfinished() : 0; }
  [[nodiscard]] std::size_t clients() const override { return clients_.all().size(); }
  void set_serial(bool serial) override { settings_.serial_calls = serial; }
  void set_options(std::string options) override { settings_.options = std::move(options); }
  testing::detail::MockAgent& below(const hearth_class& definition, std::string agent_class,
                                    std::string_view name, std::string options) override;
  std::shared_ptr<const CallRecord> ask_for_sub_agent(std::string_view agent_class,
                                                      std::string_view name, std::string_view query,
                                                      testing::Headers headers) override;

  // ---- for the host ----
  [[nodiscard]] const storage::AgentKey& key() const { return key_; }
  [[nodiscard]] const hearth_class& definition() const { return *definition_; }
  // Takes a call from another agent.
  void receive_call(Incoming event) { send(std::move(event)); }
  [[nodiscard]] extensions::CallOrder call_order() const {
    return {.serial = settings_.serial_calls, .exclusive = exclusive_};
  }
  // Commits writes that were made outside of events.
  void end_turn();
  // Takes one step that is due; false: no step is due.
  bool step();
  // Wakes the agent if work is due and the agent is not in memory. If it cannot wake, the log gets
  // a line with the reason.
  void wake_if_due();
  // As on a server, an agent that is not in memory looks at its rows then.
  void clock_was_set_back(std::int64_t now_ms) {
    if (wake_.at_ms && *wake_.at_ms > now_ms) wake_.at_ms = now_ms;
  }
  [[nodiscard]] std::optional<SteadyTime> next_due() const;
  // When the schedule with this id is due, in Unix milliseconds; absent: there is no such schedule.
  [[nodiscard]] std::optional<std::int64_t> due_of(std::string_view schedule);
  [[nodiscard]] LiveInstance* live() { return live_.get(); }
  // Unix milliseconds of its first start; absent: it was not started yet, or is destroyed.
  [[nodiscard]] std::optional<std::int64_t> created_at_ms() const { return created_at_ms_; }
  void forget_creation() { created_at_ms_.reset(); }
  // Destroys the agent: its instance, its data and all that depends on them.
  void destroy_for_good();

 private:
  struct Stored;

  // Makes the instance, if there is none. Throws runtime_error.
  void activate();
  // Delivers the event, after the start and in its order.
  void send(Incoming event);
  void begin(Incoming event);
  [[nodiscard]] bool must_wait(const Incoming& event) const;
  void end_instance(bool on_purpose);
  void greet(extensions::ConnectionId id, const Result<std::string_view>& outcome);
  void send_close(Client& client);
  void show_change(extensions::ConnectionId source, const std::string& json, StateChain chain);
  [[nodiscard]] bool has(std::uint32_t flag) const { return (definition_->flags & flag) != 0; }
  // Calls `use` with the agent's database and its work, whether it is in memory or not.
  template <class Use>
  auto with_stored(Use use);

  World& world_;
  const hearth_class* definition_;
  std::vector<std::string> exclusive_;  // its methods that run alone, sorted
  const std::filesystem::path file_;
  const storage::AgentKey key_;
  const std::string target_;  // "/agents/agent-under-test/<name>"; for a sub-agent the topmost
                              // agent's, and "/sub/agent-under-test/<own name>"
  extensions::ClassSettings settings_;
  WorkSteps steps_;
  Clients clients_;
  std::unique_ptr<LiveInstance> live_;
  std::deque<std::function<void()>> waiting_;  // events that wait until START has ended
  std::deque<Incoming> held_up_;  // calls and requests that wait for other calls to end
  durable::Wake wake_;            // while it is not in memory
  std::optional<std::int64_t> created_at_ms_;
  int activations_ = 0;
  int destructions_ = 0;
};

}  // namespace hearth::mock
