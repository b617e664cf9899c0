// What agents pass to the host. Their clients may have chosen parts of it.
#include "durable/cron.hpp"
#include "fuzz/targets.hpp"
#include "storage/agent_database.hpp"
#include "storage/agent_key.hpp"
#include "storage/plugin_sql.hpp"
#include "support/temp_directory.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace hearth::fuzz {

void agent_key(std::string_view bytes) {
  const storage::AgentKey key{"Inbox", std::string(bytes)};
  (void)key.root();
  (void)key.own_name();
  if (const auto parent = key.parent()) require(parent->depth() < key.depth(), "up is up");
  const storage::AgentKey child = storage::AgentKey{"Inbox", "a"}.child("Chat", bytes);
  require(child.own_name() == bytes, "a name below is what it was");
  require(child.parent() == storage::AgentKey{"Inbox", "a"}, "a child has its parent");
  require(child.root().depth() == 0 && child.depth() == 1, "a child stands below one");
  require(child.name.starts_with(child.root().prefix_below()), "a child is found below its root");
}

void cron(std::string_view bytes) {
  const auto cron = durable::Cron::parse(bytes);
  if (!cron) return;
  static const auto zone = durable::TimeZone::find("Europe/Berlin");
  for (const std::int64_t from :
       {std::int64_t{0}, std::int64_t{1'774'746'000'000}, std::int64_t{253'402'300'799'000}}) {
    const auto next = cron->next(from, zone ? *zone : durable::TimeZone());
    require(!next || *next > from, "the next time is later");
  }
}

// One statement, in the database of an agent that has a table of its own.
void plugin_sql(std::string_view bytes) {
  const testing::TempDirectory directory("/dev/shm");  // a disk takes longer than all the rest
  const SystemClock clock;
  storage::AgentDatabase database(directory.path() / "a.db", {"Counter", "alice"});
  database.store_state(R"({"kept":true})");
  storage::PluginSqlLimits limits;
  limits.sql_time = std::chrono::milliseconds(20);
  limits.max_value_bytes = std::size_t{64} << 10;
  {
    storage::PluginSql sql(database, clock, limits);
    const auto run = [&sql](std::string_view text) {
      const auto handle = sql.prepare(text);
      if (!handle) return;
      (void)sql.bind_text(*handle, 1, "a");
      for (int rows = 0; rows < 10; ++rows) {
        const auto outcome = sql.step(*handle);
        if (!outcome || *outcome == storage::StepOutcome::kDone) break;
      }
      (void)sql.finalize(*handle);
    };
    run("CREATE TABLE t(a, b)");
    run("INSERT INTO t VALUES('a', 1)");
    try {
      run(bytes);
    } catch (const StorageError&) {
      return;  // the agent would be evicted
    }
    sql.end_turn();
  }
  try {
    database.commit();
  } catch (const StorageError&) {
    return;  // a write that timed out takes the transaction along
  }
  require(database.load_state() == R"({"kept":true})", "the host's tables are not the plugin's");
}

}  // namespace hearth::fuzz
