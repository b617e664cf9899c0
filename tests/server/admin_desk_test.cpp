// Requests of administrators to a whole server, as its commands send them.
#include "server/admin_desk.hpp"

#include "base/files.hpp"
#include "cli/admin_client.hpp"
#include "durable/operations.hpp"
#include "durable/wake.hpp"
#include "server/admin_token.hpp"
#include "server/asked_rows.hpp"
#include "server/one_loop_fixture.hpp"
#include "server/operation_pages.hpp"
#include "server/whole_server_fixture.hpp"
#include "support/built.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <utility>
#include <vector>

namespace hearth::server {
namespace {

namespace fs = std::filesystem;

class AdminDeskTest : public WholeServerTest {
 protected:
  AdminDeskTest() { install(testing::built::bundled("counter")); }

  Result<Json> ask(const std::string& method, const std::string& target,
                   const std::string& body = "") {
    const auto client = cli::AdminClient::on(config_.server.data);
    if (!client) return client.error();
    return client->ask(method, target, body);
  }
  Json get(const std::string& target) { return ask("GET", target).value(); }
  // The agents and keys of all operations, in pages of at most `limit`. `ends`: where each page but
  // the last one says that the next begins.
  std::vector<std::string> walk_operations(const std::string& query, std::size_t limit,
                                           std::vector<std::string>& ends) {
    std::vector<std::string> seen;
    std::string after;
    ends.clear();
    do {
      const Json page = get("/admin/operations?" + query + "&limit=" + std::to_string(limit) +
                            "&after=" + cli::url_encoded(after));
      EXPECT_TRUE(page["skipped"].empty()) << page;
      EXPECT_LE(page["operations"].size(), limit);
      for (const Json& each : page["operations"])
        seen.push_back(text_member(each, "agent") + " " + text_member(each, "key"));
      after = page["next"].is_null() ? "" : page["next"].get<std::string>();
      if (!after.empty()) ends.push_back(after);
    } while (!after.empty());
    return seen;
  }

