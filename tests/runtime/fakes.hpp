#pragma once
// A shard without threads, sockets or shared libraries: the loop is driven by hand, clients and
// classes are scripted by the test.

#include "base/logger.hpp"
#include "extensions/host_calls.hpp"
#include "runtime/agent_class.hpp"
#include "runtime/call_sink.hpp"
#include "runtime/connection_port.hpp"
#include "runtime/runtime.hpp"
#include "runtime/shard_loop.hpp"
#include "runtime/timer_queue.hpp"
#include "storage/agent_key.hpp"
#include "storage/data_directory.hpp"
#include "storage/plugin_sql.hpp"
#include "support/manual_clock.hpp"
#include "support/recording_logger.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"
#include "telemetry/metrics.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hearth::runtime {
using hearth::testing::HostCalls;

// What callers and clients are told when a start or the storage fails.
inline constexpr std::string_view kFailedToStart =
    "error unavailable: the agent failed to start; the server's log says why";
inline constexpr std::string_view kClosedForFailedStart =
    "close 1011 the agent failed to start; the server's log says why";
inline constexpr std::string_view kStorageFailed =
    "error internal: the agent's storage failed; do not count on any of this being saved";

// What a handler does with an event that the test does not ask about. Events without a call want
// no answer.
inline Result<void> complete(HostCalls& host, const AgentEvent& event,
                             std::string_view answer = {}) {
  return event.call == 0 ? Result<void>() : host.complete(event.call, answer);
}

using EventHandler = std::function<Result<void>(HostCalls&, const AgentEvent&)>;

// Events of `kind` go to `handler`, and all others are completed.
inline EventHandler on(EventKind kind, EventHandler handler) {
  return [kind, handler = std::move(handler)](HostCalls& host, const AgentEvent& event) {
    return event.kind == kind ? handler(host, event) : complete(host, event);
  };
}
// All events are completed, those of `kind` after `action`.
inline EventHandler do_on(EventKind kind,
                          std::function<void(HostCalls&, const AgentEvent&)> action) {
  return [kind, action = std::move(action)](HostCalls& host, const AgentEvent& event) {
    if (event.kind == kind) action(host, event);
    return complete(host, event);
  };
}
inline EventHandler fail_with(Errc code, const std::string& text) {
  return [=](HostCalls&, const AgentEvent&) -> Result<void> { return Error{code, text}; };
}
// An event that begins, and does not end by itself.
inline Result<void> hang(HostCalls&, const AgentEvent&) {
  return {};
}

// Counts in the agent's state, and answers with it: "1", "11", ...
inline Result<void> count_in_state(HostCalls& host, const AgentEvent& event) {
  const std::string next = std::string(host.state().value_or("")) + "1";
  if (auto stored = host.set_state(0, next); stored.has_error()) return stored;
  return host.complete(event.call, std::string_view(next));
}
// A statement that succeeds.
inline void run_sql(HostCalls& host, const std::string& text) {
  const storage::StatementHandle statement = host.sql().prepare(text).value();
  const bool is_done = host.sql().step(statement).has_value();
  HEARTH_ASSERT(is_done, "the statement fails");
  HEARTH_ASSERT(host.sql().finalize(statement).has_value(), "the statement cannot be finalized");
}
// A turn in which its own SQL rolls back all that was written.
inline Result<storage::StepOutcome> lose_the_turn(HostCalls& host) {
  run_sql(host, "CREATE TABLE IF NOT EXISTS n(id INTEGER PRIMARY KEY AUTOINCREMENT, x)");
  run_sql(host, "INSERT INTO n VALUES(9223372036854775807, 1)");
  return host.sql().step(host.sql().prepare("INSERT INTO n(x) VALUES(2)").value());
}

template <class Value>
ClassSettings settings_with(Value ClassSettings::* setting, std::type_identity_t<Value> value) {
  ClassSettings settings;
  settings.*setting = std::move(value);
  return settings;
}
inline ClassSettings power() {
  return settings_with(&ClassSettings::durability, Durability::kPower);
}
}  // namespace hearth::runtime

