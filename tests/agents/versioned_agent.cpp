// One class in several versions of its library, for tests of replacing it. Defines:
//
//   VERSION           the version of this library
//   FAILS_TO_START    no agent can start
//   FAILS_BUT         no agent can start but the agent of that name
//   SCHEMA            numbers its data, and marks the rows of older versions
//   FAILS_TO_MIGRATE  with SCHEMA: the migration fails half-way
//
//   methods   version() -> VERSION
//             identity() -> the agent's class and its option `label`
//             add() -> how often it was called, over all versions
//             slow(ms) -> VERSION, after a while
//             slow_get(ms): the same, idempotent, and without a wait the second time
//             hold(file), hold_get(file) (idempotent) -> VERSION, once that file is there
//             attempts(what) -> how often "slow_get", "hold", "hold_get", "request", "connect" or
//                 "migrate" was begun, over all versions
//             farewells() -> ["VERSION begun", "VERSION done"]: what on_evict has written, over all
//                 versions, with one of its options
//             marks() -> how many rows of `calls` were migrated from an older schema version (with
//                 SCHEMA)
//             work(steps, ms): a fiber that writes its steps to the table `steps`
//             steps() -> [{"step", "version"}]
//   messages  every frame is answered with VERSION and the frame
//   requests  are answered with VERSION; with ?until=FILE once that file is there
//   options   label: a text for identity()
//             gate: the start waits until this file is there, and fails then
//             evict_ms: on_evict takes so long
//             evict_gate: on_evict waits until this file is there. With either option, it logs
//                 "leaving" when it begins
//             migrate_gate: on_migrate logs "migrating" half-way, and waits until this file is
//                 there (with SCHEMA)
//   connect   ?wait=MS: takes so long the first time, and then sends "connected " and VERSION

#include <hearth/agent.hpp>

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

class Versioned : public hearth::Agent {
 public:
  struct Step {
    int step = 0;
    std::string version;
    HEARTH_FIELDS(step, version)
  };

#ifdef SCHEMA
  static constexpr unsigned schema_version = SCHEMA;
  hearth::Task<void> on_migrate(unsigned /*from*/, unsigned /*to*/) override {
    sql("ALTER TABLE calls ADD COLUMN mark INTEGER");
    sql("INSERT INTO attempts VALUES ('migrate')");
    log.info("migrating");
    co_await sleep(std::chrono::milliseconds(1));
    co_await file_is_there(migrate_gate_);
    sql("UPDATE calls SET mark = 1");
#ifdef FAILS_TO_MIGRATE
    throw std::runtime_error("this version cannot migrate");
#endif
  }
  int marks() { return sql("SELECT count(mark) FROM calls").value<int>(); }
#endif

  struct Options {
    std::string label;
    std::string gate;
    int evict_ms = 0;
    std::string evict_gate;
    std::string migrate_gate;
    HEARTH_FIELDS(label, gate, evict_ms, evict_gate, migrate_gate)
  };
  explicit Versioned(Options options)
      : label_(std::move(options.label)),
        gate_(std::move(options.gate)),
        evict_time_(options.evict_ms),
        evict_gate_(std::move(options.evict_gate)),
        migrate_gate_(std::move(options.migrate_gate)) {
#ifdef SCHEMA
    sql("CREATE TABLE IF NOT EXISTS calls (n INTEGER, mark INTEGER)");
#else
    sql("CREATE TABLE IF NOT EXISTS calls (n INTEGER)");
#endif
    sql("CREATE TABLE IF NOT EXISTS steps (step INTEGER, version TEXT)");
    sql("CREATE TABLE IF NOT EXISTS attempts (what TEXT)");
    sql("CREATE TABLE IF NOT EXISTS farewells (what TEXT)");
  }

  static void methods(hearth::Methods<Versioned>& m) {
    m.add("version", &Versioned::version);
    m.add("identity", &Versioned::identity);
    m.add("add", &Versioned::add);
#ifdef SCHEMA
    m.add("marks", &Versioned::marks);
#endif
    m.add("slow", &Versioned::slow);
    m.add("slow_get", &Versioned::slow_get, hearth::kIdempotent);
    m.add("hold", &Versioned::hold);
    m.add("hold_get", &Versioned::hold_get, hearth::kIdempotent);
    m.add("attempts", &Versioned::attempts);
    m.add("farewells", &Versioned::farewells);
    m.add("work", &Versioned::work);
    m.add("steps", &Versioned::steps);
  }

  hearth::Task<void> on_start() override {
#ifdef FAILS_TO_START
    throw std::runtime_error("this version cannot start");
#elif defined(FAILS_BUT)
    if (name() != FAILS_BUT) throw std::runtime_error("this agent cannot start");
    co_return;
#else
    if (gate_.empty()) co_return;
    co_await file_is_there(gate_);
    throw std::runtime_error("the gate is open");
#endif
  }