  // Adds one to an agent's count, which brings it to life.
  void touch(const std::string& name) {
    const auto reply = request("POST", "/agents/counter/" + name);
    ASSERT_EQ(reply.status, 200) << reply.body;
  }
  // An eviction takes a moment; asking is all one can do.
  void wait_for_state(const std::string& name, const std::string& state) {
    for (int i = 0; i < 10'000; ++i) {
      if (get("/admin/agents/counter/" + name).at("state") == state) return;
    }
    FAIL() << name << " is not " << state;
  }
};

// The ledger of an earlier server: the agent's operations "1" and "2", of this kind, are unknown.
// Returns the id of the last one.
std::string leave_unknown(const storage::DataDirectory& data, const std::vector<std::string>& names,
                          const std::string& kind = "charge") {
  std::string id;
  storage::Directory directory(data.directory_path(), data.directory_vfs());
  const SystemClock clock;
  SystemRandom random;
  for (const std::string& name : names) {
    const storage::AgentKey key{"Counter", name};
    directory.record(key, 1);
    directory.set_wake({.key = key, .at_ms = {}, .unknown_operations = 2});
    storage::AgentDatabase database(data.agent_path(key), key, {});
    durable::Fibers fibers(database, clock, random, {});
    const durable::OperationSettings settings;
    durable::Operations ledger(database, fibers, clock, random, settings);
    ledger.load();
    for (const char* const which : {"1", "2"}) {
      durable::OperationRequest request;
      request.kind = kind;
      request.key = which;
      const auto begun = ledger.begin(request);
      EXPECT_TRUE(begun) << begun.error().message;
      EXPECT_TRUE(ledger.settle(begun->operation, durable::OperationOutcome::kCutOff, "cut"));
      id = begun->id;
    }
    database.commit();
    ledger.close();
    fibers.close();
    database.close();
  }
  return id;
}
void leave_unknown_at(const fs::path& path, const std::vector<std::string>& names,
                      const std::string& kind = "charge") {
  leave_unknown(storage::DataDirectory::open(path).value(), names, kind);
}

TEST_F(AdminDeskTest, OperationsArePagedThroughTheLedgersOfAllAgents) {
  leave_unknown_at(config_.server.data, {"a", "b/with slash", "c"});
  start();
  std::vector<std::string> ends;
  for (const std::size_t limit : {1U, 2U, 3U, 100U}) {
    EXPECT_EQ(
        walk_operations("class=counter", limit, ends),
        (std::vector<std::string>{"a 1", "a 2", "b/with slash 1", "b/with slash 2", "c 1", "c 2"}))
        << limit;
  }
  EXPECT_EQ(get("/admin/operations?class=counter&agent=c")["operations"].size(), 2U);
  EXPECT_TRUE(get("/admin/operations?state=running")["operations"].empty());
  for (const char* const wrong : {"state=lost", "state=completed", "after=x", "agent=c"})
    EXPECT_FALSE(ask("GET", std::string("/admin/operations?") + wrong)) << wrong;
  for (const char* const missing : {"class=nothing", "class=counter&agent=nobody"})
    EXPECT_FALSE(ask("GET", std::string("/admin/operations?") + missing)) << missing;
  EXPECT_FALSE(ask("GET", "/admin/operations/counter/a/nothing"));
}

// A page ends after so many agents, also if none of them has a matching operation.
TEST_F(AdminDeskTest, APageOfOperationsEndsAfterSoManyAgents) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kMostAgentsOfAPage + 2; ++i)
    names.push_back("a" + std::to_string(1000 + i));
  leave_unknown_at(config_.server.data, names);
  leave_unknown_at(config_.server.data, {"z"}, "refund");
  start();
  std::vector<std::string> ends;
  EXPECT_EQ(walk_operations("class=counter&kind=refund", 100, ends),
            (std::vector<std::string>{"z 1", "z 2"}));
  EXPECT_FALSE(ends.empty());
  EXPECT_TRUE(std::ranges::is_sorted(ends)) << "each page goes on";
}

TEST_F(AdminDeskTest, SaysWhichLibrariesAreThere) {
  ASSERT_TRUE(write_file_atomically(plugins_ / "bad.so", "no library"));
  start();
  const Json answer = get("/admin/plugins");
  ASSERT_EQ(answer.at("plugins").size(), 1U);
  const Json& plugin = answer.at("plugins")[0];
  EXPECT_EQ(plugin.at("file"), (plugins_ / "counter.so").native());
  EXPECT_EQ(plugin.at("state"), "current");
  EXPECT_EQ(plugin.at("generation"), 1);
  EXPECT_EQ(plugin.at("sha256").get<std::string>().size(), 64U);
  EXPECT_EQ(dump_json(plugin.at("classes")), R"(["Counter"])");
  ASSERT_EQ(answer.at("refused").size(), 1U);
  EXPECT_EQ(answer.at("refused")[0].at("file"), (plugins_ / "bad.so").native());
  EXPECT_EQ(get("/admin/generations").at("generations").size(), 1U);
}

TEST_F(AdminDeskTest, AReloadSaysWhatBecameOfEachFile) {
  config_.server.reload.watch = false;
  start();
  const auto outcome = [this](const std::string& body) {
    const Json answer = ask("POST", "/admin/plugins/reload", body).value();
    return answer.at("files").size() == 1 ? answer.at("files")[0].at("outcome").get<std::string>()
                                          : dump_json(answer);
  };
  EXPECT_EQ(outcome(""), "unchanged");
  EXPECT_TRUE(logger_.contains("admin.reload"));
  EXPECT_EQ(outcome(R"({"class":"counter"})"), "unchanged");
  EXPECT_EQ(outcome(R"({"class":"Counter"})"), "unchanged");
  EXPECT_EQ(ask("POST", "/admin/plugins/reload", R"({"class":"nope"})").error().code,
            Errc::kNotFound);
  ASSERT_TRUE(write_file_atomically(plugins_ / "counter.so", "no library"));
  EXPECT_EQ(outcome(""), "refused");
  EXPECT_EQ(get("/admin/plugins").at("plugins").size(), 1U) << "the old version goes on";
  EXPECT_EQ(get("/admin/plugins").at("refused").size(), 1U);
  fs::remove(plugins_ / "counter.so");
  EXPECT_EQ(outcome(""), "removed");
  EXPECT_EQ(get("/admin/plugins").at("refused").size(), 0U);
  fs::copy_file(testing::built::bundled("counter"), plugins_ / "counter.so");
  EXPECT_EQ(outcome(""), "new_version");
}

