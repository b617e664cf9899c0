// Each command and route of an operator that looks at work and events, against a real server.
#include "json/json.hpp"
#include "process/agent_client.hpp"
#include "process/operator_fixture.hpp"
#include "support/built.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace hearth::testing {
namespace {

class OperateTest : public OperatorTest {
 protected:
  OperateTest() { install(bundled("counter"), "counter.so"); }

  void start() { server_ = serve_ready(); }
  // Until the command has printed a line with this text.
  static std::string line_with(ServerProcess& command, const std::string& text) {
    for (;;) {
      std::string line = command.wait_for_line();
      if (line.find(text) != std::string::npos) return line;
    }
  }

  std::unique_ptr<ServerProcess> server_;
};

TEST_F(OperateTest, TailShowsWhatHappensAndStaysWhenTheServerRestarts) {
  start();
  EXPECT_EQ(increment(*server_, "a"), R"({"count":1})");
  const auto all = run({"tail", "--json", "--since", "10m"});
  const auto mine = run({"tail", "counter/a", "--level", "debug"});
  const Json ready = parse_json(line_with(*all, "server.ready")).value();
  EXPECT_EQ(ready.at("level"), "info");
  // It is not known when the second one is connected, so there is something to see until then.
  bool is_seen = false;
  for (int i = 0; i < 100 && !is_seen; ++i) {
    (void)ask({"evict", "counter", "a"});
    (void)increment(*server_, "b");
    is_seen = server_->log().find("agent.evicted class=Counter agent=a") != std::string::npos;
    (void)increment(*server_, "a");
    if (i < 5) is_seen = false;
  }
  EXPECT_TRUE(contains(line_with(*all, "admin.evict"), R"("agent":"a")"));
  const std::string evicted = line_with(*mine, "agent.evicted");
  EXPECT_TRUE(contains(evicted, " debug "));
  server_->kill();
  all->wait_for_log("the server has gone");
  start();
  all->wait_for_log("events are missing here: the server has started again");
  (void)line_with(*all, "server.ready");
  const std::string token = read_file(root_ / "data" / "admin.token", 4096).value();
  for (const auto* const each : {&all, &mine}) {
    (*each)->signal(SIGTERM);
    (void)(*each)->wait();
    EXPECT_TRUE(lacks((*each)->out(), token.substr(0, 20)));
  }
  EXPECT_TRUE(lacks(mine->out(), "agent=b"));
  EXPECT_TRUE(lacks(all->out(), "agent.evicted")) << "finer than asked for";
  EXPECT_EQ(say({"tail", "--data", "nowhere"}).ending, kFailed);
}

TEST_F(OperateTest, AnAgentIsNamedAsInUrlsOrAsAPersonTypesIt) {
  put("hearth.yaml", "shards: 2\n");
  put("classes/counter.yaml", "class: counter\naliases: [tally]\n");
  server_ = serve_ready({"--config", "hearth.yaml"});
  EXPECT_EQ(increment(*server_, "a%20b"), R"({"count":1})");
  EXPECT_TRUE(contains(ask({"evict", "counter", "a b"}), "a%20b is"));
  EXPECT_TRUE(contains(ask({"why", "tally/a b"}), "Counter")) << "by an alias";
  for (const char* const agent : {"counter/a b", "tally/a b"}) {
    const auto tail = run({"tail", agent, "--since", "10m"});
    (void)line_with(*tail, "admin.evict");
    tail->signal(SIGTERM);
    (void)tail->wait();
  }
  EXPECT_TRUE(contains(ask({"audit", "--agent", "a b"}), "AdminEvict"));
  (void)increment(*server_, "b");
  EXPECT_TRUE(contains(ask({"agents", "counter", "--limit", "1", "--data", "data"}),
                       "more: hearth agents counter --limit 1 --data data --after a%20b\n"));
  EXPECT_TRUE(contains(refused({"tail", "nothing/a"}), "no class \"nothing\" is served"));
}

TEST_F(OperateTest, AnAnswerThatCannotBeWrittenIsAFailure) {
  start();
  EXPECT_EQ(increment(*server_, "a"), R"({"count":1})");
  ServerProcess why(
      {"sh", "-c", R"(exec "$0" why counter/a --data data >/dev/full)", built::server().string()},
      root_);
  EXPECT_EQ(why.wait(), kFailed);
  why.wait_for_log("cannot be written: No space left on device");
}

class WorkTest : public OperateTest {
 protected:
  WorkTest() {
    install(built::agent("durable-agent"), "durable-agent.so");
    install(built::agent("probe-agent"), "probe-agent.so");
    put("hearth.yaml", "shards: 2\n");
    server_ = serve_ready({"--config", "hearth.yaml"});
  }
  Json call(const std::string& path, const std::string& method,
            const std::string& arguments = "[]") const {
    return AgentClient(*server_, "/agents/" + path).call(method, arguments);
  }
  // The id of the first such piece of work that is in this state, once there is one.
  std::string id_of(const std::string& group, const std::string& agent,
                    const std::string& state) const {
    const Json page = soon([&] { return json({group, "list", agent, "--state", state}); },
                           [](const Json& seen) { return !seen.at("work").empty(); });
    return page.at("work").at(0).at("id").get<std::string>();
  }
  void evict(const std::string& agent_class, const std::string& name) const {
    (void)soon([&] { return json({"evict", agent_class, name}); },
               [](const Json& seen) { return seen.at("state") == "cold"; });
  }
  // The ids of a page, and its `next` or "".
  std::vector<std::string> page_of(const std::string& group, const std::string& agent,
                                   const std::string& after, int limit) const {
    std::vector<std::string> command{group, "list", agent, "--limit", std::to_string(limit)};
    if (!after.empty()) command.insert(command.end(), {"--after", after});
    const Json page = json(command);
    std::vector<std::string> found;
    for (const Json& each : page.at("work")) found.push_back(each.at("id").get<std::string>());
    found.push_back(page.at("next").is_null() ? "" : page.at("next").get<std::string>());
    return found;
  }
  void walk_fibers(const std::string& path, const std::string& agent) const;
  void walk_schedules(const std::string& path, const std::string& agent) const;
  void walk_queue(const std::string& agent) const;
};

void WorkTest::walk_fibers(const std::string& path, const std::string& agent) const {
  call(path, "begin", R"(["long", null, {"ms": 3600000}])");
  const std::string running = id_of("fibers", agent, "running");
  EXPECT_EQ(json({"fibers", "show", agent, running}).at("record").at("name"), "long");
  EXPECT_TRUE(contains(refused({"fibers", "revive", agent, running}), "its state is running"));
  EXPECT_EQ(ask({"fibers", "cancel", agent, running, "--note", "enough"}),
            "fiber " + running + " is aborted\n");
  EXPECT_EQ(json({"fibers", "show", agent, running}).at("error"), "enough");
  EXPECT_TRUE(contains(refused({"fibers", "cancel", agent, running}), "settled already"));
  // One that waits for its next try.
  call(path, "begin", R"(["bad", null, {"steps": 99, "failures": 90, "max_retries": 95}])");
  const std::string waits = id_of("fibers", agent, "pending");
  const auto until_it_waits = [&](const std::vector<std::string>& command) {
    for (int tries = 0; tries < 100; ++tries) {
      const auto tried = run(command);
      if (tried->wait() == kClean) return tried->out();
      EXPECT_TRUE(contains(tried->log(), "its state is running"));
    }
    return std::string("it never waits");
  };
  for (int twice = 0; twice < 2; ++twice)
    EXPECT_TRUE(contains(until_it_waits({"fibers", "revive", agent, waits}), "fiber " + waits));
  EXPECT_EQ(until_it_waits({"fibers", "end", agent, waits, "completed", "--result", "[5]"}),
            "fiber " + waits + " is completed\n");
  EXPECT_EQ(json({"fibers", "show", agent, waits}).at("record").at("result"), Json({5}));
  const Json first = json({"fibers", "list", agent, "--limit", "1"});
  ASSERT_EQ(first.at("work").size(), 1U);
  const Json next = json(
      {"fibers", "list", agent, "--limit", "1", "--after", first.at("next").get<std::string>()});
  EXPECT_EQ(next.at("work").at(0).at("id"), running) << "the newest first";
}

void WorkTest::walk_schedules(const std::string& path, const std::string& agent) const {
  call(path, "later", R"(["note", 86400000, "x"])");
  const Json made = json({"schedules", "list", agent}).at("work");
  ASSERT_EQ(made.size(), 1U);
  const auto id = made.at(0).at("id").get<std::string>();
  EXPECT_EQ(made.at(0).at("name"), "note");
  EXPECT_TRUE(contains(ask({"schedules", "pause", agent, id}), "is paused"));
  EXPECT_TRUE(contains(refused({"schedules", "run", agent, id}), "its state is paused"));
  EXPECT_TRUE(contains(ask({"schedules", "resume", agent, id}), "is waiting"));
  EXPECT_TRUE(contains(ask({"schedules", "run", agent, id}), "schedule " + id));
  (void)soon([&] { return call(path, "journal"); },
             [](const Json& seen) { return dump_json(seen).find('x') != std::string::npos; });
  call(path, "later", R"(["note", 86400000, "y"])");
  const std::string other = id_of("schedules", agent, "waiting");
  EXPECT_EQ(ask({"schedules", "cancel", agent, other}), "schedule " + other + " is removed\n");
  EXPECT_EQ(ask({"schedules", "list", agent}), "none\n");
}

// The agent has a dead letter.
void WorkTest::walk_queue(const std::string& agent) const {
  const std::string letter = id_of("queue", agent, "dead");
  EXPECT_EQ(json({"queue", "show", agent, letter}).at("name"), "hopeless");
  EXPECT_TRUE(contains(ask({"queue", "retry", agent, letter}), "item " + letter));
  EXPECT_EQ(id_of("queue", agent, "dead"), letter) << "it was tried again";
  EXPECT_EQ(ask({"queue", "drop", agent, letter}), "item " + letter + " is removed\n");
  EXPECT_TRUE(contains(refused({"queue", "drop", agent, letter}), "no item has this id"));
}

TEST_F(WorkTest, EachCommandWorksOnLiveAndColdAgentsAndOnSubAgents) {
  const std::string sub = "ProbeAgent/p/s";
  for (const auto& [path, agent] :
       {std::pair<std::string, std::string>("durable-agent/a", "DurableAgent/a"),
        std::pair<std::string, std::string>("probe-agent/p/sub/durable-agent/s",
                                            "DurableAgent/" + sub)}) {
    SCOPED_TRACE(agent);
    walk_fibers(path, agent);
    walk_schedules(path, agent);
    call(path, "push", R"(["hopeless", 0])");
    walk_queue(agent);
  }
  // Cold, and woken by what is due then.
  call("durable-agent/c", "push", R"(["hopeless", 0])");
  (void)id_of("queue", "DurableAgent/c", "dead");
  evict("durable-agent", "c");
  walk_queue("DurableAgent/c");

  call("durable-agent/d", "push", R"(["hopeless", 0])");
  (void)id_of("queue", "DurableAgent/d", "dead");
  evict("durable-agent", "d");
  const Json rows = json({"sql", "DurableAgent/a",
                          "select kind, count(*) as n, x'00ff' as b, null from cf_agents_jobs"});
  EXPECT_EQ(rows.at("columns").at(1), "n");
  EXPECT_EQ(rows.at("rows").at(0).at(2), Json({{"blob", "00ff"}}));
  EXPECT_EQ(rows.at("rows").at(0).at(3), nullptr);
  EXPECT_TRUE(
      contains(ask({"sql", "DurableAgent/" + sub, "select 'a\x1b[2Jb' as t"}), "\\u001b[2J"))
      << "no control byte reaches the terminal";
  const std::string many =
      "with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000) ";
  EXPECT_EQ(json({"sql", "DurableAgent/a", many + "select i from n"}).at("rows").size(), 1000U);
  struct Row {
    const char* sql;
    const char* why;
  };
  for (const Row& row :
       std::vector<Row>{{"delete from cf_agents_jobs", "cf_agent"},
                        {"create table t (x)", "only statements that read"},
                        {"select 1; select 2", "more than one statement"},
                        {"attach 'x' as y", "ATTACH"},
                        {"select zeroblob(2000000), zeroblob(2000000)", "a row is too large"},
                        {"with recursive n(i) as (select 1 union all select i + 1 "
                         "from n) select count(*) from n",
                         "more than 2000 ms"},
                        {"select x from nowhere", "no such table"}}) {
    EXPECT_TRUE(contains(refused({"sql", "DurableAgent/a", row.sql}), row.why)) << row.sql;
  }
  EXPECT_TRUE(contains(refused({"fibers", "list", "DurableAgent/nobody"}), "there is no agent"));
  EXPECT_EQ(say({"fibers", "list", "nobody"}).ending, kBadUsage);
  for (const std::vector<std::string>& empty :
       {std::vector<std::string>{"fibers", "cancel", "DurableAgent/a", ""},
        {"queue", "drop", "DurableAgent/a", ""},
        {"fibers", "show", "DurableAgent/a", ""},
        {"destroy", "DurableAgent", "", "--yes"}})
    EXPECT_EQ(say(empty).ending, kBadUsage) << empty.at(1) << ": a variable that is not set";
  EXPECT_EQ(say({"fibers", "explode", "DurableAgent/a", "x"}).ending, kBadUsage);
  server_->stop();

  // Without its library.
  std::filesystem::remove(root_ / "plugins/durable-agent.so");
  server_ = serve_ready({"--config", "hearth.yaml"});
  const std::string letter = id_of("queue", "DurableAgent/d", "dead");
  EXPECT_EQ(ask({"queue", "drop", "DurableAgent/d", letter}), "item " + letter + " is removed\n");
  EXPECT_EQ(json({"sql", "DurableAgent/d", "select 1 as one"}).at("rows"), Json({{1}}));
  EXPECT_EQ(json({"sql", "DurableAgent/d", "select 1e999, -1e999"}).at("rows"),
            Json::array({Json::array({"Infinity", "-Infinity"})}));
  EXPECT_TRUE(contains(ask({"audit", "-n", "200"}), "AdminWorkChanged", R"("action":"revive")",
                       R"("note":"enough")", R"("outcome":)", "AdminSql", "select 1 as one"));
}

TEST_F(WorkTest, APageGoesOnWhereTheLastOneEndedWhateverHasBecomeOfItsLast) {
  const std::string agent = "DurableAgent/a";
  const auto ids = [&](const std::string& group, const std::string& after, int limit) {
    return page_of(group, agent, after, limit);
  };
  for (const char* const hours : {"1", "2", "3", "4"})
    call("durable-agent/a", "later",
         R"(["note", )" + std::string(hours) + R"(0000000, ")" + hours + R"("])");
  const auto schedules = ids("schedules", "", 100);
  ASSERT_EQ(schedules.size(), 5U);
  // The last one of a page is gone.
  const auto one = ids("schedules", "", 1);
  EXPECT_EQ(one.at(0), schedules.at(0));
  (void)ask({"schedules", "cancel", agent, one.at(0)});
  EXPECT_EQ(ids("schedules", one.at(1), 1).at(0), schedules.at(1));
  const auto two = ids("schedules", one.at(1), 1);
  (void)ask({"schedules", "cancel", agent, two.at(0)});
  EXPECT_EQ(ids("schedules", two.at(1), 100),
            (std::vector<std::string>{schedules.at(2), schedules.at(3), ""}));
  for (int item = 0; item < 3; ++item) call("durable-agent/a", "push", R"(["hopeless", 0])");
  (void)id_of("queue", agent, "dead");
  const auto items = ids("queue", "", 100);
  ASSERT_EQ(items.size(), 4U);
  const auto first = ids("queue", "", 2);
  (void)ask({"queue", "drop", agent, items.at(1)});
  EXPECT_EQ(ids("queue", first.at(2), 100), (std::vector<std::string>{items.at(2), ""}));
  EXPECT_TRUE(contains(refused({"queue", "list", agent, "--after", "item/nothing"}), "after"));
}

TEST_F(WorkTest, AScheduleThatMovesBetweenTwoPagesIsInOneOfThem) {
  const std::string agent = "DurableAgent/a";
  const auto make = [&](const char* how, const char* entry) {
    return call("durable-agent/a", how, "[\"note\", 3600000, \"" + std::string(entry) + "\"]")
        .get<std::string>();
  };
  const std::string moving = make("every", "x");
  const std::string second = make("later", "y");
  const std::string third = make("later", "z");
  const auto first = page_of("schedules", agent, "", 1);
  ASSERT_EQ(first.at(0), moving);
  (void)ask({"schedules", "run", agent, moving});
  (void)soon([&] { return call("durable-agent/a", "journal"); },
             [](const Json& seen) { return !seen.empty(); });
  EXPECT_EQ(page_of("schedules", agent, first.at(1), 100),
            (std::vector<std::string>{second, third, ""}));
}

TEST_F(WorkTest, AnAgentThatStartsOrLeavesIsDestroyedOnceItHas) {
  const std::filesystem::path gate = root_ / "gate";
  install(built::agent("versioned-1"), "versioned.so");
  put("classes/slow-start.yaml", "class: SlowStart\ncode: ProbeAgent\noptions: {start_ms: 3000}\n");
  put("classes/versioned.yaml",
      "class: Versioned\nevict_grace: 5m\noptions: {evict_gate: \"" + gate.string() + "\"}\n");
  server_ = nullptr;
  server_ = serve_ready({"--config", "hearth.yaml"});
  call("versioned/a", "version");
  EXPECT_EQ(json({"evict", "Versioned", "a"}).at("state"), "live");
  const auto destroy = run({"destroy", "Versioned", "a", "--yes"});
  server_->wait_for_log("admin.destroy");
  put("gate", "");
  EXPECT_EQ(destroy->wait(), kClean) << destroy->log();

  AgentClient starts(*server_, "/agents/slow-start/a");
  starts.begin("get");
  (void)soon([&] { return json({"why", "SlowStart/a"}); },
             [](const Json& seen) { return seen.at("state") == "waking"; });
  (void)ask({"destroy", "SlowStart", "a", "--yes"});
}

}  // namespace
}  // namespace hearth::testing
