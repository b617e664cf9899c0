#pragma once
// The mock host's inside: who is alive, what time it is, what happens next. Tests use host.hpp.

#include <hearth/detail/dispatch.hpp>
#include <hearth/testing/records.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hearth::testing::detail {

using hearth::detail::view;

class Engine;

// ---- in recovery.hpp
// Does one thing of durable work that is due in an agent that has started; false if nothing is.
bool step_durable(Engine& engine, AgentRecord& agent);
// The steady time at which something is due next; ~0: never.
std::uint64_t next_durable(const Engine& engine, AgentRecord& agent);
// The instance is gone.
void interrupt_durable(AgentRecord& agent);

// ---- in savepoints.hpp
// The savepoint of this depth and those inside it are over.
void end_savepoints(Engine& engine, AgentRecord& agent, std::uint32_t depth);

// Delivers events and results the way the server does: one at a time, never from inside a host
// function, and results only once the plugin has returned.
// Threads   The one that made it, but for post(), the log and the clock.
class Engine {
 public:
  Engine();  // in tables.hpp
  ~Engine() {
    for (const auto& agent : agents_) destroy(*agent);
    hold_jobs = false;
    run_jobs();
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] const hearth_host* table() const noexcept { return &table_.head; }
  [[nodiscard]] static Engine& of(const hearth_host* host) {
    return *reinterpret_cast<const Table*>(host)->engine;
  }

  // ---- agents
  AgentRecord& add(const hearth_class* definition, std::string name, std::string options) {
    auto agent = std::make_unique<AgentRecord>();
    agent->definition = definition;
    agent->name = std::move(name);
    agent->options = std::move(options);
    agents_.push_back(std::move(agent));
    return *agents_.back();
  }

  // Makes the instance and sends START. Throws what went wrong.
  void wake(AgentRecord& agent) {
    if (agent.instance) return;
    const std::uint32_t known = schema_of(*agent.definition);
    if (agent.schema > known)
      throw std::runtime_error("the agent's data has schema version " +
                               std::to_string(agent.schema) + ", but the class knows only " +
                               std::to_string(known));
    const bool migrates = agent.has_lived && agent.schema < known;
    if (!agent.has_lived) agent.schema = known;
    agent.id = ++last_agent_;
    agent.started = agent.closing = agent.evict_requested = agent.destroy_requested = false;
    by_id_[agent.id] = &agent;
    agent.refusal.clear();
    Slices lent;
    void* instance = nullptr;
    const hearth_status status =
        agent.definition->create(agent.definition, table(), agent.id, lent.lend(agent.name),
                                 lent.lend(agent.options), &instance);
    leave(agent);
    if (status != HEARTH_OK) {
      by_id_.erase(agent.id);
      if (!agent.refusal.empty()) throw std::runtime_error(agent.refusal);
      throw std::runtime_error("create: " + std::string(status_name(status)));
    }
    agent.instance = instance;
    agent.must_be_awake = false;
    ++agent.activations;
    if (migrates) {
      migrate(agent, known);
    } else {
      start(agent);
    }
  }

  // Sends START. Throws what it failed with.
  void start(AgentRecord& agent) {
    auto start = std::make_shared<CallRecord>();
    start->kind = HEARTH_EVENT_START;
    start->then = [&agent](CallRecord& call) {
      agent.started = call.status == HEARTH_OK;
      agent.has_lived = agent.has_lived || agent.started;
    };
    dispatch(agent, start, {}, {}, 0);
    if (start->done && !agent.started) {
      destroy(agent);
      throw std::runtime_error(start->body.empty()
                                   ? "on_start: " + std::string(status_name(start->status))
                                   : start->body);
    }
  }

