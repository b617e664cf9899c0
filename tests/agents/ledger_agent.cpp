// An agent that records its durable work, for tests that kill the server: work that is done twice,
// or not at all, shows. Plugin "ledger-agent", class LedgerAgent.
//
//   HTTP      POST ?walk=RUN&steps=N&ms=M&hook=H      begins a fiber of N steps of M ms, under the
//                                                     key RUN: the effect in the middle of a step,
//                                                     the rows at its end
//             POST ?managed=RUN&steps=N&ms=M&hook=H   as walk, and it keeps its record. Answers
//                                                     whether it was accepted
//             POST ?wait=1                            with the one above: waits, and says the
//                                                     status and the result
//             POST ?cancel=RUN                        cancels it
//             POST ?schedule=RUN&ms=M                 take_note("RUN") in M ms
//             POST ?queue=RUN                         take_note("RUN") from the queue
//             POST ?hold=1                            holds a reference that is never given back
//             GET                                     the number of steps in the ledger
//   hook      what on_fiber_recovered does:
//             continue  the fiber goes on
//             drop      lets the fiber go
//             throw     fails
//             slow      waits M ms, and the fiber goes on
//             twice     fails at the first attempt; at the next the fiber goes on
//             hurry     the fiber goes on, without waits from then on
//             settle    completes the fiber
//   tables    ledger(run, step, fiber)                a row in the turn of its step's checkpoint.
//                                                     The last step has no checkpoint: its row is
//                                                     written with the end of the fiber. A note is
//                                                     one step
//             hooks(run, attempt, snapshot, at)       a row in the first turn of the hook; at: Unix
//                                                     milliseconds
//             finished(run)                           in the turn that ends the walk or the note
//             told(run, status)                       by on_fiber_complete
//   options   effects: a directory. Each step appends the line "RUN STEP" to the file NAME in it,
//             before its rows are written, as an effect outside. A step's line may be there twice,
//             its row may not.
//   log       "RUN is finished" after the last step

#include <hearth/agent.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

class LedgerAgent : public hearth::Agent {
 public:
  struct Options {
    std::string effects;
    HEARTH_FIELDS(effects)
  };

  explicit LedgerAgent(Options options) : options_(std::move(options)) {}

  static void methods(hearth::Methods<LedgerAgent>& m) {
    m.callback("take_note", &LedgerAgent::take_note);
  }

  hearth::Task<hearth::Response> on_request(const hearth::Request& request) override {
    if (request.method() == "GET") co_return hearth::Response::text(std::to_string(steps()));
    make_tables();
    if (const auto run = request.query("walk")) {
      const Walk walk = read_walk(request, *run);
      start_fiber("walk", managed_work(walk), {.key = walk.run, .input = walk});
    } else if (const auto managed = request.query("managed")) {
      const Walk walk = read_walk(request, *managed);
      const auto started = start_fiber("walk", managed_work(walk), options_for(walk));
      std::string answer = started.accepted ? "accepted" : "known";
      if (request.query("wait")) {
        const hearth::FiberRecord record = co_await wait_fiber(started.record.id);
        answer += " " + word(record.status) + " " + hearth::to_text(record.result);
      }
      co_return hearth::Response::text(answer);
    } else if (const auto cancelled = request.query("cancel")) {
      cancel_fiber_by_key(*cancelled, "cancelled as asked");
    } else if (const auto scheduled = request.query("schedule")) {
      schedule(std::chrono::milliseconds(number(request, "ms", 10)), "take_note", *scheduled);
    } else if (const auto queued = request.query("queue")) {
      queue("take_note", *queued);
    } else if (request.query("hold")) {
      held_.push_back(keep_alive());
    }
    co_return hearth::Response::text("done");
  }

  hearth::Task<void> on_fiber_recovered(const hearth::RecoveredFiber& fiber) override {
    auto walk = hearth::read_json<Walk>(begin_of(fiber), "walk");
    if (walk.hook == "hurry") walk.ms = 0;
    sql("INSERT INTO hooks VALUES (?, ?, ?, CAST((julianday('now') - 2440587.5) * 86400000 AS "
        "INTEGER))",
        walk.run, fiber.attempt, hearth::to_text(fiber.snapshot));
    if (walk.hook == "drop") {
      settle_fiber(fiber, hearth::FiberOutcome::interrupted());
      co_return;
    }
    if (walk.hook == "settle") {
      settle_fiber(fiber, hearth::FiberOutcome::completed("by the hook"));
      co_return;
    }
    if (walk.hook == "slow") co_await sleep(std::chrono::milliseconds(walk.ms));
    if (walk.hook == "throw" || (walk.hook == "twice" && fiber.attempt == 1))
      throw std::runtime_error("the hook failed as asked");
    continue_fiber(fiber, managed_work(walk));
  }

