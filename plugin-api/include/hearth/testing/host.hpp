#pragma once
// A server in memory for the unit tests of agents: no sockets, no files, and a clock that the test
// moves.
//
//     hearth::testing::Host host;
//     auto agent = host.create<Counter>("a", {{"start", 5}});
//     EXPECT_EQ(agent.call("increment", 2), 7);
//
//     auto client = agent.connect("readonly=1");
//     client.send("hello");
//     EXPECT_EQ(client.received().front(), "hello");
//
//     auto slow = agent.start("slow", 5000);     // a method that waits
//     host.advance(std::chrono::seconds(5));
//     EXPECT_EQ(slow.value(), "done");
//
//     agent.evict();                             // suspended work is destroyed; storage stays
//     EXPECT_EQ(agent.call("get"), 7);           // the next event makes it anew
//
// It keeps the rules of abi.h more strictly than a server does: bytes that were lent are
// overwritten as soon as the rule allows, functions are refused on wrong threads, and a refused
// event may not be completed. Link with SQLite (hearth_add_plugin_test does).

#include <hearth/agent.hpp>
#include <hearth/testing/engine.hpp>
#include <hearth/testing/library.hpp>
#include <hearth/testing/tables.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::testing {

// A call that failed, with the text that a client would read.
class CallError : public std::runtime_error {
 public:
  CallError(hearth_status code, const std::string& text) : std::runtime_error(text), code_(code) {}
  [[nodiscard]] hearth_status code() const noexcept { return code_; }

 private:
  hearth_status code_;
};

// A method that was called and may still run.
class Call {
 public:
  Call(detail::Engine& engine, detail::AgentRecord& agent, std::shared_ptr<detail::CallRecord> call)
      : engine_(&engine), agent_(&agent), call_(std::move(call)) {}

  [[nodiscard]] bool done() const { return call_->done; }
  [[nodiscard]] bool failed() const { return call_->done && call_->status != HEARTH_OK; }
  [[nodiscard]] hearth_status status() const { return call_->status; }
  [[nodiscard]] const std::string& error() const { return call_->body; }
  // False: the method returned nothing.
  [[nodiscard]] bool has_value() const { return done() && !failed() && !call_->body.empty(); }
  // The result, null for none. Throws CallError if the call failed, logic_error while it runs.
  [[nodiscard]] Json value() const {
    if (!call_->done)
      throw std::logic_error("the call still runs: use start(), then Host::advance()");
    if (call_->status != HEARTH_OK) throw CallError(call_->status, call_->body);
    return call_->body.empty() ? Json() : parse_json(call_->body);
  }
  // What it has streamed so far.
  [[nodiscard]] std::vector<Json> parts() const {
    std::vector<Json> all;
    for (const std::string& part : call_->parts) all.push_back(parse_json(part));
    return all;
  }
  // The caller gave up.
  void cancel() {
    engine_->cancel(*agent_, *call_);
    engine_->settle();
  }

 private:
  detail::Engine* engine_;
  detail::AgentRecord* agent_;
  std::shared_ptr<detail::CallRecord> call_;
};

namespace detail {

inline Call start_call(Engine& engine, AgentRecord& agent, std::uint64_t connection,
                       std::string_view method, const Json& arguments) {
  auto call = std::make_shared<CallRecord>();
  call->kind = HEARTH_EVENT_CALL;
  call->connection = connection;
  engine.send(agent, call, std::string(method), to_text(arguments), 0);
  engine.settle();
  return Call(engine, agent, call);
}

template <class T>
inline constexpr hearth_class kClassUnderTest =
    hearth::detail::class_table<T>("AgentUnderTest", "0.0.0");

template <class... Arguments>
Json argument_list(const Arguments&... arguments) {
  Json list = Json::array();
  (list.push_back(Json(arguments)), ...);
  return list;
}

}  // namespace detail

// A WebSocket client. Copies are the same client.
class Client {
 public:
  Client(detail::Engine& engine, detail::AgentRecord& agent,
         std::shared_ptr<detail::ClientRecord> client)
      : engine_(&engine), agent_(&agent), client_(std::move(client)) {}

