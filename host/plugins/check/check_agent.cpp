#include "plugins/check/check_agent.hpp"

#include "base/escape.hpp"
#include "extensions/call_rules.hpp"
#include "extensions/state.hpp"
#include "plugins/check/check_host.hpp"

#include <hearth/abi.h>
#include <hearth/ext/http.h>

#include <algorithm>
#include <utility>

namespace hearth::plugins {
namespace {

using extensions::EventKind;

Error gone(std::string_view what) {
  return Error{Errc::kNotFound, std::string(what)};
}

std::string call_text(const CheckCall& call) {
  return "an event of kind " + std::to_string(static_cast<std::uint32_t>(call.kind)) + " (" +
         std::string(to_string(call.kind)) + ")";
}

// CheckAgent starts no remote operation.
class KeptOperation final : public extensions::RemoteOperation {
 public:
  void start(extensions::RemoteListener& /*listener*/) override {}
  void credit(std::uint64_t /*bytes*/) override {}
};

}  // namespace

Result<std::unique_ptr<extensions::RemoteOperation>> CheckHttpPort::make(
    extensions::FetchRequest /*request*/) {
  return std::make_unique<KeptOperation>();
}

CheckAgent::CheckAgent(CheckHost& host, extensions::AgentHandle handle, storage::AgentKey key,
                       const std::filesystem::path& database, bool has_offload)
    : AgentContext({.handle = handle,
                    .key = key_,
                    .settings = settings_,
                    .database = database_,
                    .clock = host.clock(),
                    .work = work_,
                    .calls = *this,
                    .clients = clients_,
                    .watchers = *this,
                    .ports = {.http = &http_port_}}),
      host_(host),
      key_(std::move(key)),
      has_offload_(has_offload),
      database_(database, key_),
      work_(database_, key_, host.clock(), host.random(), settings_, host.events(), stops_) {
  request_headers_ = {{"Host", "127.0.0.1"}, {"User-Agent", "hearth-check"}, {"X-Check", "1"}};
  host_.add(*this);
}

void CheckAgent::storage_failed(std::string_view what) {
  broken_ = true;
  host_.note_failure("the database of an agent: " + std::string(what));
}

CheckAgent::~CheckAgent() {
  host_.remove(*this);
  try {
    extensions().release();
    work_.close();
    database_.close();
  } catch (const StorageError& failure) {
    storage_failed(failure.what());
  }
}

void CheckAgent::load() {
  work_.load();
  end_turn();
}

void CheckAgent::end_turn() {
  try {
    extensions().end_turn();
    if (migrating) return;
    if (!broken_) database_.commit();
    if (database_.checkpoint_due()) {
      if (const std::string failure = database_.checkpoint(); !failure.empty())
        storage_failed(failure);
    }
    stops_.committed();
  } catch (const StorageError& failure) {
    storage_failed(failure.what());
  }
}

void CheckAgent::commit_now() {
  if (!broken_) database_.commit();
}

extensions::AgentPhase CheckAgent::phase() const {
  using extensions::AgentPhase;
  if (destroying) return AgentPhase::kClosing;
  return migrating ? AgentPhase::kMigrating : AgentPhase::kRunning;
}

extensions::CallId CheckAgent::add_call(EventKind kind) {
  const extensions::CallId id = calls_.empty() ? 1 : calls_.rbegin()->first + 1;
  calls_[id].kind = kind;
  return id;
}

void CheckAgent::let_body_arrive(extensions::CallId call, std::string body) {
  calls_[call].body_reader = [this, body = std::move(body)](std::uint64_t /*window*/) {
    body_to_read_ = body;
    return std::make_unique<KeptOperation>();
  };
}

std::optional<extensions::DueWork> CheckAgent::next_work() {
  if (broken_) return std::nullopt;
  try {
    auto due = work_.dispatch().next(true);
    end_turn();
    return due;
  } catch (const StorageError& failure) {
    storage_failed(failure.what());
    return std::nullopt;
  }
}

void CheckAgent::work_ended(const CheckCall& call) {
  if (!call.work || broken_) return;
  try {
    work_.dispatch().ended(*call.work,
                           call.ok ? Result<std::string_view>(std::string_view())
                                   : Result<std::string_view>(Error{call.code, "it failed"}));
  } catch (const StorageError& failure) {
    storage_failed(failure.what());
  }
}

extensions::Client& CheckAgent::add_connection(extensions::ConnectionId id) {
  extensions::Client& client = clients_.add(id);
  client.client_id = "client-" + std::to_string(id);
  client.target = "/agents/check/it?x=1";
  client.headers = request_headers_;
  return client;
}

std::string CheckAgent::shown_state() {
  return std::string(of<extensions::StateExtension>().get().value_or(""));
}

// ---- events and operations ----------------------------------------------------------------------

Result<void> CheckAgent::complete(extensions::CallId id, const Result<std::string_view>& outcome) {
  if (id == 0) return {};
  const auto found = calls_.find(id);
  if (found == calls_.end()) return gone("there is no such call");
  CheckCall& call = found->second;
  using State = CheckCall::State;
  if (call.state == State::kRefused) {
    host_.blame("it completes " + call_text(call) + " that it had refused");
    return gone("it was refused");
  }
  if (call.state == State::kCompleted) {
    host_.blame("it completes " + call_text(call) + " twice");
    return gone("it was completed before");
  }
  if (call.state == State::kCancelled) return gone("it was cancelled");
  if (call.work && in_transaction())
    return Error{Errc::kInvalidArgument, "not while a transaction of the agent's own is open"};
  call.state = State::kCompleted;
  constexpr std::size_t kMaxKept = 4096;
  if (outcome) call.body = outcome->substr(0, kMaxKept);
  extensions::Answer answer{outcome, {}};
  // The check delivers kinds that do not exist, too: no rule is for their answers.
  if (is_event_kind(static_cast<std::uint32_t>(call.kind)))
    answer = extensions::judge_answer(call.kind, outcome);
  call.ok = answer.outcome.has_value();
  if (!call.ok) call.code = answer.outcome.error().code;
  if (answer.returned.has_error() && answer.returned.error().code == Errc::kInvalidArgument)
    host_.blame("it answers a call with " + quote_text(*outcome, 40) + ", which is no JSON");
  return std::move(answer.returned);
}

Result<void> CheckAgent::emit(extensions::CallId id, std::string_view part) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return gone("there is no such call");
  const CheckCall& call = found->second;
  const bool open =
      call.state == CheckCall::State::kOffered || call.state == CheckCall::State::kAccepted;
  if (!open) return gone("it is over");
  return extensions::check_part(call.kind, part);
}

