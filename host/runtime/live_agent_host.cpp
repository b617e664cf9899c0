// LiveAgent as AgentHost: what the instance may ask. See agent_host.hpp and hearth/abi.h.
#include "base/utf8.hpp"
#include "json/json_scanner.hpp"
#include "runtime/agent_slot.hpp"
#include "runtime/live_agent.hpp"
#include "runtime/shard_services.hpp"

#include <algorithm>

namespace hearth::runtime {
namespace {

constexpr std::size_t kMaxErrorText = 4096;

Error gone(std::string_view what) {
  return Error{Errc::kNotFound, "no such " + std::string(what)};
}

}  // namespace

Result<void> LiveAgent::complete(CallId id, const Result<std::string_view>& outcome) {
  if (id == 0 && outcome.has_error()) {
    refusal_text_ = outcome.error().message.substr(0, kMaxErrorText);
    return {};
  }
  Call* call = calls_.find(id);
  if (call == nullptr) return gone("call: it was completed, cancelled or timed out");
  // The end of durable work is rows: a rollback would undo them, and memory would take the work for
  // done.
  if (call->work && in_transaction()) {
    return Error{Errc::kInvalidArgument, "not while a transaction of the agent's own is open"};
  }
  if (outcome.has_error()) {
    Error error = outcome.error();
    // Only a class that refuses the event recovers or migrates nothing; one that tried and failed
    // is asked again.
    const bool tried =
        call->kind == EventKind::kFiberRecovered || call->kind == EventKind::kMigrate;
    if (tried && error.code == Errc::kUnsupported) error.code = Errc::kPlugin;
    finish(id, *call, Error{error.code, error.message.substr(0, kMaxErrorText)});
    return {};
  }
  const std::string_view body = outcome.value();
  if (body.size() > services_.limits().max_answer_bytes) {
    Error error{Errc::kLimitExceeded, "the agent's answer is too large"};
    finish(id, *call, error);
    return error;
  }
  if (call->kind == EventKind::kCall && !body.empty() && !is_json(body)) {
    finish(id, *call, Error{Errc::kPlugin, "the agent's answer is not JSON"});
    return Error{Errc::kInvalidArgument, "the answer to a call must be JSON"};
  }
  finish(id, *call, body);
  return {};
}

Result<void> LiveAgent::emit(CallId id, std::string_view part) {
  Call* call = calls_.find(id);
  if (call == nullptr) return gone("call");
  if (!rule_of(call->kind).runs_method) {
    return Error{Errc::kUnsupported, "only calls and requests have parts"};
  }
  const bool left = call->connection != 0 && find_connection(call->connection) == nullptr;
  if (!call->sink || left || call->sink->abandoned()) return gone("caller: the client has left");
  if (part.size() > services_.limits().max_answer_bytes) {
    return Error{Errc::kLimitExceeded, "the part is too large"};
  }
  if (call->kind == EventKind::kCall && !is_json(part)) {
    return Error{Errc::kInvalidArgument, "a part of a call's answer must be JSON"};
  }
  call->part_sent = true;
  forbid_another_try(*call);
  if (call->deadline != 0) arm_deadline(id, *call, services_.limits().event_timeout);
  if (outbox_.open()) {
    call->sink->part(call->head, part);
  } else {
    outbox_.push(PartEffect{call->sink, call->connection, call->head, std::string(part)});
  }
  return {};
}

Result<void> LiveAgent::evict() {
  if (shutting_) return Error{Errc::kClosing, "the agent is being evicted"};
  evict_requested_ = true;
  return {};
}

Result<void> LiveAgent::destroy() {
  if (shutting_) return Error{Errc::kClosing, "the agent is being evicted"};
  if (destroy_requested_) return {};
  services_.condemn(slot_.key());
  if (gate_ != nullptr) {
    gate_->directory_written();
    directory_dirty_ = true;
  }
  destroy_requested_ = true;
  return {};
}

void LiveAgent::log(LogLevel level, std::string_view text) {
  services_.logger().write_limited(
      level, "agent.log", {class_->name()},
      {{"class", class_->name()}, {"agent", slot_.key().name}, {"text", text.substr(0, 8192)}},
      Logger::kWorkLimit);
}

// An error with another code is the author's answer to the client, and no news.
void LiveAgent::tell_failure(const Call& call, const Error& error) {
  if (!rule_of(call.kind).runs_method || error.code != Errc::kPlugin) return;
  services_.logger().write_limited(LogLevel::kWarn, "agent.call_failed", {class_->name()},
                                   {{"class", class_->name()},
                                    {"agent", slot_.key().name},
                                    {"event", to_string(call.kind)},
                                    {"method", call.method},
                                    {"error", error.message}});
}

// ---- state --------------------------------------------------------------------------------------

std::optional<std::string_view> LiveAgent::state() {
  if (!state_loaded_) {
    state_ = database_.load_state();
    state_loaded_ = true;
  }
  if (state_) return *state_;
  if (default_state_) return *default_state_;
  return std::nullopt;
}

Result<void> LiveAgent::set_state(ConnectionId on_behalf, std::string_view json) {
  const Connection* client = on_behalf == 0 ? nullptr : find_connection(on_behalf);
  if (client != nullptr && client->readonly()) {
    return Error{Errc::kForbidden, "Connection is readonly"};
  }
  if (json.size() > settings_.max_state_bytes) {
    return Error{Errc::kLimitExceeded, "the state is larger than " +
                                           std::to_string(settings_.max_state_bytes) + " bytes"};
  }
  if (!is_json(json)) return Error{Errc::kInvalidArgument, "the state must be JSON"};
  if (Result<void> counted = count_own_change(); counted.has_error()) return counted;
  store_state(0, json);
  return {};
}

Result<void> LiveAgent::set_default_state(std::string_view json) {
  if (json.size() > settings_.max_state_bytes || !is_json(json)) {
    return Error{Errc::kInvalidArgument, "the default state must be JSON of bounded size"};
  }
  default_state_ = json;
  return {};
}

// `source`: the client that wrote it and is not told, or 0.
void LiveAgent::store_state(ConnectionId source, std::string_view json) {
  // The disk first: if it fails, memory still shows what is stored.
  database_.store_state(json);
  // A copy first: `json` may be a part of the text that it replaces (hearth/abi.h, "Memory").
  state_ = std::string(json);
  state_loaded_ = true;
  const std::uint64_t write = database_.state_writes();
  std::vector<ConnectionId> to;
  for (const ConnectionId id : slot_.connections()) {
    const Connection* client = services_.find_connection(id);
    const bool listening =
        client->state == ConnectionState::kConnecting || client->state == ConnectionState::kOpen;
    if (id != source && listening && !client->closing && client->protocol_enabled()) {
      to.push_back(id);
    }
  }
  if (!to.empty()) {
    outbox_.push(
        FrameEffect{std::move(to), services_.state_frame(*state_), FrameKind::kText, write});
  }
  if (class_->watches_state()) slot_.state_changed(source, *state_, write, state_chain_);
}

// Memory, clients and the instance itself follow the file.
void LiveAgent::state_undone(std::uint64_t last_write) {
  state_loaded_ = false;
  state_.reset();
  outbox_.withdraw_states(last_write);
  slot_.states_undone(last_write);
}

// ---- storage ------------------------------------------------------------------------------------

storage::PluginSql& LiveAgent::sql() {
  if (!sql_) {
    sql_.emplace(database_, services_.loop().clock(), settings_.sql,
                 [this](std::uint64_t last_write) { state_undone(last_write); });
  }
  return *sql_;
}

// ---- connections --------------------------------------------------------------------------------

Connection* LiveAgent::find_connection(ConnectionId id) {
  Connection* connection = services_.find_connection(id);
  return connection != nullptr && connection->slot == &slot_ ? connection : nullptr;
}

ConnectionId LiveAgent::next_connection(ConnectionId after, std::string_view tag) {
  const std::vector<ConnectionId>& all = slot_.connections();
  auto at = all.begin();
  if (after != 0) {
    // A walk through all clients asks for one after the other: begin where the last question ended.
    const bool goes_on = last_position_ < all.size() && all[last_position_] == after;
    at = goes_on ? all.begin() + static_cast<std::ptrdiff_t>(last_position_)
                 : std::ranges::find(all, after);
    if (at != all.end()) ++at;
  }
  for (; at != all.end(); ++at) {
    const Connection* client = services_.find_connection(*at);
    const bool open = (client->state == ConnectionState::kConnecting ||
                       client->state == ConnectionState::kOpen) &&
                      !client->closing;
    if (!open || (!tag.empty() && !client->has_tag(tag))) continue;
    last_position_ = static_cast<std::size_t>(at - all.begin());
    return *at;
  }
  return 0;
}

Result<void> LiveAgent::add_tag(ConnectionId id, std::string_view tag) {
  Connection* client = find_connection(id);
  if (client == nullptr) return gone("connection");
  if (!client->deciding) return Error{Errc::kForbidden, "tags are set while a client connects"};
  if (tag.empty() || tag.size() > Connection::kMaxTagBytes || !is_valid_utf8(tag)) {
    return Error{Errc::kInvalidArgument, "a tag is 1 to 256 bytes of UTF-8"};
  }
  if (client->has_tag(tag)) return {};
  if (client->tags.size() + 1 >= Connection::kMaxTags) {
    return Error{Errc::kLimitExceeded, "a connection has at most 10 tags, its id included"};
  }
  client->tags.emplace_back(tag);
  return {};
}

Result<void> LiveAgent::set_flags(ConnectionId id, std::uint32_t flags) {
  Connection* client = find_connection(id);
  if (client == nullptr) return gone("connection");
  if ((flags & ~(Connection::kReadonly | Connection::kNoProtocol)) != 0) {
    return Error{Errc::kUnsupported, "unknown flag"};
  }
  const bool protocol_changes = ((client->flags ^ flags) & Connection::kNoProtocol) != 0;
  if (protocol_changes && !client->deciding) {
    return Error{Errc::kForbidden, "the protocol is switched off while a client connects"};
  }
  client->flags = flags;
  return {};
}

Result<void> LiveAgent::set_attachment(ConnectionId id, std::string_view bytes) {
  Connection* client = find_connection(id);
  if (client == nullptr) return gone("connection");
  if (bytes.size() > Connection::kMaxAttachmentBytes) {
    return Error{Errc::kLimitExceeded, "an attachment has at most 16 KiB"};
  }
  client->attachment = bytes;
  return {};
}

void LiveAgent::send_frame(std::vector<ConnectionId> to, std::string_view payload, FrameKind kind) {
  outbox_.push(FrameEffect{std::move(to), std::string(payload), kind});
}

Result<void> LiveAgent::send(ConnectionId id, FrameKind kind, std::string_view payload) {
  Connection* client = find_connection(id);
  if (client == nullptr || client->closing || client->state == ConnectionState::kClosed) {
    return gone("connection");
  }
  if (client->state == ConnectionState::kWaiting) {
    return Error{Errc::kForbidden, "the client is not connected yet: its handshake comes first"};
  }
  if (payload.size() > services_.limits().max_answer_bytes) {
    return Error{Errc::kLimitExceeded, "the frame is too large"};
  }
  if (kind == FrameKind::kText && !is_valid_utf8(payload)) {
    return Error{Errc::kInvalidArgument, "a text frame must be UTF-8"};
  }
  if (outbox_.open()) {
    client->port->send(payload, kind);  // the hot path of an echo: nothing is copied here
  } else {
    outbox_.push(FrameEffect{{id}, std::string(payload), kind});
  }
  return {};
}

Result<void> LiveAgent::broadcast(FrameKind kind, std::string_view payload, std::string_view tag,
                                  std::span<const ConnectionId> except) {
  if (payload.size() > services_.limits().max_answer_bytes) {
    return Error{Errc::kLimitExceeded, "the frame is too large"};
  }
  if (kind == FrameKind::kText && !is_valid_utf8(payload)) {
    return Error{Errc::kInvalidArgument, "a text frame must be UTF-8"};
  }
  std::vector<ConnectionId> to;
  for (const ConnectionId id : slot_.connections()) {
    const Connection* client = services_.find_connection(id);
    const bool open = (client->state == ConnectionState::kConnecting ||
                       client->state == ConnectionState::kOpen) &&
                      !client->closing;
    if (open && (tag.empty() || client->has_tag(tag)) &&
        std::ranges::find(except, id) == except.end()) {
      to.push_back(id);
    }
  }
  if (!to.empty()) send_frame(std::move(to), payload, kind);
  return {};
}

Result<void> LiveAgent::close(ConnectionId id, std::uint32_t code, std::string_view reason) {
  Connection* client = find_connection(id);
  if (client == nullptr || client->closing) return gone("connection");
  if (!is_agents_close_code(code)) {
    return Error{Errc::kInvalidArgument,
                 "not a close code that may be sent: " + std::to_string(code)};
  }
  if (reason.size() > kMaxCloseReason || !is_valid_utf8(reason)) {
    return Error{Errc::kInvalidArgument, "a close reason is at most 123 bytes of UTF-8"};
  }
  client->closing = true;
  outbox_.push(CloseEffect{id, static_cast<std::uint16_t>(code), std::string(reason)});
  return {};
}

// ---- HTTP ---------------------------------------------------------------------------------------

Result<RequestView> LiveAgent::request(CallId id) {
  Call* call = calls_.find(id);
  if (call == nullptr || !call->request) return gone("request");
  return RequestView{call->request->target, &call->request->headers,
                     call->part_sent ? nullptr : &call->head};
}

}  // namespace hearth::runtime
