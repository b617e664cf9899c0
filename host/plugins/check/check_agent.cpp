#include "plugins/check/check_agent.hpp"

#include "base/escape.hpp"
#include "json/json_scanner.hpp"
#include "plugins/check/check_host.hpp"

#include <hearth/abi.h>
#include <hearth/ext/offload.h>
#include <hearth/ext/sleep.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace hearth::plugins {
namespace {

using runtime::EventKind;

constexpr std::size_t kMaxOperations = 1000;  // as a server's
constexpr std::uint64_t kMaxSleepMs = std::uint64_t{366} * 24 * 3600 * 1000;
constexpr std::uint64_t kMaxKeepAlive = 1'000'000;

Error gone(std::string_view what) {
  return Error{Errc::kNotFound, std::string(what)};
}

std::string call_text(const CheckCall& call) {
  return "an event of kind " + std::to_string(static_cast<std::uint32_t>(call.kind)) + " (" +
         std::string(to_string(call.kind)) + ")";
}

}  // namespace

CheckAgent::CheckAgent(CheckHost& host, runtime::AgentHandle handle, storage::AgentKey key,
                       const std::filesystem::path& database, bool has_offload)
    : host_(host),
      handle_(handle),
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
    sql_.reset();
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
    if (sql_) sql_->end_turn();
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

runtime::CallId CheckAgent::add_call(EventKind kind) {
  const runtime::CallId id = calls_.empty() ? 1 : calls_.rbegin()->first + 1;
  calls_[id].kind = kind;
  return id;
}

std::optional<runtime::DueWork> CheckAgent::next_work() {
  if (broken_) return std::nullopt;
  try {
    auto due = work_.next(true);
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
    work_.ended(*call.work, call.ok ? Result<std::string_view>(std::string_view())
                                    : Result<std::string_view>(Error{call.code, "it failed"}));
  } catch (const StorageError& failure) {
    storage_failed(failure.what());
  }
}

runtime::Connection& CheckAgent::add_connection(runtime::ConnectionId id) {
  runtime::Connection& client = connections_[id];
  client.id = id;
  client.client_id = "client-" + std::to_string(id);
  client.target = "/agents/check/it?x=1";
  client.headers = request_headers_;
  client.state = runtime::ConnectionState::kConnecting;
  return client;
}

// ---- events and operations ----------------------------------------------------------------------

Result<void> CheckAgent::complete(runtime::CallId id, const Result<std::string_view>& outcome) {
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
  call.ok = outcome.has_value();
  constexpr std::size_t kMaxKept = 4096;
  if (call.ok) call.body = outcome->substr(0, kMaxKept);
  if (!call.ok) call.code = outcome.error().code;
  const bool is_json_kind = call.kind == EventKind::kCall;
  if (call.ok && is_json_kind && !outcome->empty() && !is_json(*outcome)) {
    call.ok = false;
    call.code = Errc::kPlugin;
    host_.blame("it answers a call with " + quote_text(*outcome, 40) + ", which is no JSON");
    return Error{Errc::kInvalidArgument, "the answer is not JSON"};
  }
  return {};
}

Result<void> CheckAgent::emit(runtime::CallId id, std::string_view part) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return gone("there is no such call");
  const CheckCall& call = found->second;
  const bool open =
      call.state == CheckCall::State::kOffered || call.state == CheckCall::State::kAccepted;
  if (!open) return gone("it is over");
  if (call.kind != EventKind::kCall && call.kind != EventKind::kRequest)
    return Error{Errc::kUnsupported, "this event has no parts"};
  if (call.kind == EventKind::kCall && !is_json(part))
    return Error{Errc::kInvalidArgument, "a part is not JSON"};
  return {};
}

