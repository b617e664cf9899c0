#pragma once
// A server in memory for the unit tests of agents: no sockets, and a clock that the test moves.
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
// It is the server's own runtime, on a loop that the test drives, and stricter than a server about
// the rules of abi.h: it overwrites lent bytes as soon as the rule allows, and a refused event may
// not be completed. Link with Hearth::testing (hearth_add_plugin_test does).

#include <hearth/agent.hpp>
#include <hearth/testing/library.hpp>
#include <hearth/testing/mock.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::testing {

// A call that failed, with the text that a client would read.
using hearth::CallError;

// A method that was called and may still run.
class Call {
 public:
  Call(detail::MockAgent& agent, std::shared_ptr<const detail::CallRecord> call)
      : agent_(&agent), call_(std::move(call)) {}

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
  // The parts that it has streamed so far.
  [[nodiscard]] std::vector<Json> parts() const {
    std::vector<Json> all;
    for (const std::string& part : call_->parts) all.push_back(parse_json(part));
    return all;
  }
  // The caller gives up.
  void cancel() { agent_->cancel(*call_); }

 private:
  detail::MockAgent* agent_;
  std::shared_ptr<const detail::CallRecord> call_;
};

namespace detail {

template <class T>
inline constexpr hearth_class kClassUnderTest =
    hearth::detail::class_table<T>("AgentUnderTest", "0.0.0");

// "ChatRoom" for rooms::ChatRoom: the name by which other agents of the host call agents of T.
template <class T>
constexpr std::string_view class_name_of() {
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("T = ") + 4);
  text = text.substr(0, text.find_first_of(";]<"));
  const std::size_t end = text.rfind(':');
  return end == std::string_view::npos ? text : text.substr(end + 1);
}

template <class... Arguments>
std::string argument_list(const Arguments&... arguments) {
  Json list = Json::array();
  (list.push_back(Json(arguments)), ...);
  return to_text(list);
}

}  // namespace detail

// A WebSocket client. Copies are the same client.
class Client {
 public:
  Client(detail::MockAgent& agent, std::shared_ptr<detail::ClientRecord> client)
      : agent_(&agent), client_(std::move(client)) {}

  [[nodiscard]] const std::string& id() const { return client_->id; }
  [[nodiscard]] const std::vector<std::string>& tags() const { return client_->tags; }
  [[nodiscard]] bool readonly() const { return (client_->flags & HEARTH_CONNECTION_READONLY) != 0; }

  void send(std::string_view text) { agent_->receive(*client_, text, false); }
  void send_binary(std::string_view bytes) { agent_->receive(*client_, bytes, true); }

  // The frames that the agent has sent, without those of the protocol. received() gives all of
  // them, take_received() those since its last call.
  [[nodiscard]] const std::vector<ReceivedFrame>& received() const { return client_->received; }
  [[nodiscard]] std::vector<ReceivedFrame> take_received() {
    return std::exchange(client_->received, {});
  }
  // A slow client: it does not read until hold(false). Frames wait; so do the agent's waits for
  // the client to drain. The parts of its calls are seen as they are sent.
  void hold(bool hold) { agent_->hold(*client_, hold); }
  [[nodiscard]] const std::vector<ReceivedFrame>& unread() const { return client_->unread; }
  // The last state that this client got; null before the first.
  [[nodiscard]] Json state() const {
    const auto& text = client_->state;
    return text ? parse_json(*text) : Json();
  }
  // Asks for a new state. errors() has the rejections.
  void set_state(const Json& next) { agent_->set_state(*client_, to_text(next)); }
  [[nodiscard]] const std::vector<std::string>& errors() const { return client_->errors; }

  // Calls a method: call() for one that ends without the clock, start() for one that waits.
  template <class... Arguments>
  Json call(std::string_view method, const Arguments&... arguments) {
    return start(method, arguments...).value();
  }
  template <class... Arguments>
  Call start(std::string_view method, const Arguments&... arguments) {
    return Call(*agent_,
                agent_->call(client_->number, method, detail::argument_list(arguments...), {}));
  }

  void close(unsigned code = 1000, std::string reason = {}, bool clean = true) {
    agent_->leave(*client_, code, std::move(reason), clean);
  }
  [[nodiscard]] bool closed() const { return !client_->open; }
  [[nodiscard]] unsigned close_code() const { return client_->close_code; }
  [[nodiscard]] const std::string& close_reason() const { return client_->close_reason; }

