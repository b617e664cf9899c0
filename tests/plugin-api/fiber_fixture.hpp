#pragma once
// An agent with fibers of every kind on the mock host.

#include "one_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <coroutine>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fiber_tests {

using std::chrono::milliseconds;

using hearth::FiberContext;
using hearth::Json;
using hearth::Task;

// These outlive an instance.
inline std::vector<std::string> notes;  // NOLINT

class Note {
 public:
  explicit Note(std::string text) : text_(std::move(text)) {}
  ~Note() { notes.push_back(text_); }
  Note(const Note&) = delete;
  Note& operator=(const Note&) = delete;

 private:
  std::string text_;
};

class Fibers : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Fibers>& m) {
    m.add("plain", &Fibers::plain);
    m.add("plain_text", &Fibers::plain_text);
    m.add("run", &Fibers::run);
    m.add("run_failing", &Fibers::run_failing);
    m.add("run_nested", &Fibers::run_nested);
    m.add("throws_a_type", &Fibers::throws_a_type);
    m.add("spawn", &Fibers::spawn);
    m.add("spawn_failing", &Fibers::spawn_failing);
    m.add("spawn_done", &Fibers::spawn_done);
    m.add("spawn_until_stopped", &Fibers::spawn_until_stopped);
    m.add("cancel", &Fibers::cancel);
    m.add("ambient", &Fibers::ambient);
    m.add("stash_here", &Fibers::stash_here);
    m.add("stash_after_fiber", &Fibers::stash_after_fiber);
    m.add("stash_late", &Fibers::stash_late);
    m.add("write_in_fiber", &Fibers::write_in_fiber);
    m.add("names", &Fibers::names);
    m.add("revive", &Fibers::revive);
    m.add("forever", &Fibers::forever);
  }

  // ---- run_fiber
  Task<int> plain() {
    auto work = [](FiberContext&) { return 5; };
    co_return co_await run_fiber("plain", work);
  }
  Task<std::string> plain_text(std::string text) {
    auto work = [text](FiberContext& fiber) { return fiber.name() + ": " + text; };
    co_return co_await run_fiber("label", work);
  }
  Task<int> run(int ms) {
    auto work = [this, ms](FiberContext& fiber) { return slow(fiber, ms); };
    co_return co_await run_fiber("slow", work);
  }
  Task<void> run_failing(bool late) {
    auto work = [this, late](FiberContext& fiber) -> Task<void> {
      if (late) co_await sleep(milliseconds(10));
      fiber.stash("half way");
      throw hearth::Error(HEARTH_E_CONFLICT, "broken");
    };
    co_await run_fiber("failing", work);
  }
  Task<bool> throws_a_type() {
    struct Special {
      int number;
    };
    auto work = [](FiberContext&) -> int { throw Special{7}; };
    try {
      co_await run_fiber("special", work);
    } catch (const Special& special) {
      co_return special.number == 7;
    }
    co_return false;
  }
  // The caller's own client and the outer fiber are still known after the wait.
  Task<Json> run_nested() {
    auto inner = [this](FiberContext& fiber) { return slow(fiber, 10); };
    auto outer = [this, inner](FiberContext& fiber) -> Task<int> {
      const int value = co_await run_fiber("inner", inner);
      stash("outer");  // to the outer one
      fiber.stash({{"outer", fiber.id()}});
      co_return value + 1;
    };
    const int value = co_await run_fiber("outer", outer);
    co_return Json{{"value", value}, {"caller", caller() ? caller()->id() : "none"}};
  }

  // ---- start_fiber
  std::string spawn(int ms) {
    return start_fiber("slow", [this, ms](FiberContext& fiber) { return slow(fiber, ms); }).id();
  }
  std::string spawn_failing(bool late) {
    return start_fiber("failing",
                       [this, late](FiberContext&) -> Task<void> {
                         if (late) co_await sleep(milliseconds(10));
                         throw std::runtime_error("nobody waits");
                       })
        .id();
  }
  std::string spawn_done() {
    return start_fiber("done", [](FiberContext& fiber) { fiber.stash(1); }).id();
  }
  std::string spawn_until_stopped() {
    return start_fiber("patient",
                       [this](FiberContext& fiber) -> Task<void> {
                         while (!fiber.stop_token().stop_requested())
                           co_await sleep(milliseconds(10));
                       })
        .id();
  }
  bool cancel(const std::string& id) { return cancel_fiber(id); }
  void forever() {
    start_fiber("forever", [](FiberContext&) -> Task<void> {
      const Note note("frame");
      co_await std::suspend_always();
    });
  }

  // ---- stash
  std::string ambient(std::string text, int ms) {
    return start_fiber("ambient",
                       [this, text, ms](FiberContext&) -> Task<void> {
                         stash(text + " 1");
                         co_await sleep(milliseconds(ms));
                         co_await stash_soon(text + " 2");
                         co_await sleep(milliseconds(ms));
                       })
        .id();
  }
  void stash_here() { stash(1); }
  void stash_after_fiber() {
    spawn(10);
    stash(1);  // the fiber waits: this is the caller again
  }
  Task<void> stash_late() {
    auto holder = std::make_shared<FiberContext*>(nullptr);
    auto work = [holder](FiberContext& fiber) { *holder = &fiber; };
    co_await run_fiber("short", work);
    stash(1);
  }
  Task<void> write_in_fiber() {
    auto work = [this](FiberContext&) -> Task<void> {
      co_await sleep(milliseconds(1));
      set_state("written");
    };
    co_await run_fiber("writer", work);
  }
  void names(const std::string& name) {
    start_fiber(name, [](FiberContext&) {});
  }
  bool revive(const std::string& id) { return revive_fiber(id); }

 protected:
  Task<int> slow(FiberContext& fiber, int ms) {
    const Note note("slow");
    for (int i = 1; i <= 3; ++i) {
      co_await sleep(milliseconds(ms));
      fiber.stash({{"step", i}});
    }
    co_return ms;
  }

 private:
  Task<void> stash_soon(std::string text) {
    co_await sleep(milliseconds(1));
    stash(text);
  }
};

class FiberFixture : public OneAgent<Fibers> {
 protected:
  FiberFixture() { notes.clear(); }

  [[nodiscard]] Json table() const {
    return agent_.sql("SELECT name, snapshot FROM cf_agents_runs ORDER BY id");
  }
};

}  // namespace fiber_tests
