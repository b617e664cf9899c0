// The memory of an idle agent's open database, printed and bounded.

#include "base/clock.hpp"
#include "storage/agent_database.hpp"
#include "storage/plugin_sql.hpp"
#include "support/temp_directory.hpp"

#include <unistd.h>

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <malloc.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HEARTH_OTHER_ALLOCATOR 1
#endif
#endif

// A sanitizer's allocator would be measured instead.
#ifndef HEARTH_OTHER_ALLOCATOR

namespace hearth::storage {
namespace {

constexpr std::size_t kOpenAgents = 40;
constexpr std::size_t kKiB = 1024;

std::size_t heap_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

struct OpenAgent {
  explicit OpenAgent(const std::filesystem::path& path, std::string name, const Clock& clock)
      : database(path, {"Counter", std::move(name)}), sql(database, clock) {}

  AgentDatabase database;
  PluginSql sql;
};

class AgentDatabaseMemoryTest : public ::testing::Test {
 protected:
  // Opens agents that do some work each, and tells what each one costs when all are idle.
  template <class Work>
  std::size_t heap_of_an_idle_agent(const char* what, Work work) {
    std::vector<std::unique_ptr<OpenAgent>> agents;
    agents.reserve(kOpenAgents);
    work(make_agent());  // what the library allocates once
    const std::size_t heap_before = heap_bytes();
    const std::size_t resident_before = resident_bytes();
    for (std::size_t n = 0; n < kOpenAgents; ++n) {
      agents.push_back(make_agent());
      work(agents.back());
    }
    const std::size_t busy = (heap_bytes() - heap_before) / kOpenAgents;
    for (const auto& agent : agents) {
      agent->sql.release_memory();
      agent->database.release_memory();
    }
    const std::size_t idle = (heap_bytes() - heap_before) / kOpenAgents;
    ::malloc_trim(0);
    const std::size_t resident = (resident_bytes() - resident_before) / kOpenAgents;
    std::printf("%s: heap %zu bytes in use, %zu idle; resident %zu idle\n", what, busy, idle,
                resident);
    return idle;
  }

  std::unique_ptr<OpenAgent> make_agent() {
    const std::string name = std::to_string(++agents_made_);
    return std::make_unique<OpenAgent>(temp_.path() / (name + ".db"), name, clock_);
  }

  const testing::TempDirectory temp_;
  const SystemClock clock_;
  int agents_made_ = 0;
};

TEST_F(AgentDatabaseMemoryTest, AnIdleAgentWithStateTakesLessThan32KiBOfHeap) {
  const std::size_t bytes = heap_of_an_idle_agent(
      "an open agent with state", [](const std::unique_ptr<OpenAgent>& agent) {
        for (int n = 0; n < 10; ++n) {
          agent->database.store_state("{\"count\":" + std::to_string(n) + "}");
          agent->database.commit();
        }
      });
  EXPECT_GT(bytes, kKiB) << "nothing was measured";
  EXPECT_LT(bytes, 32 * kKiB);
}

TEST_F(AgentDatabaseMemoryTest, AnIdleAgentWithTablesTakesLessThan48KiBOfHeap) {
  const std::size_t bytes = heap_of_an_idle_agent(
      "an open agent with state and a table", [](const std::unique_ptr<OpenAgent>& agent) {
        for (const char* sql :
             {"CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, a TEXT, b)",
              "CREATE INDEX IF NOT EXISTS i ON t(a)", "INSERT INTO t(a, b) VALUES('x', 1)",
              "SELECT * FROM t WHERE a = 'x'"}) {
          const auto handle = agent->sql.prepare(sql);
          ASSERT_TRUE(handle);
          ASSERT_TRUE(agent->sql.step(*handle));
          ASSERT_TRUE(agent->sql.finalize(*handle));
        }
        agent->database.store_state("1");
        agent->database.commit();
      });
  EXPECT_GT(bytes, kKiB) << "nothing was measured";
  EXPECT_LT(bytes, 48 * kKiB);
}

}  // namespace
}  // namespace hearth::storage

#endif  // HEARTH_OTHER_ALLOCATOR