  [[nodiscard]] const std::string& id() const { return client_->id; }
  [[nodiscard]] const std::vector<std::string>& tags() const { return client_->tags; }
  [[nodiscard]] bool readonly() const { return (client_->flags & HEARTH_CONNECTION_READONLY) != 0; }

  void send(std::string_view text) { send_frame(text, HEARTH_MESSAGE_TEXT); }
  void send_binary(std::string_view bytes) { send_frame(bytes, HEARTH_MESSAGE_BINARY); }

  // The frames that the agent sent since the last time this was asked, without those of the
  // protocol.
  [[nodiscard]] std::vector<ReceivedFrame> received() {
    return std::exchange(client_->received, {});
  }
  // The state as this client has seen it last; null before the first.
  [[nodiscard]] Json state() const { return client_->state.value_or(Json()); }
  // Asks for a new state. What came back as an error is in errors().
  void set_state(const Json& next) {
    if (!client_->open) return;
    if (readonly()) return client_->errors.push_back("Connection is readonly");
    engine_->wake(*agent_);
    const std::string text = to_text(next);
    if ((agent_->definition->flags & HEARTH_CLASS_CHECKS_STATE) != 0) {
      const hearth_status status =
          engine_->ask(*agent_, HEARTH_EVENT_STATE_CHECK, client_->number, {}, text);
      if (status != HEARTH_OK && status != HEARTH_E_UNSUPPORTED)
        return client_->errors.push_back("State update rejected");
    }
    client_->state = next;
    agent_->state = text;
    engine_->show_state(*agent_, client_->number);
    engine_->state_changed(*agent_, client_->number, *agent_->state);
    engine_->settle();
  }
  [[nodiscard]] const std::vector<std::string>& errors() const { return client_->errors; }

  // Calls a method: call() for one that ends without the clock, start() for one that waits.
  template <class... Arguments>
  Json call(std::string_view method, const Arguments&... arguments) {
    return start(method, arguments...).value();
  }
  template <class... Arguments>
  Call start(std::string_view method, const Arguments&... arguments) {
    return detail::start_call(*engine_, *agent_, client_->number, method,
                              detail::argument_list(arguments...));
  }

  void close(unsigned code = 1000, std::string reason = {}, bool clean = true) {
    if (!client_->open) return;
    client_->open = false;
    client_->close_code = code;
    client_->close_reason = std::move(reason);
    client_->close_clean = clean;
    engine_->settle();
  }
  [[nodiscard]] bool closed() const { return !client_->open; }
  [[nodiscard]] unsigned close_code() const { return client_->close_code; }
  [[nodiscard]] const std::string& close_reason() const { return client_->close_reason; }

 private:
  void send_frame(std::string_view payload, std::uint32_t kind) {
    if (!client_->open) return;
    const auto deliver = [engine = engine_, agent = agent_, number = client_->number,
                          text = std::string(payload), kind] {
      auto call = std::make_shared<detail::CallRecord>();
      call->kind = HEARTH_EVENT_MESSAGE;
      call->connection = number;
      engine->send(*agent, call, {}, text, kind);
    };
    if (client_->greeted && client_->waiting.empty())
      deliver();
    else
      client_->waiting.push_back(deliver);
    engine_->settle();
  }

  detail::Engine* engine_;
  detail::AgentRecord* agent_;
  std::shared_ptr<detail::ClientRecord> client_;
};

// The answer to an HTTP request.
struct HttpAnswer {
  bool done = false;  // false: on_request waits
  unsigned status = 0;
  Headers headers;
  std::string body;

  [[nodiscard]] Json json() const { return parse_json(body); }
  [[nodiscard]] std::string header(std::string_view name) const {
    const std::string* const found = detail::find_header(headers, name);
    return found ? *found : std::string();
  }
};

// One agent, in memory or not. Copies are the same agent.
class AgentHandle {
 public:
  AgentHandle(detail::Engine& engine, detail::AgentRecord& agent)
      : engine_(&engine), agent_(&agent) {}

