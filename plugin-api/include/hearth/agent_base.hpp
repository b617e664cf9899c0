#pragma once
// hearth::Agent. Plugins include <hearth/agent.hpp>.

#include <hearth/abi.h>
#include <hearth/alarm.hpp>
#include <hearth/call.hpp>
#include <hearth/connection.hpp>
#include <hearth/detail/activation.hpp>
#include <hearth/fetch.hpp>
#include <hearth/fiber.hpp>
#include <hearth/fiber_calls.hpp>
#include <hearth/fields.hpp>
#include <hearth/http.hpp>
#include <hearth/keep_alive.hpp>
#include <hearth/kv.hpp>
#include <hearth/log.hpp>
#include <hearth/method.hpp>
#include <hearth/offload.hpp>
#include <hearth/operation.hpp>
#include <hearth/operations.hpp>
#include <hearth/queue.hpp>
#include <hearth/retry.hpp>
#include <hearth/schedule.hpp>
#include <hearth/signal.hpp>
#include <hearth/sql.hpp>
#include <hearth/sse.hpp>
#include <hearth/sub_agents.hpp>
#include <hearth/task.hpp>
#include <hearth/timeout.hpp>
#include <hearth/when_all.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hearth {

// Why an agent leaves memory.
enum class EvictReason : std::uint32_t {
  kIdle = HEARTH_EVICT_IDLE,
  kCodeUpdate = HEARTH_EVICT_CODE_UPDATE,
  kPluginRemoved = HEARTH_EVICT_PLUGIN_REMOVED,
  kShutdown = HEARTH_EVICT_SHUTDOWN,
  kDestroyed = HEARTH_EVICT_DESTROYED,
  kHung = HEARTH_EVICT_HUNG,
  kLimit = HEARTH_EVICT_LIMIT,
  kAdmin = HEARTH_EVICT_ADMIN,
};

