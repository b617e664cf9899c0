#include "mock/live_instance.hpp"

#include "extensions/abi_status.hpp"
#include "extensions/call.hpp"
#include "extensions/call_rules.hpp"
#include "extensions/fibers.hpp"
#include "extensions/operations.hpp"
#include "mock/mock_sub_agents.hpp"

#include <hearth/ext/offload.h>
#include <hearth/ext/schema.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

namespace hearth::mock {
namespace {

using extensions::EventKind;

storage::AgentDatabaseOptions options_of(std::uint32_t class_schema) {
  storage::AgentDatabaseOptions options;
  options.class_schema = class_schema;
  return options;
}

std::uint32_t schema_in(const hearth_class& definition) {
  if (!HEARTH_HAS(&definition, hearth_class, get_extension)) return 0;
  const auto* const schema = static_cast<const hearth_schema_v1*>(
      definition.get_extension(&definition, HEARTH_EXT_SCHEMA));
  return schema == nullptr ? 0 : schema->version;
}

Error gone(std::string_view what) {
  return Error{Errc::kNotFound, "no such " + std::string(what)};
}

}  // namespace

// ---- life ---------------------------------------------------------------------------------------

LiveInstance::LiveInstance(InstanceParts parts)
    : AgentContext({.handle = parts.world.instances.next_handle(),
                    .key = parts.key,
                    .settings = parts.settings,
                    .database = database_,
                    .clock = parts.world.clock,
                    .work = work_,
                    .calls = *this,
                    .clients = parts.clients,
                    .watchers = *this,
                    .ports = {.http = &parts.world.http,
                              .agents = parts.world.agents,
                              .sub_agents = parts.world.sub_agents}}),
      parts_(std::move(parts)),
      database_(parts_.file, parts_.key, options_of(schema_in(parts_.definition))),
      work_(database_, parts_.key, parts_.world.clock, parts_.world.random, parts_.settings,
            parts_.steps, stops_) {
  parts_.world.instances.add(*this);
}

LiveInstance::~LiveInstance() {
  parts_.world.instances.remove(*this);
}

std::optional<durable::Effect> LiveInstance::listed_effect(std::string_view kind) const {
  const hearth_class& definition = parts_.definition;
  if (!HEARTH_HAS(&definition, hearth_class, get_extension)) return std::nullopt;
  const auto* const kinds = static_cast<const hearth_operation_kinds_v1*>(
      definition.get_extension(&definition, HEARTH_EXT_OPERATION_KINDS));
  return extensions::effect_in(extensions::operation_kinds(kinds), kind);
}

std::uint32_t LiveInstance::schema_of_class() const {
  return schema_in(parts_.definition);
}

void LiveInstance::start(std::function<void()> give_up) {
  const std::uint32_t known = schema_of_class();
  if (database_.class_schema() > known)
    throw std::runtime_error("the agent's data has schema version " +
                             std::to_string(database_.class_schema()) +
                             ", but the class knows only " + std::to_string(known));
  work_.load();
  const bool migrates = database_.exists() && database_.class_schema() < known;
  LentBytes lent;
  const hearth_status status = parts_.definition.create(
      &parts_.definition, parts_.world.table, handle(), lent.lend(parts_.key.own_name()),
      lent.lend(parts_.settings.options), &instance_);
  if (status != HEARTH_OK) instance_ = nullptr;
  leave();
  if (status != HEARTH_OK)
    throw std::runtime_error(refusal_.empty() ? "create: " + extensions::status_name(status)
                                              : refusal_);
  if (migrates) {
    deliver_migrate();
    if (migrated_) finish_migration();
  } else {
    deliver_start();
  }
  if (start_failure_) throw std::runtime_error(*start_failure_);
  give_up_ = std::move(give_up);
}

void LiveInstance::deliver_start() {
  deliver({.kind = EventKind::kStart, .then = [this](const Result<std::string_view>& outcome) {
             if (outcome) {
               started_ = true;
             } else {
               fail_start(outcome.error().message);
             }
           }});
}

void LiveInstance::deliver_migrate() {
  migrating_ = true;
  deliver({.kind = EventKind::kMigrate,
           .body = R"({"from":)" + std::to_string(database_.class_schema()) + R"(,"to":)" +
                   std::to_string(schema_of_class()) + "}",
           .then = [this](const Result<std::string_view>& outcome) { migrated(outcome); }});
}

// A class that adds its first schema version need not handle MIGRATE; a class with a further
// version must.
void LiveInstance::migrated(const Result<std::string_view>& outcome) {
  const bool ignored = outcome.has_error() && outcome.error().code == Errc::kUnsupported;
  if (outcome.has_error() && !(ignored && database_.class_schema() == 0))
    return fail_start(ignored ? "on_migrate: the class does not say how" : outcome.error().message);
  migrated_ = true;
  if (!give_up_) return;  // start() continues
  // Post it: the instance is still inside the call that has ended the migration.
  parts_.world.soon.push_back([its = handle(), &instances = parts_.world.instances] {
    if (LiveInstance* const self = instances.find_instance(its)) self->finish_migration();
  });
}

void LiveInstance::finish_migration() {
  database_.store_class_schema(schema_of_class());
  migrating_ = false;
  end_turn();
  deliver_start();
}

void LiveInstance::fail_start(std::string why) {
  start_failure_ = std::move(why);
  if (give_up_) parts_.world.soon.push_back(give_up_);
}

durable::Wake LiveInstance::end(bool on_purpose) {
  if (on_purpose && broken_.empty() && !migrating_) {
    end_turn();
    work_.interrupt_on_purpose();
    database_.commit();
  }
  durable::Wake wake = work_.wake();
  wake.working = wake.working || extensions().keeps_alive();
  closing_ = true;
  if (instance_ != nullptr) parts_.definition.destroy(std::exchange(instance_, nullptr));
  lent_.recall();
  statements_.clear();
  for (const auto& [id, operation] : std::exchange(operations_, {})) {
    if (operation.operation == HEARTH_OP_OFFLOAD && !operation.over)
      static_cast<void>(call_job(operation.job, 1));
  }
  for (const auto& [id, call] : std::exchange(calls_, {})) {
    if (call.event.origin && call.event.then)
      call.event.then(Error{Errc::kClosing, "the agent left; try again"});
  }
  extensions().release();
  work_.close();
  if (on_purpose) database_.close();
  return wake;
}

extensions::AgentPhase LiveInstance::phase() const {
  using extensions::AgentPhase;
  if (closing_) return AgentPhase::kClosing;
  if (migrating_) return AgentPhase::kMigrating;
  return started_ ? AgentPhase::kRunning : AgentPhase::kStarting;
}

// ---- turns --------------------------------------------------------------------------------------

Result<void> LiveInstance::enter(hearth_event event, std::string_view name, std::string_view body) {
  LentBytes lent;
  event.struct_size = sizeof event;
  event.name = lent.lend(name);
  event.body = lent.lend(body);
  refusal_.clear();
  works_for_fiber_ = false;
  const hearth_status status = parts_.definition.on_event(instance_, &event);
  leave();
  if (status == HEARTH_OK) return {};
  return Error{extensions::to_errc(status),
               refusal_.empty() ? extensions::status_name(status) : refusal_};
}

// The agent's code has returned: all bytes that it was lent become invalid.
void LiveInstance::leave() {
  lent_.recall();
  end_turn();
}

void LiveInstance::end_turn() {
  try {
    extensions().end_turn();
    tell_changes();
    commit_now();
  } catch (const StorageError& failure) {
    storage_failed(failure.what());
  }
  if (!broken_.empty()) throw std::runtime_error("the agent's storage has failed: " + broken_);
  if (!misuse_.empty()) throw std::logic_error(std::exchange(misuse_, {}));
  parts_.clients.show();
}

void LiveInstance::commit_now() {
  if (migrating_ || !broken_.empty()) return;
  database_.commit();
  stops_.committed();
  if (!database_.checkpoint_due()) return;
  if (const std::string failure = database_.checkpoint(); !failure.empty()) storage_failed(failure);
}

void LiveInstance::storage_failed(std::string_view what) {
  if (broken_.empty()) broken_ = what;
}

Result<void> LiveInstance::evict() {
  evict_requested_ = true;
  return {};
}

Result<void> LiveInstance::destroy() {
  destroy_requested_ = true;
  return {};
}

void LiveInstance::function_begins(hearth_statement statement) {
  lent_before_ = lent_.count();
  if (statement == 0) return;
  StatementBytes& its = statements_[statement];
  its.before = its.bytes.count();
}

hearth_bytes LiveInstance::lend(std::string_view bytes, hearth_statement statement) {
  return statement == 0 ? lent_.lend(bytes) : statements_[statement].bytes.lend(bytes);
}

void LiveInstance::function_ends(hearth_statement statement) {
  lent_.recall_first(lent_before_);
  const auto its = statements_.find(statement);
  if (its == statements_.end()) return;
  its->second.bytes.recall_first(its->second.before);
  if (its->second.bytes.count() == 0) statements_.erase(its);
}

// ---- events -------------------------------------------------------------------------------------

void LiveInstance::deliver(Incoming event) {
  const extensions::CallId id = ++last_call_;
  hearth_event abi_event = {};
  abi_event.kind = static_cast<std::uint32_t>(event.kind);
  abi_event.call = id;
  abi_event.connection = event.connection;
  abi_event.flags = event.flags;
  const std::string name = std::move(event.name);
  const std::string body = std::move(event.body);
  const EventKind kind = event.kind;
  const StateChain chain = event.state_chain;
  if (event.record) event.record->id = id;
  if (event.begun) event.begun();
  const bool runs_method = extensions::rule_of(kind).runs_method;
  calls_[id] = {.event = std::move(event),
                .runs_alone = runs_method && call_order().runs_alone(kind, name)};
  std::shared_ptr<extensions::StateCause> cause;
  if (chain) cause = std::make_shared<extensions::StateCause>(extensions::StateCause{chain});
  const auto before = std::exchange(state_cause_, cause);
  const Result<void> accepted = enter(abi_event, name, body);
  state_cause_ = before;
  if (cause) cause->has_waited = true;
  if (!accepted.has_error()) return;
  if (!calls_.contains(id)) throw std::logic_error("the plugin completed an event that it refused");
  if (accepted.error().code == Errc::kUnsupported && extensions::rule_of(kind).may_ignore) {
    finish(id, std::string_view());
  } else {
    finish(id, accepted.error());
  }
  end_turn();
}

Result<void> LiveInstance::ask(EventKind kind, extensions::ConnectionId connection,
                               std::string_view name, std::string_view body) {
  hearth_event event = {};
  event.kind = static_cast<std::uint32_t>(kind);
  event.connection = connection;
  return enter(event, name, body);
}

bool LiveInstance::holds_up(const Incoming& event) const {
  const bool runs_alone = call_order().runs_alone(event.kind, event.name);
  return std::ranges::any_of(calls_, [&](const auto& each) {
    const Call& call = each.second;
    return extensions::rule_of(call.event.kind).runs_method && (runs_alone || call.runs_alone);
  });
}

void LiveInstance::abandon(extensions::CallId call) {
  if (!calls_.contains(call)) return;
  finish(call, Error{Errc::kCancelled, "cancelled"});
  parts_.definition.on_cancel(instance_, call);
  leave();
}

std::vector<std::shared_ptr<CallRecord>> LiveInstance::open_records() const {
  std::vector<std::shared_ptr<CallRecord>> records;
  for (const auto& [id, call] : calls_) {
    if (call.event.record) records.push_back(call.event.record);
  }
  return records;
}

Result<void> LiveInstance::complete(extensions::CallId id,
                                    const Result<std::string_view>& outcome) {
  if (id == 0 && outcome.has_error()) {
    refusal_ = outcome.error().message;
    return {};
  }
  const auto found = calls_.find(id);
  if (found == calls_.end()) return gone("call: it was completed or cancelled");
  const Incoming& event = found->second.event;
  if (event.work && in_transaction())
    return Error{Errc::kInvalidArgument, "not while a transaction of the agent's own is open"};
  extensions::Answer answer = extensions::judge_answer(event.kind, outcome);
  finish(id, answer.outcome);
  return std::move(answer.returned);
}

void LiveInstance::finish(extensions::CallId id, const Result<std::string_view>& outcome) {
  const auto found = calls_.find(id);
  const Call call = std::move(found->second);
  calls_.erase(found);
  if (const auto& record = call.event.record) {
    record->done = true;
    record->status = outcome ? HEARTH_OK : extensions::to_status(outcome.error().code);
    record->body = outcome ? std::string(*outcome) : outcome.error().message;
    record->http_status = call.head.status;
    record->response_headers = call.head.headers;
  }
  if (call.event.work) {
    work_.ended(*call.event.work, outcome);
    extensions::tell_clients_of_turns(clients(), work_);
  }
  if (call.event.then) call.event.then(outcome);
}

Result<void> LiveInstance::emit(extensions::CallId id, std::string_view part) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return gone("call");
  Call& call = found->second;
  if (Result<void> taken = extensions::check_part(call.event.kind, part); taken.has_error())
    return taken;
  const Client* const client = parts_.clients.find_client(call.event.connection);
  if (call.event.connection != 0 && (client == nullptr || !client->seen->open))
    return gone("caller: the client has left");
  if (call.event.abandoned && call.event.abandoned()) return gone("caller: it has left");
  if (call.event.part) call.event.part(part);
  call.part_sent = true;
  if (const auto& record = call.event.record) {
    record->http_status = call.head.status;
    record->response_headers = call.head.headers;
    record->parts.emplace_back(part);
  }
  return {};
}

