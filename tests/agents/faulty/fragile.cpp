// Fibers that crash the process, and fibers that only some versions of this class know. Plugin and
// class Fragile.
//
//   methods   tomorrow()    schedules itself for the next day
//             begin(name)   begins the fiber of this name, and answers before its first step
//             done()        the steps that were done, in order
//             dead()        how many fibers were given up
//             crash_later() a null pointer after its first wait
//             set_trap(path) a null pointer in each START for which that file is there
//   fibers    poison        a checkpoint, and after its first wait a null pointer
//             offloading    a null pointer on a thread of the pool
//             sudden        a null pointer; the agent "eager" begins it in each START
//             patient       sleeps for an hour, and logs "patient sleeps"
//             dreaded       as patient; a null pointer in on_fibers_recovered, if the hook gets it
//             brooded_over  as dreaded, but after the first wait of that hook
//             crowded       as dreaded, but only if the hook gets other fibers, too
//             steady        20 steps of 10 ms
//             later         as steady; in version 1 it stops for an hour after the third step. Not
//                           listed if KNOWS_LATER is 0
#include <hearth/agent.hpp>

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#ifndef KNOWS_LATER
#define KNOWS_LATER 1  // NOLINT(readability-identifier-naming): not the SDK's
#endif
#ifndef VERSION
#define VERSION "1.0.0"  // NOLINT(readability-identifier-naming)
#endif

namespace {
int* volatile nowhere = nullptr;
}

class Fragile : public hearth::Agent {
 public:
  Fragile() {
    sql("CREATE TABLE IF NOT EXISTS done (step TEXT)");
    sql("CREATE TABLE IF NOT EXISTS traps (path TEXT)");
  }
  static void methods(hearth::Methods<Fragile>& m) {
    m.add("begin", &Fragile::begin);
    m.add("tomorrow", &Fragile::tomorrow);
    m.callback("nothing", &Fragile::nothing);
    m.add("done", &Fragile::done);
    m.add("dead", &Fragile::dead);
    m.add("crash_later", &Fragile::crash_later);
    m.add("set_trap", &Fragile::set_trap);
    m.fiber("patient", &Fragile::patient);
    m.fiber("dreaded", &Fragile::patient);
    m.fiber("brooded_over", &Fragile::patient);
    m.fiber("crowded", &Fragile::patient);
    m.fiber("poison", &Fragile::poison);
    m.fiber("offloading", &Fragile::offloading);
    m.fiber("sudden", &Fragile::sudden);
    m.fiber("steady", &Fragile::steady);
#if KNOWS_LATER
    m.fiber("later", &Fragile::steady);
#endif
  }

  __attribute__((no_sanitize("undefined"))) hearth::Task<void> on_start() override {
    for (const auto& trap : sql("SELECT path FROM traps").rows<std::string>()) {
      if (std::filesystem::exists(trap)) *nowhere = 1;
    }
    if (name() == "eager" && dead() == 0) begin("sudden");
    return {};
  }
  __attribute__((no_sanitize("undefined"))) hearth::Task<hearth::RecoveryPlan> on_fibers_recovered(
      const std::vector<hearth::InterruptedFiber>& fibers) override {
    for (const hearth::InterruptedFiber& fiber : fibers) {
      if (fiber.name == "dreaded") *nowhere = 1;
      const bool is_crowded = fiber.name == "crowded" && fibers.size() > 1;
      if (!is_crowded && fiber.name != "brooded_over") continue;
      co_await sleep(std::chrono::milliseconds(1));
      *nowhere = 1;
    }
    co_return hearth::RecoveryPlan();
  }
  void begin(const std::string& name) { start_fiber(name, nullptr, {.key = name}); }
  void tomorrow() { schedule(std::chrono::hours(24), "nothing", 0); }
  void nothing(int) {}
  std::vector<std::string> done() {
    return sql("SELECT step FROM done ORDER BY rowid").rows<std::string>();
  }
  void set_trap(const std::string& path) { sql("INSERT INTO traps VALUES (?)", path); }
  std::size_t dead() { return list_dead_fibers().size(); }

  // A sanitizer would stop before the fault that this code makes.
  __attribute__((no_sanitize("undefined"))) hearth::Task<void> crash_later() {
    co_await sleep(std::chrono::milliseconds(1));
    *nowhere = 1;
  }
  __attribute__((no_sanitize("undefined"))) hearth::Task<void> offloading(hearth::FiberContext&) {
    co_await offload([]() __attribute__((no_sanitize("undefined"))) { *nowhere = 1; });
  }
  hearth::Task<void> patient(hearth::FiberContext& fiber) {
    log.info(fiber.name(), " sleeps");
    co_await sleep(std::chrono::hours(1));
  }
  __attribute__((no_sanitize("undefined"))) hearth::Task<void> poison(hearth::FiberContext& fiber) {
    fiber.stash(fiber.snapshot<int>().value_or(0) + 1);
    co_await sleep(std::chrono::milliseconds(1));
    *nowhere = 1;
  }
  __attribute__((no_sanitize("undefined"))) hearth::Task<void> sudden(hearth::FiberContext&) {
    *nowhere = 1;
    return {};
  }
  hearth::Task<void> steady(hearth::FiberContext& fiber) {
    for (int step = fiber.snapshot<int>().value_or(0) + 1; step <= 20; ++step) {
      co_await sleep(std::chrono::milliseconds(10));
      sql("INSERT INTO done VALUES (?)", fiber.name() + " " + std::to_string(step));
      fiber.stash(step);
      if (fiber.name() == "later" && step == 3 && std::string_view(VERSION) == "1.0.0")
        co_await sleep(std::chrono::hours(1));
    }
    log.info(fiber.name(), " is finished by " VERSION);
  }
};

HEARTH_PLUGIN("fragile", VERSION, Fragile)
