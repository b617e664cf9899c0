#include "mock/stored_agent.hpp"

#include "base/close_codes.hpp"
#include "durable/jobs.hpp"
#include "extensions/keep_alive.hpp"
#include "extensions/state.hpp"
#include "json/json.hpp"
#include "mock/mock_sub_agents.hpp"
#include "storage/plugin_sql.hpp"
#include "storage/statement.hpp"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

namespace hearth::mock {
namespace {

using extensions::EventKind;
using testing::FiberRecord;

// The number is unique in the process, as a socket's is.
std::uint64_t next_client() {
  static std::uint64_t last = 0;
  return ++last;
}

Json column(storage::PluginSql& sql, storage::StatementHandle statement, int place) {
  using storage::ColumnType;
  switch (*sql.column_type(statement, place)) {
    case ColumnType::kInteger: return *sql.column_int64(statement, place);
    case ColumnType::kDouble: return *sql.column_double(statement, place);
    case ColumnType::kNull: return nullptr;
    default: return std::string(*sql.column_text(statement, place));
  }
}

extensions::OriginPtr origin_with(std::string claims) {
  auto origin = std::make_shared<extensions::Origin>();
  origin->claims = std::move(claims);
  return origin;
}

// All pages of a listing, the oldest first.
template <class List>
std::string all_of(List list, bool newest_first) {
  Json all = Json::array();
  std::string after;
  for (;;) {
    const Result<std::string> text = list(after);
    if (text.has_error()) throw std::runtime_error(text.error().message);
    const Json page = *parse_host_json(*text);
    if (page.empty()) break;
    for (const Json& each : page) all.push_back(each);
    after = text_member(page.back(), "id");
  }
  if (newest_first) std::reverse(all.begin(), all.end());
  return dump_json(all);
}

bool is_refusal(const Result<void>& outcome) {
  return outcome.has_error() && outcome.error().code != Errc::kUnsupported;
}

}  // namespace

// Opens the database and the work of an agent that is not in memory, only to read: nothing is
// committed.
struct StoredAgent::Stored {
  explicit Stored(StoredAgent& agent)
      : database(agent.file_, agent.key_),
        work(database, agent.key_, agent.world_.clock, agent.world_.random, agent.settings_, events,
             stops) {
    work.load();
  }
  ~Stored() { work.close(); }
  Stored(const Stored&) = delete;
  Stored& operator=(const Stored&) = delete;

