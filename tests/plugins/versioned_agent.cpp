// One class in several versions of its library, for tests of replacing it. VERSION says which; FAILS_TO_START breaks one.
// With SCHEMA it numbers its data, and marks the rows of older versions; FAILS_TO_MIGRATE breaks that half-way.
//
//   methods   version() -> VERSION; add() -> how often it was called, over all versions; slow(ms) -> VERSION, after a while
//             marks() -> how many rows of `calls` were brought over from an older schema version (with SCHEMA)
//             work(steps, ms): a fiber that writes its steps to the table `steps`; steps() -> [{"step", "version"}]
//   messages  every frame is answered with VERSION and the frame

#include <hearth/agent.hpp>

#include <chrono>
#include <stdexcept>
#include <string>
#include <tuple>
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
    co_await sleep(std::chrono::milliseconds(1));
    sql("UPDATE calls SET mark = 1");
#ifdef FAILS_TO_MIGRATE
    throw std::runtime_error("this version cannot migrate");
#endif
  }
  int marks() { return sql("SELECT count(mark) FROM calls").value<int>(); }
#endif

  Versioned() {
#ifdef SCHEMA
    sql("CREATE TABLE IF NOT EXISTS calls (n INTEGER, mark INTEGER)");
#else
    sql("CREATE TABLE IF NOT EXISTS calls (n INTEGER)");
#endif
    sql("CREATE TABLE IF NOT EXISTS steps (step INTEGER, version TEXT)");
  }

  static void methods(hearth::Methods<Versioned>& m) {
    m.add("version", &Versioned::version);
    m.add("add", &Versioned::add);
#ifdef SCHEMA
    m.add("marks", &Versioned::marks);
#endif
    m.add("slow", &Versioned::slow);
    m.add("work", &Versioned::work);
    m.add("steps", &Versioned::steps);
  }

  hearth::Task<void> on_start() override {
#ifdef FAILS_TO_START
    throw std::runtime_error("this version cannot start");
#else
    return {};
#endif
  }

  hearth::Task<void> on_message(hearth::Connection client, hearth::Message message) override {
    client.send(VERSION " " + message.text());
    return {};
  }

  hearth::Task<void> on_fiber_recovered(const hearth::RecoveredFiber& fiber) override {
    continue_fiber(fiber, [this](hearth::FiberContext& run) { return steps_of(run); });
    return {};
  }

  std::string version() { return VERSION; }
  int add() {
    sql("INSERT INTO calls (n) VALUES (1)");
    return sql("SELECT count(*) FROM calls").value<int>();
  }
  hearth::Task<std::string> slow(int ms) {
    co_await sleep(std::chrono::milliseconds(ms));
    co_return VERSION;
  }
  std::string work(int steps, int ms) {
    return spawn_fiber("work", [this, steps, ms](hearth::FiberContext& run) {
      run.stash({{"done", 0}, {"steps", steps}, {"ms", ms}});
      return steps_of_work(run, 0, steps, ms);
    });
  }
  std::vector<Step> steps() {
    using Row = std::tuple<int, std::string>;
    std::vector<Step> all;
    for (auto& [step, version] : sql("SELECT step, version FROM steps ORDER BY rowid").rows<Row>())
      all.push_back(Step{step, version});
    return all;
  }

 private:
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
};

HEARTH_PLUGIN("versioned", VERSION, Versioned)