TEST_F(AdminDeskTest, PagesThroughTheAgentsOfAClass) {
  start();
  for (const char* name : {"c", "a", "b", "Room%201"}) touch(name);
  const Json first = get("/admin/agents?class=counter&limit=3");
  EXPECT_EQ(first.at("class"), "Counter");
  ASSERT_EQ(first.at("agents").size(), 3U);
  EXPECT_EQ(first.at("agents")[0].at("name"), "Room%201");
  EXPECT_EQ(first.at("agents")[1].at("name"), "a");
  EXPECT_EQ(first.at("agents")[1].at("state"), "live");
  EXPECT_EQ(first.at("agents")[1].at("version"), "1.0.0");
  EXPECT_GT(first.at("agents")[1].at("created_at_ms"), 0);
  EXPECT_EQ(first.at("next"), "b");
  const Json second = get("/admin/agents?class=Counter&limit=3&after=b");
  ASSERT_EQ(second.at("agents").size(), 1U);
  EXPECT_EQ(second.at("agents")[0].at("name"), "c");
  EXPECT_TRUE(second.at("next").is_null());
  EXPECT_EQ(ask("GET", "/admin/agents?class=nope").error().code, Errc::kNotFound);
}

TEST_F(AdminDeskTest, AgentsOfAClassThatIsNotServedAreListedAllTheSame) {
  start();
  touch("a");
  stop();
  fs::remove(plugins_ / "counter.so");
  start();
  const Json page = get("/admin/agents?class=counter");
  ASSERT_EQ(page.at("agents").size(), 1U);
  EXPECT_EQ(page.at("agents")[0].at("state"), "cold");
  EXPECT_TRUE(get("/admin/classes").at("classes").empty());
}

TEST_F(AdminDeskTest, AColdAgentSaysWhenItWakes) {
  constexpr std::int64_t kIn2100 = 4'102'444'800'000;
  {
    const auto data = storage::DataDirectory::open(config_.server.data).value();
    storage::Directory directory(data.directory_path(), data.directory_vfs());
    directory.record({"Counter", "a"}, 1);
    directory.set_wake({.key = {"Counter", "a"}, .at_ms = kIn2100});
    directory.record({"Counter", "b"}, 1);
    directory.set_wake({.key = {"Counter", "b"}, .at_ms = durable::kNextVersion});
  }
  start();
  EXPECT_EQ(get("/admin/agents/counter/a").at("next_wake_ms"), kIn2100);
  EXPECT_EQ(get("/admin/agents/counter/b").at("next_wake_ms"), nullptr) << "it waits for code";
}

TEST_F(AdminDeskTest, AnEvictedAgentIsColdAndKeepsItsData) {
  start();
  touch("a");
  EXPECT_EQ(dump_json(ask("POST", "/admin/agents/counter/a/evict").value()),
            R"({"evicted":true,"state":"live"})");
  wait_for_state("a", "cold");
  EXPECT_EQ(dump_json(ask("POST", "/admin/agents/counter/a/evict").value()),
            R"({"evicted":false,"state":"cold"})");
  EXPECT_EQ(ask("POST", "/admin/agents/counter/b/evict").error().code, Errc::kNotFound);
  EXPECT_EQ(ask("POST", "/admin/agents/nope/a/evict").error().code, Errc::kNotFound);
  EXPECT_EQ(logger_.count("admin.evict"), 5U) << "each request for a change, and the change";
  EXPECT_EQ(ask("GET", "/admin/agents/counter/b").error().code, Errc::kNotFound);
}

