// The rows of work_scenarios.json on every kind of durable work: what kills of the server, crashes
// of the work, evictions and failures do to it, also if the clock is set back meanwhile. A row has
//
//   tries        how each try ends: done, fail, evict (the instance ends on purpose), kill (the
//                server ends without a record of a crash), crash (the record names this work),
//                crash of other work, unknown crash (the record names no work), final (it has
//                failed for good), unreadable (by this code; then comes the next instance)
//   repeat       [word, n]: n such tries before `tries`
//   waits        the waits after the tries, in milliseconds, to which up to a quarter is added; the
//                last one repeats. Without it: any.
//   ends         done, or dead: no further try begins, and the log says so once
//   only, but    the kinds to which the row applies; without both: all
//   max_crashes  of fibers.max_crashes
#include "extensions/call.hpp"
#include "extensions/durable_work_fixture.hpp"
#include "json/json.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::extensions {
namespace {

using durable::EndedProcess;
using std::chrono::hours;
using std::chrono::milliseconds;

// A try in progress.
struct Try {
  std::int64_t row = 0;
  std::optional<DueWork> event{};                 // an event of the agent
  std::optional<durable::NoticeDelivery> sent{};  // a call of an agent
};

struct ScenarioKind {
  std::string_view name;
  std::string_view dead;  // in the line of the log
  void (*add)(DurableWork& work);
};

void add_report(DurableWork& work) {
  const auto fiber = work.fibers().start({.name = "work"}).value();
  ASSERT_TRUE(work.fibers().settle(fiber.fiber, durable::FiberStatus::kCompleted, "1"));
}

void add_fiber(DurableWork& work) {
  const durable::FiberRequest request{
      .name = "work", .id = "fiber", .keeping = durable::FiberKeeping::kBrief};
  ASSERT_TRUE(work.fibers().start(request));
}

void add_schedule(DurableWork& work) {
  durable::ScheduleRequest request;
  request.type = durable::ScheduleType::kDelay;
  request.callback = "tick";
  ASSERT_TRUE(work.schedules().create(request));
}

const std::vector<ScenarioKind>& kinds() {
  static const std::vector<ScenarioKind> all = {
      {"item", "queue:dead", [](DurableWork& work) { (void)work.queue().push({.callback = "c"}); }},
      {"notification", "notify:dead",
       [](DurableWork& work) { (void)work.notices().push({"Room", "a", "note", "[]", ""}); }},
      {"alarm", "alarm:dead",
       [](DurableWork& work) { (void)work.alarms().set({"ring", "[]", 1}); }},
      {"report", "fiber:never_told", &add_report},
      {"schedule", "schedule:dead", &add_schedule},
      {"fiber", "fiber:recovery:dead", &add_fiber}};
  return all;
}

Json rows() {
  std::ostringstream text;
  text << std::ifstream(WORK_SCENARIOS).rdbuf();
  return parse_json(text.str()).value();
}

bool applies(const Json& row, std::string_view kind) {
  const auto names = [&](const char* list) {
    return row.contains(list) && std::ranges::any_of(row.at(list), [&](const Json& each) {
             return each.get<std::string>() == kind;
           });
  };
  return row.contains("only") ? names("only") : !names("but");
}

struct Scenario {
  std::string name;
  const ScenarioKind* kind;
  Json row;
};

std::vector<Scenario> scenarios() {
  std::vector<Scenario> all;
  const Json table = rows();
  for (const auto& [name, row] : table.items()) {
    for (const ScenarioKind& kind : kinds()) {
      if (applies(row, kind.name)) all.push_back({name, &kind, row});
    }
  }
  return all;
}

class WorkScenarioTest : public DurableWorkFixture, public ::testing::WithParamInterface<Scenario> {
 protected:
  WorkScenarioTest() {
    settings_.fibers.max_crashes =
        row().contains("max_crashes") ? row().at("max_crashes").get<int>() : durable::kMostCrashes;
    crash();  // so that the settings count
  }
  static const Json& row() { return GetParam().row; }

  [[nodiscard]] bool is_due() const { return work_->due() || work_->recovery().due(); }
  [[nodiscard]] std::int64_t now() const { return unix_millis(clock_.wall_now()); }