  // Calls a method from outside of any connection.
  template <class... Arguments>
  Json call(std::string_view method, const Arguments&... arguments) {
    return start(method, arguments...).value();
  }
  template <class... Arguments>
  Call start(std::string_view method, const Arguments&... arguments) {
    return detail::start_call(*engine_, *agent_, 0, method, detail::argument_list(arguments...));
  }
  // The arguments as a client's text, which need not be JSON.
  Call start_raw(std::string_view method, const std::string& arguments) {
    auto call = std::make_shared<detail::CallRecord>();
    call->kind = HEARTH_EVENT_CALL;
    engine_->send(*agent_, call, std::string(method), arguments, 0);
    engine_->settle();
    return Call(*engine_, *agent_, call);
  }

  // A client with "?query"; `id` is made up if empty. Look at closed() if the agent may refuse it.
  Client connect(std::string_view query = {}, std::string id = {}, Headers headers = {});

  HttpAnswer request(std::string_view method, std::string_view path = {},
                     const std::string& body = {}, Headers headers = {});

  // What is stored, or the initial state.
  [[nodiscard]] Json state() const {
    if (agent_->state) return parse_json(*agent_->state);
    return agent_->default_state ? parse_json(*agent_->default_state) : Json();
  }
  // Rows of a query on the agent's database, as arrays of columns.
  [[nodiscard]] Json sql(const std::string& text) const;

  // Out of memory at once, as an eviction without a grace: suspended work is destroyed. A server
  // then repeats on_connect and the calls of idempotent methods that were in progress; here nobody
  // repeats them, and they stay without an answer: call again.
  void evict() {
    engine_->destroy(*agent_);
    engine_->settle();
  }
  // Out of memory after on_evict has ended, or `grace` is over.
  void evict(EvictReason reason, std::chrono::milliseconds grace) {
    if (!agent_->instance) return;
    auto call = std::make_shared<detail::CallRecord>();
    call->kind = HEARTH_EVENT_EVICT;
    engine_->send(*agent_, call, {}, {}, static_cast<std::uint32_t>(reason));
    engine_->settle();
    if (!call->done) engine_->advance(static_cast<std::uint64_t>(grace.count()) * 1'000'000);
    evict();
  }
  // As if the server was killed: nothing of the agent runs on, its clients are gone without a word.
  // Its interrupted fibers are recovered when it wakes: with the next event, or as soon as
  // Host::advance() lets time pass.
  void kill() {
    for (const auto& [number, client] : agent_->clients) {
      client->open = false;
      client->close_code = 1006;
    }
    agent_->clients.clear();
    detail::count_interruptions(*agent_);
    evict();
  }
  // Its library is replaced: out of memory, and from the next event on an agent of T.
  template <class T>
  void become() {
    become(detail::kClassUnderTest<T>);
  }
  // The same with a class out of a library, see Host::load().
  void become(const hearth_class& definition) {
    evict();
    agent_->definition = &definition;
  }
  // The schema version of its data; 0: none.
  [[nodiscard]] std::uint32_t schema_version() const { return agent_->schema; }
  // Into memory, as by an event that does nothing.
  void wake() {
    engine_->wake(*agent_);
    engine_->settle();
  }
  // The rows of its fibers, oldest first: those that run and those that were interrupted.
  [[nodiscard]] const std::vector<FiberRecord>& fibers() const { return agent_->fibers; }
  // The records of its managed fibers, its schedules, and its queue, as a plugin reads them.
  [[nodiscard]] Json managed_fibers() const {
    Json all = Json::array();
    for (const auto& row : agent_->durable.managed)
      all.push_back(detail::managed_record(*engine_, *agent_, row));
    return all;
  }
  [[nodiscard]] Json schedules() const {
    Json all = Json::array();
    for (const auto& row : agent_->durable.schedules) all.push_back(detail::schedule_record(row));
    return all;
  }
  [[nodiscard]] Json queue() const {
    Json all = Json::array();
    for (const auto& row : agent_->durable.queue) all.push_back(detail::queue_record(row));
    return all;
  }
  // The ends of its fibers that failed, in order: "import: no such page".
  [[nodiscard]] const std::vector<std::string>& fiber_failures() const {
    return agent_->fiber_failures;
  }
  // References that are held by keep_alive().
  [[nodiscard]] std::size_t keep_alive() const { return agent_->keep_alive; }
  [[nodiscard]] bool is_live() const { return agent_->instance != nullptr; }
  [[nodiscard]] int activations() const { return agent_->activations; }
  // It has called destroy(): nothing that it stored is left. The next event makes a new agent of
  // the same name.
  [[nodiscard]] bool destroyed() const { return agent_->destructions > 0; }
  // Events that were accepted and not completed.
  [[nodiscard]] std::size_t unfinished() const { return agent_->calls.size(); }
  [[nodiscard]] std::size_t clients() const { return agent_->clients.size(); }

