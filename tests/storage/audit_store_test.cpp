#include "storage/audit_store.hpp"

#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hearth::storage {
namespace {

std::vector<std::int64_t> ids(const std::vector<AuditEntry>& entries) {
  std::vector<std::int64_t> all;
  for (const AuditEntry& each : entries) all.push_back(each.id);
  return all;
}
using Ids = std::vector<std::int64_t>;

class AuditStoreTest : public ::testing::Test {
 protected:
  AuditStoreTest() {
    store_.append(entries_);
    EXPECT_EQ(ids(entries_), (Ids{1, 2, 3, 4}));
  }

  static AuditEntry made(std::int64_t at_ms, const std::string& event, const std::string& actor,
                         const std::string& agent, const std::string& detail = "") {
    AuditEntry entry{.at_ms = at_ms, .event = event, .actor = actor};
    entry.agent_class = "Counter";
    entry.agent = agent;
    entry.detail = detail;
    return entry;
  }

  hearth::testing::TempDirectory directory_;
  const std::filesystem::path file_ = directory_.path() / "audit.db";
  AuditStore store_{file_};
  std::vector<AuditEntry> entries_{
      {.at_ms = 1000, .event = "ServerReady", .actor = "server"},
      made(2000, "ObjectCreated", "client", "a"),
      made(3000, "ObjectCreated", "client 127.0.0.1:1", "b", R"({"peer":"127.0.0.1:1"})"),
      made(4000, "ObjectDeleted", "administrator", "a")};
};

TEST_F(AuditStoreTest, GivesBackWhatWasAppended) {
  EXPECT_EQ(store_.read({.after = 2, .limit = 1}), std::vector{entries_[2]});
}

TEST_F(AuditStoreTest, FindsWhatIsAskedFor) {
  struct Case {
    std::string name;
    AuditQuery query;
    Ids found;
  };
  const std::vector<Case> cases{
      {"all", {}, {1, 2, 3, 4}},
      {"a page", {.after = 1, .limit = 2}, {2, 3}},
      {"the newest", {.limit = 2, .newest = true}, {3, 4}},
      {"by event", {.event = "ObjectCreated"}, {2, 3}},
      {"by actor", {.actor = "administrator"}, {4}},
      {"by actor, wherever it is", {.actor = "client"}, {2, 3}},
      {"by agent", {.agent_class = "Counter", .agent = "a"}, {2, 4}},
      {"by a class in another spelling", {.agent_class = "coun-ter", .agent = "b"}, {3}},
      {"by time", {.since_ms = 2000, .until_ms = 4000}, {2, 3}},
      {"the newest of an agent", {.limit = 1, .newest = true, .agent = "a"}, {4}},
      {"nothing", {.agent_class = "' OR 1=1 --"}, {}},
  };
  for (const Case& each : cases) EXPECT_EQ(ids(store_.read(each.query)), each.found) << each.name;
}

TEST_F(AuditStoreTest, TheOldestGoAndTheirIdsAreNeverUsedAgain) {
  store_.trim(3, 0);
  EXPECT_EQ(ids(store_.read({})), (Ids{2, 3, 4}));
  store_.trim(100, 4000);
  EXPECT_EQ(ids(store_.read({})), (Ids{4}));
  store_.trim(0, 0);
  std::vector<AuditEntry> next{{.at_ms = 5000, .event = "ServerReady", .actor = "server"}};
  store_.append(next);
  EXPECT_EQ(ids(store_.read({})), (Ids{5}));
}

TEST_F(AuditStoreTest, NoKindPushesOutAnother) {
  const std::vector<AuditEntry> entries{
      {.event = "AgentAudit", .actor = "agent", .kind = AuditKind::kUsers},
      {.event = "AdminReload", .actor = "administrator", .kind = AuditKind::kAdministrators},
      {.event = "ServerReady", .actor = "server", .kind = AuditKind::kServer}};
  for (const std::size_t kind : {1U, 1U, 2U, 2U, 0U, 0U, 0U, 0U}) {  // the server has four already
    std::vector<AuditEntry> one{entries[kind]};
    store_.append(one);
  }
  store_.trim(2, 0);
  EXPECT_EQ(ids(store_.read({})), (Ids{5, 6, 7, 8, 11, 12}));
  store_.trim(2, 0);
  EXPECT_EQ(ids(store_.read({})), (Ids{5, 6, 7, 8, 11, 12}));
}

TEST(AuditStoreFileTest, AFileThatIsNotThereIsReadAsEmptyAndNotMade) {
  const hearth::testing::TempDirectory directory;
  AuditStore store(directory.path() / "audit.db");
  EXPECT_TRUE(store.read({}).empty());
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "audit.db"));
}

}  // namespace
}  // namespace hearth::storage