Result<extensions::OperationId> CheckAgent::submit(std::uint32_t operation,
                                                   std::string_view request, std::uint64_t token) {
  if (creating) return Error{Errc::kForbidden, "not while the agent is being made"};
  const auto read = extensions::read_operation(operation, request, has_offload_);
  if (read.has_error()) return read.error();
  if (operations_.size() >= extensions::kMaxOperations)
    return Error{Errc::kLimitExceeded, "too many operations"};
  const extensions::OperationId id = host_.next_handle();
  operations_.push_back({.id = id,
                         .operation = operation,
                         .token = token,
                         .job = operation == HEARTH_OP_OFFLOAD ? read->number : 0});
  return id;
}

Result<extensions::OperationId> CheckAgent::submit(
    std::uint32_t operation, std::unique_ptr<extensions::RemoteOperation> /*remote*/,
    std::uint64_t token) {
  if (creating || migrating) return Error{Errc::kForbidden, "not now"};
  if (operations_.size() >= extensions::kMaxOperations)
    return Error{Errc::kLimitExceeded, "too many operations"};
  const extensions::OperationId id = host_.next_handle();
  CheckOperation kept{.id = id, .operation = operation, .token = token, .is_remote = true};
  if (operation == HEARTH_OP_BODY) {
    kept.body = std::exchange(body_to_read_, {});
    kept.is_cut = !kept.body.ends_with('}');
  }
  operations_.push_back(std::move(kept));
  return id;
}

Result<void> CheckAgent::credit(extensions::OperationId operation, std::uint64_t /*bytes*/) {
  const auto found = std::ranges::find(operations_, operation, &CheckOperation::id);
  if (found == operations_.end()) return gone("it has ended");
  if (!found->is_remote) return Error{Errc::kUnsupported, "the operation has no parts"};
  return {};
}

Result<void> CheckAgent::cancel(extensions::OperationId operation) {
  const auto found = std::ranges::find(operations_, operation, &CheckOperation::id);
  if (found == operations_.end()) return gone("it has ended");
  if (found->operation == HEARTH_OP_OFFLOAD) {
    found->token = 0;  // its job must still be freed
    found->id = 0;
    return {};
  }
  operations_.erase(found);
  return {};
}

Result<void> CheckAgent::evict() {
  wants_eviction = true;
  return {};
}

Result<void> CheckAgent::destroy() {
  wants_eviction = true;
  return {};
}

// ---- state --------------------------------------------------------------------------------------

void CheckAgent::changed(extensions::ConnectionId /*source*/, std::string_view json,
                         std::uint64_t write) {
  // Otherwise an agent that sets its state whenever its state changes would never end.
  constexpr std::size_t kMaxWaiting = 16;
  if (changed_states_.size() < kMaxWaiting) {
    changed_states_.push_back({json.empty() ? "null" : std::string(json), write});
  }
}

void CheckAgent::undone(std::uint64_t last_write) {
  std::erase_if(changed_states_,
                [last_write](const ChangedState& each) { return each.write > last_write; });
}

// ---- clients ------------------------------------------------------------------------------------

extensions::Client& CheckClients::add(extensions::ConnectionId id) {
  const auto [at, is_new] = clients_.try_emplace(id);
  if (is_new) all_.push_back(id);
  at->second.id = id;
  at->second.state = extensions::ConnectionState::kWaiting;
  return at->second;
}

extensions::Client* CheckClients::find(extensions::ConnectionId id) {
  const auto found = clients_.find(id);
  return found == clients_.end() ? nullptr : &found->second;
}

// ---- hearth.http/1 ------------------------------------------------------------------------------

Result<extensions::RequestView> CheckAgent::request(extensions::CallId id) {
  const auto found = calls_.find(id);
  if (found == calls_.end() ||
      (found->second.kind != EventKind::kRequest && found->second.kind != EventKind::kSubAgent))
    return gone("there is no such request");
  const auto state = found->second.state;
  if (state != CheckCall::State::kOffered && state != CheckCall::State::kAccepted)
    return gone("it is answered");
  return extensions::RequestView{.target = "/agents/check/it/sub?x=1",
                                 .headers = &request_headers_,
                                 .response = &response_,
                                 .body = &found->second.body_reader};
}

}  // namespace hearth::plugins