  WorkSteps events;
  StopPointsAtCommit stops;
  storage::AgentDatabase database;
  extensions::DurableWork work;
};

StoredAgent::StoredAgent(World& world, const hearth_class& definition, std::filesystem::path file,
                         storage::AgentKey key, std::string options)
    : world_(world),
      definition_(&definition),
      exclusive_(extensions::exclusive_methods(definition)),
      file_(std::move(file)),
      key_(std::move(key)),
      target_("/agents/agent-under-test/" + key_.root().name +
              (key_.is_sub_agent() ? "/sub/agent-under-test/" + key_.own_name() : "")) {
  settings_.options = std::move(options);
}

StoredAgent::~StoredAgent() {
  try {
    end_instance(false);
  } catch (const std::exception& failure) {
    world_.log.add(LogLevel::kError, failure.what());
  }
}

// ---- life ---------------------------------------------------------------------------------------

void StoredAgent::activate() {
  if (live_) return;
  auto live = std::make_unique<LiveInstance>(InstanceParts{
      .world = world_,
      .definition = *definition_,
      .settings = settings_,
      .exclusive = exclusive_,
      .key = key_,
      .file = file_,
      .clients = clients_,
      .steps = steps_,
      .state_changed = [this](extensions::ConnectionId source, const std::string& json,
                              StateChain chain) { show_change(source, json, std::move(chain)); }});
  live_ = std::move(live);
  wake_ = {};
  if (!created_at_ms_) created_at_ms_ = unix_millis(world_.clock.wall_now());
  ++activations_;
  try {
    live_->start([this, its = live_->handle()] {
      if (live_ && live_->handle() == its) end_instance(true);
    });
  } catch (...) {
    --activations_;
    end_instance(true);
    throw;
  }
}

void StoredAgent::end_instance(bool on_purpose) {
  if (!live_) return;
  wake_ = live_->end(on_purpose);
  live_.reset();
}

void StoredAgent::destroy_for_good() {
  auto unanswered = live_ ? live_->open_records() : std::vector<std::shared_ptr<CallRecord>>();
  for (const Incoming& event : std::exchange(held_up_, {})) {
    if (event.record) unanswered.push_back(event.record);
    if (event.then) event.then(Error{Errc::kNotFound, "the agent was destroyed"});
  }
  end_instance(false);
  for (const auto& record : unanswered) {
    record->done = true;
    record->status = HEARTH_E_NOT_FOUND;
    record->body = "the agent was destroyed";
  }
  for (auto& [id, client] : clients_.by_id()) {
    if (!client.seen->open) continue;
    client.seen->open = false;
    client.seen->close_code = kCloseDestroyed;
    client.seen->close_reason = "the agent was destroyed";
  }
  clients_.clear();
  waiting_.clear();
  wake_ = {};
  for (const char* const suffix : {"", "-wal", "-shm", "-journal"})
    std::filesystem::remove(file_.string() + suffix);
  ++destructions_;
  created_at_ms_.reset();
  world_.sub_agents->destroyed(key_);
}

void StoredAgent::wake() {
  activate();
  world_.settle();
}

void StoredAgent::evict(std::uint32_t reason, std::uint64_t grace_ns) {
  if (!live_) return;
  if (grace_ns > 0) {
    auto record = std::make_shared<CallRecord>();
    send({.kind = EventKind::kEvict, .flags = reason, .record = record});
    world_.settle();
    if (!record->done) world_.advance(std::chrono::nanoseconds(grace_ns));
  }
  end_instance(true);
  world_.settle();
}

void StoredAgent::kill() {
  for (auto& [id, client] : clients_.by_id()) {
    client.seen->open = false;
    client.seen->close_code = kCloseAbnormal;
  }
  clients_.clear();
  end_turn();
  end_instance(false);
  world_.settle();
}

void StoredAgent::become(const hearth_class& definition) {
  evict(0, 0);
  definition_ = &definition;
  exclusive_ = extensions::exclusive_methods(definition);
}

void StoredAgent::end_turn() {
  if (live_) live_->end_turn();
}

bool StoredAgent::step() {
  if (live_ && live_->destroy_requested()) {
    destroy_for_good();
    return true;
  }
  if (live_ && live_->evict_requested()) {
    end_instance(true);
    return true;
  }
  const auto run_first = [](std::deque<std::function<void()>>& steps) {
    const auto next = std::move(steps.front());
    steps.pop_front();
    next();
    return true;
  };
  if (live_ && live_->started() && !waiting_.empty()) return run_first(waiting_);
  if (!held_up_.empty() && !must_wait(held_up_.front())) {
    Incoming next = std::move(held_up_.front());
    held_up_.pop_front();
    begin(std::move(next));
    return true;
  }
  if (live_ && live_->step()) return true;
  for (auto& [id, client] : clients_.by_id()) {
    if (client.greeted && !client.waiting.empty()) return run_first(client.waiting);
    if (client.seen->open || !client.greeted || client.close_sent) continue;
    send_close(client);
    return true;
  }
  return false;
}

void StoredAgent::wake_if_due() {
  const bool due =
      wake_.working || (wake_.at_ms && *wake_.at_ms <= unix_millis(world_.clock.wall_now()));
  if (live_ || !due) return;
  try {
    activate();
  } catch (const std::exception& failure) {
    world_.log.add(LogLevel::kWarn, "the agent cannot wake: " + std::string(failure.what()));
  }
}

std::optional<SteadyTime> StoredAgent::next_due() const {
  if (live_) return live_->next_due();
  if (!wake_.at_ms) return std::nullopt;
  return world_.clock.steady_now() +
         std::chrono::milliseconds(*wake_.at_ms - unix_millis(world_.clock.wall_now()));
}

// ---- events -------------------------------------------------------------------------------------

bool StoredAgent::must_wait(const Incoming& event) const {
  return extensions::rule_of(event.kind).runs_method && live_ && live_->holds_up(event);
}

void StoredAgent::send(Incoming event) {
  const auto rule = extensions::rule_of(event.kind);
  const Client* const client = clients_.find_client(event.connection);
  if (client != nullptr && rule.sender == EventSender::kClient) event.origin = client->known.origin;
  const bool may_pass = !settings_.serial_calls && event.origin && event.origin->is_agent();
  const bool is_behind = rule.runs_method && !held_up_.empty() && !may_pass;
  if (must_wait(event) || is_behind) return held_up_.push_back(std::move(event));
  begin(std::move(event));
}

void StoredAgent::begin(Incoming event) {
  try {
    activate();
  } catch (const std::exception& failure) {
    const Error error{Errc::kPlugin, failure.what()};
    if (event.record) {
      event.record->done = true;
      event.record->status = HEARTH_E_PLUGIN;
      event.record->body = error.message;
    }
    if (event.then) event.then(error);
    return;
  }
  if (live_->started()) return live_->deliver(std::move(event));
  auto shared = std::make_shared<Incoming>(std::move(event));
  waiting_.push_back([this, shared] {
    if (must_wait(*shared)) return held_up_.push_back(std::move(*shared));
    live_->deliver(std::move(*shared));
  });
}

std::shared_ptr<const CallRecord> StoredAgent::call(std::uint64_t client, std::string_view method,
                                                    std::string_view arguments,
                                                    std::string claims) {
  auto record = std::make_shared<CallRecord>();
  send({.kind = EventKind::kCall,
        .connection = client,
        .name = std::string(method),
        .body = std::string(arguments),
        .origin = origin_with(std::move(claims)),
        .record = record});
  world_.settle();
  return record;
}

void StoredAgent::cancel(const CallRecord& call) {
  if (!call.done && live_) live_->abandon(call.id);
  world_.settle();
}

std::shared_ptr<const CallRecord> StoredAgent::request(std::string_view method,
                                                       std::string_view path, std::string_view body,
                                                       testing::Headers headers,
                                                       std::string claims) {
  auto record = std::make_shared<CallRecord>();
  send({.kind = EventKind::kRequest,
        .name = std::string(method),
        .body = std::string(body),
        .target = target_ + std::string(path),
        .headers = std::move(headers),
        .claims = std::move(claims),
        .record = record});
  world_.settle();
  return record;
}

// ---- agents below -------------------------------------------------------------------------------

testing::detail::MockAgent& StoredAgent::below(const hearth_class& definition,
                                               std::string agent_class, std::string_view name,
                                               std::string options) {
  if (!storage::is_sub_agent_name(name) || key_.depth() >= storage::AgentKey::kMaxDepth)
    throw std::runtime_error("no agent below this one can be called \"" + std::string(name) + "\"");
  return world_.agent_of(definition, key_.child(agent_class, name), std::move(options));
}

std::shared_ptr<const CallRecord> StoredAgent::ask_for_sub_agent(std::string_view agent_class,
                                                                 std::string_view name,
                                                                 std::string_view query,
                                                                 testing::Headers headers) {
  auto record = std::make_shared<CallRecord>();
  send({.kind = EventKind::kSubAgent,
        .name = std::string(agent_class),
        .body = std::string(name),
        .target = target_ + "/sub/" + std::string(agent_class) + "/" + std::string(name) +
                  (query.empty() ? "" : "?" + std::string(query)),
        .headers = std::move(headers),
        .record = record});
  world_.settle();
  return record;
}

// ---- clients ------------------------------------------------------------------------------------

std::shared_ptr<ClientRecord> StoredAgent::connect(std::string_view query, std::string id,
                                                   testing::Headers headers, std::string claims) {
  activate();
  auto seen = std::make_shared<ClientRecord>();
  seen->number = next_client();
  seen->id = id.empty() ? "client-" + std::to_string(seen->number) : std::move(id);
  Client& client = clients_.add(seen);
  client.known.target = target_ + (query.empty() ? "" : "?" + std::string(query));
  client.known.headers = std::move(headers);
  client.known.origin = origin_with(std::move(claims));
  client.known.deciding = true;
  const Result<void> decision =
      live_->ask(EventKind::kConnecting, seen->number, client.known.target, {});
  client.known.deciding = false;
  if (is_refusal(decision) && seen->open) {
    seen->open = false;
    seen->close_code =
        decision.error().code == Errc::kForbidden ? kCloseForbidden : kCloseInternalError;
  }
  if (!seen->open) {
    clients_.remove(seen->number);
    return seen;
  }
  if (client.known.protocol_enabled()) {
    if (auto shown = state()) seen->state = std::move(shown);
  }
  client.known.state = extensions::ConnectionState::kConnecting;
  if (live_) live_->tell_what_it_missed(client.known);
  send({.kind = EventKind::kConnect,
        .connection = seen->number,
        .name = client.known.target,
        .then = [this, number = seen->number](const Result<std::string_view>& outcome) {
          greet(number, outcome);
        }});
  world_.settle();
  return seen;
}

void StoredAgent::greet(extensions::ConnectionId id, const Result<std::string_view>& outcome) {
  Client* const client = clients_.find_client(id);
  if (client == nullptr) return;
  client->greeted = true;
  client->known.headers.clear();
  if (client->known.state == extensions::ConnectionState::kConnecting)
    client->known.state = extensions::ConnectionState::kOpen;
  if (!outcome.has_error() || !client->seen->open) return;
  client->known.closing = true;
  clients_.close(client->known, kCloseInternalError, "");
}

void StoredAgent::receive(const ClientRecord& from, std::string_view frame, bool binary) {
  Client* const client = clients_.find_client(from.number);
  if (client == nullptr || !from.open) return;
  auto deliver = [this, number = from.number, text = std::string(frame), binary] {
    send({.kind = EventKind::kMessage,
          .connection = number,
          .body = text,
          .flags =
              binary ? std::uint32_t{HEARTH_MESSAGE_BINARY} : std::uint32_t{HEARTH_MESSAGE_TEXT}});
  };
  if (client->greeted && client->waiting.empty()) {
    deliver();
  } else {
    client->waiting.emplace_back(std::move(deliver));
  }
  world_.settle();
}

void StoredAgent::set_state(ClientRecord& seen, std::string_view json) {
  if (!seen.open) return;
  if ((seen.flags & extensions::Client::kReadonly) != 0) {
    seen.errors.emplace_back("Connection is readonly");
    return;
  }
  activate();
  if (has(HEARTH_CLASS_CHECKS_STATE) &&
      is_refusal(live_->ask(EventKind::kStateCheck, seen.number, {}, json))) {
    seen.errors.emplace_back("State update rejected");
    return;
  }
  seen.state = json;
  live_->of<extensions::StateExtension>().store(seen.number, json);
  world_.settle();
}

void StoredAgent::leave(ClientRecord& seen, unsigned code, std::string reason, bool clean) {
  if (!seen.open) return;
  seen.open = false;
  seen.close_code = code;
  seen.close_reason = std::move(reason);
  seen.close_clean = clean;
  world_.settle();
}

// The number of a client is valid until its CLOSE has ended.
void StoredAgent::send_close(Client& client) {
  client.close_sent = true;
  client.known.state = extensions::ConnectionState::kClosed;
  const extensions::ConnectionId number = client.known.id;
  send({.kind = EventKind::kClose,
        .connection = number,
        .name = client.seen->close_reason,
        .flags = client.seen->close_code |
                 (client.seen->close_clean ? std::uint32_t{HEARTH_CLOSE_WAS_CLEAN} : 0U),
        .then = [this, number](const Result<std::string_view>& /*outcome*/) {
          world_.soon.emplace_back([this, number] { clients_.remove(number); });
        }});
}

void StoredAgent::show_change(extensions::ConnectionId source, const std::string& json,
                              StateChain chain) {
  clients_.show_state(json, source);
  if (!has(HEARTH_CLASS_WATCHES_STATE)) return;
  if (!chain) chain = std::make_shared<unsigned>(0);
  world_.soon.emplace_back([this, source, json, chain = std::move(chain)] {
    send({.kind = EventKind::kStateChanged,
          .connection = source,
          .body = json.empty() ? "null" : json,
          .state_chain = chain});
  });
}

// ---- questions ----------------------------------------------------------------------------------

template <class Use>
auto StoredAgent::with_stored(Use use) {
  if (live_) return use(live_->database(), live_->durable_work());
  Stored stored(*this);
  return use(stored.database, stored.work);
}

std::optional<std::string> StoredAgent::state() {
  if (live_) {
    const auto shown = live_->of<extensions::StateExtension>().get();
    return shown ? std::optional<std::string>(*shown) : std::nullopt;
  }
  return with_stored([](auto& database, auto& /*work*/) { return database.load_state(); });
}

std::size_t StoredAgent::keep_alive() const {
  using extensions::KeepAliveExtension;
  const auto* const part = live_ ? live_->extensions().find<KeepAliveExtension>() : nullptr;
  return part == nullptr ? 0 : part->held();
}

std::uint32_t StoredAgent::schema_version() {
  return with_stored([](auto& database, auto& /*work*/) { return database.class_schema(); });
}

std::string StoredAgent::query(const std::string& text) {
  return with_stored([&](storage::AgentDatabase& database, extensions::DurableWork& /*work*/) {
    storage::PluginSql sql(database, world_.clock);
    const auto statement = sql.prepare(text);
    if (statement.has_error()) throw std::runtime_error(statement.error().message);
    const int columns = *sql.column_count(*statement);
    Json rows = Json::array();
    for (;;) {
      const auto outcome = sql.step(*statement);
      if (outcome.has_error()) throw std::runtime_error(outcome.error().message);
      if (*outcome == storage::StepOutcome::kDone) break;
      Json row = Json::array();
      for (int place = 0; place < columns; ++place) row.push_back(column(sql, *statement, place));
      rows.push_back(std::move(row));
    }
    return dump_json(rows);
  });
}

std::vector<FiberRecord> StoredAgent::fibers() {
  return with_stored([&](storage::AgentDatabase& database, extensions::DurableWork& work) {
    std::vector<FiberRecord> fibers;
    if (!database.exists() || !durable::Jobs(database).exists()) return fibers;
    storage::Statement find(
        database.connection(),
        "SELECT id, name, (SELECT body FROM cf_agents_job_documents WHERE job = seq AND part = 3), "
        "created_at, attempts, claims, state = 2 OR dead, "
        "(SELECT body FROM cf_agents_job_documents WHERE job = seq AND part = 6), "
        "kind = 2 AND coalesce(type, '') <> 'brief' FROM cf_agents_jobs "
        "WHERE kind = 1 OR (kind = 2 AND (ended_at IS NULL OR dead)) ORDER BY seq");
    storage::Rows rows = find.query();
    while (rows.next()) {
      FiberRecord fiber;
      fiber.id = rows.text(0);
      fiber.name = rows.text(1);
      if (!rows.is_null(2)) fiber.snapshot = rows.text(2);
      fiber.created_at_ms = rows.integer(3);
      fiber.attempts = static_cast<int>(rows.integer(4));
      fiber.recoveries = static_cast<int>(rows.integer(5));
      fiber.dead = rows.integer(6) != 0;
      if (!rows.is_null(7)) fiber.last_error = rows.text(7);
      fiber.keeps_record = rows.integer(8) != 0;
      fibers.push_back(std::move(fiber));
    }
    for (FiberRecord& fiber : fibers) {
      if (const auto standing = work.fibers().find(fiber.id); standing && live_) {
        fiber.running = standing->running != 0;
        fiber.recovering = standing->recovering;
      }
    }
    return fibers;
  });
}

std::string StoredAgent::fiber_records() {
  return with_stored([](auto& /*database*/, extensions::DurableWork& work) {
    return all_of(
        [&](const std::string& after) {
          return work.managed().list({.after = after, .limit = 100});
        },
        true);
  });
}

std::string StoredAgent::schedules() {
  return with_stored([](auto& /*database*/, extensions::DurableWork& work) {
    return all_of([&](const std::string& after) { return work.schedules().list({.after = after}); },
                  false);
  });
}

std::string StoredAgent::queue() {
  return with_stored([](auto& /*database*/, extensions::DurableWork& work) {
    return all_of(
        [&](const std::string& after) { return work.queue().list({.after = after, .limit = 100}); },
        false);
  });
}

std::optional<std::int64_t> StoredAgent::due_of(std::string_view schedule) {
  return with_stored([&](storage::AgentDatabase& database,
                         extensions::DurableWork& /*work*/) -> std::optional<std::int64_t> {
    if (!database.exists()) return std::nullopt;
    durable::Jobs jobs(database);
    if (!jobs.exists()) return std::nullopt;
    const auto job = jobs.find(durable::JobKind::kSchedule, schedule);
    return job ? std::optional(job->next_at_ms) : std::nullopt;
  });
}

}  // namespace hearth::mock