  // Sends MIGRATE, and START when it has ended well. Throws what it failed with, if that is at
  // once.
  void migrate(AgentRecord& agent, std::uint32_t to) {
    agent.migrates_from = agent.state;
    agent.database.begin_migration();
    auto call = std::make_shared<CallRecord>();
    const auto waits = std::make_shared<bool>(false);
    call->kind = HEARTH_EVENT_MIGRATE;
    call->then = [this, &agent, to, waits](CallRecord& done) {
      const bool nothing_to_do = done.refused && done.status == HEARTH_E_UNSUPPORTED;
      const bool kept = done.status == HEARTH_OK || (nothing_to_do && agent.schema == 0);
      end_migration(agent, kept);
      if (kept) agent.schema = to;
      if (!*waits) return;
      soon_.push_back([this, &agent, kept] {
        if (kept && agent.instance)
          start(agent);
        else
          destroy(agent);
      });
    };
    dispatch(agent, call, {},
             "{\"from\":" + std::to_string(agent.schema) + ",\"to\":" + std::to_string(to) + "}",
             0);
    *waits = !call->done;
    if (*waits) return;
    if (agent.schema == to) return start(agent);
    destroy(agent);
    throw std::runtime_error(
        call->body.empty() ? "on_migrate: " + std::string(status_name(call->status)) : call->body);
  }
  static void end_migration(AgentRecord& agent, bool keep) {
    agent.database.end_migration(keep);
    if (!keep && agent.migrates_from) agent.state = *agent.migrates_from;
    agent.migrates_from.reset();
  }
  [[nodiscard]] static std::uint32_t schema_of(const hearth_class& definition) {
    if (!HEARTH_HAS(&definition, hearth_class, get_extension)) return 0;
    const auto* const schema = static_cast<const hearth_schema_v1*>(
        definition.get_extension(&definition, HEARTH_EXT_SCHEMA));
    return schema ? schema->version : 0;
  }

  void destroy(AgentRecord& agent) {
    if (!agent.instance) return;
    agent.closing = true;
    agent.must_be_awake = agent.keep_alive > 0;
    agent.definition->destroy(agent.instance);
    agent.instance = nullptr;
    agent.calls.clear();
    agent.default_state.reset();
    agent.database.finalize_all();
    if (agent.migrates_from) end_migration(agent, false);
    agent.column_bytes.clear();
    agent.keep_alive = 0;
    interrupt_durable(agent);
    leave(agent);
    by_id_.erase(agent.id);
    for (auto& [id, operation] : operations_) {
      if (operation.agent == agent.id) abandon(operation);
    }
    std::erase_if(operations_, [&](const auto& entry) { return entry.second.agent == agent.id; });
  }

  // Ends the instance, and everything that would be there without it.
  void destroy_for_good(AgentRecord& agent) {
    const auto unanswered = agent.calls;
    destroy(agent);
    for (const auto& [id, call] : unanswered)
      finish(*call, HEARTH_E_NOT_FOUND, "the agent was destroyed");
    for (const auto& [number, client] : std::exchange(agent.clients, {})) {
      if (!client->open) continue;
      client->open = false;
      client->close_code = 4410;
      client->close_reason = "the agent was destroyed";
    }
    agent.waiting.clear();
    agent.state.reset();
    agent.has_lived = agent.must_be_awake = false;
    agent.schema = 0;
    agent.fibers.clear();
    agent.durable = DurableRows();
    agent.database.clear();
    ++agent.destructions;
  }

  // ---- events
  // Sends an asynchronous event, waking the agent; it waits behind an unfinished START. `then` runs
  // when it is completed, or refused.
  std::shared_ptr<CallRecord> send(AgentRecord& agent, std::shared_ptr<CallRecord> call,
                                   const std::string& name, const std::string& body,
                                   std::uint32_t flags) {
    try {
      wake(agent);
    } catch (const std::exception& error) {
      finish(*call, HEARTH_E_PLUGIN, error.what());
      return call;
    }
    if (agent.started) {
      dispatch(agent, call, name, body, flags);
    } else {
      agent.waiting.push_back(
          [this, &agent, call, name, body, flags] { dispatch(agent, call, name, body, flags); });
    }
    return call;
  }

  // Sends a synchronous event.
  hearth_status ask(AgentRecord& agent, std::uint32_t kind, std::uint64_t connection,
                    std::string_view name, std::string_view body) {
    CallRecord call;
    call.kind = kind;
    call.connection = connection;
    return on_event(agent, call, name, body, 0);
  }

  void cancel(AgentRecord& agent, CallRecord& call) {
    if (call.done || !agent.instance) return;
    agent.calls.erase(call.id);
    finish(call, HEARTH_E_CANCELLED, "cancelled");
    agent.definition->on_cancel(agent.instance, call.id);
    leave(agent);
  }

  // Everything that is due, until nothing is. Not from inside a plugin.
  void settle() {
    for (int round = 0; round < kMostRounds; ++round) {
      if (!step()) return;
    }
    throw std::runtime_error("the agents do not come to rest: something repeats without waiting");
  }