 private:
  detail::MockAgent* agent_;
  std::shared_ptr<detail::ClientRecord> client_;
};

// The answer to an HTTP request, as far as it has arrived.
struct HttpAnswer {
  bool done = false;    // false: on_request waits
  unsigned status = 0;  // 0: nothing has arrived yet
  Headers headers;
  std::string body;

  [[nodiscard]] Json json() const { return parse_json(body); }
  // The value of the header `name`, in any case; empty: it is missing.
  [[nodiscard]] std::string header(std::string_view name) const {
    const auto lower = [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    };
    for (const auto& [key, value] : headers) {
      if (std::equal(key.begin(), key.end(), name.begin(), name.end(),
                     [&](char a, char b) { return lower(a) == lower(b); }))
        return value;
    }
    return {};
  }
};

// An HTTP request that may still be in progress. Copies are the same request.
class HttpCall {
 public:
  explicit HttpCall(std::shared_ptr<const detail::CallRecord> call) : call_(std::move(call)) {}

  [[nodiscard]] bool done() const { return call_->done; }
  [[nodiscard]] HttpAnswer answer() const {
    HttpAnswer answer;
    answer.done = call_->done;
    if (call_->done && call_->status != HEARTH_OK && call_->parts.empty()) {
      answer.status = status_of(call_->status);
      answer.body = to_text(
          {{"error",
            {{"code", std::string(status_name(call_->status))}, {"message", call_->body}}}});
      return answer;
    }
    if (!call_->done && call_->parts.empty()) return answer;
    answer.status = call_->http_status;
    answer.headers = call_->response_headers;
    for (const std::string& part : call_->parts) answer.body += part;
    if (call_->done && call_->status == HEARTH_OK) answer.body += call_->body;
    return answer;
  }
  // The answer has begun and then failed: the client notices that it is incomplete.
  [[nodiscard]] bool cut() const {
    return call_->done && call_->status != HEARTH_OK && !call_->parts.empty();
  }

 private:
  static unsigned status_of(hearth_status status) {
    switch (status) {
      case HEARTH_E_NOT_FOUND: return 404;
      case HEARTH_E_INVALID: return 400;
      case HEARTH_E_FORBIDDEN: return 403;
      default: return 500;
    }
  }

  std::shared_ptr<const detail::CallRecord> call_;
};

// A request to a class with kReadsBodies, whose body the test sends. Copies are the same request.
class HttpUpload : public HttpCall {
 public:
  explicit HttpUpload(std::shared_ptr<detail::Upload> upload)
      : HttpCall(upload->record()), upload_(std::move(upload)) {}

  void send(std::string_view piece) { upload_->send(piece); }
  void end() { upload_->end(); }
  // The client leaves before the end.
  void cut() { upload_->cut(); }
  // Bytes that were sent and that the agent has no room for yet.
  [[nodiscard]] std::size_t unread() const { return upload_->unread(); }

 private:
  std::shared_ptr<detail::Upload> upload_;
};

// One agent, in memory or not. Copies are the same agent.
class AgentHandle {
 public:
  explicit AgentHandle(detail::MockAgent& agent) : agent_(&agent) {}

  // Calls a method from outside of any connection.
  template <class... Arguments>
  Json call(std::string_view method, const Arguments&... arguments) {
    return start(method, arguments...).value();
  }
  template <class... Arguments>
  Call start(std::string_view method, const Arguments&... arguments) {
    return start_raw(method, detail::argument_list(arguments...));
  }
  // The arguments as a client's text, which need not be JSON.
  Call start_raw(std::string_view method, const std::string& arguments) {
    return Call(*agent_, agent_->call(0, method, arguments, {}));
  }
  // Calls as a client of /objects whose token has these claims, as if the server had verified them.
  template <class... Arguments>
  Call start_as(const Json& claims, std::string_view method, const Arguments&... arguments) {
    return Call(*agent_,
                agent_->call(0, method, detail::argument_list(arguments...), claims_text(claims)));
  }

  // Connects a client with "?query"; an empty `id` is made up. `claims`: those of its token, as if
  // the server had verified it; null: none. Check closed() if the agent may refuse it.
  Client connect(std::string_view query = {}, std::string id = {}, Headers headers = {},
                 const Json& claims = {}) {
    return Client(*agent_,
                  agent_->connect(query, std::move(id), std::move(headers), claims_text(claims)));
  }