Result<runtime::OperationId> CheckAgent::submit(std::uint32_t operation, std::string_view request,
                                                std::uint64_t token) {
  if (creating) return Error{Errc::kForbidden, "not while the agent is being made"};
  if (operation != HEARTH_OP_SLEEP && operation != HEARTH_OP_OFFLOAD)
    return Error{Errc::kUnsupported, "there is no such operation"};
  std::uint64_t number = 0;
  if (request.size() != sizeof number)
    return Error{Errc::kInvalidArgument, "the request has a wrong size"};
  std::memcpy(&number, request.data(), sizeof number);
  if (operation == HEARTH_OP_SLEEP && number > kMaxSleepMs)
    return Error{Errc::kInvalidArgument, "nobody sleeps that long"};
  if (operation == HEARTH_OP_OFFLOAD && !has_offload_)
    return Error{Errc::kUnsupported, "the class has no hearth.offload/1"};
  if (operations_.size() >= kMaxOperations)
    return Error{Errc::kLimitExceeded, "too many operations"};
  static_assert(sizeof(hearth_sleep_request) == sizeof number);
  static_assert(sizeof(hearth_offload_request) == sizeof number);
  const runtime::OperationId id = host_.next_handle();
  operations_.push_back({.id = id,
                         .operation = operation,
                         .token = token,
                         .job = operation == HEARTH_OP_OFFLOAD ? number : 0});
  return id;
}

