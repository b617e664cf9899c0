#pragma once
// An agent that a test plays, over a database of its own. Calls to the part that runs an agent (in
// a server: the shard) are written down, and answered as the test says.

#include "base/stop_point.hpp"
#include "extensions/agent_context.hpp"
#include "extensions/durable_work.hpp"
#include "storage/agent_database.hpp"
#include "support/manual_clock.hpp"
#include "support/recording_logger.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::testing {

// Clients that write down what they are sent: "send 5 0 hi".
class TestClients final : public extensions::Clients {
 public:
  explicit TestClients(std::vector<std::string>& told) : told_(told) {}

  extensions::Client& add(extensions::ConnectionId id, std::string client_id) {
    extensions::Client& client = clients_[id];
    client.id = id;
    client.state = extensions::ConnectionState::kOpen;
    client.client_id = std::move(client_id);
    all_.push_back(id);
    return client;
  }

  extensions::Client* find(extensions::ConnectionId id) override {
    const auto found = clients_.find(id);
    return found == clients_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] const std::vector<extensions::ConnectionId>& all() const override { return all_; }
  [[nodiscard]] std::size_t max_frame_bytes() const override { return 1000; }
  void send(extensions::Client& to, extensions::FrameKind kind, std::string_view payload) override {
    told_.push_back("send " + std::to_string(to.id) + " " + number(kind) + " " +
                    std::string(payload));
  }
  void send_to_many(std::vector<extensions::ConnectionId> to, extensions::FrameKind kind,
                    std::string_view payload) override {
    std::string line = "send " + number(kind) + " " + std::string(payload) + " to";
    for (const auto id : to) line += " " + std::to_string(id);
    told_.push_back(std::move(line));
  }
  void close(extensions::Client& client, std::uint16_t code, std::string_view reason) override {
    told_.push_back("close " + std::to_string(client.id) + " " + std::to_string(code) + " " +
                    std::string(reason));
  }

 private:
  static std::string number(extensions::FrameKind kind) {
    return std::to_string(static_cast<int>(kind));
  }

  std::vector<std::string>& told_;
  std::map<extensions::ConnectionId, extensions::Client> clients_;
  std::vector<extensions::ConnectionId> all_;
};