  // The C++ object, for agents made with Host::create<T>().
  template <class T>
  [[nodiscard]] T& as() {
    engine_->wake(*agent_);
    return dynamic_cast<T&>(static_cast<hearth::detail::Activation*>(agent_->instance)->agent());
  }

 private:
  detail::Engine* engine_;
  detail::AgentRecord* agent_;
};

// Lifetime  Outlives its handles. Destroys all agents.
// Threads   One: the one that made it.
class Host {
 public:
  // An agent of a class that is compiled into the test. Throws what create or on_start failed with.
  template <class T>
  AgentHandle create(std::string name, const Json& options = Json::object()) {
    return create(detail::kClassUnderTest<T>, std::move(name), options);
  }
  // An agent of a class out of a library, see load().
  AgentHandle create(const hearth_class& definition, std::string name,
                     const Json& options = Json::object()) {
    detail::AgentRecord& agent = engine_.add(&definition, std::move(name), to_text(options));
    engine_.wake(agent);
    engine_.settle();
    return AgentHandle(engine_, agent);
  }
  // Opens a library and initialises it for this host. Keep the result at least as long as its
  // agents.
  [[nodiscard]] Library load(const std::string& path) { return Library(path, engine_.table()); }

  // Moves both clocks. Sleeps end in order, each at its own time.
  void advance(std::chrono::nanoseconds time) {
    engine_.advance(static_cast<std::uint64_t>(time.count()));
  }
  // Only the wall's clock jumps.
  void set_wall(std::chrono::sys_time<std::chrono::milliseconds> time) {
    engine_.wall_ms = time.time_since_epoch().count();
  }
  // Makes a schedule due now: the only way for those by cron, whose expressions this host does not
  // read.
  void fire(std::string_view schedule) {
    for (const auto& agent : engine_.agents()) {
      if (detail::ScheduleRow* const row = detail::find_schedule(*agent, schedule))
        row->due_ms = engine_.wall_ms;
    }
    engine_.advance(0);
  }
  void seed(std::uint64_t seed) { engine_.random.seed(seed); }

  // Lines of the log so far: "info text".
  [[nodiscard]] const std::vector<std::string>& log() const { return engine_.log; }

  // From now on submit() fails with this; HEARTH_OK ends it.
  void fail_submit(hearth_status status) { engine_.submit_status = status; }
  // From now on no fiber can begin; HEARTH_OK ends it.
  void fail_start_fiber(hearth_status status) { engine_.start_fiber_status = status; }
  // Offloaded work waits until it is let go.
  void hold_offload(bool hold) {
    engine_.hold_jobs = hold;
    if (!hold) engine_.settle();
  }

  [[nodiscard]] const hearth_host* table() const { return engine_.table(); }

 private:
  detail::Engine engine_;
};

