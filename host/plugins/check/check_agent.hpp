#pragma once
// An agent of a check, behind the host's table.

#include "base/error.hpp"
#include "base/stop_point.hpp"
#include "extensions/agent_context.hpp"
#include "extensions/durable_work.hpp"
#include "extensions/http_port.hpp"
#include "extensions/operations.hpp"
#include "storage/agent_database.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

class CheckHost;

// One call that was given to the agent's code.
struct CheckCall {
  extensions::EventKind kind{};
  enum class State {
    kOffered,    // on_event runs
    kAccepted,   // on_event has returned OK
    kRefused,    // on_event has returned an error
    kCompleted,  // once
    kCancelled,  // on_cancel was called
  };
  State state = State::kOffered;
  bool ok = false;                            // it was completed with success
  Errc code{};                                // if it was not
  std::string body;                           // of the completion; cut if it is long
  std::unique_ptr<extensions::DueWork> work;  // set if it is durable work of the agent
  extensions::BodyReader body_reader;         // of a body that has not arrived and is not yet read
};

// An operation that submit() has accepted.
struct CheckOperation {
  extensions::OperationId id = 0;
  std::uint32_t operation = 0;
  std::uint64_t token = 0;
  std::uint64_t job = 0;   // HEARTH_OP_OFFLOAD
  bool is_remote = false;  // a request to another server; a check sends none
  std::string body = {};   // HEARTH_OP_BODY: what has not yet arrived of the body of a request
  bool is_cut = false;     // HEARTH_OP_BODY: its client leaves instead of ending it
};

// A state that the agent's code has set; its event has not been delivered yet.
struct ChangedState {
  std::string json;
  std::uint64_t write = 0;  // AgentDatabase::state_writes()
};

// The clients of an agent of a check. Messages to them are dropped.
class CheckClients final : public extensions::Clients {
 public:
  // A new client, which is connecting.
  extensions::Client& add(extensions::ConnectionId id);

  extensions::Client* find(extensions::ConnectionId id) override;
  [[nodiscard]] const std::vector<extensions::ConnectionId>& all() const override { return all_; }
  [[nodiscard]] std::size_t max_frame_bytes() const override { return std::size_t{16} << 20; }
  void send(extensions::Client& /*to*/, extensions::FrameKind /*kind*/,
            std::string_view /*payload*/) override {}
  void send_to_many(std::vector<extensions::ConnectionId> /*to*/, extensions::FrameKind /*kind*/,
                    std::string_view /*payload*/) override {}
  void close(extensions::Client& client, std::uint16_t /*code*/,
             std::string_view /*reason*/) override {
    client.state = extensions::ConnectionState::kClosed;
  }

 private:
  std::map<extensions::ConnectionId, extensions::Client> clients_;
  std::vector<extensions::ConnectionId> all_;
};

// Requests to other servers: accepted as on a server, and never sent.
class CheckHttpPort final : public extensions::HttpPort {
 public:
  [[nodiscard]] bool wants_credentials() const override { return false; }
  Result<std::unique_ptr<extensions::RemoteOperation>> make(
      extensions::FetchRequest request) override;
};

// An agent with the server's extensions over its own database. It waits for nothing: the check ends
// its operations.
//
// Promises  It reports misbehaviour to the CheckHost: a call that is completed twice, or after it
//           was refused.
// Threads   The check's.
// Lifetime  The host outlives it.
class CheckAgent final : public extensions::AgentContext,
                         private extensions::CallPort,
                         private extensions::StateWatchers {
 public:
  // `database`: the file. An earlier life may have written it.
  CheckAgent(CheckHost& host, extensions::AgentHandle handle, storage::AgentKey key,
             const std::filesystem::path& database, bool has_offload);
  ~CheckAgent() override;

  // Makes durable work of an earlier life due. Call it once, before the first event.
  void load();

  // ---- for the check ----
  [[nodiscard]] std::map<extensions::CallId, CheckCall>& open_calls() { return calls_; }
  [[nodiscard]] extensions::CallId add_call(extensions::EventKind kind);
  // The agent's code reads the body of this request in pieces. If the last character of `body` is
  // no `}`, the client leaves after it.
  void let_body_arrive(extensions::CallId call, std::string body);
  [[nodiscard]] std::deque<CheckOperation>& operations() { return operations_; }
  [[nodiscard]] std::deque<ChangedState>& changed_states() { return changed_states_; }
  // Durable work that begins now.
  [[nodiscard]] std::optional<extensions::DueWork> next_work();
  // The call for work from next_work() is over.
  void work_ended(const CheckCall& call);
  extensions::Client& add_connection(extensions::ConnectionId id);
  // The state that it has, or that its code shows; empty: none.
  [[nodiscard]] std::string shown_state();
  // Commits what the running call has written, as at the end of a turn.
  void end_turn();

  bool creating = false;    // submit() is forbidden
  bool destroying = false;  // functions answer CLOSING
  bool migrating = false;   // durable work cannot be changed, and nothing is committed
  bool wants_eviction = false;
  extensions::OperationKinds kinds;  // from its class

  // ---- AgentContext ----
  [[nodiscard]] extensions::AgentPhase phase() const override;
  void commit_now() override;
  void fiber_continued(std::string_view id) override { work_.recovery().continued(id); }
  [[nodiscard]] std::optional<durable::Effect> listed_effect(std::string_view kind) const override {
    return extensions::effect_in(kinds, kind);
  }
  Result<void> evict() override;
  Result<void> destroy() override;
  void log(LogLevel /*level*/, std::string_view /*text*/) override {}
  Result<void> audit(std::string_view /*what*/, std::string_view /*detail*/) override { return {}; }
  void storage_failed(std::string_view what) override;

 private:
  // CallPort
  Result<void> complete(extensions::CallId call, const Result<std::string_view>& outcome) override;
  Result<void> emit(extensions::CallId call, std::string_view part) override;
  Result<extensions::OperationId> submit(std::uint32_t operation, std::string_view request,
                                         std::uint64_t token) override;
  Result<extensions::OperationId> submit(std::uint32_t operation,
                                         std::unique_ptr<extensions::RemoteOperation> remote,
                                         std::uint64_t token) override;
  Result<void> cancel(extensions::OperationId operation) override;
  Result<void> credit(extensions::OperationId operation, std::uint64_t bytes) override;
  extensions::CallOrigin origin(extensions::CallId /*call*/) override { return {}; }
  [[nodiscard]] std::string trace() const override { return {}; }
  Result<extensions::RequestView> request(extensions::CallId call) override;

  // StateWatchers
  Result<void> may_change() override { return {}; }
  void changed(extensions::ConnectionId source, std::string_view json,
               std::uint64_t write) override;
  void undone(std::uint64_t last_write) override;

  CheckHost& host_;
  const storage::AgentKey key_;
  const bool has_offload_;
  bool broken_ = false;  // its storage has failed
  const extensions::ClassSettings settings_;
  storage::AgentDatabase database_;
  StopPointsAtCommit stops_;
  extensions::DurableWork work_;
  CheckClients clients_;
  CheckHttpPort http_port_;
  std::deque<ChangedState> changed_states_;
  std::map<extensions::CallId, CheckCall> calls_;
  std::deque<CheckOperation> operations_;
  std::string body_to_read_;  // of the call whose code reads its body now
  extensions::ResponseHead response_;
  extensions::Headers request_headers_;
};

}  // namespace hearth::plugins