namespace hearth::runtime::testing {

// Runs tasks and timers when told to.
class ManualLoop final : public ShardLoop {
 public:
  void post(std::function<void()> task) override {
    {
      const std::scoped_lock lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    posted_.notify_all();
  }
  [[nodiscard]] TurnEnd& turn_end() override { return turn_end_; }
  [[nodiscard]] bool on_this_thread() const override { return on_this_thread_; }
  [[nodiscard]] const Clock& clock() const override { return clock_; }
  TimerId call_at(SteadyTime due, std::function<void()> task) override {
    ++timers_set_;
    return timers_.add(due, std::move(task));
  }
  void cancel_timer(TimerId timer) override { timers_.cancel(timer); }

  // Runs everything that is ready; time stands still.
  void settle() {
    for (;;) {
      if (const auto task = take_task()) {
        task();
      } else if (auto timer = timers_.take_due(clock_.steady_now())) {
        timer();
      } else {
        return;
      }
    }
  }
  // Runs the first task that is ready, if there is one.
  void step() {
    if (const auto task = take_task()) task();
  }
  // For work that another thread posts: runs ready work until `over`, for ten seconds at most.
  bool settle_until(const std::function<bool()>& over) {
    for (;;) {
      settle();
      if (over()) return true;
      std::unique_lock lock(mutex_);
      const auto some = [this] { return !tasks_.empty(); };
      if (!posted_.wait_for(lock, std::chrono::seconds(10), some)) return false;
    }
  }
  // Lets time pass; timers run at their moments.
  void advance(std::chrono::milliseconds by) {
    const SteadyTime end = clock_.steady_now() + by;
    settle();
    while (timers_.next_due() && *timers_.next_due() <= end) {
      clock_.advance(*timers_.next_due() - clock_.steady_now());
      settle();
    }
    clock_.advance(end - clock_.steady_now());
  }
  // As if the running code took so long: other ready work has to wait.
  void let_pass(std::chrono::milliseconds time) { clock_.advance(time); }
  // The wall clock is set; the steady clock is not changed.
  void jump(std::chrono::milliseconds by) { clock_.set_wall(clock_.wall_now() + by); }
  void pretend_other_thread(bool other) { on_this_thread_ = !other; }
  // How many timers were ever set.
  [[nodiscard]] std::size_t timers_set() const { return timers_set_; }

 private:
  std::function<void()> take_task() {
    const std::scoped_lock lock(mutex_);
    if (tasks_.empty()) return {};
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    return task;
  }

  hearth::testing::ManualClock clock_;
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_
  TurnEnd turn_end_{[this](std::function<void()> task) { post(std::move(task)); }};
  TimerQueue timers_;
  std::size_t timers_set_ = 0;
  bool on_this_thread_ = true;
};

// What a client saw: "text hi", "binary ..", "handshake counter/a {..}", "close 1011 why", "pause",
// "resume".
using Sight = std::vector<std::string>;

class FakePort final : public ConnectionPort {
 public:
  explicit FakePort(std::shared_ptr<Sight> sight) : sight_(std::move(sight)) {}
  void send(std::string_view payload, FrameKind kind) override {
    sight_->push_back((kind == FrameKind::kText ? "text " : "binary ") + std::string(payload));
  }
  void send_handshake(const Handshake& handshake) override {
    sight_->push_back("handshake " + std::string(handshake.agent_segment) + "/" +
                      std::string(handshake.agent_name) + " " +
                      std::string(handshake.state.value_or("-")) +
                      (handshake.identity ? "" : " without identity"));
  }
  void close(std::uint16_t code, std::string_view reason) override {
    sight_->push_back("close " + std::to_string(code) + " " + std::string(reason));
  }
  void set_reading(bool reading) override { sight_->push_back(reading ? "resume" : "pause"); }