  // The next try, which is on disk then. A fiber that has just been started runs.
  std::optional<Try> begin() {
    if (work_->fibers().runs().size() > 0)
      return Try{work_->fibers().runs().row_of(std::string_view("fiber"))};
    std::optional<Try> next;
    if (auto sent = work_->dispatch().next_notice())
      next = Try{.row = sent->row, .sent = std::move(sent)};
    auto event = next ? std::nullopt : work_->dispatch().next(true);
    while (event && event->kind == EventKind::kFibersRecovered) {
      work_->dispatch().ended(*event, std::string_view());
      event = work_->dispatch().next(true);
    }
    if (event) next = Try{.row = event->row, .event = std::move(event)};
    database_->commit();
    return next;
  }
  void end(const Try& of, const std::string& how) {
    if (how == "kill") return crash();
    if (how == "crash") return crash(EndedProcess{of.row});
    if (how == "crash of other work") return crash(EndedProcess{of.row + 1});
    if (how == "unknown crash") return crash(EndedProcess{});
    if (how == "evict") {
      work_->interrupt_on_purpose();
      return crash();
    }
    if (how == "unreadable") {
      const Error why{Errc::kUnreadable, "payload.shop: missing"};
      if (of.sent) {
        work_->dispatch().notice_ended(of.sent->id, notice_outcome(why, HEARTH_CALL_BEGAN));
      } else {
        work_->dispatch().ended(*of.event, why);
      }
      return crash();
    }
    if (how == "final" && of.event)
      return work_->dispatch().ended(*of.event, Error{Errc::kFinal, "refused"});
    if (how == "final")
      return work_->dispatch().notice_ended(of.sent->id, {.error = "refused", .is_final = true});
    ASSERT_TRUE(how == "done" || how == "fail") << how;
    const bool is_done = how == "done";
    if (of.sent) {
      work_->dispatch().notice_ended(of.sent->id,
                                     {.delivered = is_done, .error = is_done ? "" : "away"});
    } else if (of.event) {
      work_->dispatch().ended(*of.event, is_done ? Result<std::string_view>(std::string_view())
                                                 : Error{Errc::kPlugin, "it failed"});
    }
    database_->commit();
  }
  // Until the work is due, which takes so long.
  void wait(std::optional<std::int64_t> expected, std::size_t after) {
    std::int64_t waited = 0;
    if (!is_due()) {
      const auto at = work_->wake().at_ms;
      ASSERT_TRUE(at) << "nothing is due after try " << after;
      waited = *at - now();
      clock_.advance(milliseconds(waited));
    }
    EXPECT_TRUE(is_due()) << "after try " << after;
    if (!expected) return;
    EXPECT_GE(waited, *expected) << "after try " << after;
    EXPECT_LE(waited, *expected + *expected / 4) << "after try " << after;
  }
  static std::vector<std::string> tries() {
    std::vector<std::string> all;
    if (row().contains("repeat"))
      all.assign(row().at("repeat").at(1).get<std::size_t>(),
                 row().at("repeat").at(0).get<std::string>());
    if (row().contains("tries"))
      for (const Json& each : row().at("tries")) all.push_back(each.get<std::string>());
    return all;
  }
  static std::optional<std::int64_t> expected_wait(std::size_t after) {
    if (!row().contains("waits")) return std::nullopt;
    const Json& waits = row().at("waits");
    return waits.at(std::min(after, waits.size() - 1)).get<std::int64_t>();
  }

  void run(bool sets_clock_back);
};

void WorkScenarioTest::run(bool sets_clock_back) {
  GetParam().kind->add(*work_);
  database_->commit();
  const std::vector<std::string> all = tries();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::optional<Try> next = begin();
    ASSERT_TRUE(next) << "try " << i;
    EXPECT_NE(next->row, 0) << "a crash names it";
    ASSERT_NO_FATAL_FAILURE(end(*next, all[i]));
    if (sets_clock_back) {
      clock_.set_wall(clock_.wall_now() - hours(24));
      crash();
    }
    if (i + 1 < all.size()) ASSERT_NO_FATAL_FAILURE(wait(expected_wait(i), i));
  }
  clock_.advance(hours(1));
  const bool is_dead = row().at("ends") == "dead";
  // The agent is told of a fiber that is dead, and nothing else begins.
  int told = 0;
  for (int looks = 0; looks < 3; ++looks) {
    const auto more = begin();
    if (more) end(*more, "done");
    told += more ? 1 : 0;
  }
  EXPECT_EQ(told, is_dead && GetParam().kind->name == "fiber" ? 1 : 0);
  EXPECT_TRUE(work_->wake().none());
  EXPECT_EQ(logger_.count(GetParam().kind->dead), is_dead ? 1U : 0U);
}

TEST_P(WorkScenarioTest, ARowHolds) {
  run(false);
}

// After each try the clock is set back by a day, while the agent is not in memory.
class WorkScenarioClockTest : public WorkScenarioTest {};

TEST_P(WorkScenarioClockTest, ARowHoldsWithTheSameWaits) {
  run(true);
}

std::string name_of(const ::testing::TestParamInfo<Scenario>& each) {
  return each.param.name + "_" + std::string(each.param.kind->name);
}

INSTANTIATE_TEST_SUITE_P(Rows, WorkScenarioTest, ::testing::ValuesIn(scenarios()), name_of);

std::vector<Scenario> short_scenarios() {
  std::vector<Scenario> all = scenarios();
  std::erase_if(all, [](const Scenario& each) { return each.row.contains("repeat"); });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Rows, WorkScenarioClockTest, ::testing::ValuesIn(short_scenarios()),
                         name_of);

}  // namespace
}  // namespace hearth::extensions
