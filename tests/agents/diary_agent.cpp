// An agent that writes down what happens to it, for the scenarios of tests/scenarios.
// Plugin "diary-agent", class Diary. SCHEMA 2 is its next version, which migrates the journal.
//
//   work      {"steps", "ms", "failures", "hook", "max_retries", "key"}: a fiber of `steps` steps
//             of `ms`, with a checkpoint after each. Its first `failures` attempts throw after
//             their first step. hook: what on_fiber_recovered does: continue, nothing (lets it go),
//             throw, settle, slow (nothing, after 50 ms)
//   methods   spawn(work): a detached fiber; run(work) -> the fiber's result
//             begin(work) -> {"accepted", "record"}: a managed fiber
//             wait(id), inspect(id), records(), cancel(id, reason), resolve(id, result), retry(id)
//             dead() -> names
//             clear_after(ms): removes all settled records, the interrupted ones too
//             later(callback, ms, payload), every(callback, ms), cron(callback, expression)
//             schedules(), unschedule(id), pause(id)
//             push(callback, payload), items(), again(id)
//             hold(), let_go(); fall(): throws after a write; count() -> state
//             end(): destroys itself
//             transact(steps): {"set": state}, "begin", "keep", "undo"; -> the state after each.
//                 Open transactions are undone at the end
//             hand_back(what): passes a part of what the host has lent to the host again; -> what
//                 the host answered
//             ring_soon(): an alarm, due at once, that calls ring, which notes its caller
//             nest() -> {"id"}: a fiber that waits for three others, of 100 ms each
//   callbacks note(payload); flaky(payload): throws at the first two attempts; hopeless: throws
//             always; final: throws a Final; stuck: waits for an hour
//   table     journal(entry): each line in the turn of what it is about
#include <hearth/agent.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

class Diary : public hearth::Agent {
 public:
  struct Work {
    int steps = 2;
    int ms = 100;
    int failures = 0;
    std::string hook = "continue";
    int max_retries = 0;
    std::optional<std::string> key;
    HEARTH_FIELDS(steps, ms, failures, hook, max_retries, key)
  };

#ifdef SCHEMA
  static constexpr unsigned schema_version = SCHEMA;
#else
  static constexpr unsigned schema_version = 1;
#endif
  hearth::Task<void> on_migrate(unsigned from, unsigned to) override {
    co_await sleep(std::chrono::milliseconds(1));
    note("migrated from " + std::to_string(from) + " to " + std::to_string(to));
  }

  Diary() { sql("CREATE TABLE IF NOT EXISTS journal (entry TEXT)"); }

  static void methods(hearth::Methods<Diary>& m) {
    m.add("spawn", &Diary::spawn);
    m.add("run", &Diary::run);
    m.add("begin", &Diary::begin);
    m.add("nest", &Diary::nest);
    m.add("wait", &Diary::wait);
    m.add("inspect", &Diary::inspect);
    m.add("records", &Diary::records);
    m.add("cancel", &Diary::cancel);
    m.add("resolve", &Diary::resolve);
    m.add("retry", &Diary::retry_one);
    m.add("dead", &Diary::dead);
    m.add("clear_after", &Diary::clear_after);
    m.add("later", &Diary::later);
    m.add("every", &Diary::every);
    m.add("cron", &Diary::cron);
    m.add("schedules", &Diary::schedules);
    m.add("unschedule", &Diary::unschedule);
    m.add("pause", &Diary::pause);
    m.add("push", &Diary::push);
    m.add("items", &Diary::items);
    m.add("again", &Diary::again);
    m.add("keep", &Diary::keep);
    m.add("hold", &Diary::hold);
    m.add("let_go", &Diary::let_go);
    m.add("fall", &Diary::fall);
    m.add("count", &Diary::count);
    m.add("end", &Diary::end);
    m.add("transact", &Diary::transact);
    m.add("hand_back", &Diary::hand_back);
    m.add("nap", &Diary::nap);
    m.add("alone", &Diary::nap, hearth::kExclusive | hearth::kIdempotent);
    m.add("ring_soon", &Diary::ring_soon);
    m.add("ring", &Diary::ring);
    m.add("journal", &Diary::journal);
    m.callback("note", &Diary::note);
    m.callback("flaky", &Diary::flaky);
    m.callback("hopeless", &Diary::hopeless);
    m.callback("final", &Diary::fail_for_good);
    m.callback("stuck", &Diary::stuck);
  }

