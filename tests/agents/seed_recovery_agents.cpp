// The hooks of the first document about fibers, in C++ and nearly line by line.
// Plugin "seed-recovery-agents".
//
//   ChatFirstAgent     on_fibers_recovered: chats first and in parallel, then background work.
//                      begin(name, label), name: handleChat or summarize; notes() -> what happened
//   PatientAgent       on_fibers_recovered: gives up fibers that were interrupted more than twice.
//                      begin() -> the id of a fiber that gets nowhere; status(id)
//   OrchestratorAgent  on_fiber_recovered: goes back to a sandbox that went on meanwhile, and reads
//                      its log from the cursor. begin({session_id}); logs() -> what was read
//
//   options            step_ms: how long a step or a look takes

#include <hearth/agent.hpp>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

struct Pace {
  int step_ms = 50;
  HEARTH_FIELDS(step_ms)
};

class ChatFirstAgent : public hearth::Agent {
 public:
  using Options = Pace;
  explicit ChatFirstAgent(Options options) : options_(options) {
    sql("CREATE TABLE IF NOT EXISTS notes (text TEXT)");
  }

  static void methods(hearth::Methods<ChatFirstAgent>& m) {
    m.add("begin", &ChatFirstAgent::begin);
    m.add("notes", &ChatFirstAgent::notes);
    m.fiber("handleChat", &ChatFirstAgent::work);
    m.fiber("summarize", &ChatFirstAgent::work);
  }

  // The bound is one for all: background work is offered as soon as a chat's hook has ended.
  hearth::Task<hearth::RecoveryPlan> on_fibers_recovered(
      const std::vector<hearth::InterruptedFiber>& fibers) override {
    hearth::RecoveryPlan plan;
    // Prioritize chat fibers, then background work
    for (const hearth::InterruptedFiber& f : fibers)
      if (f.name == "handleChat") plan.order.push_back(f.id);

    // Recover chat fibers first, in parallel; then those that are not named, oldest first
    chats_ = static_cast<int>(plan.order.size());
    plan.parallel = std::max(1, chats_);
    co_return plan;
  }

  hearth::Task<void> on_fiber_recovered(const hearth::RecoveredFiber& ctx) override {
    note("recovering " + ctx.input.get<std::string>());
    if (ctx.name == "handleChat") ++offered_chats_;
    do {  // a chat: until all of them are here, so that a test can see them side by side
      co_await sleep(std::chrono::milliseconds(options_.step_ms));
    } while (ctx.name == "handleChat" && offered_chats_ < chats_);
    note("recovered " + ctx.input.get<std::string>());
    continue_fiber(ctx);
  }

  void begin(const std::string& name, const std::string& label) { start_fiber(name, label); }
  std::vector<std::string> notes() {
    return sql("SELECT text FROM notes ORDER BY rowid").rows<std::string>();
  }

 private:
  hearth::Task<void> work(std::string label, hearth::FiberContext& /*fiber*/) {
    co_await sleep(20 * std::chrono::milliseconds(options_.step_ms));
    note("finished " + label);
  }
  void note(const std::string& text) { sql("INSERT INTO notes VALUES (?)", text); }

  Options options_;
  int chats_ = 0;          // that are to be recovered
  int offered_chats_ = 0;  // of them
};

class PatientAgent : public hearth::Agent {
 public:
  static void methods(hearth::Methods<PatientAgent>& m) {
    m.add("begin", &PatientAgent::begin);
    m.add("status", &PatientAgent::status);
    m.fiber("stuck", &PatientAgent::stuck);
  }

  hearth::Task<hearth::RecoveryPlan> on_fibers_recovered(
      const std::vector<hearth::InterruptedFiber>& fibers) override {
    hearth::RecoveryPlan plan;
    for (const hearth::InterruptedFiber& fiber : fibers) {
      if (fiber.attempt > 2) {
        log.warn("Giving up on fiber ", fiber.id);
        plan.skip.push_back(fiber.id);
      }
    }
    co_return plan;
  }

  std::string begin() { return start_fiber("stuck", nullptr, {.keep_record = true}).id(); }
  std::string status(const std::string& id) {
    const auto record = inspect_fiber(id);
    if (!record) return "unknown";
    return record->status == hearth::FiberStatus::kInterrupted ? "interrupted" : "open";
  }