inline Client AgentHandle::connect(std::string_view query, std::string id, Headers headers) {
  static std::uint64_t last = 0;  // numbers and ids are unique in the process
  auto client = std::make_shared<detail::ClientRecord>();
  client->number = ++last;
  client->id = id.empty() ? "client-" + std::to_string(last) : std::move(id);
  client->target =
      "/agents/agent-under-test/" + agent_->name + (query.empty() ? "" : "?" + std::string(query));
  client->headers = std::move(headers);
  client->tags.push_back(client->id);
  agent_->clients[client->number] = client;
  engine_->wake(*agent_);
  const hearth_status status =
      engine_->ask(*agent_, HEARTH_EVENT_CONNECTING, client->number, client->target, {});
  client->connecting = false;
  if (status != HEARTH_OK && status != HEARTH_E_UNSUPPORTED && client->open) {
    client->open = false;
    client->close_code = status == HEARTH_E_FORBIDDEN ? 4403 : 1011;
  }
  if (!client->open) {
    agent_->clients.erase(client->number);
    return Client(*engine_, *agent_, client);
  }
  if ((client->flags & HEARTH_CONNECTION_NO_PROTOCOL) == 0 && !state().is_null())
    client->state = state();
  auto call = std::make_shared<detail::CallRecord>();
  call->kind = HEARTH_EVENT_CONNECT;
  call->connection = client->number;
  call->then = [client](detail::CallRecord& done) {
    client->greeted = true;
    if (done.status == HEARTH_OK || done.status == HEARTH_E_UNSUPPORTED || !client->open) return;
    client->open = false;
    client->close_code = 1011;
  };
  engine_->send(*agent_, call, client->target, {}, 0);
  engine_->settle();
  return Client(*engine_, *agent_, client);
}

inline HttpAnswer AgentHandle::request(std::string_view method, std::string_view path,
                                       const std::string& body, Headers headers) {
  auto call = std::make_shared<detail::CallRecord>();
  call->kind = HEARTH_EVENT_REQUEST;
  call->target = "/agents/agent-under-test/" + agent_->name + std::string(path);
  call->request_headers = std::move(headers);
  engine_->send(*agent_, call, std::string(method), body, 0);
  engine_->settle();
  HttpAnswer answer;
  answer.done = call->done;
  if (!call->done) return answer;
  if (call->status == HEARTH_OK) {
    answer.status = call->http_status;
    answer.headers = call->response_headers;
    for (const std::string& part : call->parts) answer.body += part;
    answer.body += call->body;
    return answer;
  }
  switch (call->status) {
    case HEARTH_E_NOT_FOUND: answer.status = 404; break;
    case HEARTH_E_INVALID: answer.status = 400; break;
    case HEARTH_E_FORBIDDEN: answer.status = 403; break;
    default: answer.status = 500;
  }
  answer.body = to_text(
      {{"error", {{"code", std::string(status_name(call->status))}, {"message", call->body}}}});
  return answer;
}

inline Json AgentHandle::sql(const std::string& text) const {
  sqlite3* const db = agent_->database.handle();
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(db, text.c_str(), -1, &statement, nullptr) != SQLITE_OK)
    throw std::runtime_error(sqlite3_errmsg(db));
  Json rows = Json::array();
  while (sqlite3_step(statement) == SQLITE_ROW) {
    Json row = Json::array();
    for (int i = 0; i < sqlite3_column_count(statement); ++i) {
      switch (sqlite3_column_type(statement, i)) {
        case SQLITE_INTEGER: row.push_back(sqlite3_column_int64(statement, i)); break;
        case SQLITE_FLOAT: row.push_back(sqlite3_column_double(statement, i)); break;
        case SQLITE_NULL: row.push_back(nullptr); break;
        default:
          row.push_back(
              std::string(reinterpret_cast<const char*>(sqlite3_column_text(statement, i))));
          break;
      }
    }
    rows.push_back(std::move(row));
  }
  sqlite3_finalize(statement);
  return rows;
}

// For the messages of GoogleTest.
inline void PrintTo(const ReceivedFrame& frame, std::ostream* out) {
  *out << (frame.binary ? "binary " : "text ") << frame.payload;
}

}  // namespace hearth::testing

NLOHMANN_JSON_NAMESPACE_BEGIN
inline void PrintTo(const hearth::Json& json, std::ostream* out) {
  *out << hearth::to_text(json);
}
NLOHMANN_JSON_NAMESPACE_END