  hearth::Task<void> on_fiber_complete(const hearth::FiberRecord& fiber) override {
    sql("INSERT INTO told VALUES (?, ?)", fiber.key.value_or(""), word(fiber.status));
    return {};
  }

 private:
  struct Walk {
    std::string run;
    int done = 0;
    int steps = 0;
    int ms = 0;
    std::string hook;
    HEARTH_FIELDS(run, done, steps, ms, hook)
  };

  hearth::Task<void> work(hearth::FiberContext& fiber, Walk walk) {
    while (walk.done < walk.steps) {
      co_await sleep(std::chrono::milliseconds(walk.ms / 2));
      ++walk.done;
      take_effect(walk.run, walk.done);
      co_await sleep(std::chrono::milliseconds(walk.ms - walk.ms / 2));
      sql("INSERT INTO ledger VALUES (?, ?, ?)", walk.run, walk.done, fiber.id());
      if (walk.done < walk.steps) fiber.stash(walk);
    }
    // Together with the last step, and with the end of the fiber.
    sql("INSERT INTO finished VALUES (?)", walk.run);
    log.info(walk.run, " is finished");
  }
  hearth::Task<int> walk_for_result(hearth::FiberContext& fiber, Walk walk) {
    co_await work(fiber, walk);
    co_return walk.steps;
  }
  std::function<hearth::Task<int>(hearth::FiberContext&)> managed_work(const Walk& walk) {
    return [this, walk](hearth::FiberContext& fiber) { return walk_for_result(fiber, walk); };
  }

  void take_note(const std::string& run) {
    take_effect(run, 1);
    sql("INSERT INTO ledger VALUES (?, 1, '')", run);
    sql("INSERT INTO finished VALUES (?)", run);
    log.info(run, " is finished");
  }

  // The world outside: nothing that the database rolls back.
  void take_effect(const std::string& run, int step) {
    if (options_.effects.empty()) return;
    const std::string line = run + " " + std::to_string(step) + "\n";
    const int file = ::open((options_.effects + "/" + name()).c_str(),
                            O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const bool written =
        file >= 0 && ::write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
    if (file >= 0) ::close(file);
    if (!written) throw std::runtime_error("the effect did not take place");
  }

  void make_tables() {
    sql("CREATE TABLE IF NOT EXISTS ledger (run TEXT, step INTEGER, fiber TEXT)");
    sql("CREATE TABLE IF NOT EXISTS hooks (run TEXT, attempt INTEGER, snapshot TEXT, at INTEGER)");
    sql("CREATE TABLE IF NOT EXISTS finished (run TEXT)");
    sql("CREATE TABLE IF NOT EXISTS told (run TEXT, status TEXT)");
  }
  int steps() {
    const bool made = sql("SELECT count(*) FROM sqlite_schema WHERE name = 'ledger'").value<bool>();
    return made ? sql("SELECT count(*) FROM ledger").value<int>() : 0;
  }

  // A recovered fiber begins with its checkpoint, or with its arguments if there is none.
  static hearth::Json begin_of(const hearth::RecoveredFiber& fiber) {
    return fiber.snapshot.is_null() ? fiber.input : fiber.snapshot;
  }
  static hearth::FiberOptions options_for(const Walk& walk) {
    hearth::FiberOptions options;
    options.key = walk.run;
    options.keep_record = true;
    options.input = hearth::Json(walk);
    return options;
  }
  static std::string word(hearth::FiberStatus status) {
    switch (status) {
      case hearth::FiberStatus::kCompleted: return "completed";
      case hearth::FiberStatus::kError: return "error";
      case hearth::FiberStatus::kAborted: return "aborted";
      case hearth::FiberStatus::kInterrupted: return "interrupted";
      default: return "not settled";
    }
  }
  static Walk read_walk(const hearth::Request& request, const std::string& run) {
    return {run, 0, number(request, "steps", 5), number(request, "ms", 20),
            request.query("hook").value_or("continue")};
  }
  static int number(const hearth::Request& request, const char* name, int otherwise) {
    const auto text = request.query(name);
    return text ? std::stoi(*text) : otherwise;
  }

  Options options_;
  std::vector<hearth::KeepAlive> held_;
};

// The same under another name, in a library of its own: plugin "second-ledger", class SecondLedger.
#ifdef SECOND_LEDGER
class SecondLedger : public LedgerAgent {
 public:
  using LedgerAgent::LedgerAgent;
};
HEARTH_PLUGIN("second-ledger", "1.0.0", SecondLedger)
#else
HEARTH_PLUGIN("ledger-agent", "1.0.0", LedgerAgent)
#endif
