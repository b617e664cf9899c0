// Each command and route of an operator that looks at work and events, against a real server.
#include "json/json.hpp"
#include "process/process_fixture.hpp"
#include "support/built.hpp"

#include <memory>
#include <string>
#include <vector>

namespace hearth::testing {
namespace {

class OperateTest : public ProcessTest {
 protected:
  OperateTest() { install(bundled("counter"), "counter.so"); }

  void start() { server_ = serve_ready(); }
  // What the command prints. It succeeds.
  [[nodiscard]] std::string ask(const std::vector<std::string>& arguments) const {
    const auto command = run(arguments);
    const Ending ending = command->wait();
    EXPECT_EQ(ending, kClean) << command->log();
    return command->out();
  }
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
  EXPECT_NE(line_with(*all, "admin.evict").find(R"("agent":"a")"), std::string::npos);
  const std::string evicted = line_with(*mine, "agent.evicted");
  EXPECT_NE(evicted.find(" debug "), std::string::npos) << evicted;
  server_->kill();
  all->wait_for_log("the server has gone");
  start();
  all->wait_for_log("events are missing here: the server has started again");
  (void)line_with(*all, "server.ready");
  const std::string token = read_file(root_ / "data" / "admin.token", 4096).value();
  for (const auto* const each : {&all, &mine}) {
    (*each)->signal(SIGTERM);
    (void)(*each)->wait();
    EXPECT_EQ((*each)->out().find(token.substr(0, 20)), std::string::npos);
  }
  EXPECT_EQ(mine->out().find("agent=b"), std::string::npos);
  EXPECT_EQ(all->out().find("agent.evicted"), std::string::npos) << "finer than asked for";
  EXPECT_EQ(run({"tail", "--data", "nowhere"})->wait(), kFailed);
}

}  // namespace
}  // namespace hearth::testing
