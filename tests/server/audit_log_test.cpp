#include "server/audit_log.hpp"

#include "base/clock.hpp"
#include "support/manual_clock.hpp"
#include "support/recording_logger.hpp"
#include "support/temp_directory.hpp"
#include "telemetry/metrics.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <utility>
#include <vector>

namespace hearth::server {
namespace {

using storage::AuditEntry;

class AuditLogTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path store() const { return directory_.path() / "audit.db"; }
  static std::vector<AuditEntry> read(AuditLog& log) {
    std::promise<AuditLog::Page> page;
    EXPECT_TRUE(log.read({}, [&page](AuditLog::Page found) { page.set_value(std::move(found)); }));
    return page.get_future().get().value();
  }

  // Event, actor, class, agent and detail.
  static std::string shown(const AuditEntry& entry) {
    return entry.event + '|' + entry.actor + '|' + entry.agent_class + '|' + entry.agent + '|' +
           entry.detail;
  }

  hearth::testing::TempDirectory directory_;
  hearth::testing::RecordingLogger next_;
  SystemClock clock_;
  Metrics metrics_;
};

TEST(AuditNameTest, EventsOfTheLogAreOneWord) {
  for (const auto& [event, name] :
       std::vector<std::pair<std::string, std::string>>{{"object.created", "ObjectCreated"},
                                                        {"reload.taken_back", "ReloadTakenBack"},
                                                        {"admin.evict", "AdminEvict"},
                                                        {"x.2nd", "X2nd"}})
    EXPECT_EQ(audit_name(event), name);
}

TEST_F(AuditLogTest, AnAgentsOwnEntryHasItsDetailAsItIs) {
  AuditLog log(next_, clock_, {}, metrics_);
  log.open(store());
  const std::string text = R"({"text":")" + std::string(2000, 'x') + R"("})";
  LogLimit limit{.burst = 2, .per_second = 0};
  const auto record = [&](std::string_view of_class) {
    return log.record_limited(LogLevel::kInfo, "agent.audit", {of_class},
                              {{"class", of_class},
                               {"agent", "a"},
                               {"actor", "agent"},
                               {"what", "said"},
                               {"detail", text}},
                              limit);
  };
  EXPECT_TRUE(record("Counter"));
  EXPECT_TRUE(record("Counter"));
  EXPECT_FALSE(record("Counter")) << "one too many of its class";
  EXPECT_TRUE(record("Other"));
  limit.per_second = 1e9;
  EXPECT_TRUE(record("Counter"));
  const auto entries = read(log);
  ASSERT_EQ(entries.size(), 4U);
  EXPECT_EQ(shown(entries[0]),
            R"(AgentAudit|agent|Counter|a|{"detail":)" + text + R"(,"what":"said"})");
  EXPECT_EQ(entries[3].detail, R"({"detail":)" + text + R"(,"suppressed":1,"what":"said"})");
  EXPECT_EQ(next_.count("agent.audit"), 4U);
}

TEST_F(AuditLogTest, WhatIsRecordedIsKeptWithItsParts) {
  AuditLog log(next_, clock_, {}, metrics_);
  log.record(LogLevel::kInfo, "server.ready", {});  // before there is a store
  log.open(store());
  log.record(LogLevel::kInfo, "admin.evict",
             {{"class", "Counter"}, {"agent", "a"}, {"peer", "127.0.0.1:1"}, {"n", 3}});
  log.record(LogLevel::kDebug, "object.created", {{"actor", "client"}, {"class", "Counter"}});
  log.write(LogLevel::kInfo, "agent.call_failed", {{"class", "Counter"}});
  const auto entries = read(log);
  ASSERT_EQ(entries.size(), 3U) << "what was only logged is no entry";
  EXPECT_EQ(shown(entries[0]), "ServerReady|server|||");
  EXPECT_GT(entries[0].at_ms, 0);
  EXPECT_EQ(shown(entries[1]),
            R"(AdminEvict|administrator|Counter|a|{"n":3,"peer":"127.0.0.1:1"})");
  EXPECT_EQ(entries[2].actor, "client");
  EXPECT_TRUE(next_.contains("info admin.evict class=Counter agent=a"));
}

TEST_F(AuditLogTest, ItIsThereAfterARestart) {
  {
    AuditLog log(next_, clock_, {}, metrics_);
    log.open(store());
    log.record(LogLevel::kInfo, "admin.evict", {{"agent", "a"}});
  }
  AuditLog log(next_, clock_, {}, metrics_);
  log.open(store());
  EXPECT_EQ(read(log).size(), 1U);
}

TEST_F(AuditLogTest, OnlyTheNewestAreKept) {
  AuditLog log(next_, clock_, {.max_entries = 2}, metrics_);
  for (int i = 0; i < 100; ++i) log.record(LogLevel::kInfo, "admin.evict", {{"n", i}});
  log.open(store());
  const auto entries = read(log);
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].detail, R"({"n":98})");
  EXPECT_EQ(entries[1].id, 100);
}