  // Without an option it takes nothing, so that thousands of agents may be measured.
  hearth::Task<void> on_evict(hearth::EvictReason) override {
    if (evict_time_.count() == 0 && evict_gate_.empty()) co_return;
    log.info("leaving");
    sql("INSERT INTO farewells VALUES (?)", std::string(VERSION " begun"));
    if (evict_time_.count() > 0) co_await sleep(evict_time_);
    co_await file_is_there(evict_gate_);
    sql("INSERT INTO farewells VALUES (?)", std::string(VERSION " done"));
  }

  hearth::Task<void> on_connect(hearth::Connection client) override {
    const auto wait = client.query("wait");
    if (!wait) co_return;
    const int before = attempts("connect");
    sql("INSERT INTO attempts VALUES ('connect')");
    if (before == 0) co_await sleep(std::chrono::milliseconds(std::stoi(*wait)));
    client.send("connected " VERSION);
  }

  hearth::Task<void> on_message(hearth::Connection client, hearth::Message message) override {
    client.send(VERSION " " + message.text());
    return {};
  }

  hearth::Task<hearth::Response> on_request(const hearth::Request& request) override {
    const std::string until = request.query("until").value_or("");
    if (!until.empty()) sql("INSERT INTO attempts VALUES ('request')");
    co_await file_is_there(until);
    co_return hearth::Response::text(VERSION);
  }

  hearth::Task<void> on_fiber_recovered(const hearth::RecoveredFiber& fiber) override {
    continue_fiber(fiber, [this](hearth::FiberContext& run) { return steps_of(run); });
    return {};
  }

  std::string version() { return VERSION; }
  std::string identity() { return std::string(class_name()) + " " + label_; }
  int add() {
    sql("INSERT INTO calls (n) VALUES (1)");
    return sql("SELECT count(*) FROM calls").value<int>();
  }
  hearth::Task<std::string> slow(int ms) {
    co_await sleep(std::chrono::milliseconds(ms));
    co_return VERSION;
  }
  hearth::Task<std::string> slow_get(int ms) {
    const int before = attempts("slow_get");
    sql("INSERT INTO attempts VALUES ('slow_get')");
    if (before == 0) co_await sleep(std::chrono::milliseconds(ms));
    co_return VERSION;
  }
  hearth::Task<std::string> hold(std::string file) {
    sql("INSERT INTO attempts VALUES ('hold')");
    co_await file_is_there(file);
    co_return VERSION;
  }
  hearth::Task<std::string> hold_get(std::string file) {
    sql("INSERT INTO attempts VALUES ('hold_get')");
    co_await file_is_there(file);
    co_return VERSION;
  }
  int attempts(std::string what) {
    return sql("SELECT count(*) FROM attempts WHERE what = ?", what).value<int>();
  }
  std::vector<std::string> farewells() {
    return sql("SELECT what FROM farewells ORDER BY rowid").rows<std::string>();
  }
  std::string work(int steps, int ms) {
    return start_fiber("work",
                       [this, steps, ms](hearth::FiberContext& run) {
                         run.stash({{"done", 0}, {"steps", steps}, {"ms", ms}});
                         return steps_of_work(run, 0, steps, ms);
                       })
        .id();
  }
  std::vector<Step> steps() {
    using Row = std::tuple<int, std::string>;
    std::vector<Step> all;
    for (auto& [step, version] : sql("SELECT step, version FROM steps ORDER BY rowid").rows<Row>())
      all.push_back(Step{step, version});
    return all;
  }

 private:
  // Or at once, if none is named.
  hearth::Task<void> file_is_there(std::string file) {
    while (!file.empty() && !std::filesystem::exists(file))
      co_await sleep(std::chrono::milliseconds(1));
  }
  hearth::Task<void> steps_of(hearth::FiberContext& run) {
    const hearth::Json at = run.snapshot();
    return steps_of_work(run, at.at("done").get<int>(), at.at("steps").get<int>(),
                         at.at("ms").get<int>());
  }
  hearth::Task<void> steps_of_work(hearth::FiberContext& run, int done, int steps, int ms) {
    while (done < steps) {
      co_await sleep(std::chrono::milliseconds(ms));
      sql("INSERT INTO steps VALUES (?, ?)", ++done, std::string(VERSION));
      run.stash({{"done", done}, {"steps", steps}, {"ms", ms}});
    }
  }

  const std::string label_;
  const std::string gate_;
  const std::chrono::milliseconds evict_time_;
  const std::string evict_gate_;
  const std::string migrate_gate_;
};

HEARTH_PLUGIN("versioned", VERSION, Versioned)