Result<void> CheckAgent::cancel(runtime::OperationId operation) {
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

std::optional<std::string_view> CheckAgent::state() {
  if (!state_) {
    if (auto stored = database_.load_state()) state_ = std::move(stored);
  }
  if (state_) return *state_;
  if (default_state_) return *default_state_;
  return std::nullopt;
}

Result<void> CheckAgent::set_state(runtime::ConnectionId /*on_behalf*/, std::string_view json) {
  if (!is_json(json)) return Error{Errc::kInvalidArgument, "the state is not JSON"};
  if (json.size() > settings_.max_state_bytes)
    return Error{Errc::kLimitExceeded, "the state is too large"};
  database_.store_state(json);
  state_ = std::string(json);
  constexpr std::size_t kMaxWaiting =
      16;  // one that sets its state when it has changed would never end
  if (changed_states_.size() < kMaxWaiting)
    changed_states_.push_back({*state_, database_.state_writes()});
  return {};
}

void CheckAgent::state_undone(std::uint64_t last_write) {
  state_.reset();
  std::erase_if(changed_states_,
                [last_write](const ChangedState& each) { return each.write > last_write; });
}

Result<void> CheckAgent::set_default_state(std::string_view json) {
  if (!is_json(json)) return Error{Errc::kInvalidArgument, "the state is not JSON"};
  default_state_ = std::string(json);
  return {};
}

storage::PluginSql& CheckAgent::sql() {
  if (!sql_) {
    sql_.emplace(database_, host_.clock(), settings_.sql,
                 [this](std::uint64_t last_write) { state_undone(last_write); });
  }
  return *sql_;
}

// ---- connections --------------------------------------------------------------------------------

runtime::Connection* CheckAgent::find_connection(runtime::ConnectionId id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : &found->second;
}

runtime::ConnectionId CheckAgent::next_connection(runtime::ConnectionId after,
                                                  std::string_view tag) {
  for (auto next = connections_.upper_bound(after); next != connections_.end(); ++next) {
    const runtime::Connection& client = next->second;
    if (client.deciding || client.state == runtime::ConnectionState::kClosed) continue;
    if (tag.empty() || client.has_tag(tag)) return next->first;
  }
  return 0;
}

Result<void> CheckAgent::add_tag(runtime::ConnectionId id, std::string_view tag) {
  runtime::Connection* const client = find_connection(id);
  if (client == nullptr) return gone("there is no such client");
  if (!client->deciding) return Error{Errc::kForbidden, "only during CONNECTING"};
  if (tag.empty() || tag.size() > runtime::Connection::kMaxTagBytes)
    return Error{Errc::kInvalidArgument, "a tag has 1 to 256 bytes"};
  if (client->tags.size() + 1 >= runtime::Connection::kMaxTags)
    return Error{Errc::kLimitExceeded, "too many tags"};
  client->tags.emplace_back(tag);
  return {};
}

Result<void> CheckAgent::set_flags(runtime::ConnectionId id, std::uint32_t flags) {
  runtime::Connection* const client = find_connection(id);
  if (client == nullptr) return gone("there is no such client");
  client->flags = flags;
  return {};
}

Result<void> CheckAgent::set_attachment(runtime::ConnectionId id, std::string_view bytes) {
  runtime::Connection* const client = find_connection(id);
  if (client == nullptr) return gone("there is no such client");
  if (bytes.size() > runtime::Connection::kMaxAttachmentBytes)
    return Error{Errc::kLimitExceeded, "an attachment has at most 16 KiB"};
  client->attachment = std::string(bytes);
  return {};
}

Result<void> CheckAgent::send(runtime::ConnectionId id, runtime::FrameKind /*kind*/,
                              std::string_view /*payload*/) {
  const runtime::Connection* const client = find_connection(id);
  if (client == nullptr || client->state == runtime::ConnectionState::kClosed)
    return gone("there is no such client");
  if (client->deciding) return Error{Errc::kForbidden, "not during CONNECTING"};
  return {};
}

Result<void> CheckAgent::broadcast(runtime::FrameKind /*kind*/, std::string_view /*payload*/,
                                   std::string_view /*tag*/,
                                   std::span<const runtime::ConnectionId> /*except*/) {
  return {};
}

Result<void> CheckAgent::close(runtime::ConnectionId id, std::uint32_t /*code*/,
                               std::string_view /*reason*/) {
  runtime::Connection* const client = find_connection(id);
  if (client == nullptr) return gone("there is no such client");
  client->state = runtime::ConnectionState::kClosed;
  return {};
}

// ---- durable work: as LiveAgent's, without a log ------------------------------------------------

std::optional<Error> CheckAgent::work_refusal() const {
  if (migrating) return Error{Errc::kInvalidArgument, "not while the agent's data are migrated"};
  if (in_transaction())
    return Error{Errc::kInvalidArgument, "not while a transaction of the agent's own is open"};
  return std::nullopt;
}

Result<void> CheckAgent::acquire_keep_alive() {
  if (keep_alive_ >= kMaxKeepAlive)
    return Error{Errc::kLimitExceeded, "too many keep-alive references"};
  ++keep_alive_;
  return {};
}

Result<void> CheckAgent::release_keep_alive() {
  if (keep_alive_ == 0) return Error{Errc::kInvalidArgument, "no keep-alive reference is held"};
  --keep_alive_;
  return {};
}

Result<runtime::StartedFiber> CheckAgent::start_fiber(std::string_view name,
                                                      std::string_view replaces) {
  if (auto refusal = work_refusal()) return *std::move(refusal);
  auto started = work_.fibers().start(name, replaces);
  if (!started) return started.error();
  if (!replaces.empty()) work_.continued(replaces);
  return runtime::StartedFiber{started->handle, std::move(started->id)};
}

Result<void> CheckAgent::stash(std::uint64_t fiber, std::string_view json) {
  if (!is_json(json)) return Error{Errc::kInvalidArgument, "a checkpoint must be JSON"};
  if (auto refusal = work_refusal()) return *std::move(refusal);
  return work_.fibers().stash(fiber, json);
}

Result<void> CheckAgent::finish_fiber(std::uint64_t fiber) {
  if (auto refusal = work_refusal()) return *std::move(refusal);
  const auto id = work_.fibers().finish(fiber);
  if (!id) return id.error();
  return {};
}

Result<void> CheckAgent::fail_fiber(std::uint64_t fiber, std::string_view /*why*/) {
  return finish_fiber(fiber);
}

Result<void> CheckAgent::retry_fiber(std::string_view id) {
  if (auto refusal = work_refusal()) return *std::move(refusal);
  return work_.fibers().retry(id);
}

Result<std::string> CheckAgent::list_dead_fibers(std::string_view after, std::size_t limit) {
  return work_.fibers().list_dead(after, limit);
}

Result<durable::Schedules::Created> CheckAgent::create_schedule(
    const durable::ScheduleRequest& request) {
  if (auto refusal = work_refusal()) return *std::move(refusal);
  return work_.schedules().create(request);
}

Result<std::string> CheckAgent::get_schedule(std::string_view id) {
  return work_.schedules().get(id);
}

Result<std::string> CheckAgent::list_schedules(const durable::ScheduleFilter& filter) {
  return work_.schedules().list(filter);
}

Result<void> CheckAgent::cancel_schedule(std::string_view id) {
  if (auto refusal = work_refusal()) return *std::move(refusal);
  return work_.schedules().cancel(id);
}

Result<void> CheckAgent::pause_schedule(std::string_view id, bool paused) {
  if (auto refusal = work_refusal()) return *std::move(refusal);
  return work_.schedules().pause(id, paused);
}

Result<void> CheckAgent::retry_schedule(std::string_view id) {
  if (auto refusal = work_refusal()) return *std::move(refusal);
  return work_.schedules().retry(id);
}

Result<std::string> CheckAgent::push_item(const durable::QueueRequest& request) {
  if (auto refusal = work_refusal()) return *std::move(refusal);
  auto pushed = work_.queue().push(request);
  if (!pushed) return pushed.error();
  return std::move(pushed->record);
}

Result<std::string> CheckAgent::get_item(std::string_view id) {
  return work_.queue().get(id);
}

Result<std::string> CheckAgent::list_items(const durable::QueueFilter& filter) {
  return work_.queue().list(filter);
}

Result<void> CheckAgent::remove_item(std::string_view id) {
  if (auto refusal = work_refusal()) return *std::move(refusal);
  return work_.queue().remove(id);
}

Result<std::uint64_t> CheckAgent::remove_items(const durable::QueueFilter& filter) {
  if (auto refusal = work_refusal()) return *std::move(refusal);
  return work_.queue().remove_all(filter);
}

Result<void> CheckAgent::retry_item(std::string_view id) {
  if (auto refusal = work_refusal()) return *std::move(refusal);
  return work_.queue().retry(id);
}

Result<durable::ManagedFibers::Started> CheckAgent::start_managed(
    const durable::ManagedRequest& request) {
  if (auto refusal = work_refusal()) return *std::move(refusal);
  return work_.managed().start(request);
}

Result<std::uint64_t> CheckAgent::resume_managed(std::string_view id) {
  if (auto refusal = work_refusal()) return *std::move(refusal);
  const auto fiber = work_.managed().resume(id);
  if (!fiber) return fiber.error();
  work_.continued(id);
  return *fiber;
}

Result<std::string> CheckAgent::settle_managed(std::uint64_t fiber, durable::FiberStatus status,
                                               std::string_view body) {
  if (auto refusal = work_refusal()) return *std::move(refusal);
  auto change = work_.managed().settle(fiber, status, body);
  if (!change) return change.error();
  return std::move(change->record);
}

Result<std::string> CheckAgent::inspect_managed(std::string_view id, std::string_view key) {
  return work_.managed().inspect(id, key);
}

Result<std::string> CheckAgent::list_managed(const durable::ManagedFilter& filter) {
  return work_.managed().list(filter);
}

Result<void> CheckAgent::cancel_managed(std::string_view id, std::string_view key,
                                        std::string_view reason) {
  if (auto refusal = work_refusal()) return *std::move(refusal);
  const auto change = work_.managed().cancel(id, key, reason);
  if (!change) return change.error();
  return {};
}

Result<void> CheckAgent::resolve_managed(std::string_view id, std::string_view outcome) {
  if (auto refusal = work_refusal()) return *std::move(refusal);
  const auto change = work_.managed().resolve(id, outcome);
  if (!change) return change.error();
  return {};
}

Result<void> CheckAgent::retry_managed(std::string_view id) {
  if (auto refusal = work_refusal()) return *std::move(refusal);
  return work_.managed().retry(id);
}

Result<std::uint64_t> CheckAgent::remove_managed(const durable::ManagedFilter& filter) {
  if (auto refusal = work_refusal()) return *std::move(refusal);
  return work_.managed().remove(filter);
}

// ---- hearth.http/1 ------------------------------------------------------------------------------

Result<runtime::RequestView> CheckAgent::request(runtime::CallId id) {
  const auto found = calls_.find(id);
  if (found == calls_.end() || found->second.kind != EventKind::kRequest)
    return gone("there is no such request");
  const auto state = found->second.state;
  if (state != CheckCall::State::kOffered && state != CheckCall::State::kAccepted)
    return gone("it is answered");
  return runtime::RequestView{
      .target = "/agents/check/it/sub?x=1", .headers = &request_headers_, .response = &response_};
}

}  // namespace hearth::plugins