TEST_F(AdminDeskTest, WhatWasDoneIsRecordedAndStaysAfterARestart) {
  start();
  touch("a");
  (void)ask("POST", "/admin/agents/counter/a/evict");
  stop();
  start();
  const Json entries = get("/admin/audit")["entries"];
  std::vector<std::string> events;
  for (const Json& each : entries) events.push_back(each["event"].get<std::string>());
  EXPECT_EQ(events, (std::vector<std::string>{"PluginLoaded", "ServerReady", "AdminEvicted",
                                              "ServerStopping", "PluginLoaded", "ServerReady"}));
  EXPECT_EQ(get("/admin/audit?event=AdminEvicted")["entries"][0]["agent"], "a");
}

TEST_F(AdminDeskTest, NothingOfADestroyedAgentIsLeft) {
  start();
  touch("a");
  touch("b");
  EXPECT_EQ(dump_json(ask("DELETE", "/admin/agents/counter/a").value()), R"({"destroyed":true})");
  EXPECT_TRUE(logger_.contains("admin.destroy"));
  // Its entry goes when it has left memory.
  for (int i = 0; i < 10'000 && get("/admin/agents?class=counter").at("agents").size() > 1; ++i) {
  }
  EXPECT_EQ(ask("GET", "/admin/agents/counter/a").error().code, Errc::kNotFound);
  EXPECT_EQ(ask("DELETE", "/admin/agents/counter/a").error().code, Errc::kNotFound);
  EXPECT_EQ(get("/admin/agents/counter/b").at("state"), "live");
}

TEST_F(AdminDeskTest, CountsTheAgentsOfEachClass) {
  start();
  for (const char* name : {"a", "b", "c"}) touch(name);
  ask("POST", "/admin/agents/counter/a/evict");
  wait_for_state("a", "cold");
  const Json classes = get("/admin/classes").at("classes");
  ASSERT_EQ(classes.size(), 1U);
  EXPECT_EQ(classes[0].at("class"), "Counter");
  EXPECT_EQ(classes[0].at("path"), "/agents/counter");
  EXPECT_EQ(classes[0].at("agents"), 3);
  EXPECT_EQ(classes[0].at("live"), 2);
}

TEST_F(AdminDeskTest, ListsTheMethodsOfAServedClassUnderEitherName) {
  start();
  const Json listed = get("/admin/classes/counter/methods");
  EXPECT_EQ(listed, get("/admin/classes/Counter/methods"));
  EXPECT_EQ(listed.at("class"), "counter");
  const Json& get_method = listed.at("methods").at(1);
  EXPECT_EQ(get_method.at("name"), "get");
  EXPECT_EQ(get_method.at("read_only"), true);
  EXPECT_EQ(get_method.at("description"), "The count.");
  EXPECT_EQ(get_method.at("arguments"), (Json{{"type", "array"}, {"maxItems", 0}}));
  EXPECT_EQ(get_method.at("result"), (Json{{"type", "integer"}}));
  EXPECT_EQ(ask("GET", "/admin/classes/nope/methods").error().code, Errc::kNotFound);
}

TEST_F(AdminDeskTest, ATokenFileThatIsNamedMustBeThere) {
  config_.server.admin.token_file = temporary_.path() / "secret";
  const auto problem = Server::start(config_, logger_);
  ASSERT_FALSE(problem);
  EXPECT_NE(problem.error().message.find("secret"), std::string::npos);
  ASSERT_TRUE(write_file_atomically(temporary_.path() / "secret", "0123456789abcdef\n"));
  start();
  EXPECT_TRUE(ask("GET", "/admin/plugins"));
  EXPECT_TRUE(logger_.contains("admin.token_readable"));
  EXPECT_FALSE(fs::exists(config_.server.data / kAdminTokenFile));
}