  // The epoch: a library's clock is not the clock that scenarios move.
  void ring_soon() { set_alarm(std::chrono::sys_time<std::chrono::milliseconds>(), "ring"); }
  void ring() {
    const auto caller = caller_agent();
    note("rung by " + (caller ? caller->class_name : std::string("no agent")));
  }

  hearth::RetryOptions retry_defaults() override {
    hearth::RetryOptions options;
    options.base_delay = options.max_delay = std::chrono::milliseconds(100);
    return options;
  }
  hearth::Json initial_state() override { return 0; }
  hearth::Task<void> on_start() override {
    note("started");
    return {};
  }
  hearth::Task<void> on_state_changed(hearth::Json next,
                                      std::optional<hearth::Connection>) override {
    if (next.is_string()) note("changed to " + next.get<std::string>());
    return {};
  }

  // ---- fibers
  void spawn(const Work& work) {
    start_fiber("plain", [this, work](hearth::FiberContext& fiber) { return steps(fiber, work); });
  }
  hearth::Task<std::string> run(Work work) {
    const auto its_steps = [this, work](hearth::FiberContext& fiber) { return steps(fiber, work); };
    co_return co_await run_fiber("awaited", its_steps);
  }
  hearth::Json begin(const Work& work) {
    hearth::FiberOptions options;
    options.key = work.key;
    options.keep_record = true;
    options.input = work;
    options.metadata = "of a test";
    options.max_retries = work.max_retries;
    options.retry_delay = std::chrono::milliseconds(100);
    const auto started = start_fiber(
        "managed", [this, work](hearth::FiberContext& fiber) { return steps(fiber, work); },
        options);
    return {{"accepted", started.accepted}, {"record", started.record}};
  }
  hearth::Json nest() {
    const auto whole = [this](hearth::FiberContext&) -> hearth::Task<void> {
      for (int part = 1; part <= 3; ++part) {
        const auto inner = [this, part](hearth::FiberContext&) -> hearth::Task<void> {
          co_await sleep(std::chrono::milliseconds(100));
          note("part " + std::to_string(part));
        };
        co_await run_fiber("inner", inner);
      }
    };
    return {{"id", start_fiber("outer", whole).id()}};
  }
  hearth::Task<hearth::FiberRecord> wait(std::string id) { co_return co_await wait_fiber(id); }
  std::optional<hearth::FiberRecord> inspect(const std::string& id) { return inspect_fiber(id); }
  std::vector<hearth::FiberRecord> records() { return list_fibers(); }
  bool cancel(const std::string& id, const std::string& reason) { return cancel_fiber(id, reason); }
  bool resolve(const std::string& id, const hearth::Json& result) {
    return resolve_fiber(id, hearth::FiberOutcome::completed(result));
  }
  bool retry_one(const std::string& id) { return revive_fiber(id); }
  std::vector<std::string> dead() {
    std::vector<std::string> names;
    for (const auto& fiber : list_dead_fibers())
      names.push_back(fiber.name + ": " + fiber.last_error);
    return names;
  }
  hearth::Task<std::uint64_t> clear_after(int ms) {
    co_await sleep(std::chrono::milliseconds(ms));
    using hearth::FiberStatus;
    co_return delete_fibers({.statuses = {FiberStatus::kInterrupted, FiberStatus::kCompleted,
                                          FiberStatus::kError, FiberStatus::kAborted}});
  }

