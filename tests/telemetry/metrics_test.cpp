#include "telemetry/metrics.hpp"

#include "support/exposition.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hearth {
namespace {

using testing::Exposition;

class MetricsTest : public ::testing::Test {
 protected:
  Exposition scrape() const {
    Exposition seen(metrics_.text());
    EXPECT_EQ(seen.mistake(), "") << metrics_.text();
    return seen;
  }

  Metrics metrics_;
};

TEST_F(MetricsTest, IsEmptyBeforeTheFirstCell) {
  EXPECT_EQ(metrics_.text(), "");
}

TEST_F(MetricsTest, ShowsACounterWithItsHelpAndType) {
  Counter& doors = metrics_.counter("doors_total", "Doors that were opened.");
  doors.add();
  doors.add(2);
  EXPECT_EQ(metrics_.text(),
            "# HELP doors_total Doors that were opened.\n"
            "# TYPE doors_total counter\n"
            "doors_total 3\n");
}

TEST_F(MetricsTest, AGaugeGoesUpAndDownAndBelowZero) {
  Gauge& gauge = metrics_.gauge("depth", "How deep.");
  gauge.set(5);
  gauge.add(-7);
  EXPECT_EQ(gauge.value(), -2);
  EXPECT_EQ(scrape().value("depth"), -2);
}

TEST_F(MetricsTest, CountsExactlyBeyondAMillion) {
  metrics_.counter("bytes_total", "Bytes.").add(123'456'789'012);
  EXPECT_EQ(scrape().value("bytes_total"), 123'456'789'012.0);
}

TEST_F(MetricsTest, P1_CellsOfTheSameLabelsAreOneSeriesThatAddsUp) {
  Counter& one = metrics_.counter("doors_total", "Doors.", {{"house", "a"}, {"floor", "1"}});
  Counter& two = metrics_.counter("doors_total", "Doors.", {{"floor", "1"}, {"house", "a"}});
  Counter& elsewhere = metrics_.counter("doors_total", "Doors.", {{"house", "b"}, {"floor", "1"}});
  EXPECT_NE(&one, &two);
  one.add(3);
  two.add(4);
  elsewhere.add(5);
  const Exposition seen = scrape();
  EXPECT_EQ(seen.families().at("doors_total").samples.size(), 2U);
  EXPECT_EQ(seen.value("doors_total", {{"house", "a"}, {"floor", "1"}}), 7);
  EXPECT_EQ(seen.value("doors_total", {{"house", "b"}, {"floor", "1"}}), 5);
}

TEST_F(MetricsTest, AHistogramCountsEachValueUnderTheFirstBoundThatHoldsIt) {
  constexpr std::array kBounds = {0.1, 1.0, 10.0};
  Histogram& one = metrics_.histogram("wait_seconds", "Waits.", kBounds, {{"class", "A"}});
  Histogram& two = metrics_.histogram("wait_seconds", "Waits.", kBounds, {{"class", "A"}});
  for (const double value : {0.05, 0.1, 0.5, 10.0}) one.observe(value);
  two.observe(11);
  const Exposition seen = scrape();
  EXPECT_EQ(seen.value("wait_seconds_bucket", {{"class", "A"}, {"le", "0.1"}}), 2);
  EXPECT_EQ(seen.value("wait_seconds_bucket", {{"class", "A"}, {"le", "1"}}), 3);
  EXPECT_EQ(seen.value("wait_seconds_bucket", {{"class", "A"}, {"le", "10"}}), 4);
  EXPECT_EQ(seen.value("wait_seconds_bucket", {{"class", "A"}, {"le", "+Inf"}}), 5);
  EXPECT_EQ(seen.value("wait_seconds_count", {{"class", "A"}}), 5);
  EXPECT_NEAR(*seen.value("wait_seconds_sum", {{"class", "A"}}), 21.65, 1e-9);
}

TEST_F(MetricsTest, P2_FamiliesAreInTheOrderOfTheirNames) {
  metrics_.gauge("b", "B.");
  metrics_.counter("c_total", "C.");
  metrics_.gauge("a", "A.");
  const std::string text = metrics_.text();
  EXPECT_LT(text.find("\na "), text.find("\nb "));
  EXPECT_LT(text.find("\nb "), text.find("\nc_total "));
}

TEST_F(MetricsTest, P2_WhatALabelHoldsIsEscaped) {
  metrics_.gauge("a", "A.", {{"k", "x\"y\\z\nw"}}).set(1);
  EXPECT_EQ(scrape().value("a", {{"k", "x\"y\\z\nw"}}), 1);
}

TEST_F(MetricsTest, P3_ALabelIsCutAndOneThatIsNotUtf8IsReplaced) {
  metrics_.gauge("a", "A.", {{"k", std::string(1000, 'x')}}).set(1);
  metrics_.gauge("a", "A.", {{"k", "\xff"}}).set(2);
  const Exposition seen = scrape();
  EXPECT_EQ(seen.value("a", {{"k", std::string(Metrics::kMaxLabelBytes, 'x')}}), 1);
  EXPECT_EQ(seen.value("a", {{"k", "invalid"}}), 2);
}

TEST_F(MetricsTest, P3_SeriesBeyondTheLimitAreAddedUpAsOther) {
  for (std::size_t i = 0; i < Metrics::kMaxSeries + 10; ++i) {
    metrics_.counter("a_total", "A.", {{"k", std::to_string(i)}}).add();
  }
  metrics_.counter("a_total", "A.", {{"k", "0"}}).add();  // an existing series goes on
  // Not through the strict reader, which compares each sample with each.
  const std::string text = metrics_.text();
  EXPECT_NE(text.find("a_total{k=\"0\"} 2\n"), std::string::npos);
  const std::string last = std::to_string(Metrics::kMaxSeries - 2);
  const std::string next = std::to_string(Metrics::kMaxSeries - 1);
  EXPECT_NE(text.find("a_total{k=\"" + last + "\"} 1\n"), std::string::npos);
  EXPECT_EQ(text.find("k=\"" + next + "\""), std::string::npos);
  EXPECT_NE(text.find("a_total{k=\"other\"} 11\n"), std::string::npos);
}

TEST_F(MetricsTest, AWatchIsAskedAtEachScrapeUntilItIsGone) {
  int asked = 0;
  {
    const auto watch = metrics_.watch_gauge("a", "A.", [&] { return ++asked; }, {{"k", "v"}});
    EXPECT_EQ(scrape().value("a", {{"k", "v"}}), 1);
    EXPECT_EQ(scrape().value("a", {{"k", "v"}}), 2);
  }
  EXPECT_EQ(metrics_.text(), "");
  EXPECT_EQ(asked, 2);
}

TEST_F(MetricsTest, AWatchThatIsMovedGoesWithItsNewPlace) {
  auto first = metrics_.watch_counter("a_total", "A.", [] { return 1.0; });
  auto second = metrics_.watch_counter("b_total", "B.", [] { return 2.5; });
  first = std::move(second);
  EXPECT_EQ(scrape().value("a_total"), std::nullopt);
  EXPECT_EQ(scrape().value("b_total"), 2.5);
  const Metrics::Watch third(std::move(first));
  EXPECT_EQ(scrape().value("b_total"), 2.5);
}

TEST_F(MetricsTest, AWatchAddsUpWithCellsOfTheSameLabels) {
  metrics_.gauge("a", "A.").set(2);
  {
    const auto watch = metrics_.watch_gauge("a", "A.", [] { return 0.5; });
    EXPECT_EQ(scrape().value("a"), 2.5);
  }
  EXPECT_EQ(scrape().value("a"), 2);
}

TEST_F(MetricsTest, AllThreadsMayCountWhileOthersScrape) {
  Counter& shared = metrics_.counter("shared_total", "Shared.");
  constexpr std::array kBounds = {0.5};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        Counter& own = metrics_.counter("own_total", "Own.");
        Histogram& times = metrics_.histogram("times_seconds", "Times.", kBounds);
        for (int n = 0; n < 10'000; ++n) {
          shared.add();
          own.add();
          times.observe(1);
        }
      });
    }
    for (int i = 0; i < 20; ++i) EXPECT_EQ(Exposition(metrics_.text()).mistake(), "");
  }
  const Exposition seen = scrape();
  EXPECT_EQ(seen.value("shared_total"), 40'000);
  EXPECT_EQ(seen.value("own_total"), 40'000);
  EXPECT_EQ(seen.value("times_seconds_sum"), 40'000);
}

// What the tests of all layers read /metrics with must not believe everything.
TEST(ExpositionTest, RefusesWhatTheFormatForbids) {
  const std::string head = "# HELP a_total A.\n# TYPE a_total counter\n";
  EXPECT_EQ(Exposition(head + "a_total{k=\"v\"} 1\n").mistake(), "");
  for (const std::string& text : {
           std::string("a_total 1\n"),
           head,
           head + "a_total 1",
           head + "a_total\n",
           head + "a_total x\n",
           head + "a_total 1 2\n",
           head + "a_total -1\n",
           head + "b_total 1\n",
           head + "a_total 1\n\n",
           head + "a_total 1\na_total 2\n",
           head + "a_total{} 1\n",
           head + "a_total{k=v} 1\n",
           head + "a_total{k=\"v} 1\n",
           head + "a_total{k=\"\\v\"} 1\n",
           head + "a_total{k=\"v\",k=\"w\"} 1\n",
           head + "a_total{k.l=\"v\"} 1\n",
           head + "a_total{k=\"\xff\"} 1\n",
           head + "a_total 1\n" + head + "a_total 1\n",
           std::string("# TYPE a_total counter\na_total 1\n"),
           std::string("# HELP a_total A.\na_total 1\n"),
           std::string("# HELP a A.\n# TYPE a counter\na 1\n"),
           std::string("# HELP a A.\n# TYPE a histogram\na 1\n"),
           std::string("# HELP a A.\n# TYPE a histogram\na_sum 1\na_count 1\n"),
           std::string("# HELP a A.\n# TYPE a histogram\na_sum 1\na_count 1\n"
                       "a_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\n"),
           std::string("# HELP a A.\n# TYPE a histogram\na_sum 1\na_count 3\n"
                       "a_bucket{le=\"1\"} 1\na_bucket{le=\"+Inf\"} 2\n"),
       }) {
    const Exposition seen(text);
    EXPECT_NE(seen.mistake(), "") << text;
    EXPECT_TRUE(seen.families().empty()) << text;
  }
}

using MetricsDeathTest = MetricsTest;

TEST_F(MetricsDeathTest, MistakesInNamesAreBugs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(metrics_.counter("a", "A."), "_total");
  EXPECT_DEATH(metrics_.gauge("a_total", "A."), "_total");
  EXPECT_DEATH(metrics_.gauge("a b", "A."), "name");
  EXPECT_DEATH(metrics_.gauge("a", "A.", {{"b c", "d"}}), "name");
  EXPECT_DEATH(metrics_.gauge("a", "two\nlines"), "help");
  metrics_.gauge("a", "A.", {{"k", "v"}});
  EXPECT_DEATH(metrics_.gauge("a", "Another.", {{"k", "v"}}), "one way");
  EXPECT_DEATH(metrics_.gauge("a", "A.", {{"other", "v"}}), "same labels");
}

}  // namespace
}  // namespace hearth