TEST_F(AdminDeskTest, AServerThatHasStoppedIsNotFound) {
  start();
  stop();
  EXPECT_EQ(ask("GET", "/admin/plugins").error().code, Errc::kNotFound);
}

// The desk alone, on one loop that the test can hold up.
class HeldUpTest : public OneLoopTest {
 protected:
  HeldUpTest() { loop_.start(); }
  ~HeldUpTest() override {
    desk_.stop();
    stop();
  }

  // Holds the loop up until the promise is kept.
  [[nodiscard]] std::promise<void> hold_up() {
    std::promise<void> go_on;
    loop_.post([held = go_on.get_future().share()] { held.wait(); });
    return go_on;
  }
  // Serves the class Counter.
  void serve_counter() {
    const fs::path directory = temporary_.path() / "plugins";
    fs::create_directory(directory);
    fs::permissions(directory, fs::perms{0755});
    fs::copy_file(testing::built::bundled("counter"), directory / "counter.so");
    const auto report = loader_.load_directories({directory});
    ASSERT_TRUE(report);
    ASSERT_EQ(report->plugins.size(), 1U);
    ASSERT_TRUE(runtime_.classes().add(
        {.segment = "counter", .agent_class = report->plugins[0].classes.at(0), .settings = {}}));
  }

  AuditLog audit_{logger_, clock_, {}, metrics_};
  const config::ServerConfig settings_;
  AdminDesk desk_{runtime_, loader_, data_,     ledger_,
                  audit_,   logger_, settings_, std::chrono::milliseconds(20)};
  const AskedRows rows_{desk_};
};

TEST_F(HeldUpTest, ItsRowsAreThoseOfTheTable) {
  rows_.expect_rows(api::testing::kAdminDeskRows);
}

TEST_F(HeldUpTest, ALoopThatDoesNotAnswerIsNotWaitedForForEver) {
  auto go_on = hold_up();
  EXPECT_EQ(rows_.ask("GET", "/admin/classes").status, 503);
  EXPECT_EQ(rows_.ask("GET", "/admin/plugins").status, 200) << "what needs no loop is answered";
  go_on.set_value();
}

TEST_F(HeldUpTest, OnlyTheFirstAgentOfAPageIsSkippedWhileTheLoopIsSilent) {
  leave_unknown(data_, {"a", "b"});
  auto go_on = hold_up();
  const Json first = rows_.json("GET", "/admin/operations");
  ASSERT_EQ(first["skipped"].size(), 1U);
  EXPECT_EQ(first["skipped"][0]["agent"], "a");
  EXPECT_TRUE(first["operations"].empty());
  ASSERT_TRUE(first["next"].is_string()) << "the next one begins its own page";
  const Json second = rows_.json("GET", "/admin/operations?after=" + text_member(first, "next"));
  ASSERT_EQ(second["skipped"].size(), 1U);
  EXPECT_EQ(second["skipped"][0]["agent"], "b");
  EXPECT_TRUE(second["next"].is_null());
  go_on.set_value();
}

TEST_F(HeldUpTest, AResolveThatComesLateIsRecorded) {
  serve_counter();
  const std::string id = leave_unknown(data_, {"a"});
  audit_.open(temporary_.path() / "audit.db");
  AdminDesk desk(runtime_, loader_, data_, ledger_, audit_, audit_, settings_,
                 std::chrono::milliseconds(20));
  const std::string path = "/admin/operations/Counter/a/" + id;
  auto go_on = hold_up();
  EXPECT_EQ(
      AskedRows(desk)
          .ask("POST", path + "/resolve", R"({"outcome":"completed","note":"seen in their books"})")
          .status,
      503)
      << "nobody waits any more";
  const auto entries = [this] {
    std::promise<AuditLog::Page> promise;
    EXPECT_TRUE(audit_.read({.limit = 10}, [&](AuditLog::Page page) { promise.set_value(page); }));
    return promise.get_future().get().value();
  };
  EXPECT_TRUE(entries().empty());
  go_on.set_value();
  // Visits of an agent take place in order: when this one is answered, so was the resolve. It may
  // have to wait for it longer than the other desk does.
  AdminDesk patient(runtime_, loader_, data_, ledger_, audit_, audit_, settings_,
                    std::chrono::minutes(2));
  EXPECT_EQ(text_member(AskedRows(patient).json("GET", path), "state"), "completed");
  patient.stop();
  const auto kept = entries();
  EXPECT_TRUE(logger_.contains("admin.resolve"));
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept[0].event, "AdminOperationResolved");
  EXPECT_EQ(kept[0].agent, "a");
  EXPECT_NE(kept[0].detail.find("seen in their books"), std::string::npos) << kept[0].detail;
  desk.stop();
  audit_.stop();
}

