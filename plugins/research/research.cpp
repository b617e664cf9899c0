// Research that goes on by itself: work in steps that survives an eviction, a crash and an update of this file.
//
//   methods   start(topic, steps = 5, step_ms = 1000) -> id of the run, cancel(run) -> was it running,
//             status(run), steps(run) -> [1, 2, ...] as they were done
//   state     {"runs": {run: {"topic", "completed", "total", "status", "recoveries"}}}; clients cannot change it.
//             status: running, completed, cancelled or failed
//   frames    {"type": "progress", "run": run, and what the state says of it} to everyone after each change
//   table     steps(run, step, at): a row for each step that was done, so that a step done twice would show

#include <hearth/agent.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

class Research : public hearth::Agent {
 public:
  Research() { sql("CREATE TABLE IF NOT EXISTS steps (run TEXT, step INTEGER, at INTEGER)"); }

  static void methods(hearth::Methods<Research>& m) {
    m.add("start", &Research::start);
    m.add("cancel", &Research::cancel);
    m.add("status", &Research::status);
    m.add("steps", &Research::steps);
  }

  hearth::Json initial_state() override { return {{"runs", hearth::Json::object()}}; }

  // Everything that comes from outside is checked once, here.
  std::string start(const std::string& topic, std::optional<int> steps,
                    std::optional<int> step_ms) {
    const Plan plan = {uuid(), {topic, 0, steps.value_or(5)}, step_ms.value_or(1000)};
    check(!topic.empty() && topic.size() <= 200, "topic: 1 to 200 bytes");
    check(plan.progress.total >= 1 && plan.progress.total <= 10'000, "steps: 1 to 10000");
    check(plan.step_ms >= 0 && plan.step_ms <= 3'600'000, "step_ms: 0 to 3600000");
    check(state().at("runs").size() < 1'000, "this agent has had enough runs");
    spawn_fiber("research",
                [this, plan](hearth::FiberContext& fiber) { return work(fiber, plan); });
    return plan.run;
  }

  // The work itself looks at the status after each step. The stop token of a fiber would do as well, but would
  // not survive a crash between this and the end of the step.
  bool cancel(const std::string& run) {
    Progress progress = progress_of(run);
    if (progress.status != "running") return false;
    progress.status = "cancelled";
    show(run, progress);
    return true;
  }

  hearth::Json status(const std::string& run) { return progress_of(run); }

  std::vector<int> steps(const std::string& run) {
    return sql("SELECT step FROM steps WHERE run = ? ORDER BY rowid", run).rows<int>();
  }

  // The last checkpoint says where to go on. Without one the work had not begun: nobody has heard of it yet.
  hearth::Task<void> on_fiber_recovered(const hearth::RecoveredFiber& fiber) override {
    if (fiber.name != "research" || fiber.snapshot.is_null()) return {};
    auto plan = hearth::read_json<Plan>(fiber.snapshot, "checkpoint");
    if (progress_of(plan.run).status != "running") return {};
    plan.progress.recoveries = progress_of(plan.run).recoveries + 1;
    continue_fiber(fiber, [this, plan](hearth::FiberContext& next) { return work(next, plan); });
    return {};
  }

  // Clients read the state; what they write would not be true.
  void validate_state(const hearth::Json&, std::optional<hearth::Connection> source) override {
    if (source) throw hearth::Error(HEARTH_E_FORBIDDEN, "the state is read-only");
  }

 private:
  struct Progress {
    std::string topic;
    int completed = 0;
    int total = 0;
    std::string status = "running";
    int recoveries = 0;
    HEARTH_FIELDS(topic, completed, total, status, recoveries)
  };
  // The checkpoint: all that is needed to go on.
  struct Plan {
    std::string run;
    Progress progress;
    int step_ms = 0;
    HEARTH_FIELDS(run, progress, step_ms)
  };

  // stash() commits what was written before it in this turn: a step's row, the state and the checkpoint are on disk
  // together or not at all. So a crash repeats at most the step that had no row yet.
  hearth::Task<void> work(hearth::FiberContext& fiber, Plan plan) {
    Progress& progress = plan.progress;
    try {
      show(plan.run, progress);
      // Once, before the first step. A continuation has a checkpoint; making it anew would pass for progress.
      if (fiber.snapshot().is_null()) fiber.stash(plan);
      while (progress.completed < progress.total) {
        co_await sleep(std::chrono::milliseconds(plan.step_ms));   // the research of this example
        if (progress_of(plan.run).status != "running") co_return;  // cancelled meanwhile
        ++progress.completed;
        if (progress.completed == progress.total) progress.status = "completed";
        sql("INSERT INTO steps VALUES (?, ?, ?)", plan.run, progress.completed,
            now().time_since_epoch().count());
        show(plan.run, progress);
        fiber.stash(plan);
      }
    } catch (const std::exception& error) {
      log.error("run ", plan.run, " failed: ", error.what());
      progress.status = "failed";
      show(plan.run, progress);
    }
  }

  void show(const std::string& run, const Progress& progress) {
    hearth::Json next = state();
    next["runs"][run] = progress;
    set_state(next);
    hearth::Json frame = progress;
    frame.update({{"type", "progress"}, {"run", run}});
    broadcast(frame);
  }

  Progress progress_of(const std::string& run) {
    const hearth::Json& runs = state().at("runs");
    check(runs.contains(run), "no such run", HEARTH_E_NOT_FOUND);
    return hearth::read_json<Progress>(runs.at(run), "run");
  }

  static void check(bool good, const char* text, hearth_status code = HEARTH_E_INVALID) {
    if (!good) throw hearth::Error(code, text);
  }
};

HEARTH_PLUGIN("research", "1.0.0", Research)