  hearth::Task<void> on_fiber_recovered(const hearth::RecoveredFiber& fiber) override {
    Work work;
    work.steps = 3;  // of one without a record, which cannot tell
    if (!fiber.input.is_null()) work = hearth::read_json<Work>(fiber.input, "input");
    note("offered " + fiber.name + " " + fiber.reason + " " + std::to_string(fiber.attempt) +
         " at " + hearth::to_text(fiber.snapshot));
    if (work.hook == "slow") co_await sleep(std::chrono::milliseconds(50));
    if (work.hook == "throw") throw std::runtime_error("the hook failed as asked");
    if (work.hook == "nothing" || work.hook == "slow")
      settle_fiber(fiber, hearth::FiberOutcome::interrupted());
    if (work.hook == "settle") settle_fiber(fiber, hearth::FiberOutcome::completed("by the hook"));
    if (work.hook == "continue")
      continue_fiber(fiber, [this, work](hearth::FiberContext& next) { return steps(next, work); });
  }
  hearth::Task<hearth::RecoveryPlan> on_fibers_recovered(
      const std::vector<hearth::InterruptedFiber>& fibers) override {
    note("planned " + std::to_string(fibers.size()));
    return hearth::RecoveryPlan{};
  }
  hearth::Task<void> on_fiber_complete(const hearth::FiberRecord& fiber) override {
    note("told " + fiber.name + " " + hearth::Json(fiber).at("status").get<std::string>());
    return {};
  }

  // ---- schedules and the queue
  void fail_for_good() {
    note("final");
    throw hearth::Final("refused");
  }
  hearth::Schedule later(const std::string& callback, int ms, const hearth::Json& payload) {
    return schedule(std::chrono::milliseconds(ms), callback, payload);
  }
  hearth::Schedule every(const std::string& callback, int ms) {
    return schedule_every(std::chrono::milliseconds(ms), callback, "tick");
  }
  hearth::Schedule cron(const std::string& callback, const std::string& expression) {
    return schedule(hearth::Cron(expression), callback, "cron");
  }
  std::vector<hearth::Schedule> schedules() { return list_schedules(); }
  bool unschedule(const std::string& id) { return cancel_schedule(id); }
  bool pause(const std::string& id) { return pause_schedule(id); }
  hearth::QueueItem push(const std::string& callback, const hearth::Json& payload) {
    return queue(callback, payload);
  }
  std::vector<hearth::QueueItem> items() { return list_queue(); }
  bool again(const std::string& id) { return revive_queue_item(id) || revive_schedule(id); }

  // ---- values by key
  // Each step is [what, ...]; the answers.
  std::vector<hearth::Json> keep(const std::vector<hearth::Json>& steps) {
    std::optional<hearth::Transaction> open;
    std::vector<hearth::Json> answers;
    for (const hearth::Json& step : steps) {
      try {
        answers.push_back(kept(step, open));
      } catch (const hearth::HostError& error) {
        answers.push_back(error.what());
      }
    }
    return answers;
  }

  // ---- the rest
  void hold() { held_ = keep_alive(); }
  void let_go() { held_.release(); }
  void fall() {
    note("about to fall");
    throw std::runtime_error("fell");
  }
  int count() {
    const int next = state().get<int>() + 1;
    set_state(next);
    return next;
  }
  void end() { destroy(); }