TEST_F(HeldUpTest, WithoutAReloaderAReloadIsRefused) {
  EXPECT_EQ(rows_.ask("POST", "/admin/plugins/reload").status, 503);
}

TEST_F(HeldUpTest, WhenTooManyReloadsWaitTheNextOneIsRefused) {
  plugins::ClassConfiguration configuration(temporary_.path() / "classes", {}, ledger_);
  plugins::ReloadSettings settings;
  settings.configuration = &configuration;
  settings.watch = false;
  std::promise<void> begun;
  std::promise<void> go_on;
  plugins::PluginReloader reloader({}, loader_, runtime_, clock_, logger_, metrics_,
                                   std::move(settings));
  ASSERT_TRUE(reloader.reload("", [&begun, held = go_on.get_future().share()](const auto&) {
    begun.set_value();
    held.wait();
  }));
  begun.get_future().wait();
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(reloader.reload("", [](const auto&) {})) << i;
  desk_.use(&reloader);
  EXPECT_EQ(rows_.ask("POST", "/admin/plugins/reload").status, 503);
  desk_.use(nullptr);
  go_on.set_value();
}

TEST_F(HeldUpTest, AfterTheStopEverybodyIsToldSo) {
  desk_.stop();
  for (const char* const target : {"/admin/classes", "/admin/plugins", "/admin/agents/counter/a"}) {
    const net::HttpResponse answer = rows_.ask("GET", target);
    EXPECT_EQ(answer.status, 503) << target;
    EXPECT_NE(answer.body.find(R"("code":"closing")"), std::string::npos) << answer.body;
  }
}

TEST_F(HeldUpTest, WhatIsInQuarantineIsListedAndReleased) {
  EXPECT_EQ(rows_.json("GET", "/admin/quarantine"), (Json{{"quarantined", Json::array()}}));
  diagnosis::CrashRecord crash;
  crash.reason = "SIGSEGV";
  crash.call = "message";
  crash.library = "/p/a.so";
  crash.agent_class = "ChatRoom";
  crash.sha256 = "00ff";
  for (crash.time_ms = 1; !ledger_.crashed(crash).is_quarantined; ++crash.time_ms) {
  }
  EXPECT_EQ(rows_.json("GET", "/admin/quarantine")["quarantined"],
            (Json{{{"class", "ChatRoom"},
                   {"library", "/p/a.so"},
                   {"sha256", "00ff"},
                   {"reason", "SIGSEGV"},
                   {"call", "message"},
                   {"since_ms", crash.time_ms}}}));
  const auto release = [this](const std::string& body) {
    return rows_.ask("POST", "/admin/quarantine/release", body).status;
  };
  for (const char* const body : {"", "{}", "[]", R"({"class":1})"})
    EXPECT_EQ(release(body), 400) << body;
  EXPECT_EQ(release(R"({"class":"lobby"})"), 404);
  EXPECT_EQ(release(R"({"class":"chat-room"})"), 503) << "released, but no library has it now";
  EXPECT_EQ(release(R"({"class":"chat-room"})"), 404);
  EXPECT_EQ(logger_.count("admin.release"), 3U);
}

