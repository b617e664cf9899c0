// What administrators see of objects on a real server: lists, and the audit log.
#include "process/agent_client.hpp"
#include "process/objects_fixture.hpp"
#include "storage/connection.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace hearth::testing {
namespace {

TEST_F(ObjectsTest, O17_AnAgentBelowAnObjectIsNoObject) {
  start();
  EXPECT_EQ(increment("x"), 1);
  EXPECT_EQ(AgentClient(*server_, "/agents/counter/x/sub/counter/kid").call("increment"), 1);
  const Json listed = data(200, "GET", "/objects?class=counter");
  ASSERT_EQ(listed.size(), 1U) << listed;
  EXPECT_EQ(listed[0]["object_id"], "x");
}

TEST_F(ObjectsTest, O17_AListHasFiltersAndPages) {
  start();
  constexpr int kObjects = 1000;
  for (int i = 0; i < kObjects; ++i)
    data(201, "POST", "/objects",
         R"({"class":"counter","object_id":"o)" + std::to_string(i) + "\"}");
  for (const char* id : {"o7", "o77", "only-called"})
    data(200, "POST", "/objects/counter/" + std::string(id) + "/call/get", "[]");
  std::set<std::string> seen;
  std::string cursor;
  int pages = 0;
  do {
    const Json page =
        parse_json(ask("GET", "/objects?class=counter&limit=300&cursor=" + cursor).body).value();
    for (const Json& object : page["data"])
      EXPECT_TRUE(seen.insert(object["object_id"].get<std::string>()).second)
          << object["object_id"];
    cursor = page["next"].is_null() ? "" : page["next"].get<std::string>();
    ++pages;
  } while (!cursor.empty() && pages < 10);
  EXPECT_EQ(seen.size(), kObjects + 1U);
  EXPECT_EQ(pages, 4);
  EXPECT_TRUE(seen.contains("only-called")) << "one that wrote nothing is listed";
  std::set<std::string> active;
  const Json found = data(200, "GET", "/objects?status=ACTIVE&limit=1000");
  for (const Json& object : found) active.insert(object["object_id"].get<std::string>());
  EXPECT_EQ(active, (std::set<std::string>{"o7", "o77", "only-called"}));
  EXPECT_EQ(data(200, "GET", "/objects?status=hibernating&limit=1000").size(), 998U);
  EXPECT_EQ(data(404, "GET", "/objects?class=nobody"), "class_not_found");
  EXPECT_EQ(data(404, "GET", "/objects/nobody/o7"), "class_not_found");
  EXPECT_EQ(data(400, "GET", "/objects?status=Deleted"), "invalid_argument");
  EXPECT_EQ(data(400, "GET", "/objects?limit=1001"), "invalid_argument");
  const std::string too_long(4097, 'x');
  for (const std::string key : {"class", "status", "limit", "cursor"})
    EXPECT_EQ(data(400, "GET", "/objects?" + key + "=" + too_long), "invalid_argument") << key;
  for (const std::string key : {"limit", "after"})
    EXPECT_EQ(data(400, "GET", "/objects/counter/o7?" + key + "=" + too_long), "invalid_argument")
        << key;
}

TEST_F(ObjectsTest, O1_O4_O15_TheAuditLogTellsTheLifeOfAnObject) {
  start();
  (void)data(201, "POST", "/objects", R"({"class":"counter","object_id":"a","storage":{"b":1}})");
  EXPECT_EQ(increment("a"), 1);
  (void)data(200, "PATCH", "/objects/counter/a/storage", R"({"b":2})");
  (void)data(200, "POST", "/objects/counter/a/hibernate");
  (void)data(200, "POST", "/objects/counter/a/checkpoint");
  EXPECT_EQ(increment("a"), 2);
  (void)data(200, "DELETE", "/objects/counter/a");
  const Json entries =
      parse_json(ask("GET", "/admin/audit?class=Counter&agent=a").body).value()["entries"];
  // The object's work and the note of the request have no order.
  std::vector<std::string> events;
  std::vector<std::string> acts;
  for (const Json& each : entries) {
    const auto event = each["event"].get<std::string>();
    (event.starts_with("Admin") ? acts : events).push_back(event);
    if (event.starts_with("Admin"))
      EXPECT_TRUE(each["actor"].get<std::string>().starts_with("client 127.0.0.1:")) << event;
  }
  EXPECT_EQ(events, (std::vector<std::string>{"ObjectCreated", "ObjectWoken", "ObjectHibernated",
                                              "ObjectWoken", "ObjectDeleted"}));
  EXPECT_EQ(acts, (std::vector<std::string>{"AdminObjectCreated", "AdminObjectPatched",
                                            "AdminObjectHibernated", "AdminObjectCheckpointed",
                                            "AdminObjectRemoved"}));
}