 private:
  hearth::Task<void> stuck(hearth::Json /*input*/, hearth::FiberContext& /*fiber*/) {
    co_await sleep(std::chrono::hours(1));
  }
};

// The external session of this example: a file to which others append, one log a line. The id of a
// log is the number of its line.
class Sandbox {
 public:
  struct Log {
    int id = 0;
    std::string text;
    HEARTH_FIELDS(id, text)
  };

  explicit Sandbox(std::string session_id) : session_id_(std::move(session_id)) {}

  [[nodiscard]] std::vector<Log> get_logs_since(int last_log_id) const {
    std::vector<Log> logs;
    std::ifstream file(session_id_);
    std::string line;
    for (int id = 1; std::getline(file, line); ++id)
      if (id > last_log_id) logs.push_back({id, line});
    return logs;
  }

 private:
  std::string session_id_;
};

class OrchestratorAgent : public hearth::Agent {
 public:
  using Options = Pace;
  explicit OrchestratorAgent(Options options) : options_(options) {
    sql("CREATE TABLE IF NOT EXISTS logs (id INTEGER, text TEXT, missed INTEGER)");
  }

  static void methods(hearth::Methods<OrchestratorAgent>& m) {
    m.add("begin", &OrchestratorAgent::begin);
    m.add("logs", &OrchestratorAgent::logs);
    m.fiber("orchestrate", &OrchestratorAgent::orchestrate);
  }

  struct Payload {
    std::string session_id;
    HEARTH_FIELDS(session_id)
    HEARTH_REQUIRED(session_id)
  };
  struct Cursor {
    std::string session_id;
    int last_log_id = 0;
    HEARTH_FIELDS(session_id, last_log_id)
  };
  struct Cursors {
    Cursor sandbox;
    HEARTH_FIELDS(sandbox)
  };

  hearth::Task<void> on_fiber_recovered(const hearth::RecoveredFiber& ctx) override {
    if (ctx.snapshot.is_null()) return {};  // nothing was read yet: it begins anew
    auto cursors = hearth::read_json<Cursors>(ctx.snapshot.at("cursors"), "cursors");

    // Reconnect to the sandbox
    const Sandbox sandbox(cursors.sandbox.session_id);

    // Catch up on missed logs
    for (const Sandbox::Log& entry : sandbox.get_logs_since(cursors.sandbox.last_log_id))
      take(entry, true, cursors);

    // Continue orchestration from the last checkpoint
    continue_fiber(ctx, [this, cursors](hearth::FiberContext& fiber) {
      return continue_orchestration(cursors, fiber);
    });
    return {};
  }

  void begin(const Payload& payload) { start_fiber("orchestrate", payload); }
  std::vector<std::string> logs() {
    return sql("SELECT id || ' ' || text || iif(missed, ', missed', '') FROM logs ORDER BY rowid")
        .rows<std::string>();
  }

 private:
  hearth::Task<void> orchestrate(Payload payload, hearth::FiberContext& fiber) {
    return continue_orchestration({.sandbox = {.session_id = payload.session_id}}, fiber);
  }

  // The rows that were read and the cursor behind them are on disk together, or not at all.
  hearth::Task<void> continue_orchestration(Cursors cursors, hearth::FiberContext& fiber) {
    while (!is_over_) {
      for (const Sandbox::Log& entry :
           Sandbox(cursors.sandbox.session_id).get_logs_since(cursors.sandbox.last_log_id))
        take(entry, false, cursors);
      fiber.stash(hearth::Json{{"cursors", cursors}});
      co_await sleep(std::chrono::milliseconds(options_.step_ms));
    }
  }

  void take(const Sandbox::Log& entry, bool was_missed, Cursors& cursors) {
    sql("INSERT INTO logs VALUES (?, ?, ?)", entry.id, entry.text, was_missed);
    broadcast(hearth::Json{{"type", "log"}, {"id", entry.id}, {"text", entry.text}});
    cursors.sandbox.last_log_id = entry.id;
    if (entry.text == "exit") is_over_ = true;
  }

  Options options_;
  bool is_over_ = false;
};

HEARTH_PLUGIN("seed-recovery-agents", "1.0.0", ChatFirstAgent, PatientAgent, OrchestratorAgent)