extensions::CallOrigin LiveInstance::origin(extensions::CallId id) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return {};
  const Call& call = found->second;
  const Incoming& event = call.event;
  return {.origin = event.origin,
          .due = {},
          .is_in_progress = true,
          .holds_calls = extensions::rule_of(event.kind).runs_method && call_order().holds_calls(),
          .runs_alone = call.runs_alone,
          .trace = event.origin ? event.origin->trace : std::string()};
}

Result<extensions::RequestView> LiveInstance::request(extensions::CallId id) {
  const auto found = calls_.find(id);
  if (found == calls_.end() || (found->second.event.kind != EventKind::kRequest &&
                                found->second.event.kind != EventKind::kSubAgent))
    return gone("request");
  Call& call = found->second;
  return extensions::RequestView{.target = call.event.target,
                                 .headers = &call.event.headers,
                                 .response = call.part_sent ? nullptr : &call.head,
                                 .claims = call.event.claims,
                                 .body = &call.event.reader};
}

// ---- state --------------------------------------------------------------------------------------

Result<void> LiveInstance::may_change() {
  return state_cause_ ? extensions::count_own_change(*state_cause_) : Result<void>();
}

void LiveInstance::changed(extensions::ConnectionId source, std::string_view json,
                           std::uint64_t write) {
  changes_.push_back(
      {source, std::string(json), write, state_cause_ ? state_cause_->changes : nullptr});
  if (!in_transaction()) tell_changes();
}