  void advance(std::uint64_t nanoseconds) {
    const std::uint64_t target = steady_ns + nanoseconds;
    wake_interrupted();
    settle();
    for (;;) {
      std::uint64_t next = target;
      for (const auto& [id, operation] : operations_) {
        if (operation.kind == HEARTH_OP_SLEEP) next = std::min(next, operation.due_ns);
      }
      for (const auto& agent : agents_) {
        // What is due already and has not begun waits for something else.
        const std::uint64_t due = next_durable(*this, *agent);
        if (due > steady_ns) next = std::min(next, due);
      }
      next = std::max(steady_ns, next);
      wall_ms += static_cast<std::int64_t>(next / 1'000'000 - steady_ns / 1'000'000);
      steady_ns = std::max(steady_ns, next);
      wake_interrupted();
      settle();
      if (next >= target) return;
    }
  }

  // ---- what host functions use
  [[nodiscard]] AgentRecord* find(hearth_agent id) {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : found->second;
  }
  [[nodiscard]] bool on_owner_thread() const { return std::this_thread::get_id() == owner_; }

  hearth_status submit(AgentRecord& agent, OperationRecord operation, std::uint64_t& id) {
    operation.agent = agent.id;
    id = ++last_operation_;
    operations_[id] = operation;
    return HEARTH_OK;
  }
  hearth_status cancel_operation(hearth_agent agent, std::uint64_t id) {
    const auto found = operations_.find(id);
    if (found == operations_.end() || found->second.agent != agent) return HEARTH_E_GONE;
    abandon(found->second);
    operations_.erase(found);
    return HEARTH_OK;
  }
  void finish(CallRecord& call, hearth_status status, std::string_view body) {
    call.done = true;
    call.status = status;
    call.body = std::string(body);
    if (const auto then = std::exchange(call.then, nullptr)) then(call);
  }
  hearth_status post(hearth_agent agent, std::uint64_t token) {
    const std::lock_guard lock(mutex_);
    posts_.emplace_back(agent, token);
    return HEARTH_OK;
  }
  void write_log(std::string line) {
    const std::lock_guard lock(mutex_);
    log.push_back(std::move(line));
  }
  void fill_random(char* out, std::size_t size) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<char>(random());
  }

  // Sends the state to the clients that are to see it.
  void show_state(AgentRecord& agent, std::uint64_t but) {
    const std::optional<std::string>& text = agent.state ? agent.state : agent.default_state;
    if (!text) return;
    for (const auto& [number, client] : agent.clients) {
      if (number == but || !client->open || (client->flags & HEARTH_CONNECTION_NO_PROTOCOL) != 0)
        continue;
      client->state = parse_json(*text);
    }
  }
  void state_changed(AgentRecord& agent, std::uint64_t connection, const std::string& text) {
    if ((agent.definition->flags & HEARTH_CLASS_WATCHES_STATE) == 0) return;
    soon_.push_back([this, &agent, connection, text, chain = state_chain_] {
      auto call = std::make_shared<CallRecord>();
      call->kind = HEARTH_EVENT_STATE_CHANGED;
      call->state_chain = chain ? chain : std::make_shared<unsigned>(0);
      call->connection = connection;
      send(agent, call, {}, text, 0);
    });
  }

  // A STATE_CHANGED handler that changes the state is called again, so often at most.
  static constexpr unsigned kMostOwnChanges = 100;
  [[nodiscard]] bool may_change_state() {
    return !state_chain_ || ++*state_chain_ <= kMostOwnChanges;
  }

  [[nodiscard]] const std::vector<std::unique_ptr<AgentRecord>>& agents() const { return agents_; }

  // ---- fibers
  static constexpr int kMostAttempts = 10;
  static constexpr int kMostRecoveries = 1'000;
  // Of a fiber, a schedule, a queue item.
  [[nodiscard]] std::uint64_t next_number() { return ++last_number_; }
  // Brings the table in line with `fiber`, or removes its row.
  static void write_row(AgentRecord& agent, const FiberRecord& fiber) {
    agent.database.write_own(
        "INSERT OR REPLACE INTO cf_agents_runs (id, name, snapshot, created_at, attempts, dead, "
        "last_error, recoveries) VALUES (?, ?, ?, CAST(? AS INTEGER), CAST(? AS INTEGER), "
        "CAST(? AS INTEGER), ?, CAST(? AS INTEGER))",
        {fiber.id, fiber.name, fiber.snapshot, std::to_string(fiber.created_at_ms),
         std::to_string(fiber.attempts), std::to_string(fiber.dead ? 1 : 0),
         fiber.last_error.empty() ? std::nullopt : std::optional(fiber.last_error),
         std::to_string(fiber.recoveries)});
  }
  static void erase_fiber(AgentRecord& agent, const std::string& id) {
    agent.database.write_own("DELETE FROM cf_agents_runs WHERE id = ?", {id});
    std::erase_if(agent.fibers, [&](const FiberRecord& fiber) { return fiber.id == id; });
  }
  [[nodiscard]] static FiberRecord* find_row(AgentRecord& agent, std::string_view id) {
    const auto found = std::find_if(agent.fibers.begin(), agent.fibers.end(),
                                    [&](const FiberRecord& fiber) { return fiber.id == id; });
    return found == agent.fibers.end() ? nullptr : &*found;
  }

  std::uint64_t steady_ns = 3'600'000'000'000;
  std::int64_t wall_ms = 1'767'312'000'000;  // 2026-01-02T00:00Z
  std::vector<std::string> log;              // "info text"
  std::mt19937_64 random{1};
  hearth_status submit_status = HEARTH_OK;       // not OK: submit() answers this
  bool hold_jobs = false;                        // offloaded work waits
  hearth_status start_fiber_status = HEARTH_OK;  // not OK: start() of hearth.fibers/1 answers this

 private:
  static constexpr int kMostRounds = 100'000;

  struct Table {
    hearth_host head;
    Engine* engine;
  };

  hearth_status on_event(AgentRecord& agent, const CallRecord& call, std::string_view name,
                         std::string_view body, std::uint32_t flags) {
    Slices lent;
    hearth_event event = {};
    event.struct_size = sizeof event;
    event.kind = call.kind;
    event.call = call.id;
    event.connection = call.connection;
    event.name = lent.lend(name);
    event.body = lent.lend(body);
    event.flags = flags;
    state_chain_ = call.state_chain;
    const hearth_status status = agent.definition->on_event(agent.instance, &event);
    leave(agent);
    state_chain_.reset();
    return status;
  }

  void dispatch(AgentRecord& agent, const std::shared_ptr<CallRecord>& call, std::string_view name,
                std::string_view body, std::uint32_t flags) {
    if (!agent.instance) return finish(*call, HEARTH_E_GONE, "the agent did not start");
    call->id = ++last_call_;
    agent.calls[call->id] = call;
    const hearth_status status = on_event(agent, *call, name, body, flags);
    if (status == HEARTH_OK) return;
    if (call->done) throw std::logic_error("the plugin completed an event that it refused");
    agent.calls.erase(call->id);
    call->refused = true;
    finish(*call, status, status_name(status));
  }

  // The plugin has returned: nothing that it was lent is good any longer, and the turn is over.
  void leave(AgentRecord& agent) {
    agent.lent.recall();
    agent.database.end_turn();
    end_savepoints(*this, agent, 1);
  }

  void deliver(const OperationRecord& operation) {
    AgentRecord* const agent = find(operation.agent);
    if (!agent) return;
    hearth_result result = {};
    result.struct_size = sizeof result;
    result.flags = HEARTH_RESULT_FINAL;
    result.status = operation.status;
    result.operation = operation.kind;
    result.token = operation.token;
    agent->definition->on_result(agent->instance, &result);
    leave(*agent);
  }

  // An operation that nobody waits for: an offloaded job still has to be told.
  void abandon(const OperationRecord& operation) {
    if (operation.kind == HEARTH_OP_OFFLOAD && !operation.job_ran) {
      run_job(find_definition(operation.agent), operation.job, 1);
    }
  }
  [[nodiscard]] const hearth_class* find_definition(hearth_agent id) const {
    for (const auto& agent : agents_) {
      if (agent->id == id) return agent->definition;
    }
    return nullptr;
  }
  static hearth_status run_job(const hearth_class* definition, std::uint64_t job,
                               std::uint32_t cancelled) {
    const auto* const table = static_cast<const hearth_offload_v1*>(
        definition->get_extension(definition, HEARTH_EXT_OFFLOAD));
    hearth_status status = HEARTH_OK;
    std::thread([&] { status = table->run(job, cancelled); }).join();
    return status;
  }

  bool run_jobs() {
    if (hold_jobs) return false;
    for (auto& [id, operation] : operations_) {
      if (operation.kind != HEARTH_OP_OFFLOAD || operation.job_ran) continue;
      operation.job_ran = true;
      operation.status = run_job(find_definition(operation.agent), operation.job, 0) == HEARTH_OK
                             ? HEARTH_OK
                             : HEARTH_E_PLUGIN;
      return true;
    }
    return false;
  }

  // Does one thing that is due; false if nothing is.
  bool step() {
    if (run_jobs()) return true;
    if (!soon_.empty()) {
      const auto next = std::move(soon_.front());
      soon_.pop_front();
      next();
      return true;
    }
    return step_post() || step_operation() ||
           std::any_of(agents_.begin(), agents_.end(),
                       [this](const auto& agent) { return step_agent(*agent); });
  }

  bool step_post() {
    std::pair<hearth_agent, std::uint64_t> post;
    {
      const std::lock_guard lock(mutex_);
      if (posts_.empty()) return false;
      post = posts_.front();
      posts_.pop_front();
    }
    OperationRecord result;
    result.agent = post.first;
    result.token = post.second;
    result.kind = HEARTH_OP_POST;
    deliver(result);
    return true;
  }

  // The operation that is due first.
  bool step_operation() {
    auto first = operations_.end();
    for (auto it = operations_.begin(); it != operations_.end(); ++it) {
      const OperationRecord& candidate = it->second;
      const bool due =
          candidate.kind == HEARTH_OP_SLEEP ? candidate.due_ns <= steady_ns : candidate.job_ran;
      if (due && (first == operations_.end() || candidate.due_ns < first->second.due_ns))
        first = it;
    }
    if (first == operations_.end()) return false;
    const OperationRecord operation = first->second;
    operations_.erase(first);
    deliver(operation);
    return true;
  }

  bool step_agent(AgentRecord& agent) {
    if (agent.instance && agent.destroy_requested) {
      destroy_for_good(agent);
      return true;
    }
    if (agent.instance && agent.evict_requested) {
      destroy(agent);
      return true;
    }
    if (agent.started && !agent.waiting.empty()) return run_first(agent.waiting);
    if (step_durable(*this, agent)) return true;
    for (const auto& [number, client] : agent.clients) {
      if (client->greeted && !client->waiting.empty()) return run_first(client->waiting);
      if (!client->open && client->greeted && !client->close_sent) {
        client->close_sent = true;
        send_close(agent, client);
        return true;
      }
    }
    return false;
  }

  // Wakes the agents that have something to do: a server does so by itself.
  void wake_interrupted() {
    for (const auto& agent : agents_) {
      if (agent->instance || next_durable(*this, *agent) > steady_ns) continue;
      try {
        wake(*agent);
      } catch (const std::exception& error) {
        write_log("warn recovery: " + std::string(error.what()));
      }
    }
  }

  static bool run_first(std::deque<std::function<void()>>& queue) {
    const auto next = std::move(queue.front());
    queue.pop_front();
    next();
    return true;
  }

  // The number of a connection is good until its CLOSE event has been completed.
  void send_close(AgentRecord& agent, const std::shared_ptr<ClientRecord>& client) {
    auto call = std::make_shared<CallRecord>();
    call->kind = HEARTH_EVENT_CLOSE;
    call->connection = client->number;
    call->then = [this, &agent, number = client->number](CallRecord&) {
      soon_.push_back([&agent, number] { agent.clients.erase(number); });
    };
    send(agent, call, client->close_reason, {},
         client->close_code | (client->close_clean ? std::uint32_t{HEARTH_CLOSE_WAS_CLEAN} : 0U));
  }

  Table table_;
  std::thread::id owner_ = std::this_thread::get_id();
  std::vector<std::unique_ptr<AgentRecord>> agents_;
  std::map<hearth_agent, AgentRecord*> by_id_;
  std::map<std::uint64_t, OperationRecord> operations_;
  std::deque<std::function<void()>> soon_;
  std::shared_ptr<unsigned> state_chain_;  // of the STATE_CHANGED that is being handled
  std::mutex mutex_;                       // guards posts_, log and random against other threads
  std::deque<std::pair<hearth_agent, std::uint64_t>> posts_;
  hearth_agent last_agent_ = 0;
  std::uint64_t last_call_ = 0;
  std::uint64_t last_operation_ = 0;
  std::uint64_t last_number_ = 0;
};

}  // namespace hearth::testing::detail
