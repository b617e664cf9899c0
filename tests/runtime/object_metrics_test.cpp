#include "runtime/object_metrics.hpp"

#include "runtime/fakes.hpp"
#include "support/exposition.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

namespace hearth::runtime {
namespace {

using hearth::testing::Exposition;
using std::chrono::milliseconds;
using testing::Answer;
using testing::FakeSink;
using testing::kUsualAgent;
using testing::ShardFixture;

TEST(ObjectMetricsTest, O20_UnlistedMethodsAreOneSeries) {
  Metrics metrics;
  int asked = 0;
  {
    ObjectMetrics objects(metrics);
    const auto methods = [&asked] {
      ++asked;
      return std::string(R"([{"name":"get"}])");
    };
    for (int i = 0; i < 3; ++i) objects.called("C", "get", methods);
    EXPECT_EQ(asked, 1) << "a known method costs one look";
    for (int i = 0; i < 100; ++i) objects.called("C", "m" + std::to_string(i), methods);
    objects.came("C");
  }
  const Exposition seen(metrics.text());
  ASSERT_EQ(seen.mistake(), "");
  EXPECT_EQ(seen.value("agentkernel_object_calls_total", {{"class", "C"}, {"method", "get"}}), 3);
  EXPECT_EQ(seen.value("agentkernel_object_calls_total", {{"class", "C"}, {"method", "other"}}),
            100);
  EXPECT_EQ(seen.value("agentkernel_objects_active", {{"class", "C"}}), 0);
}

TEST(ObjectMetricsTest, O4_O5_ALifeIsCounted) {
  ClassSettings settings;
  settings.is_object = true;
  settings.idle_timeout = milliseconds(100);
  ShardFixture shard({}, settings);
  const auto call = [&shard] {
    auto answer = std::make_shared<Answer>();
    Shard::AgentCallIn call;
    call.key = kUsualAgent;
    call.segment = "counter";
    call.method = "get";
    call.arguments = "[]";
    call.is_of_client = true;
    shard.shard().call(call, std::make_unique<FakeSink>(answer));
    shard.settle();
    return answer->end;
  };
  const auto value = [&shard](const char* name) {
    return Exposition(shard.metrics.text()).value(name, {{"class", "Counter"}});
  };
  EXPECT_EQ(call(), "ok ");
  EXPECT_EQ(value("agentkernel_objects_active"), 1);
  shard.loop.advance(milliseconds(300));
  shard.settle();
  EXPECT_EQ(value("agentkernel_objects_active"), 0);
  EXPECT_EQ(value("agentkernel_object_hibernations_total"), 1);
  EXPECT_EQ(call(), "ok ");
  EXPECT_EQ(value("agentkernel_object_wake_duration_seconds_count"), 2);
  EXPECT_EQ(
      Exposition(shard.metrics.text())
          .value("agentkernel_object_calls_total", {{"class", "Counter"}, {"method", "other"}}),
      2);
  ASSERT_TRUE(shard.shard().destroy(kUsualAgent));
  shard.settle();
  EXPECT_EQ(value("agentkernel_objects_active"), 0);
  EXPECT_EQ(value("agentkernel_object_hibernations_total"), 1) << "that was no hibernation";
}

}  // namespace
}  // namespace hearth::runtime