class TestAgent final : public extensions::AgentContext,
                        private extensions::CallPort,
                        private extensions::StateWatchers {
 public:
  explicit TestAgent(extensions::AgentHandle handle, extensions::ClassSettings settings = {},
                     extensions::OutwardPorts ports = {})
      : AgentContext({.handle = handle,
                      .key = key_,
                      .settings = settings_,
                      .database = database_,
                      .clock = clock,
                      .work = work_,
                      .calls = *this,
                      .clients = clients_,
                      .watchers = *this,
                      .ports = ports}),
        settings_(std::move(settings)) {}
  ~TestAgent() override {
    try {
      extensions().release();
      work_.close();
    } catch (const StorageError& failure) {
      storage_failed(failure.what());
    }
  }

  // What it was told: "complete 7 ok [1,2]", "evict".
  std::vector<std::string> told;
  std::function<void()> when_told;  // runs inside of each function that returns a Result
  std::optional<Error> answer;      // of these functions
  bool destruction_fails = false;   // destroy() throws StorageError
  extensions::AgentPhase its_phase = extensions::AgentPhase::kRunning;
  extensions::RequestView view;
  std::unique_ptr<extensions::RemoteOperation> remote;  // the last one that was submitted
  std::string broken;                                   // why its storage has failed
  extensions::CallId origin_call = 0;                   // the event whose origin is known
  extensions::CallOrigin its_origin;
  // The kinds of operations that its class lists.
  std::map<std::string, durable::Effect, std::less<>> kinds = {{"charge", durable::Effect::kUnsafe},
                                                               {"refund", durable::Effect::kKeyed}};
  extensions::EgressPtr its_egress;  // null: the one of its settings
  ManualClock clock;

  extensions::Client& add_client(extensions::ConnectionId id, std::string client_id) {
    return clients_.add(id, std::move(client_id));
  }
  // What its durable work has reported.
  [[nodiscard]] const RecordingLogger& work_log() const { return logger_; }
  // Before the first write: this write fails, and each later one.
  void break_storage() {
    const bool is_open = std::filesystem::exists(directory_.path() / "a.db");
    std::filesystem::remove_all(directory_.path());
    // Otherwise it would be made anew.
    if (!is_open) std::ofstream(directory_.path()) << "a file where the directory was";
    EXPECT_THROW(
        {
          database_.store_state("0");
          database_.commit();
        },
        StorageError);
  }
  [[nodiscard]] bool has_stored() const { return database_.exists(); }

  [[nodiscard]] extensions::AgentPhase phase() const override { return its_phase; }
  [[nodiscard]] extensions::EgressPtr egress() const override {
    return its_egress ? its_egress : AgentContext::egress();
  }
  void commit_now() override { database_.commit(); }
  void fiber_continued(std::string_view id) override { work_.recovery().continued(id); }
  [[nodiscard]] std::optional<durable::Effect> listed_effect(std::string_view kind) const override {
    const auto found = kinds.find(kind);
    return found == kinds.end() ? std::nullopt : std::optional(found->second);
  }
  void works_for(std::uint64_t fiber, extensions::CallId call) override {
    told.push_back("works for " + std::to_string(fiber) + " " + std::to_string(call));
  }
  Result<void> evict() override { return tell("evict"); }
  Result<void> destroy() override {
    if (destruction_fails) throw StorageError("the disk is gone");
    return tell("destroy");
  }
  void count_event(std::string_view name) override { told.push_back("event " + std::string(name)); }
  void log(LogLevel level, std::string_view text) override {
    told.push_back("log " + std::to_string(static_cast<int>(level)) + " " + std::string(text));
  }
  Result<void> audit(std::string_view what, std::string_view detail) override {
    return tell("audit " + std::string(what) + " " + std::string(detail));
  }
  void storage_failed(std::string_view what) override { broken = what; }

 private:
  Result<void> complete(extensions::CallId call, const Result<std::string_view>& outcome) override {
    return tell(
        "complete " + std::to_string(call) + " " +
        (outcome ? "ok " + std::string(*outcome)
                 : std::string(to_string(outcome.error().code)) + " " + outcome.error().message));
  }
  Result<void> emit(extensions::CallId call, std::string_view part) override {
    return tell("emit " + std::to_string(call) + " " + std::string(part));
  }
  Result<extensions::OperationId> submit(std::uint32_t operation, std::string_view request,
                                         std::uint64_t token) override {
    const auto done = tell("submit " + std::to_string(operation) + " " +
                           std::to_string(request.size()) + " bytes " + std::to_string(token));
    if (!done) return done.error();
    return extensions::OperationId{99};
  }
  Result<extensions::OperationId> submit(std::uint32_t operation,
                                         std::unique_ptr<extensions::RemoteOperation> given,
                                         std::uint64_t token) override {
    const auto done =
        tell("submit remote " + std::to_string(operation) + " " + std::to_string(token));
    if (!done) return done.error();
    remote = std::move(given);
    return extensions::OperationId{99};
  }
  Result<void> cancel(extensions::OperationId operation) override {
    return tell("cancel " + std::to_string(operation));
  }
  Result<void> credit(extensions::OperationId operation, std::uint64_t bytes) override {
    return tell("credit " + std::to_string(operation) + " " + std::to_string(bytes));
  }
  extensions::CallOrigin origin(extensions::CallId call) override {
    return call == origin_call ? its_origin : extensions::CallOrigin();
  }
  [[nodiscard]] std::string trace() const override { return its_origin.trace; }
  Result<extensions::RequestView> request(extensions::CallId call) override {
    const auto done = tell("request " + std::to_string(call));
    if (!done) return done.error();
    return view;
  }
  void body_came(extensions::CallId call) override {
    told.push_back("body of " + std::to_string(call));
  }
  Result<void> may_change() override {
    if (answer) return *answer;
    return {};
  }
  void changed(extensions::ConnectionId source, std::string_view json,
               std::uint64_t write) override {
    told.push_back("state " + std::string(json) + " by " + std::to_string(source) + ", write " +
                   std::to_string(write));
  }
  void undone(std::uint64_t last_write) override {
    told.push_back("undone after write " + std::to_string(last_write));
  }
  Result<void> tell(std::string what) {
    told.push_back(std::move(what));
    if (when_told) when_told();
    if (answer) return *answer;
    return {};
  }

  TempDirectory directory_;
  const extensions::ClassSettings settings_;
  const storage::AgentKey key_{"Plain", "a"};
  storage::AgentDatabase database_{directory_.path() / "a.db", key_};
  SeededRandom random_{7};
  RecordingLogger logger_;
  extensions::DurableLog events_{logger_};
  StopPointsAtCommit stops_;
  extensions::DurableWork work_{database_, key_, clock, random_, settings_, events_, stops_};
  TestClients clients_{told};
};

// Finds the agent of the test, and an agent that lives on another thread.
class TestDirectory final : public extensions::AgentDirectory {
 public:
  explicit TestDirectory(extensions::AgentContext* agent = nullptr) : agent_(agent) {}

  static constexpr extensions::AgentHandle kElsewhere = 666;
  std::vector<std::uint64_t> posted;

  Found find(extensions::AgentHandle handle) override {
    if (handle == kElsewhere) return {.lookup = Lookup::kWrongThread, .agent = nullptr};
    if (agent_ == nullptr || handle != agent_->handle()) return {};
    return {.lookup = Lookup::kFound, .agent = agent_};
  }
  bool post(extensions::AgentHandle handle, std::uint64_t token) override {
    if (agent_ == nullptr || handle != agent_->handle()) return false;
    posted.push_back(token);
    return true;
  }

 private:
  extensions::AgentContext* agent_;
};

}  // namespace hearth::testing
