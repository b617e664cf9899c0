#include "extensions/trace.hpp"

#include "durable/jobs.hpp"
#include "extensions/host_calls.hpp"
#include "extensions/test_agent.hpp"
#include "support/seeded_random.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

namespace hearth::extensions {
namespace {

constexpr std::string_view kGood = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(TraceTest, OnlyATraceparentIsOne) {
  EXPECT_EQ(valid_trace(kGood), kGood);
  for (const std::string_view bad : {"", "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                                     "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333g-01",
                                     "0g-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                                     "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                                     "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                                     "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                                     "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
                                     "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
                                     "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}) {
    EXPECT_TRUE(valid_trace(bad).empty()) << bad;
    EXPECT_TRUE(read_span(bad).is_none()) << bad;
  }
  hearth::testing::SeededRandom random(3);
  EXPECT_FALSE(valid_trace(new_trace(random)).empty());
  EXPECT_NE(new_trace(random), new_trace(random));
}

// Further fields are ignored. Only the flag that all versions have is used.
TEST(TraceTest, ALaterVersionIsReadAsTheOneThatIsKnown) {
  const std::string ids = "-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-";
  struct Case {
    std::string_view version, rest, flags;
  };
  for (const auto& [version, rest, flags] :
       {Case{"01", "01-x", "01"}, Case{"01", "01", "01"}, Case{"fe", "fe-what-the-future", "00"},
        Case{"cc", "ff-", "01"}})
    EXPECT_EQ(valid_trace(std::string(version) + ids + std::string(rest)),
              "00" + ids + std::string(flags))
        << version << " " << rest;
  EXPECT_EQ(valid_trace("01" + ids + "01x"), "") << "no dash";
  EXPECT_EQ(valid_trace("00" + ids + "ff"), "00" + ids + "ff") << "its own flags stay";
}

TEST(TraceTest, AnotherSpanIsOfTheSameTrace) {
  hearth::testing::SeededRandom random(3);
  SpanSource spans(random);
  const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
  const std::string next = spans.below(read_span(trace)).text();
  EXPECT_EQ(valid_trace(next), next);
  EXPECT_EQ(next.substr(0, 36), trace.substr(0, 36));
  EXPECT_EQ(next.substr(52), "-00") << "and of the same flags";
  EXPECT_NE(next, trace);
  EXPECT_NE(spans.below(read_span(trace)).text(), next);
}

TEST(TraceTest, WithoutACauseASpanIsTheFirstOfATrace) {
  EXPECT_EQ(Span().text(), "");
  hearth::testing::SeededRandom random(3);
  SpanSource spans(random);
  std::set<std::string> traces;
  for (int i = 0; i < 1000; ++i) traces.insert(spans.below({}).text().substr(0, 35));
  EXPECT_EQ(traces.size(), 1000U);
  SpanSource others(random);
  EXPECT_NE(others.root().trace, SpanSource(random).root().trace) << "each begins somewhere else";
}

// Work that an event begins is under the trace of the event. Other work has no trace.
TEST(TraceTest, DurableWorkIsKeptUnderTheTraceOfItsEvent) {
  using durable::JobKind;
  hearth::testing::TestAgent agent{45};
  hearth::testing::HostCalls host(agent);
  for (const std::string trace : {"of the event", ""}) {
    agent.its_origin.trace = trace;
    const durable::FiberRequest record{.name = "work"};
    const auto managed = host.start_managed(record);
    durable::ScheduleRequest delay;
    delay.type = durable::ScheduleType::kDelay;
    delay.callback = "tick";
    delay.payload = trace.empty() ? "1" : "2";  // or the second would be the first one
    const auto schedule = host.create_schedule(delay);
    durable::QueueRequest item;
    item.callback = "item";
    ASSERT_TRUE(managed && schedule && host.push_item(item));
    durable::Jobs jobs(agent.database());
    EXPECT_EQ(jobs.trace_of(JobKind::kFiber, managed->id), trace);
    EXPECT_EQ(jobs.trace_of(JobKind::kSchedule, schedule->id), trace);
    EXPECT_EQ(jobs.number("SELECT count(*) FROM cf_agents_jobs WHERE kind = 4 AND "
                          "trace IS NOT NULL",
                          {}),
              1);
  }
}

}  // namespace
}  // namespace hearth::extensions