// One agent of a class: its clients, its state, its database.
//
// Threads   One event at a time, so members need no lock. While a handler waits (co_await), other
//           events run: read again what you have read before. The thread may differ from event to
//           event.
// Lifetime  Made at an event for the agent. Destroyed when the agent is idle or its code is
//           replaced, at any co_await and without warning. Keep in the state or the database what
//           must survive; members are a cache.
// Turn      The writes up to the next co_await, or the end of the handler, are one transaction, on
//           disk before anything that was sent after them leaves.
// Failure   An exception of a handler is the answer to its caller; no other caller is affected.
class Agent : public detail::ScheduleCalls<Agent>,
              public detail::QueueCalls<Agent>,
              public detail::FiberCalls<Agent>,
              public detail::OperationCalls<Agent> {
 public:
  Agent() : activation_(detail::constructing), log(activation_) {}
  virtual ~Agent() = default;
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // ---- hooks: override what you need; the others cost nothing -----------------------------------
  // Coroutines keep their parameters only by value.
  // NOLINTBEGIN(performance-unnecessary-value-param)

  // The state to show until one is set. Not stored.
  virtual Json initial_state() { return nullptr; }
  // Migrates data of an older version, in a class with `static constexpr unsigned schema_version =
  // 2;`. `from` is 0 if a class without versions wrote the data. Runs before on_start, in a
  // transaction that on_migrate itself cannot end: if it fails, nothing has changed, waiting events
  // get an error, and the next one tries again. Change fibers, schedules and the queue in on_start.
  // The default accepts `from` 0, and fails for any other version.
  virtual Task<void> on_migrate(unsigned /*from*/, unsigned /*to*/) { return {}; }
  // Before the first event. If it fails, waiting events get the error, and the next one tries
  // again.
  virtual Task<void> on_start() { return {}; }
  // A client asks to connect: give it tags, make it readonly, refuse it. An exception refuses it
  // with 1011.
  virtual void on_connecting(Connecting& /*client*/) {}
  // It is connected. Its messages wait until this has ended. If an eviction cuts it off, the
  // connection stays: the next instance, perhaps of another version, runs on_connect again from its
  // beginning, without on_connecting. Once it has ended, also with an exception, it never runs
  // again for this client.
  virtual Task<void> on_connect(Connection /*client*/) { return {}; }
  // A frame that is no frame of the protocol.
  virtual Task<void> on_message(Connection /*client*/, Message /*message*/) { return {}; }
  // The connection is closed, with the code and reason of the closing handshake.
  virtual Task<void> on_close(Connection /*client*/, unsigned /*code*/, std::string /*reason*/,
                              bool /*clean*/) {
    return {};
  }
  // An HTTP request. `request` stays valid until this has ended. For an answer in parts see
  // Request::stream() and EventStream; for a body that is read in pieces Request::next().
  virtual Task<Response> on_request(const Request& /*request*/) {
    throw Error(HEARTH_E_NOT_FOUND, "this agent answers no HTTP requests");
  }
  // A client asks for an agent right below this one. std::nullopt lets it through. A response with
  // a status of 400 or more refuses it: a request is answered with it, a WebSocket is closed with
  // 4000 and the status, or with 1011 from 500 on. An exception refuses it too: Error(FORBIDDEN,
  // "...") as 403. `request` is the client's HTTP request, a WebSocket's too, and stays valid until
  // this has ended; its method is "GET".
  virtual Task<std::optional<Response>> on_sub_agent(SubAgentName /*child*/,
                                                     const Request& /*request*/) {
    return std::nullopt;
  }
  // Throw to reject a new state, from a client (`source`) or from this agent itself (nullopt). If
  // the class has a public struct State with HEARTH_FIELDS, a client's state that state<State>()
  // could not read is rejected without this.
  virtual void validate_state(const Json& /*next*/, std::optional<Connection> /*source*/) {}
  // The state was replaced, by a client or by this agent (nullopt).
  virtual Task<void> on_state_changed(Json /*next*/, std::optional<Connection> /*source*/) {
    return {};
  }
  // Only if the class's YAML grants a grace: the agent leaves memory when this has ended or the
  // grace is over.
  virtual Task<void> on_evict(EvictReason /*reason*/) { return {}; }
  // A fiber was interrupted by an eviction, a crash or an update, or has failed and begins again
  // (`fiber.reason` "retry"). Offered after on_start, the oldest first, one at a time; clients are
  // served meanwhile. `fiber` stays valid until this has ended. It must continue the fiber within
  // fibers.recovery_timeout of the class; after that there is no deadline. The hook may call:
  //   continue_fiber()  the fiber goes on
  //   settle_fiber()    the fiber ends; as FiberOutcome::interrupted(), it is let go
  //   neither           the function that is listed under its name is called again. If none is
  //                     listed, the fiber waits (`waits_for_code`): it is offered again to each
  //                     instance, and when the class's version changes
  // Not overridden: as with neither. If it fails, the fiber is offered again later.
  virtual Task<void> on_fiber_recovered(const RecoveredFiber& /*fiber*/) { return {}; }
  // Before the first fiber is recovered: in which order, how many at once, and which not. Called
  // once for each instance. After a crash of the server in this hook or in a fiber, it is called
  // for each fiber alone, so that the one that crashes becomes known. Not overridden, or if it
  // fails: the oldest first, one at a time. `fibers` stays valid until this has ended.
  virtual Task<RecoveryPlan> on_fibers_recovered(const std::vector<InterruptedFiber>& /*fibers*/) {
    return RecoveryPlan();
  }
  // A fiber that keeps its record is settled, in whatever way: also by a cancel, and in another
  // instance. Called at least once: again if this fails, or if the server is killed meanwhile.
  // `fiber` stays valid until this has ended.
  virtual Task<void> on_fiber_complete(const FiberRecord& /*fiber*/) { return {}; }
  // It is unknown whether this operation was executed: see operations.hpp. Called soon after that;
  // if it fails, again by each next instance, ten times at most. To decide it later:
  // resolve_operation(). `operation` stays valid until this has ended.
  virtual Task<void> on_operation_unknown(const OperationRecord& /*operation*/) { return {}; }
  // An exception has left a handler, a method, a callback, or a fiber that no caller waits for;
  // `where` is its name. Not called for an answer: a hearth::Error with a code for a caller or a
  // client, and exceptions of validate_state. The outcome of the event stays the same, and an
  // exception of this hook is only logged. The failure is always in the log.
  virtual void on_error(std::string_view /*where*/, const std::exception_ptr& /*error*/) {}
  // The retry options of schedule(), queue() and retry() if a call gives none.
  virtual RetryOptions retry_defaults() { return {}; }
  // NOLINTEND(performance-unnecessary-value-param)

  // ---- the agent itself -------------------------------------------------------------------------

  [[nodiscard]] const std::string& name() const { return live().name(); }
  // The class under which the server has the agent: if a class file has `code`, not that of C++.
  [[nodiscard]] std::string_view class_name() const { return live().definition().name; }
  // The `options` of the class's YAML file. A class with a struct Options and a constructor that
  // takes one gets them typed and checked instead.
  [[nodiscard]] Json options() const { return parse_json(live().options()); }
  // Leaves memory soon, and comes back from storage with the next event. Clients stay connected.
  void request_eviction() {
    const auto& table = detail::need(live().tables().agent, HEARTH_EXT_AGENT);
    live().check(table.evict(live().host(), live().id()), "evict");
  }

  // Destroys the agent: state, tables, durable work, and this instance soon after the running
  // handler has returned. Certain when it returns, even if the server is killed then. The answer of
  // the handler still leaves; other handlers that wait are cancelled, and their callers get an
  // error. Clients are closed with 4410, without on_close, and do not reconnect. To let some
  // reconnect, close() them with 1012 before. The next event for this name meets a new, empty
  // agent.
  void destroy() {
    const auto& table = detail::need(live().tables().agent, HEARTH_EXT_AGENT);
    live().check(table.destroy(live().host(), live().id()), "destroy");
  }

  // Operators find the agent in `hearth stuck`, and read there what it waits for: "the contract is
  // signed", at most 256 bytes. Empty: it does not wait for it any more. `key` tells apart what it
  // waits for at once, up to 16. Stored with the turn; it outlives evictions and restarts.
  void waits_for_person(std::string_view what, std::string_view key = {}) {
    const auto& table = detail::need(live().tables().agent, HEARTH_EXT_AGENT);
    live().check(
        table.waits_for_person(live().host(), live().id(), detail::slice(key), detail::slice(what)),
        "waits_for_person");
  }

  // ---- state: one JSON value, stored, and in step with every client -----------------------------

  // null if there is none. The reference is valid until the next state() or set_state(), and not
  // across a co_await.
  [[nodiscard]] const Json& state();
  // As a struct with HEARTH_FIELDS, or any type that read_json() takes. Clients may have put any
  // JSON there: if it does not fit, Error(INVALID) names the field.
  template <class T>
  [[nodiscard]] T state() {
    return read_json<T>(state(), "state");
  }
  // Stores it with this turn and sends it to every client that speaks the protocol. Runs
  // validate_state first.
  // Failure   the exception of validate_state; HostError(FORBIDDEN) "Connection is readonly" while
  //           the call or message of a readonly client is handled; HostError(LIMIT).
  void set_state(const Json& next);
  // Removes the state, as in a new agent: clients get initial_state(), or no state if that is null.
  // Does not call validate_state.
  // Failure   as set_state()
  void unset_state();

  // ---- SQL --------------------------------------------------------------------------------------

  // Runs one statement; ? takes the values in order (see sql.hpp for types and for reading rows).
  template <class... Values>
  Query sql(std::string_view text, const Values&... values) {
    return Query(live(), text, values...);
  }
  // Undoes rows and set_state() if commit() is not reached. See Transaction:
  //
  //     auto booking = transaction();
  //     sql("UPDATE seats SET free = free - 1");
  //     booking.commit();
  Transaction transaction() { return Transaction(live()); }

  // ---- values by key ----------------------------------------------------------------------------

  // See kv.hpp.
  [[nodiscard]] Kv kv() { return Kv(live()); }

  // ---- agents below this one --------------------------------------------------------------------

  // Lists them, and destroys them by class and name. See sub_agents.hpp.
  [[nodiscard]] SubAgentList sub_agents() { return SubAgentList(live()); }

  // ---- clients ----------------------------------------------------------------------------------

  // The open ones in order of arrival; only those with `tag`, if one is given.
  [[nodiscard]] std::vector<Connection> connections(std::string_view tag = {});
  // The oldest open one with this id.
  [[nodiscard]] std::optional<Connection> connection(std::string_view id);
  // The one whose Connection::number() this is. It may have left.
  [[nodiscard]] Connection connection_numbered(std::uint64_t number) { return {live(), number}; }
  // The client whose event is being handled; nullopt for HTTP, start, eviction, and results that
  // belong to no call.
  [[nodiscard]] std::optional<Connection> caller() {
    const std::uint64_t number = live().context().connection;
    return number == 0 ? std::nullopt : std::optional<Connection>(Connection(live(), number));
  }
  // The claims of the token that came with the call, message or request that is being handled,
  // verified by the server; also if its client has left meanwhile. null: the client has no claims,
  // or the event has timed out.
  [[nodiscard]] Json caller_claims();
  // Sends one frame (see Connection::send) to all clients except some, or to those with a tag. The
  // exceptions are written in braces, or a vector, array or span.
  void broadcast(const detail::Outgoing& frame, std::initializer_list<Connection> except = {}) {
    broadcast_to({}, frame, except);
  }
  void broadcast(const detail::Outgoing& frame, std::span<const Connection> except) {
    broadcast_to({}, frame, except);
  }
  // The same, once for this id over all recoveries of the fiber that sends it. It counts as sent
  // although no client was connected. What clients must not miss is rows of a StreamLog
  // (stream_log.hpp), or in the state.
  // Failure   as FiberContext::once()
  void broadcast_once(FiberContext& fiber, std::string_view id, const detail::Outgoing& frame) {
    if (fiber.once(id)) broadcast(frame);
  }
  void broadcast_to(std::string_view tag, const detail::Outgoing& frame,
                    std::initializer_list<Connection> except = {}) {
    broadcast_to(tag, frame, std::span(except.begin(), except.size()));
  }
  void broadcast_to(std::string_view tag, const detail::Outgoing& frame,
                    std::span<const Connection> except);

  // ---- other agents -----------------------------------------------------------------------------

  // agent("counter", "a").call<int>("increment", 5), .notify(...) or .stream(...): see call.hpp.
  // The class as its code or URLs spell it, the name as in URLs.
  [[nodiscard]] AgentRef agent(std::string_view agent_class, std::string_view name,
                               CallOptions options = {}) {
    return {live(), {std::string(agent_class), std::string(name), options, 0}};
  }
  // An agent right below this one, which is created if necessary. The name as it is, not encoded.
  [[nodiscard]] AgentRef sub_agent(std::string_view agent_class, std::string_view name,
                                   CallOptions options = {}) {
    return {live(), {std::string(agent_class), std::string(name), options, HEARTH_CALL_BELOW}};
  }
  // The agent right above this one. Calls fail with NOT_FOUND if there is none.
  [[nodiscard]] AgentRef parent_agent(CallOptions options = {}) {
    return {live(), {{}, {}, options, HEARTH_CALL_ABOVE}};
  }
  // The agent whose call is being handled; nullopt: a client, an alarm, HTTP, or the host.
  [[nodiscard]] std::optional<AgentCaller> caller_agent() const {
    return detail::find_caller(live());
  }
  // Notifications of this agent that are not delivered, the oldest first, at most 100. `after`: the
  // id after which the list begins.
  [[nodiscard]] std::vector<Notification> notifications(std::string_view after = {}) const {
    return detail::list_notifications(live(), after);
  }
  // False: no notification has this id. A delivery in progress is not stopped.
  bool remove_notification(std::string_view id) {
    const auto& table = detail::call_table(live());
    return detail::found(live(), table.remove(live().host(), live().id(), detail::slice(id)),
                         "remove a notification");
  }

  // ---- alarms: calls of its own methods at a set time, see alarm.hpp ----------------------------

  template <class Rep, class Period, class... Arguments>
  Alarm set_alarm(std::chrono::duration<Rep, Period> delay, std::string_view method,
                  const Arguments&... arguments) {
    const auto wait = std::chrono::milliseconds(detail::to_milliseconds(delay, "delay"));
    return set_alarm(now() + wait, method, arguments...);
  }
  template <class Duration, class... Arguments>
  Alarm set_alarm(std::chrono::sys_time<Duration> at, std::string_view method,
                  const Arguments&... arguments) {
    const auto date =
        std::chrono::milliseconds(detail::to_milliseconds(at.time_since_epoch(), "date"));
    return detail::set_alarm_at(live(), Time(date), method, detail::call_arguments(arguments...));
  }
  // The next due first, dead ones last.
  [[nodiscard]] std::vector<Alarm> alarms() const { return detail::list_alarms(live()); }
  // False: no alarm has this id. A call in progress goes on to its end.
  bool cancel_alarm(std::string_view id) { return detail::cancel_alarm(live(), id); }

  // ---- the audit log of the server --------------------------------------------------------------

  // audit("price.changed", {{"from", 5}, {"to", 7}}): an entry about this agent, for operators. It
  // stays if the turn fails.
  // Bounded   `what`: 64 letters, digits, '_', '.' and '-'; `more`: an object of 2048 bytes; the
  //           agents of a class together: 10 entries a second.
  // Failure   HostError: INVALID, LIMIT
  void audit(std::string_view what, const Json& more = nullptr) {
    const auto& table = detail::need(live().tables().audit, HEARTH_EXT_AUDIT);
    const std::string text = more.is_null() ? std::string() : hearth::to_text(more);
    live().check(table.record(live().host(), live().id(), detail::slice(what),
                              detail::slice(std::string_view(text))),
                 "audit");
  }

  // ---- waiting: co_await these ------------------------------------------------------------------

  // In memory only: an eviction ends the wait, and with it the coroutine. An agent that sleeps is
  // not idle.
  [[nodiscard]] detail::SleepAwaiter sleep(std::chrono::milliseconds time) {
    return detail::SleepAwaiter(live(),
                                time.count() > 0 ? static_cast<std::uint64_t>(time.count()) : 0);
  }
  // Runs `function` on another thread, where it may block, and gives its value. It must not touch
  // the agent, which may be gone by then: give it copies.
  template <class Function>
  [[nodiscard]] detail::OffloadAwaiter<std::decay_t<Function>> offload(Function&& function) {
    return detail::OffloadAwaiter<std::decay_t<Function>>(live(), std::forward<Function>(function));
  }

  // Sends an HTTP request to another server, after the agent's earlier writes are stored. Gives the
  // head of the answer, and the body piece by piece: see fetch.hpp. In memory only, as sleep().
  // Failure   FetchError
  [[nodiscard]] detail::FetchAwaiter fetch(FetchRequest request) {
    return {live(), std::move(request)};
  }
  [[nodiscard]] detail::FetchAwaiter fetch(std::string_view url) {
    FetchRequest request;
    request.url = url;
    return fetch(std::move(request));
  }

  // Runs a task for at most this time, and gives its value. When the time is over, the task is
  // destroyed with the requests and calls that it waits for; fibers that it has begun go on.
  // Signal (signal.hpp) waits for code of this agent, when_all() (when_all.hpp) for many tasks.
  // Failure   Error(TIMEOUT); the task's own.
  template <class T>
  [[nodiscard]] Task<T> with_timeout(Task<T> task, std::chrono::milliseconds time) {
    return detail::with_timeout(live(), std::move(task), time);
  }

  // Retries `function`, which takes the number of the attempt, from 1, or nothing, and returns a
  // value or a Task. After the n-th failure it waits a random time below min(2^n * base_delay,
  // max_delay).
  // Failure   Error(INVALID) at once for invalid options; then the last failure.
  template <class Function>
  [[nodiscard]] auto retry(Function function, RetryOptions options)
      -> Task<detail::AttemptValue<Function>> {
    detail::check_retry(options);
    return retry_checked(std::move(function), std::move(options));
  }
  template <class Function>
  [[nodiscard]] auto retry(Function function) -> Task<detail::AttemptValue<Function>> {
    return retry(std::move(function), retry_defaults());
  }

  // Runs `function` (which returns nothing, or a Task<void>) after this turn, when the turn's
  // answers and frames are on their way. In memory only, and the agent is not idle meanwhile; use a
  // fiber for work that must survive. It runs even if the event fails; its exceptions are logged.
  // Let it own what it uses.
  template <class Function>
  void after_turn(Function function);

  // ---- work that survives: start_fiber() and run_fiber(), see fiber.hpp and fiber_calls.hpp.
  // Agent also has the calls of schedule.hpp and queue.hpp. For effects outside: operation(), see
  // operations.hpp

  // The agent is not idle as long as the result is held.
  [[nodiscard]] KeepAlive keep_alive() { return KeepAlive(live()); }
  // The agent is not idle until `function` (a value, or a Task) has ended, in whatever way.
  template <class Function>
  [[nodiscard]] auto keep_alive_while(Function function)
      -> Task<TaskValue<std::invoke_result_t<Function&>>>;

  // Replaces the checkpoint of the fiber that runs now, see FiberContext::stash().
  // Failure   Error outside a fiber.
  void stash(const Json& checkpoint) { detail::running_fiber(live()).stash(checkpoint); }

  // ---- time and chance: a test sets them --------------------------------------------------------

  [[nodiscard]] std::chrono::sys_time<std::chrono::milliseconds> now() const {
    const auto& table = detail::need(live().tables().clock, HEARTH_EXT_CLOCK);
    return std::chrono::sys_time<std::chrono::milliseconds>(
        std::chrono::milliseconds(table.wall_ms(live().host())));
  }
  // Never goes back; for measuring.
  [[nodiscard]] std::chrono::nanoseconds uptime() const {
    const auto& table = detail::need(live().tables().clock, HEARTH_EXT_CLOCK);
    return std::chrono::nanoseconds(table.steady_ns(live().host()));
  }
  void fill_random(std::span<std::byte> out) const {
    const auto& table = detail::need(live().tables().random, HEARTH_EXT_RANDOM);
    live().check(table.fill(live().host(), out.data(), out.size()), "random");
  }
  [[nodiscard]] std::uint64_t random_number() const {
    std::uint64_t number = 0;
    fill_random(std::as_writable_bytes(std::span(&number, 1)));
    return number;
  }
  // A random UUID (version 4), in lower case.
  [[nodiscard]] std::string uuid() const;

  // ---- what the class is ------------------------------------------------------------------------

  // Whether the class overrides on_connecting(), which decides what clients may connect.
  [[nodiscard]] bool has_on_connecting() const;
  // Whether methods() lists an operation kind of this name.
  [[nodiscard]] bool has_operation(std::string_view kind) const;

  // ---- for the SDK ------------------------------------------------------------------------------

  [[nodiscard]] detail::Activation& activation() { return live(); }

 private:
  template <class Function>
  Task<void> afterwards(Function function);
  template <class Function>
  auto retry_checked(Function function, RetryOptions options)
      -> Task<detail::AttemptValue<Function>>;

  [[nodiscard]] detail::Activation& live() const {
    if (!activation_)
      throw std::logic_error("this agent was not made by a host; tests use hearth::testing::Host");
    return *activation_;
  }

  detail::Activation* activation_;

 public:
  const Log log;
};