 private:
  std::shared_ptr<Sight> sight_;
};

// What a caller got: parts, then "ok ..." or "error code: message".
struct Answer {
  std::vector<std::string> parts;
  std::optional<std::string> end;
  unsigned status = 0;
  // A slow client: called once it has taken the parts; and their number by then.
  bool is_slow = false;
  std::function<void()> drained;
  std::size_t parts_before_drain = 0;
};

class FakeSink final : public CallSink {
 public:
  explicit FakeSink(std::shared_ptr<Answer> answer) : answer_(std::move(answer)) {}
  void part(const ResponseHead&, std::string_view body) override {
    answer_->parts.emplace_back(body);
  }
  void when_drained(std::function<void()> notice) override {
    answer_->parts_before_drain = answer_->parts.size();
    if (!answer_->is_slow) return notice();
    answer_->drained = std::move(notice);
  }
  void finish(const ResponseHead& head, const Result<std::string_view>& outcome) override {
    if (answer_->end) {
      answer_->end = "FINISHED TWICE";
      return;
    }
    answer_->status = head.status;
    answer_->end = outcome.has_error() ? "error " + std::string(to_string(outcome.error().code)) +
                                             ": " + outcome.error().message
                                       : "ok " + std::string(outcome.value());
  }

 private:
  std::shared_ptr<Answer> answer_;
};

// The code of every agent of a test. Events are written down as "kind name|body", and `script` may
// answer them. Without a script each event is completed at once, with an empty answer.
struct Script {
  struct Seen {
    AgentEvent event;  // views are dead; use the copies
    std::string name;
    std::string body;
  };
  std::function<Result<void>(HostCalls&, const AgentEvent&)> on_event;
  std::function<void(HostCalls&, const OperationResult&)> on_result;
  std::function<void(HostCalls&)> on_cancel;
  std::function<Result<void>(HostCalls&)> on_create;
  std::function<void(const OffloadOrigin&, bool cancelled)> on_job;  // on a thread of the pool
  std::function<void(std::optional<WorkMark>)> works;  // the work that runs from now on
  std::vector<std::string> history;  // "start ", "message |hi", "destroyed", "cancel"
  std::vector<CallId> open_calls;    // events that a script left open
  std::uint32_t schema_version = 0;
  bool checks_state = false;
  bool watches_state = false;
  bool reads_bodies = false;
  std::vector<std::string> idempotent_methods;
  std::map<std::string, durable::Effect, std::less<>> operations;  // kinds that it lists
  std::vector<std::string> read_only_methods;
  int alive = 0;
  HostCalls* host = nullptr;  // of the youngest instance
};

// Leaves events open, among the script's open calls.
inline EventHandler keep_open(Script& script) {
  return [&script](HostCalls&, const AgentEvent& event) -> Result<void> {
    script.open_calls.push_back(event.call);
    return {};
  };
}

class ScriptedInstance final : public AgentInstance {
 public:
  ScriptedInstance(Script& script, extensions::AgentContext& agent)
      : script_(script), host_(agent) {
    ++script_.alive;
    script_.host = &host_;
  }
  ~ScriptedInstance() override {
    --script_.alive;
    script_.history.emplace_back("destroyed");
  }
  Result<void> on_event(const AgentEvent& event) override {
    script_.history.push_back(std::string(to_string(event.kind)) + " " + std::string(event.name) +
                              "|" + std::string(event.body));
    if (script_.on_event) return script_.on_event(host_, event);
    if (event.call != 0) return host_.complete(event.call, std::string_view());
    return {};
  }
  void on_cancel(CallId) override {
    script_.history.emplace_back("cancel");
    if (script_.on_cancel) script_.on_cancel(host_);
  }
  void on_result(const OperationResult& result) override {
    if (script_.on_result) script_.on_result(host_, result);
  }
  void works_for(std::optional<WorkMark> fiber) override {
    if (script_.works) script_.works(fiber);
  }

