#include "extensions/trace.hpp"

#include "durable/jobs.hpp"
#include "extensions/host_calls.hpp"
#include "extensions/test_agent.hpp"
#include "support/seeded_random.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hearth::extensions {
namespace {

TEST(TraceTest, OnlyATraceparentIsOne) {
  const std::string good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  EXPECT_EQ(valid_trace(good), good);
  for (const std::string_view bad : {"", "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                                     "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                                     "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                                     "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                                     "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0"})
    EXPECT_TRUE(valid_trace(bad).empty()) << bad;
  hearth::testing::SeededRandom random(3);
  EXPECT_FALSE(valid_trace(new_trace(random)).empty());
  EXPECT_NE(new_trace(random), new_trace(random));
}

TEST(TraceTest, AnotherSpanIsOfTheSameTrace) {
  hearth::testing::SeededRandom random(3);
  const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
  const std::string next = next_span(trace, random);
  EXPECT_EQ(valid_trace(next), next);
  EXPECT_EQ(next.substr(0, 36), trace.substr(0, 36));
  EXPECT_EQ(next.substr(52), "-00") << "and of the same flags";
  EXPECT_NE(next, trace);
  EXPECT_NE(next_span(trace, random), next);
  for (const std::string_view none : {"", "00-x"}) EXPECT_EQ(next_span(none, random), "");
}

// All that an event begins is under the trace of the event, and what none has begun under none.
TEST(TraceTest, DurableWorkIsKeptUnderTheTraceOfItsEvent) {
  using durable::JobKind;
  hearth::testing::TestAgent agent{45};
  hearth::testing::HostCalls host(agent);
  for (const std::string trace : {"of the event", ""}) {
    agent.its_origin.trace = trace;
    const auto fiber = host.start_fiber("work", "");
    durable::ManagedRequest record;
    record.name = "work";
    const auto managed = host.start_managed(record);
    durable::ScheduleRequest delay;
    delay.type = durable::ScheduleType::kDelay;
    delay.callback = "tick";
    delay.payload = trace.empty() ? "1" : "2";  // or the second would be the first one
    const auto schedule = host.create_schedule(delay);
    durable::QueueRequest item;
    item.callback = "item";
    ASSERT_TRUE(fiber && managed && schedule && host.push_item(item));
    durable::Jobs jobs(agent.database());
    EXPECT_EQ(jobs.trace_of(JobKind::kFiber, fiber->id), trace);
    EXPECT_EQ(jobs.trace_of(JobKind::kManaged, managed->id), trace);
    EXPECT_EQ(jobs.trace_of(JobKind::kSchedule, schedule->id), trace);
    EXPECT_EQ(jobs.number("SELECT count(*) FROM cf_agents_jobs WHERE kind = 4 AND "
                          "trace IS NOT NULL",
                          {}),
              1);
  }
}

}  // namespace
}  // namespace hearth::extensions