void LiveInstance::undone(std::uint64_t last_write) {
  std::erase_if(changes_, [last_write](const Change& each) { return each.write > last_write; });
}

void LiveInstance::tell_changes() {
  for (const Change& each : std::exchange(changes_, {}))
    parts_.state_changed(each.source, each.json, each.chain);
}

// ---- what is due --------------------------------------------------------------------------------

bool LiveInstance::step() {
  return start_remote() || run_job() || deliver_remote() || deliver_result() || deliver_work() ||
         send_notice();
}

bool LiveInstance::send_notice() {
  if (!started_) return false;
  std::optional<durable::NoticeDelivery> due = work_.next_notice();
  end_turn();  // it counts as begun even if a kill ends it
  if (!due) return false;
  Operation& added = operations_[++last_operation_];
  added.due = SteadyTime::max();
  added.notice = due->id;
  added.remote = std::make_shared<Remote>();
  added.remote->operation =
      parts_.world.agents->call(extensions::call_of(parts_.key, std::move(*due)));
  return true;
}

void LiveInstance::tell_what_it_missed(extensions::Client& client) {
  if (!client.protocol_enabled()) return;
  for (const std::string& frame : extensions::missed_frames(work_))
    clients().send(client, extensions::FrameKind::kText, frame);
}

bool LiveInstance::deliver_work() {
  if (!started_) return false;
  std::optional<extensions::DueWork> due = work_.next(true);
  end_turn();  // it counts as begun even if a kill ends it
  extensions::tell_clients_of_turns(clients(), work_);
  if (!due) return false;
  if (due->kind == EventKind::kOperationUnknown)
    extensions::tell_clients_of_unknown(clients(), *due);
  if (due->step) work_.report(*due->step, due->id, due->name);
  Incoming event{.kind = due->kind, .name = due->name, .body = std::exchange(due->body, {})};
  event.work = std::make_unique<extensions::DueWork>(std::move(*due));
  deliver(std::move(event));
  return true;
}

std::optional<SteadyTime> LiveInstance::next_due() const {
  const SteadyTime now = parts_.world.clock.steady_now();
  std::optional<SteadyTime> next;
  const auto at = [&](SteadyTime when) {
    if (when > now && (!next || when < *next)) next = when;
  };
  for (const auto& [id, operation] : operations_) {
    if (operation.operation == HEARTH_OP_SLEEP) at(operation.due);
  }
  // Work that is due already but has not begun waits for something else.
  if (const auto at_ms = work_.wake().at_ms)
    at(now + std::chrono::milliseconds(*at_ms - unix_millis(parts_.world.clock.wall_now())));
  return next;
}

}  // namespace hearth::mock