 private:
  Script& script_;
  HostCalls host_;
};

class ScriptedClass final : public AgentClass {
 public:
  explicit ScriptedClass(Script& script) : script_(script) {}
  [[nodiscard]] std::string_view name() const override { return "Counter"; }
  [[nodiscard]] std::string_view version() const override { return "1.0.0"; }
  [[nodiscard]] std::string_view origin() const override { return "test"; }
  [[nodiscard]] std::uint32_t schema_version() const override { return script_.schema_version; }
  [[nodiscard]] std::optional<durable::Effect> listed_effect(std::string_view kind) const override {
    const auto found = script_.operations.find(kind);
    return found == script_.operations.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] bool is_idempotent(std::string_view method) const override {
    return std::ranges::find(script_.idempotent_methods, method) !=
           script_.idempotent_methods.end();
  }
  [[nodiscard]] bool is_read_only(std::string_view method) const override {
    return std::ranges::find(script_.read_only_methods, method) != script_.read_only_methods.end();
  }
  [[nodiscard]] bool checks_state() const override { return script_.checks_state; }
  [[nodiscard]] bool watches_state() const override { return script_.watches_state; }
  [[nodiscard]] bool reads_bodies() const override { return script_.reads_bodies; }
  Result<std::unique_ptr<AgentInstance>> create(extensions::AgentContext& host, std::string_view,
                                                std::string_view) const override {
    if (script_.on_create) {
      HostCalls calls(host);
      if (const auto outcome = script_.on_create(calls); outcome.has_error())
        return outcome.error();
    }
    return std::make_unique<ScriptedInstance>(script_, host);
  }
  [[nodiscard]] bool runs_jobs() const override { return true; }
  Result<void> run_offloaded(std::uint64_t job, bool cancelled,
                             const OffloadOrigin& origin) const override {
    if (script_.on_job) script_.on_job(origin, cancelled);
    if (cancelled) return Error{Errc::kCancelled, "cancelled"};
    if (job == 13) return Error{Errc::kPlugin, "unlucky"};
    return {};
  }

 private:
  Script& script_;
};

// The agent that a client or a request of ShardFixture reaches unless it names another.
inline const storage::AgentKey kUsualAgent{"Counter", "a"};

// One runtime with one shard that is driven by hand, and one class "Counter" at /agents/counter/.
class ShardFixture {
 public:
  explicit ShardFixture(RuntimeLimits limits = {}, ClassSettings settings = {},
                        storage::SyncCalls* sync_calls = nullptr, std::size_t closing_threads = 0)
      : sync_calls_(sync_calls), closing_threads_(closing_threads) {
    start(limits, std::move(settings));
  }
  ~ShardFixture() { stop(); }

  // As after a restart of the process: everything in memory is gone, the files stay.
  void restart(RuntimeLimits limits = {}, ClassSettings settings = {}) {
    stop();
    start(limits, std::move(settings));
  }

  struct Client {
    ConnectionId id = 0;
    std::shared_ptr<Sight> sight = std::make_shared<Sight>();
  };
  Client connect(const std::string& name = "a", const std::string& client_id = "me") {
    return connect({"Counter", name}, ConnectRequest{.id = client_id,
                                                     .target = "/agents/counter/" + name,
                                                     .headers = {{"X-Test", "1"}}});
  }
  Client connect(const storage::AgentKey& agent, ConnectRequest request) {
    Client client;
    client.id = shard().connect(agent, "counter", std::move(request),
                                std::make_unique<FakePort>(client.sight));
    return client;
  }
  std::shared_ptr<Answer> call(const Client& client, const std::string& method,
                               const std::string& arguments = "[]") {
    auto answer = std::make_shared<Answer>();
    shard().call(client.id, method, arguments, std::make_unique<FakeSink>(answer));
    return answer;
  }
  std::shared_ptr<Answer> write_state(const Client& client, const std::string& json) {
    auto answer = std::make_shared<Answer>();
    shard().write_state(client.id, json, std::make_unique<FakeSink>(answer));
    return answer;
  }
  std::shared_ptr<Answer> request(const std::string& method, const std::string& body = "",
                                  const std::string& name = "a") {
    auto answer = std::make_shared<Answer>();
    auto head = std::make_unique<RequestHead>();
    head->target = "/agents/counter/" + name;
    head->headers = {{"Accept", "x"}};
    shard().request({"Counter", name}, "counter", method, body, std::move(head),
                    std::make_unique<FakeSink>(answer));
    return answer;
  }