TEST_F(ObjectsTest, O21_TheAuditLogIsLinesOfJsonAndCanBeTurnedOff) {
  start("audit:\n  file: audit.jsonl\n");
  EXPECT_EQ(increment("a"), 1);
  EXPECT_EQ(server_->stop(), kClean);
  std::istringstream lines(read_file(root_ / "audit.jsonl", std::size_t{1} << 20U).value());
  std::set<std::string> events;
  for (std::string line; std::getline(lines, line);) {
    const auto entry = parse_json(line);
    ASSERT_TRUE(entry) << line;
    events.insert(text_member(*entry, "event"));
  }
  EXPECT_TRUE(events.contains("ObjectCreated") && events.contains("ServerReady"));
  start("audit:\n  max_entries: 0\n");
  EXPECT_EQ(increment("b"), 1);
  EXPECT_EQ(parse_json(ask("GET", "/admin/audit").body).value()["entries"], Json::array());
}

TEST_F(ObjectsTest, AnAgentsOwnEntriesStandInTheAuditLogUpToALimit) {
  install_durable_agent();
  start();
  const Json added = data(200, "POST", "/objects/durable-agent/a/call/note_for_operators",
                          R"(["price.changed", {"to": 7}, 200])");
  EXPECT_GE(added, 100);
  EXPECT_LT(added, 200);
  const Json entries =
      parse_json(ask("GET", "/admin/audit?event=AgentAudit&limit=1000").body).value()["entries"];
  ASSERT_EQ(entries.size(), added.get<std::size_t>());
  EXPECT_EQ(entries[0]["actor"], "agent");
  EXPECT_EQ(entries[0]["class"], "DurableAgent");
  EXPECT_EQ(entries[0]["agent"], "a");
  EXPECT_EQ(entries[0]["detail"], Json::parse(R"({"what":"price.changed","detail":{"to":7}})"));
}

TEST_F(ObjectsTest, OnlyAdministratorsSeeAndRemoveObjects) {
  start();
  EXPECT_EQ(increment("a"), 1);
  for (const auto& [method, path] :
       {std::pair("GET", "/objects"), std::pair("POST", "/objects"),
        std::pair("GET", "/objects/counter/a"), std::pair("DELETE", "/objects/counter/a"),
        std::pair("POST", "/objects/counter/a/hibernate"),
        std::pair("POST", "/objects/counter/a/checkpoint"),
        std::pair("PATCH", "/objects/counter/a/storage"), std::pair("GET", "/objects/some-id"),
        std::pair("DELETE", "/objects/some-id")})
    EXPECT_EQ(ask(method, path, "", false).status, 401) << method << ' ' << path;
  EXPECT_EQ(ask("POST", "/objects/counter/a/call/get", "[]", false).status, 200);
  EXPECT_EQ(ask("GET", "/objects/counter/a/alarms", "", false).status, 200);
}

struct LostRow {
  const char* name;
  bool is_older;  // an older host.db, which lists only `x`, takes the place of the lost one
};
void PrintTo(const LostRow& row, std::ostream* out) {
  *out << row.name;
}

class RepairedObjectsTest : public ObjectsTest, public ::testing::WithParamInterface<LostRow> {
 protected:
  void lose_directory() const {
    for (const char* const part : {"", "-wal", "-shm"})
      std::filesystem::remove((root_ / "data/host.db").native() + part);
  }
};