inline const Json& Agent::state() {
  detail::Activation& live_agent = live();
  const auto& table = detail::need(live_agent.tables().state, HEARTH_EXT_STATE);
  auto& cache = live_agent.state_cache();
  hearth_bytes bytes = {nullptr, 0};
  const hearth_status status = table.get(live_agent.host(), live_agent.id(), &bytes);
  if (status != HEARTH_E_NOT_FOUND) live_agent.check(status, "state");
  // Clients replace the state without an event for an agent that does not watch: compare the text.
  const std::string_view text =
      status == HEARTH_E_NOT_FOUND ? std::string_view() : detail::view(bytes);
  if (text != cache.text) {
    cache.text.assign(text);
    cache.value = nullptr;
    if (!text.empty()) cache.value = parse_json(cache.text);
  }
  return cache.value;
}

template <class Function>
auto Agent::keep_alive_while(Function function)
    -> Task<TaskValue<std::invoke_result_t<Function&>>> {
  const KeepAlive held = keep_alive();
  if constexpr (kIsTask<std::invoke_result_t<Function&>>)
    co_return co_await detail::call_kept(function);
  else
    co_return function();
}

template <class Function>
void Agent::after_turn(Function function) {
  detail::Context context = detail::fiber_context(live());
  context.fiber = 0;
  context.call = live().next_own_work();
  const detail::Activation::Scope scope(live(), context);
  Task<void> task = afterwards(std::move(function));
  task.start();
  if (task.done()) return task.take();  // it could not begin
  live().keep(std::make_unique<detail::OwnWork>(live(), context, std::move(task), "after_turn()"));
}

template <class Function>
Task<void> Agent::afterwards(Function function) {
  const KeepAlive held = keep_alive();
  co_await detail::DrainAwaiter(live(), 0, false);
  if constexpr (kIsTask<std::invoke_result_t<Function&>>)
    co_await detail::call_kept(function);
  else
    function();
}

template <class Function>
auto Agent::retry_checked(Function function, RetryOptions options)
    -> Task<detail::AttemptValue<Function>> {
  for (int attempt = 1;; ++attempt) {
    std::exception_ptr failure;
    try {
      if constexpr (kIsTask<detail::AttemptResult<Function>>)
        co_return co_await detail::attempt_once(function, attempt);
      else
        co_return detail::attempt_once(function, attempt);
    } catch (...) {
      failure = std::current_exception();
    }
    if (!detail::worth_another(options, failure, attempt)) std::rethrow_exception(failure);
    co_await sleep(detail::retry_delay(options, attempt, random_number()));
  }
}

namespace detail {

inline void Activation::adopt(std::unique_ptr<Agent> agent) noexcept {
  agent_ = std::move(agent);
}

}  // namespace detail

}  // namespace hearth
