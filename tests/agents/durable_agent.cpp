// An agent whose durable work does what a test asks for. Plugin "durable-agent", class
// DurableAgent.
//
//   methods   begin(name, key, {"steps", "ms", "failures", "max_retries", "hook", "lane"})
//                 -> {"accepted", "record"}: a managed fiber of `steps` steps of `ms`. It throws
//                 `failures` times before it works
//             wait(id), inspect(id), list(), dead(), cancel(id, reason), resolve(id, result),
//                 retry(id), forget()
//             push(callback, payload), later(callback, ms, payload), every(callback, ms, payload),
//                 items(), schedules(), again(id)
//             journal() -> what has happened, in order; write(entry)
//             alarm_in(ms, entry): an alarm that calls write
//             asks_person(what)
//             note_for_operators(what, detail, times) -> how many entries the audit log took
//   hook      of the fiber's input. What on_fiber_recovered does with the fiber: continue,
//             nothing (lets it go), throw or settle
//   callbacks note(payload); flaky(payload) throws at the first two attempts; `hopeless` throws
//             always
//   table     journal(entry): each line in the turn of what it is about

#include <hearth/agent.hpp>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

class DurableAgent : public hearth::Agent {
 public:
  struct Work {
    int steps = 1;
    int ms = 10;
    int failures = 0;
    int max_retries = 0;
    std::string hook = "continue";
    std::optional<std::string> lane = {};
    HEARTH_FIELDS(steps, ms, failures, max_retries, hook, lane)
  };

  DurableAgent() { sql("CREATE TABLE IF NOT EXISTS journal (entry TEXT)"); }

  static void methods(hearth::Methods<DurableAgent>& m) {
    m.add("begin", &DurableAgent::begin);
    m.add("wait", &DurableAgent::wait);
    m.add("inspect", &DurableAgent::inspect);
    m.add("list", &DurableAgent::list);
    m.add("dead", &DurableAgent::dead);
    m.add("cancel", &DurableAgent::cancel);
    m.add("resolve", &DurableAgent::resolve);
    m.add("retry", &DurableAgent::retry_one);
    m.add("forget", &DurableAgent::forget);
    m.add("push", &DurableAgent::push);
    m.add("later", &DurableAgent::later);
    m.add("every", &DurableAgent::every);
    m.add("items", &DurableAgent::items);
    m.add("schedules", &DurableAgent::schedules);
    m.add("again", &DurableAgent::again);
    m.add("journal", &DurableAgent::journal);
    m.add("write", &DurableAgent::note);
    m.add("alarm_in", &DurableAgent::alarm_in);
    m.add("asks_person", &DurableAgent::asks_person);
    m.add("note_for_operators", &DurableAgent::note_for_operators);
    m.callback("note", &DurableAgent::note);
    m.callback("flaky", &DurableAgent::flaky);
    m.callback("hopeless", &DurableAgent::hopeless);
  }

  // ---- alarms and the audit log
  hearth::Alarm alarm_in(int ms, const std::string& entry) {
    return set_alarm(std::chrono::milliseconds(ms), "write", entry);
  }
  void asks_person(const std::string& what) { waits_for_person(what); }
  // How many were added before the limit.
  int note_for_operators(const std::string& what, const hearth::Json& more, int times) {
    for (int added = 0; added < times; ++added) {
      try {
        audit(what, more);
      } catch (const hearth::HostError& failure) {
        if (failure.code() != HEARTH_E_LIMIT) throw;
        return added;
      }
    }
    return times;
  }

  hearth::RetryOptions retry_defaults() override {
    hearth::RetryOptions options;
    options.base_delay = options.max_delay = std::chrono::milliseconds(20);
    return options;
  }