TEST_F(HeldUpTest, APageOfAgentsSaysWhereTheNextOneBegins) {
  storage::Directory directory(data_.directory_path(), data_.directory_vfs());
  directory.record({"Counter", "Room%201"}, 5);
  directory.record({"Counter", "a"}, 6);
  const auto agent = [](const char* name, int created) {
    return Json{{"name", name},           {"created_at_ms", created}, {"state", "cold"},
                {"connections", 0},       {"version", nullptr},       {"working", false},
                {"next_wake_ms", nullptr}};
  };
  EXPECT_EQ(rows_.json("GET", "/admin/agents?class=counter&limit=1"),
            (Json{{"class", "Counter"},
                  {"agents", Json::array({agent("Room%201", 5)})},
                  {"next", "Room%201"}}));
  EXPECT_EQ(
      rows_.json("GET", "/admin/agents?class=counter&after=Room%25201"),
      (Json{{"class", "Counter"}, {"agents", Json::array({agent("a", 6)})}, {"next", nullptr}}));
  EXPECT_EQ(rows_.json("GET", "/admin/agents/Counter/a"), agent("a", 6));
}

TEST_F(HeldUpTest, AClassIsShownWithItsAliasesAndItsRefusal) {
  serve_counter();
  runtime_.classes().set_aliases({{"my-counter", "counter"}});
  Json shown = rows_.json("GET", "/admin/classes")["classes"][0];
  EXPECT_FALSE(text_member(shown, "library").empty());
  shown.erase("library");
  EXPECT_EQ(shown, (Json{{"class", "Counter"},
                         {"path", "/agents/counter"},
                         {"aliases", {"/agents/my-counter"}},
                         {"version", "1.0.0"},
                         {"code", "Counter"},
                         {"refusal", nullptr},
                         {"agents", 0},
                         {"live", 0}}));
}

TEST_F(HeldUpTest, WhatWasDoneIsListed) {
  audit_.open(temporary_.path() / "audit.db");
  audit_.record(LogLevel::kInfo, "admin.evicted", {{"class", "Counter"}, {"agent", "a"}, {"n", 1}});
  audit_.record(LogLevel::kInfo, "server.ready", {});
  Json page = rows_.json("GET", "/admin/audit");
  ASSERT_EQ(page["entries"].size(), 2U);
  EXPECT_EQ(page["next"], page["entries"][1]["id"]);
  EXPECT_GT(page["entries"][0]["at_ms"], 0);
  page["entries"][0].erase("at_ms");
  EXPECT_EQ(page["entries"][0], (Json{{"id", page["entries"][0]["id"]},
                                      {"event", "AdminEvicted"},
                                      {"actor", "administrator"},
                                      {"class", "Counter"},
                                      {"agent", "a"},
                                      {"detail", {{"n", 1}}}}));
  EXPECT_TRUE(page["entries"][1]["agent"].is_null());
  EXPECT_EQ(rows_.json("GET", "/admin/audit?after=7")["next"], 7);
  audit_.stop();
}

TEST_F(HeldUpTest, WhatIsAskedWronglyIsRefused) {
  struct Case {
    std::string method, target, body;
  };
  const Case cases[] = {
      {"POST", "/admin/plugins/reload", "[]"},
      {"POST", "/admin/plugins/take-back", "{}"},
      {"GET", "/admin/agents", ""},
      {"GET", "/admin/agents?class=counter&limit=0", ""},
      {"GET", "/admin/audit?limit=0", ""},
      {"GET", "/admin/operations?agent=a", ""},
      {"POST", "/admin/operations/shop/a/x/resolve", "{}"},
  };
  for (const Case& each : cases)
    EXPECT_EQ(rows_.ask(each.method, each.target, each.body).status, 400) << each.target;
  for (const char* const event : {"admin.reload", "admin.resolve"})
    EXPECT_FALSE(logger_.contains(event)) << event;
}

}  // namespace
}  // namespace hearth::server