  // request() gives the immediate answer; use start_request() for an answer that waits for the
  // clock.
  HttpAnswer request(std::string_view method, std::string_view path = {},
                     const std::string& body = {}, Headers headers = {}, const Json& claims = {}) {
    return start_request(method, path, body, std::move(headers), claims).answer();
  }
  HttpCall start_request(std::string_view method, std::string_view path = {},
                         const std::string& body = {}, Headers headers = {},
                         const Json& claims = {}) {
    return HttpCall(agent_->request(method, path, body, std::move(headers), claims_text(claims)));
  }
  // A request whose body follows: HttpUpload::send() and end(). Only for a class with kReadsBodies.
  HttpUpload start_upload(std::string_view method, std::string_view path = {}, Headers headers = {},
                          const Json& claims = {}) {
    return HttpUpload(agent_->upload(method, path, std::move(headers), claims_text(claims)));
  }

  // The stored state, or the initial state.
  [[nodiscard]] Json state() const {
    const auto text = agent_->state();
    return text ? parse_json(*text) : Json();
  }
  // Rows of a query on the agent's database, as arrays of columns. The query may do what the
  // agent's own SQL may. Throws runtime_error with SQLite's text.
  [[nodiscard]] Json sql(const std::string& text) const { return parse_json(agent_->query(text)); }

  // Evicts it at once, without a grace: suspended work is destroyed. on_connect and the calls of
  // idempotent methods that were in progress are repeated; other calls fail with CLOSING.
  void evict() { agent_->evict(0, 0); }
  // Evicts it when on_evict has ended or `grace` is over.
  void evict(EvictReason reason, std::chrono::milliseconds grace) {
    agent_->evict(static_cast<std::uint32_t>(reason),
                  static_cast<std::uint64_t>(std::chrono::nanoseconds(grace).count()));
  }
  // A crash of the server, which hits all agents of the host: no work goes on, and their clients
  // are gone without a close. Interrupted fibers are recovered when their agent wakes: at its next
  // event, or as soon as Host::advance() lets time pass.
  void kill() { agent_->kill(); }
  // Replaces the library of its class: its agents leave memory, and from the next event on they are
  // agents of T.
  template <class T>
  void become() {
    become(detail::kClassUnderTest<T>);
  }
  // The same with a class from a library, see Host::load().
  void become(const hearth_class& definition) { agent_->become(definition); }
  // The schema version of its data; 0: none.
  [[nodiscard]] std::uint32_t schema_version() const { return agent_->schema_version(); }
  // Brings it into memory, like an event without effects.
  void wake() { agent_->wake(); }
  // Its fibers, oldest first: those that run, those that were interrupted, and the dead ones.
  [[nodiscard]] std::vector<FiberRecord> fibers() const { return agent_->fibers(); }
  // The records of its fibers, its schedules, and its queue, as a plugin reads them.
  [[nodiscard]] Json fiber_records() const { return parse_json(agent_->fiber_records()); }
  [[nodiscard]] Json schedules() const { return parse_json(agent_->schedules()); }
  [[nodiscard]] Json queue() const { return parse_json(agent_->queue()); }
  // The steps of its durable work so far, named as in a server's log: "fiber:run:started import",
  // "fiber:run:failed no such page", "schedule:missing_callback remind".
  [[nodiscard]] const std::vector<std::string>& steps() const { return agent_->steps(); }
  // References that are held by keep_alive().
  [[nodiscard]] std::size_t keep_alive() const { return agent_->keep_alive(); }
  [[nodiscard]] bool is_live() const { return agent_->instance() != nullptr; }
  [[nodiscard]] int activations() const { return agent_->activations(); }
  // It has called destroy(): nothing that it stored is left. The next event makes a new agent of
  // the same name.
  [[nodiscard]] bool destroyed() const { return agent_->destroyed(); }
  // Events that were accepted and not completed.
  [[nodiscard]] std::size_t unfinished() const { return agent_->unfinished(); }
  [[nodiscard]] std::size_t clients() const { return agent_->clients(); }

  // From now on its class has `calls: serial`, or not: one call or request at a time. Agents in
  // memory leave it for that.
  void set_serial(bool serial) { agent_->set_serial(serial); }
  // Sets the options of its class's file from the next time on that it comes into memory.
  void set_options(const Json& options) { agent_->set_options(to_text(options)); }