  // ---- managed fibers
  hearth::Json begin(const std::string& name, const std::optional<std::string>& key,
                     const Work& work) {
    hearth::FiberOptions options;
    options.key = key;
    options.keep_record = true;
    options.input = work;
    options.max_retries = work.max_retries;
    options.retry_delay = std::chrono::milliseconds(20);
    options.lane = work.lane;
    const auto started = start_fiber(
        name, [this, work](hearth::FiberContext& fiber) { return steps(fiber, work); }, options);
    return {{"accepted", started.accepted}, {"record", started.record}};
  }
  hearth::Task<hearth::FiberRecord> wait(std::string id) { co_return co_await wait_fiber(id); }
  std::optional<hearth::FiberRecord> inspect(const std::string& id) { return inspect_fiber(id); }
  std::vector<hearth::FiberRecord> list() { return list_fibers(); }
  std::size_t dead() { return list_dead_fibers().size(); }
  bool cancel(const std::string& id, const std::string& reason) { return cancel_fiber(id, reason); }
  bool resolve(const std::string& id, const hearth::Json& result) {
    return resolve_fiber(id, hearth::FiberOutcome::completed(result));
  }
  bool retry_one(const std::string& id) { return revive_fiber(id); }
  std::uint64_t forget() { return delete_fibers(); }

  hearth::Task<void> on_fiber_recovered(const hearth::RecoveredFiber& fiber) override {
    const auto work = hearth::read_json<Work>(fiber.input, "input");
    note("offered " + fiber.name + " " + fiber.reason + " " + std::to_string(fiber.attempt));
    co_await sleep(std::chrono::milliseconds(1));
    if (work.hook == "throw") throw std::runtime_error("the hook failed as asked");
    if (work.hook == "nothing") settle_fiber(fiber, hearth::FiberOutcome::interrupted());
    if (work.hook == "settle") settle_fiber(fiber, hearth::FiberOutcome::completed("by the hook"));
    if (work.hook == "continue")
      continue_fiber(fiber, [this, work](hearth::FiberContext& next) { return steps(next, work); });
  }
  hearth::Task<hearth::RecoveryPlan> on_fibers_recovered(
      const std::vector<hearth::InterruptedFiber>& fibers) override {
    hearth::RecoveryPlan plan;  // the newest first
    for (const hearth::InterruptedFiber& fiber : fibers)
      plan.order.insert(plan.order.begin(), fiber.id);
    note("planned " + std::to_string(fibers.size()));
    return plan;
  }
  hearth::Task<void> on_fiber_complete(const hearth::FiberRecord& fiber) override {
    note("told " + fiber.name + " " + hearth::Json(fiber).at("status").get<std::string>());
    return {};
  }

  // ---- schedules and the queue
  std::string push(const std::string& callback, const hearth::Json& payload) {
    return queue(callback, payload).id;
  }
  std::string later(const std::string& callback, int ms, const hearth::Json& payload) {
    return schedule(std::chrono::milliseconds(ms), callback, payload).id;
  }
  std::string every(const std::string& callback, int ms, const hearth::Json& payload) {
    return schedule_every(std::chrono::milliseconds(ms), callback, payload).id;
  }
  std::vector<hearth::QueueItem> items() { return list_queue(); }
  std::vector<hearth::Schedule> schedules() { return list_schedules(); }
  bool again(const std::string& id) { return revive_queue_item(id) || revive_schedule(id); }

  std::vector<std::string> journal() {
    return sql("SELECT entry FROM journal ORDER BY rowid").rows<std::string>();
  }

 private:
  hearth::Task<std::string> steps(hearth::FiberContext& fiber, Work work) {
    int done = fiber.snapshot().is_null() ? 0 : fiber.snapshot().get<int>();
    while (done < work.steps) {
      co_await sleep(std::chrono::milliseconds(work.ms));
      note(fiber.name() + " " + std::to_string(++done));
      fiber.stash(done);
      const auto failed = inspect_fiber(fiber.id())->failures;
      if (failed < work.failures) throw std::runtime_error("the work failed as asked");
    }
    co_return "done by " + fiber.id();
  }

  void note(const std::string& entry) { sql("INSERT INTO journal VALUES (?)", entry); }
  void flaky(const std::string& entry, const hearth::QueueItem& item) {
    note("attempt " + std::to_string(item.attempts) + " of " + entry);
    if (item.attempts < 3) throw std::runtime_error("failed as asked");
  }
  void hopeless() { throw std::runtime_error("hopeless"); }
};

HEARTH_PLUGIN("durable-agent", "1.0.0", DurableAgent)
