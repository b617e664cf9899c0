// What a server does with each library of the zoo (plugins/), and that agents of other classes go
// on meanwhile. All agents share one shard, and a client of the others calls all the time. `hearth
// check` rejects all of these libraries but the good ones (tests/plugins/check/check_zoo_test.cpp).
// Here the server serves them without that check.
//
//   kRefused   by the given rule, when the server finds the file; no code of it runs in the server
//   kServed    calls that a good library answers are answered, others get the given error; other
//              classes are not affected
//   kCrashes   the server crashes in the given call, restarts, and names the library and the class
//   kHangs     as kCrashes, once the call has taken hard_hang
//
// A job on the blocking pool has no time limit, so a library whose job hangs is served. The agent
// that waits for the job has its time limit, and other classes have a thread left. A stop of the
// server waits for the job until the deadline of a stop, and then fails (cut_short).

#include "fault/gcc_libraries.hpp"
#include "fault/zoo_fixture.hpp"
#include "support/built.hpp"
#include "support/environment.hpp"

#include <unistd.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <iostream>
#include <ostream>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include <signal.h>

namespace hearth::testing {
namespace {

using std::chrono::milliseconds;

// While the server runs: usually some milliseconds, and 40 where libraries are loaded meanwhile.
constexpr milliseconds kLongestWait{kSanitized ? 3000 : 1000};
constexpr milliseconds kHardHang{1000};
// What a server may need from the fault to its end, beside kHardHang: it writes down what it did.
constexpr milliseconds kLastWords{kSanitized ? 1500 : 300};

enum class Fate { kServed, kCrashes, kHangs };

// What a visitor does more than usual, or less.
enum class Visit {
  kUsual,
  kStay,       // a call that takes longer than a call may
  kMistake,    // SQL that is wrong
  kFirstLife,  // the agents are not looked at again after they were evicted
};

struct Row {
  const char* library;
  Fate fate = Fate::kServed;
  // kServed: a part of the answer that a good library would not give; empty: all answers are good.
  // Otherwise: the reason and the call that server.crashed_before names.
  const char* what = "";
  const char* call = "";
  Visit visit = Visit::kUsual;
  // A stop of the server waits for code of the library that does not return. The server exits after
  // shutdown_grace and 20 s, with status 1, and logs why. Otherwise it must exit cleanly.
  bool cut_short = false;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.library;
}

// A sanitizer finds these, and ends the server with a report.
bool left_out(std::string_view library) {
  for (const std::string_view each : {
           "keeps_a_slice",       // reads memory that was freed
           "leaks_agents",        // memory that is not freed
           "leaks_loads",         // the same
           "calls_for_the_dead",  // reads an agent that it never frees
       }) {
    if (library == each) return kSanitized;
  }
  return false;
}

class ZooTest : public SupervisedTest {
 protected:
  ZooTest() {
    install(bundled("counter"), "counter.so");
    put("hearth.yaml",
        "limits: {soft_hang: 200ms, hard_hang: 1s, call_timeout: 600ms, start_timeout: 1s, "
        "shutdown_grace: 500ms}\n"
        "reload: {quiet_time: 50ms}\n");
    put("classes/zoo.yaml", "class: zoo\nidle_timeout: 200ms\n");
    put("classes/zoo-cpp.yaml", "class: zoo-cpp\nidle_timeout: 200ms\n");
  }

  static std::filesystem::path zoo(const std::string& name) { return built::zoo(name); }
  [[nodiscard]] std::string installed(const std::string& name) const {
    return (root_ / "plugins" / (name + ".so")).string();
  }
  // As `mv` does, while a server looks.
  void drop_in(const std::filesystem::path& library, const std::string& name) const {
    install(library, ".new");
    std::filesystem::rename(root_ / "plugins/.new", installed(name));
  }
  [[nodiscard]] std::unique_ptr<ServerProcess> start() const {
    return supervise({"--config", "hearth.yaml", "--shards", "1", "--log-level", "debug"});
  }