TEST_P(RepairedObjectsTest, AreListedReachedAndRemovedAfterTheLossOfTheirDirectory) {
  start();
  EXPECT_EQ(increment("x"), 1);
  EXPECT_EQ(server_->stop(), kClean);
  std::filesystem::copy_file(root_ / "data/host.db", root_ / "older.db");
  start();
  for (const char* const id : {"a", "b"}) EXPECT_EQ(increment(id), 1);
  EXPECT_EQ(AgentClient(*server_, "/agents/counter/a/sub/counter/kid").call("increment"), 1);
  EXPECT_EQ(server_->stop(), kClean);
  lose_directory();
  if (GetParam().is_older) std::filesystem::rename(root_ / "older.db", root_ / "data/host.db");
  EXPECT_TRUE(says({"repair", "--data", "data"}, kClean, R"(listed     Counter "a")"));
  start();
  std::set<std::string> listed;
  for (const Json& each : data(200, "GET", "/objects?class=counter"))
    listed.insert(each["object_id"].get<std::string>());
  EXPECT_EQ(listed, (std::set<std::string>{"a", "b", "x"}));
  EXPECT_EQ(data(409, "POST", "/objects", R"({"class":"counter","object_id":"b"})"),
            "object_exists");
  EXPECT_EQ(data(200, "GET", "/objects/counter/b")["object_id"], "b");
  EXPECT_EQ(data(200, "DELETE", "/objects/counter/a")["object_id"], "a");
  EXPECT_EQ(increment("a"), 1) << "its data are gone";
  EXPECT_EQ(increment("b"), 2);
}

INSTANTIATE_TEST_SUITE_P(Directories, RepairedObjectsTest,
                         ::testing::Values(LostRow{"none", false}, LostRow{"older", true}),
                         [](const auto& each) { return std::string(each.param.name); });

// As the last one of its class that was restored alone, or an agent of before `objects: true`.
TEST_F(ObjectsTest, AnAgentThatIsNotListedAsAnObjectIsReachedByItsId) {
  put("classes/counter.yaml", "class: counter\n");
  start();
  for (const char* const id : {"a", "b"})
    EXPECT_EQ(AgentClient(*server_, std::string("/agents/counter/") + id).call("increment"), 1);
  EXPECT_EQ(data(404, "GET", "/objects/counter/a"), "object_not_found");
  EXPECT_EQ(server_->stop(), kClean);
  object_class("");
  start();
  EXPECT_EQ(data(200, "GET", "/objects").size(), 0U);
  EXPECT_EQ(data(409, "POST", "/objects", R"({"class":"counter","object_id":"a"})"),
            "object_exists");
  EXPECT_EQ(data(200, "DELETE", "/objects/counter/b")["object_id"], "b");
  EXPECT_EQ(increment("a"), 2);
  EXPECT_EQ(increment("b"), 1) << "its data are gone";
  EXPECT_EQ(data(404, "GET", "/objects/counter/c"), "object_not_found");
}

TEST_F(ObjectsTest, TheirIdsSurviveADamageOfTheirDirectoryElsewhere) {
  start();
  EXPECT_EQ(increment("a"), 1);
  const Json before = data(200, "GET", "/objects/counter/a");
  EXPECT_EQ(server_->stop(), kClean);
  const std::filesystem::path file = root_ / "data/host.db";
  std::int64_t place = 0;
  {
    storage::Connection opened(file, {});
    place = (opened.query_integer("SELECT rootpage FROM sqlite_schema "
                                  "WHERE name = 'served_classes'") -
             1) *
            opened.query_integer("PRAGMA page_size");
  }
  std::fstream(file).seekp(place) << "damaged";
  EXPECT_TRUE(says({"repair", "--data", "data"}, kClean, "host.db was damaged"));
  start();
  const Json after = data(200, "GET", "/objects/counter/a");
  for (const char* const member : {"id", "created_at"}) EXPECT_EQ(after[member], before[member]);
}

}  // namespace
}  // namespace hearth::testing
