// Research that survives: work in steps that goes on after an eviction, a crash and an update of
// this file.
//
//   methods   start(topic, steps = 5, step_ms = 1000) -> id of the run
//             cancel(run) -> true if it was running, status(run)
//             steps(run) -> [1, 2, ...] in the order in which they were done
//             start_once(key, topic, steps = 5, step_ms = 1000) -> id of the run: the same for the
//             same key, in every call; another topic with this key is rejected
//             result(key) waits for the end and gives its status
//             version() -> RESEARCH_VERSION, which distinguishes builds of this file
//   state     {"runs": {run: {"topic", "completed", "total", "status", "recoveries"}}}; clients
//             cannot change it. status: running, completed, cancelled or failed
//   frames    {"type": "progress", "run": run, and its entry in the state} to every client after
//             each change
//   table     steps(run, step, at): a row for each completed step, so that a step done twice would
//             show

#include <hearth/agent.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#ifndef RESEARCH_VERSION
#define RESEARCH_VERSION "1.0.0"  // NOLINT(readability-identifier-naming): not the SDK's
#endif

class Research : public hearth::Agent {
 public:
  Research() { sql("CREATE TABLE IF NOT EXISTS steps (run TEXT, step INTEGER, at INTEGER)"); }

  static void methods(hearth::Methods<Research>& m) {
    m.add("start", &Research::start);
    m.add("cancel", &Research::cancel);
    // These may be repeated, and the server does so: a client that waits for a result does not
    // notice that the library is replaced.
    m.add("status", &Research::status, hearth::kIdempotent);
    m.add("steps", &Research::steps, hearth::kIdempotent);
    m.add("start_once", &Research::start_once, hearth::kIdempotent);
    m.add("result", &Research::result, hearth::kIdempotent);
    m.add("version", &Research::version, hearth::kIdempotent);
    m.fiber("research", &Research::work);
  }

  hearth::Json initial_state() override { return {{"runs", hearth::Json::object()}}; }

  std::string start(const std::string& topic, std::optional<int> steps,
                    std::optional<int> step_ms) {
    const Order order = checked({topic, steps.value_or(5), step_ms.value_or(1000)});
    check_room();
    return start_fiber("research", order).id();
  }

  // With a key and a record: a second call gets the existing run, even if the agent is full.
  std::string start_once(const std::string& key, const std::string& topic, std::optional<int> steps,
                         std::optional<int> step_ms) {
    const Order order = checked({topic, steps.value_or(5), step_ms.value_or(1000)});
    if (!inspect_fiber_by_key(key)) check_room();
    return start_fiber("research", order, {.key = key, .keep_record = true}).id();
  }

  hearth::Task<hearth::Json> result(std::string key) {
    const auto fiber = inspect_fiber_by_key(key);
    check(fiber.has_value(), "no such run", HEARTH_E_NOT_FOUND);
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): looked at above
    const hearth::FiberRecord record = co_await wait_fiber(fiber->id);
    if (record.status == hearth::FiberStatus::kAborted) co_return progress_of(record.id);
    co_return record.result_as<hearth::Json>();
  }

  // With this turn, for good: no crash brings the run back.
  bool cancel(const std::string& run) {
    Progress progress = progress_of(run);
    // The run of an earlier version has an id of its own: its work looks at the status.
    if (!cancel_fiber(run, "cancelled by a client") && progress.status != "running") return false;
    progress.status = "cancelled";
    show(run, progress);
    return true;
  }

  hearth::Json status(const std::string& run) { return progress_of(run); }

  std::string version() { return RESEARCH_VERSION; }

  std::vector<int> steps(const std::string& run) {
    return sql("SELECT step FROM steps WHERE run = ? ORDER BY rowid", run).rows<int>();
  }

  // Clients may only read the state.
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
  static constexpr std::size_t kMostRuns = 1'000;

  // The input of the fiber.
  struct Order {
    std::string topic;
    int steps = 5;
    int step_ms = 1000;
    HEARTH_FIELDS(topic, steps, step_ms)
  };
  // The checkpoint. Earlier versions had no input: they have only the checkpoint.
  struct Plan {
    std::string run;
    Progress progress;
    int step_ms = 0;
    HEARTH_FIELDS(run, progress, step_ms)
    HEARTH_REQUIRED(run, progress)
  };
  // Checks all input from outside, once.
  static Order checked(Order order) {
    check(!order.topic.empty() && order.topic.size() <= 200, "topic: 1 to 200 bytes");
    check(order.steps >= 1 && order.steps <= 10'000, "steps: 1 to 10000");
    check(order.step_ms >= 0 && order.step_ms <= 3'600'000, "step_ms: 0 to 3600000");
    return order;
  }

  // For new runs only: an accepted run goes on.
  void check_room() {
    check(state().at("runs").size() < kMostRuns, "this agent has had enough runs");
  }

  // Called again after an eviction, a crash and an update, with the same order and the last
  // checkpoint. stash() commits all earlier writes of this turn: a step's row, the state and the
  // checkpoint are on disk together or not at all. So a crash repeats at most the step that had no
  // row yet.
  hearth::Task<Progress> work(std::optional<Order> order, hearth::FiberContext& fiber) {
    Plan plan = plan_of(order, fiber);
    const std::string& run = plan.run;
    Progress& progress = plan.progress;
    if (state().at("runs").contains(run)) {
      const Progress shown = progress_of(run);
      if (shown.status != "running") co_return shown;
      progress.recoveries = shown.recoveries + 1;
    }
    try {
      show(run, progress);
      while (progress.completed < progress.total) {
        co_await sleep(std::chrono::milliseconds(plan.step_ms));  // the research of this example
        if (fiber.stop_token().stop_requested() || progress_of(run).status != "running")
          co_return progress_of(run);
        ++progress.completed;
        if (progress.completed == progress.total) progress.status = "completed";
        sql("INSERT INTO steps VALUES (?, ?, ?)", run, progress.completed,
            now().time_since_epoch().count());
        show(run, progress);
        fiber.stash(plan);
      }
    } catch (const std::exception& error) {
      log.error("run ", run, " failed: ", error.what());
      progress.status = "failed";
      show(run, progress);
    }
    co_return progress;
  }
  static Plan plan_of(const std::optional<Order>& order, const hearth::FiberContext& fiber) {
    if (const auto plan = fiber.snapshot<Plan>()) return *plan;
    check(order.has_value(), "this run was begun without an order, and has no checkpoint");
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): looked at above
    return {fiber.id(), {order->topic, 0, order->steps}, order->step_ms};
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

HEARTH_PLUGIN("research", RESEARCH_VERSION, Research)