  // The same, and all that follows until the shard is at rest.
  Client join(const std::string& name = "a", const std::string& client_id = "me") {
    return settled(connect(name, client_id));
  }
  std::shared_ptr<Answer> ask(const Client& client, const std::string& method,
                              const std::string& arguments = "[]") {
    return settled(call(client, method, arguments));
  }
  std::shared_ptr<Answer> ask(const std::string& method, const std::string& body = "",
                              const std::string& name = "a") {
    return settled(request(method, body, name));
  }
  std::shared_ptr<Answer> store(const Client& client, const std::string& json) {
    return settled(write_state(client, json));
  }
  void say(const Client& client, std::string_view text) {
    shard().message(client.id, text, FrameKind::kText);
    settle();
  }
  void leave(const Client& client, std::uint16_t code, std::string_view reason, bool was_clean) {
    shard().disconnected(client.id, code, reason, was_clean);
    settle();
  }
  // A client's call without a connection. With a key it runs once.
  std::shared_ptr<Answer> call_agent(const std::string& method, const std::string& key = "",
                                     const std::string& fingerprint = "") {
    auto answer = std::make_shared<Answer>();
    Shard::AgentCallIn call;
    call.key = kUsualAgent;
    call.segment = "counter";
    call.method = method;
    call.arguments = "[]";
    call.timeout = std::chrono::seconds(30);
    call.is_of_client = true;
    if (!key.empty()) call.retry_key = {key, fingerprint};
    shard().call(call, std::make_unique<FakeSink>(answer));
    return settled(answer);
  }
  AgentState evict(const std::string& name = "a") {
    return settled(admin().evict({"Counter", name}));
  }
  void restart_and_advance(std::chrono::milliseconds time, RuntimeLimits limits = {},
                           ClassSettings settings = {}) {
    restart(limits, std::move(settings));
    loop.advance(time);
  }
  void restart_and_settle(RuntimeLimits limits = {}, ClassSettings settings = {}) {
    restart(limits, std::move(settings));
    settle();
  }
  // A turn of the youngest agent, without a client.
  void act(std::function<void(HostCalls&)> what) {
    begin_act(std::move(what));
    settle();
  }
  // The same, as the next task of the loop.
  void begin_act(std::function<void(HostCalls&)> what) {
    script.on_result = [what = std::move(what)](HostCalls& host, const OperationResult&) {
      what(host);
    };
    const bool is_posted = runtime().post(script.host->handle(), 1);
    HEARTH_ASSERT(is_posted, "the agent is gone");
  }

  Shard& shard() { return runtime_->shard(0); }
  ShardAdmin& admin() { return shard().admin(); }
  ShardVersions& versions() { return shard().versions(); }
  Runtime& runtime() { return *runtime_; }
  const storage::DataDirectory& data() { return *data_; }
  void settle() { loop.settle(); }
  template <class Made>
  Made settled(Made made) {
    settle();
    return made;
  }

  ManualLoop loop;
  Script script;
  hearth::testing::RecordingLogger logger;
  Metrics metrics;

 private:
  void start(RuntimeLimits limits, ClassSettings settings) {
    auto opened = storage::DataDirectory::open(directory_.path() / "data");
    data_.emplace(std::move(opened.value()));
    RuntimeOptions options;
    options.limits = limits;
    options.state_frame = [](std::string_view json) { return "state " + std::string(json); };
    options.sync_calls = sync_calls_;
    options.random = &random_;
    options.closing_threads = closing_threads_;
    options.checkpointing_threads = closing_threads_;
    ShardLoop* loops[] = {&loop};
    runtime_ = std::make_unique<Runtime>(loops, *data_, logger, metrics, std::move(options));
    runtime_->classes().add(
        {"counter", std::make_shared<ScriptedClass>(script), std::move(settings)});
    runtime_->start_alarms();
  }
  void stop() {
    bool stopped = false;
    runtime_->stop(std::chrono::milliseconds(0), [&] { stopped = true; });
    loop.advance(std::chrono::milliseconds(1));
    loop.settle_until([&] { return stopped; });  // other threads close, and sync
    HEARTH_ASSERT(stopped, "the shard did not stop");
    runtime_.reset();
    loop.settle();
    data_.reset();
  }

  storage::SyncCalls* const sync_calls_;
  const std::size_t closing_threads_;
  hearth::testing::SeededRandom random_;  // one for all its lives: ids do not come twice
  hearth::testing::TempDirectory directory_;
  std::optional<storage::DataDirectory> data_;
  std::unique_ptr<Runtime> runtime_;
};

}  // namespace hearth::runtime::testing