  // The rest of the line of the log that begins so.
  static std::string line(const ServerProcess& server, const std::string& begin) {
    const std::string& log = server.log();
    const std::size_t at = log.find(begin);
    return at == std::string::npos ? "" : log.substr(at, log.find('\n', at) - at);
  }

  std::size_t loaded_ = 0;
  milliseconds restart_{0};  // how long the last start took, without the crash before it

  static void expect_undisturbed(const Neighbour::Account& account, int interruptions,
                                 milliseconds bound) {
    EXPECT_EQ(account.errors, "");
    EXPECT_EQ(account.interruptions, interruptions);
    EXPECT_LT(account.longest_wait, bound);
    std::cout << "  the neighbour: " << account.calls << " calls, the longest wait "
              << account.longest_wait.count() << " ms\n";
  }
};

// ---- those that are refused ---------------------------------------------------------------------

struct Refused {
  const char* library;
  const char* rule;
};

class ZooRefusalTest : public ZooTest {
 protected:
  static void expect_refused(ServerProcess& server, const std::string& file,
                             const std::string& rule) {
    server.wait_for_log("plugin.refused file=" + file + " rule=" + rule);
  }
};

TEST_F(ZooRefusalTest, LibrariesThatAreThereWhenTheServerStarts) {
  constexpr Refused kRows[] = {
      {"wrong_magic", "L2"},      {"smaller_entry", "L2"}, {"no_deinit", "L2"},
      {"undefined_symbol", "L1"}, {"hidden_entry", "E7"},  {"run_path", "E6"},
      {"no_note", "N1"},          {"needs_more", "N6"},    {"two_announced", "L3"},
      {"fail_in_init", "L4"},     {"exit_in_init", "P1"},  {"crash_in_constructor", "P1"},
      {"crash_in_init", "P1"},    {"hang_in_init", "P2"}};
  for (const Refused& row : kRows)
    install(made_for_tests(row.library), std::string(row.library) + ".so");
  const auto supervisor = start();
  Neighbour neighbour(wait_for_server(*supervisor, 1));
  for (const Refused& row : kRows) expect_refused(*supervisor, installed(row.library), row.rule);
  neighbour.be_answered();
  expect_undisturbed(neighbour.stop(), 0, kLongestWait);
  EXPECT_EQ(supervisor->stop(), kClean);
}

TEST_F(ZooRefusalTest, LibrariesThatAreDroppedIn) {
  const auto supervisor = start();
  Neighbour neighbour(wait_for_server(*supervisor, 1));
  for (const Refused& row :
       {Refused{"executable_stack", "E4"}, Refused{"crashes_in_deinit", "P1"},
        Refused{"crashes_in_get_class", "P1"}, Refused{"crashes_in_get_extension", "P1"},
        Refused{"hangs_in_deinit", "P2"}, Refused{"hangs_in_get_class", "P2"},
        Refused{"hangs_in_get_extension", "P2"}, Refused{"handles_a_signal", "L5"},
        Refused{"changes_the_locale", "L5"}, Refused{"changes_the_environment", "L5"},
        Refused{"changes_the_directory", "L5"}, Refused{"changes_the_umask", "L5"},
        Refused{"sets_an_alarm", "L5"}, Refused{"lowers_a_limit", "L5"}}) {
    drop_in(zoo(row.library), row.library);
    expect_refused(*supervisor, installed(row.library), row.rule);
  }
  for (const unsigned percent : {1U, 10U, 50U, 90U, 99U}) {
    const std::filesystem::path cut = temporary_.path() / "cut.so";
    std::filesystem::copy_file(zoo("good"), cut, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(cut, std::filesystem::file_size(cut) * percent / 100);
    drop_in(cut, "cut" + std::to_string(percent));
    expect_refused(*supervisor, installed("cut" + std::to_string(percent)), "E");
  }
  neighbour.be_answered();
  expect_undisturbed(neighbour.stop(), 0, kLongestWait);
  EXPECT_EQ(supervisor->stop(), kClean);
}

// A user who can write a file, or owns it, decides what the server runs.
TEST_F(ZooRefusalTest, AGoodLibraryThatOthersCanWriteOrOwn) {
  const auto supervisor = start();
  Neighbour neighbour(wait_for_server(*supervisor, 1));
  const auto drop = [this](const std::string& name, const auto& prepare) {
    install(zoo("good"), ".new");
    prepare(root_ / "plugins/.new");
    std::filesystem::rename(root_ / "plugins/.new", installed(name));
  };
  using std::filesystem::perms;
  drop("by_group", [](const auto& file) { permissions(file, perms{0664}); });
  expect_refused(*supervisor, installed("by_group"), "F3");
  drop("by_all", [](const auto& file) { permissions(file, perms{0646}); });
  expect_refused(*supervisor, installed("by_all"), "F3");
  if (::geteuid() == 0) {  // only root can give a file away
    drop("by_another", [](const auto& file) { ASSERT_EQ(::chown(file.c_str(), 65534, 0), 0); });
    expect_refused(*supervisor, installed("by_another"), "F2");
  }
  std::filesystem::permissions(root_ / "plugins", perms{0777});
  drop("in_the_open", [](const auto&) {});
  expect_refused(*supervisor, installed("in_the_open"), "F4");
  neighbour.be_answered();
  expect_undisturbed(neighbour.stop(), 0, kLongestWait);
  EXPECT_EQ(supervisor->stop(), kClean);
}

// A table that is longer than this server knows comes from a later version and is no fault. A
// library that cannot be unloaded is no fault either.
TEST_F(ZooTest, LibrariesOfOtherBuildsThatAreServed) {
  const auto supervisor = start();
  Neighbour neighbour(wait_for_server(*supervisor, 1));
  const auto drop = [&](const std::string& name) {
    install(made_for_tests(name), ".new");
    std::filesystem::rename(root_ / "plugins/.new", installed("other"));
    supervisor->wait_for_log("plugin.loaded file=" + installed("other"), ++loaded_);
    supervisor->wait_for_log("reload.done", loaded_);
  };
  drop("larger_entry");
  drop("unique_symbol");
  drop("no_delete");
  drop("plain");
  supervisor->wait_for_log("plugin.pinned file=" + installed("other"));
  neighbour.be_answered();
  expect_undisturbed(neighbour.stop(), 0, kLongestWait);
  EXPECT_EQ(supervisor->stop(), kClean);
}

// ---- those that are served ----------------------------------------------------------------------

class ZooVisitTest : public ZooTest {
 protected:
  // zoo.cpp has no methods and no requests.
  static bool is_cpp(std::string_view library) {
    return library.find("cpp") != std::string_view::npos ||
           library.find("throws") != std::string_view::npos ||
           library.find("thread_local") != std::string_view::npos;
  }

  static bool is_of_no_agent(std::string_view call) { return call == "own_thread"; }

  static void visit(Visitor& visitor, const Row& row) {
    const bool answers = !is_cpp(row.library);
    visitor.connect(visitor.a, "a");
    Visitor::say(visitor.a);
    if (answers) {
      visitor.call(visitor.a, "echo", R"("echo")");
      visitor.call(visitor.a, "wait", R"("waited")");
      visitor.call(visitor.a, "note", "null");
      visitor.request("a");
    }
    visitor.connect(visitor.b, "b");
    Visitor::say(visitor.b);
    if (answers) {
      visitor.call(visitor.b, "echo", R"("echo")");
      visitor.call(visitor.a, "echo", R"("echo")");
    }
    if (row.visit == Visit::kStay) visitor.call(visitor.a, "stay", R"("waited")");
    if (row.visit == Visit::kMistake) visitor.call(visitor.a, "mistake", "");
    visitor.a.reset();
    visitor.b.reset();
  }
  static void visit_again(Visitor& visitor, const Row& row) {
    visitor.connect(visitor.a, "a");
    if (!is_cpp(row.library)) visitor.call(visitor.a, "echo", R"("echo")");
    visitor.a.reset();
  }

  // The server goes on.
  static void expect_served(ServerProcess& supervisor, Visitor& visitor, const Row& row) {
    EXPECT_TRUE(visitor.lives([&row](Visitor& visitor) { visit(visitor, row); }));
    if (row.visit != Visit::kFirstLife) {
      supervisor.wait_for_log("agent.evicted class=Zoo", 2);
      EXPECT_TRUE(visitor.lives([&row](Visitor& visitor) { visit_again(visitor, row); }));
    }
    const std::string& told = visitor.complaints();
    if (row.what[0] == '\0') EXPECT_EQ(told, "");
    EXPECT_NE(told.find(row.what), std::string::npos) << told;
  }
  static void expect_stop(ServerProcess& supervisor, bool cut_short) {
    EXPECT_EQ(supervisor.stop(), cut_short ? kFailed : kClean);
    const bool is_told = !line(supervisor, "server.stop_hangs ").empty();
    EXPECT_EQ(is_told, cut_short) << supervisor.log();
    const std::string who = line(supervisor, "server.stop_waits_for ");
    EXPECT_EQ(who.find("class=Zoo agent=a event_kind=offload") != std::string::npos, cut_short)
        << who;
  }
  // The server ends, at the latest when the agents are evicted, and the next server says why.
  void expect_restart(ServerProcess& supervisor, Visitor& visitor, Neighbour& neighbour,
                      const Row& row, const std::string& file) {
    static_cast<void>(visitor.lives([&row](Visitor& visitor) { visit(visitor, row); }));
    neighbour.move_to(wait_for_server(supervisor, 2));
    restart_ = time_of_start(supervisor);
    // The log says where it hung.
    if (row.fate == Fate::kHangs && !kSanitized) {
      const std::string slow = line(supervisor, "agent.call_slow ");
      EXPECT_NE(slow.find("hang+0x"), std::string::npos) << slow;
      EXPECT_NE(slow.find("zoo-"), std::string::npos) << slow;
    }
    const std::string told = line(supervisor, "server.crashed_before ");
    const std::string agent_class = is_cpp(row.library) ? "ZooCpp" : "Zoo";
    const bool is_at_eviction = std::string_view(row.call) == "destroy";
    for (const std::string& part :
         {"reason=" + std::string(row.what), "library=" + file, "class=" + agent_class + " ",
          // When both are idle, either may be evicted first.
          std::string(is_of_no_agent(row.call) ? " agent=\"\" "
                      : is_at_eviction && told.find(" agent=b ") != std::string::npos
                          ? " agent=b "
                          : " agent=a "),
          "event_kind=" + std::string(row.call) + " "}) {
      EXPECT_NE(told.find(part), std::string::npos) << part << " in " << told;
    }
  }
};

class ZooServedJobsTest : public ZooVisitTest {};
class ZooServedTest : public ZooVisitTest, public ::testing::WithParamInterface<Row> {};
class ZooQuarantineTest : public ZooVisitTest {};

TEST_P(ZooServedTest, HasItsFateAndTheOthersGoOn) {
  const Row& row = GetParam();
  if (is_by_gcc(row.library) && !std::filesystem::exists(zoo(row.library))) {
    ASSERT_FALSE(is_continuous_integration()) << kNoGcc12;
    GTEST_SKIP() << kNoGcc12;
  }
  if (left_out(row.library)) GTEST_SKIP() << "the instruments of this build end the server";
  // About half of them are there at the start; the others come while the server runs.
  const bool is_there = std::string_view(row.library).size() % 2 == 0;
  if (is_there) install(zoo(row.library), "zoo.so");
  const auto supervisor = start();
  const std::uint16_t port = wait_for_server(*supervisor, 1);
  Neighbour neighbour(port);
  neighbour.be_answered();
  if (!is_there) {
    drop_in(zoo(row.library), "zoo");
    supervisor->wait_for_log("reload.done");
  }
  Visitor visitor(port, is_cpp(row.library) ? "zoo-cpp" : "zoo");
  if (row.fate == Fate::kServed) {
    expect_served(*supervisor, visitor, row);
  } else {
    expect_restart(*supervisor, visitor, neighbour, row, installed("zoo"));
  }
  neighbour.be_answered();
  expect_undisturbed(neighbour.stop(), row.fate == Fate::kServed ? 0 : 1,
                     row.fate == Fate::kServed  ? kLongestWait
                     : row.fate == Fate::kHangs ? kHardHang + kLastWords + 2 * restart_
                                                : kLastWords + 2 * restart_);
  expect_stop(*supervisor, row.cut_short);
}

// More hanging jobs than a class may have threads: the rest of the pool is for other classes, and
// the server serves a version without the fault.
TEST_F(ZooServedJobsTest, ThatNeverReturnLeaveAThreadToOtherClassesAndAnotherVersionToTheirAgents) {
  install(zoo("hangs_in_a_job"), "zoo.so");
  install(built::agent("probe-agent"), "probe-agent.so");
  const auto supervisor = start();
  const std::uint16_t port = wait_for_server(*supervisor, 1);
  Neighbour neighbour(port);
  Visitor visitor(port, "zoo");
  Visitor other(port, "probe-agent");
  EXPECT_TRUE(visitor.lives([&other](Visitor& client) {
    client.connect(client.a, "a");
    constexpr int kJobs = 5;
    for (int job = 0; job < kJobs; ++job)
      client.call(client.a, "wait", "the agent did not answer in time");
    client.call(client.a, "echo", R"("echo")");
    other.connect(other.a, "a");
    other.call(other.a, "offload_add", "5", "[2,3]");
  }));
  drop_in(zoo("works_in_a_job"), "zoo");
  supervisor->wait_for_log("reload.done");
  // In a job of its own, which does not wait for the jobs of the earlier version.
  EXPECT_TRUE(visitor.lives([](Visitor& client) { client.call(client.a, "wait", R"("waited")"); }));
  EXPECT_EQ(visitor.complaints() + other.complaints(), "");
  neighbour.be_answered();
  expect_undisturbed(neighbour.stop(), 0, kLongestWait);
  // An operator who does not want to wait for the deadline sends a second signal. A signal that
  // comes together with the first one is no second signal.
  supervisor->signal(SIGTERM);
  supervisor->wait_for_log("server.stopping");
  std::jthread impatience([&supervisor](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      supervisor->signal(SIGINT);
      std::this_thread::sleep_for(milliseconds(20));
    }
  });
  EXPECT_EQ(supervisor->wait(), (Ending{.status = 128 + SIGINT, .signal = 0}));
}

TEST_F(ZooQuarantineTest, ALibraryWhoseThreadsCrashAgainAndAgainIsInQuarantine) {
  install(zoo("crashes_on_its_thread"), "zoo.so");
  const auto supervisor = start();
  std::uint16_t port = 0;
  for (std::size_t life = 1; life <= 4; ++life) {
    port = wait_for_server(*supervisor, life);
    Visitor visitor(port, "zoo");
    EXPECT_FALSE(
        visitor.lives([](Visitor& client) { visit(client, Row{"crashes_on_its_thread"}); }));
  }
  Neighbour neighbour(wait_for_server(*supervisor, 5));
  supervisor->wait_for_log("class.quarantined class=Zoo ");
  supervisor->wait_for_log("class.not_served class=Zoo ");
  neighbour.be_answered();
  expect_undisturbed(neighbour.stop(), 0, kLongestWait);
  EXPECT_EQ(supervisor->stop(), kClean);
}

std::string library_name(const ::testing::TestParamInfo<Row>& each) {
  return each.param.library;
}

INSTANTIATE_TEST_SUITE_P(
    Works, ZooServedTest,
    ::testing::Values(
        Row{"good"}, Row{"good_cpp"}, Row{"joins_its_thread"}, Row{"works_in_a_job"},
        Row{"lazily_bound"}, Row{"no_build_id"}, Row{"odd_dependency"}, Row{"slow_constructor"},
        Row{"leaves_a_thread"}, Row{"changes_things_when_served"}, Row{"leaves_a_descriptor"},
        Row{"leaves_a_key"}, Row{"trusts_the_table"}, Row{"trusts_extensions"},
        Row{"thread_local_destructor"}, Row{"shares_a_variable"}, Row{"leaks_loads"},
        Row{"large_index"}, Row{"throws_in_event"}, Row{"leaks_agents"}, Row{"trusts_options"},
        Row{"is_slow"}, Row{"calls_for_the_dead"}, Row{"accepts_everything"}, Row{"odd_status"},
        Row{"completes_twice"}, Row{"never_completes"}, Row{"refuses_and_completes"},
        Row{"calls_from_a_thread"}, Row{"trusts_tokens"}, Row{"trusts_results"},
        Row{"trusts_arguments"}, Row{"ignores_failed_submits"}, Row{"keeps_a_slice"},
        Row{"gcc_good"}, Row{"gcc_good_cpp"}, Row{"gcc_completes_twice"}, Row{"gcc_keeps_a_slice"},
        Row{"gcc_throws_in_event"}, Row{"gcc_thread_local_destructor"}),
    library_name);

constexpr const char* kLate = "echo: the agent did not answer in time";
INSTANTIATE_TEST_SUITE_P(
    AnswersWithAnError, ZooServedTest,
    ::testing::Values(Row{"never_starts", Fate::kServed, "failed to start", "", Visit::kFirstLife},
                      Row{"no_second_life", Fate::kServed, "failed to start"},
                      Row{"one_agent_for_all", Fate::kServed, kLate, "", Visit::kFirstLife},
                      Row{"remembers_its_thread", Fate::kServed, kLate, "", Visit::kFirstLife}),
    library_name);

// Its agents wait for the job, so they are not idle: the first life is the only one.
INSTANTIATE_TEST_SUITE_P(StopsLate, ZooServedTest,
                         ::testing::Values(Row{"hangs_in_a_job", Fate::kServed,
                                               "wait: the agent did not answer in time; ", "",
                                               Visit::kFirstLife, true}),
                         library_name);

INSTANTIATE_TEST_SUITE_P(
    Ends, ZooServedTest,
    ::testing::Values(
        Row{"crashes_in_create", Fate::kCrashes, "SIGSEGV", "create"},
        Row{"crashes_in_start", Fate::kCrashes, "SIGSEGV", "start"},
        Row{"crashes_in_message", Fate::kCrashes, "SIGSEGV", "message"},
        Row{"crashes_in_result", Fate::kCrashes, "SIGSEGV", "on_result"},
        Row{"crashes_in_cancel", Fate::kCrashes, "SIGSEGV", "on_cancel", Visit::kStay},
        Row{"crashes_in_destroy", Fate::kCrashes, "SIGSEGV", "destroy"},
        Row{"crashes_on_its_thread", Fate::kCrashes, "SIGSEGV", "own_thread"},
        Row{"aborts_on_its_thread", Fate::kCrashes, "SIGABRT", "own_thread"},
        Row{"crashes_in_a_job", Fate::kCrashes, "SIGSEGV", "offload"},
        Row{"exits_in_message", Fate::kCrashes, "exit", "message"},
        Row{"overflows_its_stack", Fate::kCrashes, "SIGSEGV", "message"},
        Row{"trusts_deadlines", Fate::kCrashes, "SIGSEGV", "on_result", Visit::kStay},
        Row{"trusts_the_database", Fate::kCrashes, "SIGABRT", "call", Visit::kMistake},
        Row{"gcc_crashes_in_result", Fate::kCrashes, "SIGSEGV", "on_result"},
        Row{"hangs_in_create", Fate::kHangs, "hung", "create"},
        Row{"hangs_in_start", Fate::kHangs, "hung", "start"},
        Row{"hangs_in_message", Fate::kHangs, "hung", "message"},
        Row{"hangs_in_result", Fate::kHangs, "hung", "on_result"},
        Row{"hangs_in_cancel", Fate::kHangs, "hung", "on_cancel", Visit::kStay},
        Row{"hangs_in_destroy", Fate::kHangs, "hung", "destroy"}),
    library_name);

}  // namespace
}  // namespace hearth::testing