TEST_F(AuditLogTest, WhatIsTooOldIsNotTold) {
  hearth::testing::ManualClock clock;
  AuditLog log(next_, clock, {.keep = std::chrono::hours(2)}, metrics_);
  log.open(store());
  log.record(LogLevel::kInfo, "admin.evict", {});
  EXPECT_EQ(read(log).size(), 1U);
  clock.advance(std::chrono::hours(3));
  EXPECT_TRUE(read(log).empty()) << "nothing has come that would have it removed";
  log.record(LogLevel::kInfo, "admin.evict", {});
  EXPECT_EQ(read(log).size(), 1U);
}

// Whatever comes in between, and however often.
TEST_F(AuditLogTest, P4_WhatAdministratorsAndTheServerDidIsNotPushedOut) {
  constexpr std::size_t kKept = 3;
  AuditLog log(next_, clock_, {.max_entries = kKept}, metrics_);
  const auto flood = [&log](std::string_view event) {
    for (int i = 0; i < 100; ++i) log.record(LogLevel::kDebug, event, {{"class", "Counter"}});
  };
  log.record(LogLevel::kDebug, "admin.destroyed", {{"class", "Counter"}, {"agent", "a"}});
  log.record(LogLevel::kInfo, "class.released", {{"actor", "administrator"}});
  log.record(LogLevel::kInfo, "plugin.loaded", {{"file", "a.so"}});
  for (const std::string_view of_users :
       {"object.created", "object.woken", "object.hibernated", "object.deleted", "alarm.set",
        "alarm.removed", "alarm.failed", "agent.audit"})
    flood(of_users);
  log.open(store());
  std::vector<std::string> events;
  for (const AuditEntry& each : read(log)) events.push_back(each.event);
  EXPECT_EQ(events, (std::vector<std::string>{"AdminDestroyed", "ClassReleased", "PluginLoaded",
                                              "AgentAudit", "AgentAudit", "AgentAudit"}));
  flood("reload.done");
  events.clear();
  for (const AuditEntry& each : read(log)) events.push_back(each.event);
  ASSERT_GE(events.size(), 2U);
  EXPECT_EQ(events[0], "AdminDestroyed") << "nor does the server push out administrators";
  EXPECT_EQ(events[1], "ClassReleased");
}

TEST_F(AuditLogTest, WhatFindsNoRoomIsCounted) {
  AuditLog log(next_, clock_, {}, metrics_);
  for (std::size_t i = 0; i < AuditLog::kMaxWaiting + 3; ++i)
    log.record(LogLevel::kInfo, "admin.evict", {});
  EXPECT_NE(metrics_.text().find("hearth_audit_lost_total 3"), std::string::npos);
  EXPECT_TRUE(next_.contains("error audit.lost entries=1"));
}

TEST_F(AuditLogTest, ItCanBeTurnedOff) {
  AuditLog log(next_, clock_, {.max_entries = 0}, metrics_);
  log.open(store());
  log.record(LogLevel::kInfo, "admin.evict", {});
  EXPECT_TRUE(read(log).empty());
  EXPECT_FALSE(std::filesystem::exists(store()));
  EXPECT_TRUE(next_.contains("info admin.evict"));
}

TEST_F(AuditLogTest, LongTextsAreCut) {
  AuditLog log(next_, clock_, {}, metrics_);
  log.open(store());
  const std::string text(10'000, 'x');
  log.record(LogLevel::kInfo, "admin.evict",
             {{"agent", text}, {"a", text}, {"b", text}, {"c", text}, {"d", text}});
  const auto entries = read(log);
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].agent.size(), AuditLog::kMaxDetail / 4);
  EXPECT_LE(entries[0].detail.size(), AuditLog::kMaxDetail);
}

TEST_F(AuditLogTest, WhatCannotBeWrittenIsCountedAndTold) {
  AuditLog log(next_, clock_, {.file = directory_.path() / "missing" / "a.jsonl"}, metrics_);
  log.open(store());
  log.record(LogLevel::kInfo, "admin.evict", {});
  EXPECT_EQ(read(log).size(), 1U) << "the store has it";
  EXPECT_TRUE(next_.contains("error audit.lost entries=1"));
  EXPECT_NE(metrics_.text().find("hearth_audit_lost_total 1"), std::string::npos);
}

}  // namespace
}  // namespace hearth::server
