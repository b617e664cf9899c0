// The class of the stored work of schema version 1 (tests/support/stored_work.sql). Plugin
// "stored-work", class Worker.
//
//   method    journal() -> what has happened, in order: each line in the turn of what it is about
//   fibers    each recovered fiber goes on, and ends: "done NAME CHECKPOINT". Several fibers have
//             the name "report": their line has the id instead
//   callbacks all names of schedules and items but "buried": "ran NAME", "took NAME"
//   told      "told ID STATUS"

#include <hearth/agent.hpp>

#include <chrono>
#include <string>
#include <vector>

class Worker : public hearth::Agent {
 public:
  Worker() { sql("CREATE TABLE IF NOT EXISTS journal (entry TEXT)"); }

  static void methods(hearth::Methods<Worker>& m) {
    m.add("journal", &Worker::journal);
    for (const char* const name :
         {"later", "claimed", "at", "nightly", "every", "paused", "missing", "retrying", "beside"})
      m.callback(name, &Worker::run);
    for (const char* const name : {"head", "behind", "last"}) m.callback(name, &Worker::take);
  }

  std::vector<std::string> journal() {
    return sql("SELECT entry FROM journal ORDER BY rowid").rows<std::string>();
  }

  hearth::Task<void> on_fiber_recovered(const hearth::RecoveredFiber& fiber) override {
    continue_fiber(fiber, [this](hearth::FiberContext& next) { return finish(next); });
    return {};
  }
  hearth::Task<void> on_fiber_complete(const hearth::FiberRecord& fiber) override {
    note("told " + fiber.id + " " + hearth::Json(fiber).at("status").get<std::string>());
    return {};
  }

 private:
  hearth::Task<int> finish(hearth::FiberContext& fiber) {
    co_await sleep(std::chrono::milliseconds(1));
    const std::string& which = fiber.name() == "report" ? fiber.id() : fiber.name();
    note("done " + which + " " + fiber.snapshot().dump());
    co_return 1;
  }
  void run(const hearth::Json&, const hearth::ScheduleRun& run) { note("ran " + run.callback); }
  void take(const hearth::Json&, const hearth::QueueItem& item) { note("took " + item.callback); }
  void note(const std::string& entry) { sql("INSERT INTO journal VALUES (?)", entry); }
};

HEARTH_PLUGIN("stored-work", "1.0.0", Worker)