  // ---- the state
  std::vector<hearth::Json> transact(const std::vector<hearth::Json>& steps) {
    std::vector<std::unique_ptr<hearth::Transaction>> open;
    std::vector<hearth::Json> states;
    for (const hearth::Json& step : steps) {
      if (step.is_object()) set_state(step.at("set"));
      if (step == "begin") open.push_back(std::make_unique<hearth::Transaction>(activation()));
      if (step == "keep") open.back()->commit();
      if (step == "keep" || step == "undo") open.pop_back();
      states.push_back(state());
    }
    while (!open.empty()) open.pop_back();  // the innermost first
    states.push_back(state());
    return states;
  }
  std::string hand_back(const std::string& what) {
    const auto& tables = activation().tables();
    const hearth_host* const host = activation().host();
    const hearth_agent agent = activation().id();
    hearth_bytes lent = {nullptr, 0};
    const auto part = [&lent](std::string_view of_it) {
      const std::string_view all = hearth::detail::view(lent);
      return hearth::detail::slice(all.substr(all.find(of_it), of_it.size()));
    };
    if (what == "state") {
      set_state({{"padding", std::string(100, 'x')}, {"inner", "a part of the state"}});
      activation().check(tables.state->get(host, agent, &lent), "get");
      activation().check(tables.state->set(host, agent, 0, part("\"a part of the state\"")), "set");
      activation().check(tables.state->get(host, agent, &lent), "get");
    } else if (what == "record") {
      const std::string id = queue("note", "queued").id;
      activation().check(tables.queue->get(host, agent, hearth::detail::slice(id), &lent), "get");
      activation().check(tables.queue->get(host, agent, part(id), &lent), "get by a part of it");
      lent = part("\"note\"");
    } else {  // an error
      static_cast<void>(tables.queue->get(host, agent, hearth::detail::slice("?"), &lent));
      activation().check(tables.host->last_error(host, agent, &lent), "last_error");
      static_cast<void>(tables.queue->get(host, agent, lent, &lent));
      return "survived";
    }
    return std::string(hearth::detail::view(lent));
  }

  hearth::Task<void> nap(std::string who) {
    note(who + " begins");
    co_await sleep(std::chrono::milliseconds(100));
    note(who + " ends");
  }
  std::vector<std::string> journal() {
    return sql("SELECT entry FROM journal ORDER BY rowid").rows<std::string>();
  }

 private:
  hearth::Json kept(const hearth::Json& step, std::optional<hearth::Transaction>& open) {
    const auto text = [&](std::size_t place) { return step.at(place).get<std::string>(); };
    const std::string what = text(0);
    if (what == "begin") open.emplace(activation());
    if (what == "undo") open.reset();
    if (what == "put") kv().put(text(1), step.at(2));
    if (what == "fill") kv().put(text(1), std::string(step.at(2).get<std::size_t>(), 'x'));
    if (what == "remove") return kv().remove(text(1));
    if (what == "usage") return {kv().usage().keys, kv().usage().bytes};
    if (what == "get") {
      const auto value = kv().get(text(1));
      return value ? hearth::Json{{"is", *value}} : hearth::Json("none");
    }
    if (what == "list") {
      hearth::Json keys = hearth::Json::array();
      for (const hearth::KvEntry& each :
           kv().list({.prefix = text(1), .after = text(2), .limit = step.at(3)}))
        keys.push_back(each.key);
      return keys;
    }
    return hearth::Json(what);
  }
  hearth::Task<std::string> steps(hearth::FiberContext& fiber, Work work) {
    int done = fiber.snapshot().is_null() ? 0 : fiber.snapshot().get<int>();
    while (done < work.steps) {
      co_await sleep(std::chrono::milliseconds(work.ms));
      note(fiber.name() + " " + std::to_string(++done));
      fiber.stash(done);
      const auto record = inspect_fiber(fiber.id());
      const int failed = record ? record->failures : 0;
      if (failed < work.failures) throw std::runtime_error("the work failed as asked");
    }
    co_return "all " + std::to_string(done) + " steps";
  }

  void note(const std::string& entry) { sql("INSERT INTO journal VALUES (?)", entry); }
  void flaky(const std::string& entry, const hearth::QueueItem& item) {
    note("attempt " + std::to_string(item.attempts) + " of " + entry);
    if (item.attempts < 3) throw std::runtime_error("failed as asked");
  }
  void hopeless() { throw std::runtime_error("hopeless"); }
  hearth::Task<void> stuck() { co_await sleep(std::chrono::hours(1)); }

  hearth::KeepAlive held_;
};

HEARTH_PLUGIN("diary-agent", "1.0.0", Diary)