  // An agent right below this one, as sub_agent<...>() of its code reaches it. Before its code
  // itself makes such agents, the test must have used their class.
  template <class T>
  AgentHandle create_below(std::string_view name, const Json& options = Json::object()) {
    detail::MockAgent& below =
        agent_->below(detail::kClassUnderTest<T>, std::string(detail::class_name_of<T>()), name,
                      to_text(options));
    below.wake();
    return AgentHandle(below);
  }
  // The answer of on_sub_agent to a client that asks for an agent right below. A status below 400
  // lets the client through. (connect() of that agent does not ask.)
  HttpAnswer ask_for_sub_agent(std::string_view agent_class, std::string_view name,
                               std::string_view query = {}, Headers headers = {}) {
    return HttpCall(agent_->ask_for_sub_agent(agent_class, name, query, std::move(headers)))
        .answer();
  }

  // The C++ object, for agents made with Host::create<T>(). Changes by the test belong to the next
  // turn.
  template <class T>
  [[nodiscard]] T& as() {
    if (agent_->instance() == nullptr) agent_->wake();
    return dynamic_cast<T&>(static_cast<hearth::detail::Activation*>(agent_->instance())->agent());
  }

 private:
  static std::string claims_text(const Json& claims) {
    return claims.is_null() ? std::string() : to_text(claims);
  }

  detail::MockAgent* agent_;
};

// Lifetime  Outlives its handles. Destroys all agents. If an agent has kept a Task and never
//           awaited it, the process ends then, with a line on stderr: the test has failed.
// Threads   One: the thread that made it.
class Host {
 public:
  // An agent of a class that is compiled into the test. Throws the exception of create or on_start.
  template <class T>
  AgentHandle create(std::string name, const Json& options = Json::object()) {
    return create_as(detail::kClassUnderTest<T>, std::string(detail::class_name_of<T>()),
                     std::move(name), options);
  }
  // An agent of a class from a library, see load().
  AgentHandle create(const hearth_class& definition, std::string name,
                     const Json& options = Json::object()) {
    return create_as(definition, definition.name, std::move(name), options);
  }
  // Opens a library and initialises it for this host. Keep the result at least as long as its
  // agents.
  [[nodiscard]] Library load(const std::string& path) { return Library(path, table()); }

  // Moves both clocks. Sleeps end in order, each at its own time.
  void advance(std::chrono::nanoseconds time) {
    host_->advance(static_cast<std::uint64_t>(time.count()));
  }
  // Sets the wall clock alone.
  void set_wall(std::chrono::sys_time<std::chrono::milliseconds> time) {
    host_->set_wall(time.time_since_epoch().count());
  }
  // Moves both clocks to the moment for which the schedule with this id waits.
  void fire(std::string_view schedule) { host_->fire(schedule); }
  void seed(std::uint64_t seed) { host_->seed(seed); }

  // Lines that agents have written so far: "info text".
  [[nodiscard]] const std::vector<std::string>& log() const { return host_->log(); }

  // From now on submit() fails with this status; HEARTH_OK ends it.
  void fail_submit(hearth_status status) { host_->fail_submit(status); }
  // From now on no fiber can begin; HEARTH_OK ends it.
  void fail_start_fiber(hearth_status status) { host_->fail_start_fiber(status); }
  // Holds offloaded work until it is called with false.
  void hold_offload(bool hold) { host_->hold_offload(hold); }

  // Answers requests of agents to other servers, once the turn that made them is over:
  //     host.on_fetch([](const SentRequest& request) {
  //       return FetchReply{.status = 404, .body = "no " + request.url};
  //     });
  // Without it, requests fail. Every name of a credential is accepted.
  void on_fetch(std::function<FetchReply(const SentRequest&)> reply) {
    host_->on_fetch(std::move(reply));
  }

  [[nodiscard]] const hearth_host* table() const { return host_->table(); }

 private:
  AgentHandle create_as(const hearth_class& definition, std::string agent_class, std::string name,
                        const Json& options) {
    detail::MockAgent& agent =
        host_->add(definition, std::move(agent_class), std::move(name), to_text(options));
    agent.wake();
    return AgentHandle(agent);
  }

  std::unique_ptr<detail::MockHost> host_ = detail::MockHost::make();
};

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
