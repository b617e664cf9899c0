#pragma once
// An agent's database and the plugin's SQL on it, with a clock that advances at each look.

#include "storage/agent_database.hpp"
#include "storage/one_line_sql.hpp"
#include "storage/plugin_sql.hpp"
#include "storage/statement.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::storage {

// Each look at it takes a millisecond, so a long statement reaches any limit.
class TickingClock final : public Clock {
 public:
  [[nodiscard]] SteadyTime steady_now() const override {
    return now_ += std::chrono::milliseconds(1);
  }
  [[nodiscard]] WallTime wall_now() const override { return {}; }

 private:
  mutable SteadyTime now_{std::chrono::hours(1)};
};

class PluginSqlTest : public ::testing::Test {
 protected:
  PluginSqlTest() { start({}); }

  void start(PluginSqlLimits limits) {
    sql_.reset();
    sql_.emplace(database_, clock_, limits);
  }

  StatementHandle prepare(std::string_view text) {
    const Result<StatementHandle> handle = sql_->prepare(text);
    EXPECT_TRUE(handle) << text << ": " << handle.error().message;
    return handle ? *handle : StatementHandle{};
  }

  Result<void> run(std::string_view text) {
    const Result<StatementHandle> handle = sql_->prepare(text);
    if (!handle) return handle.error();
    for (;;) {
      const Result<StepOutcome> outcome = sql_->step(*handle);
      if (outcome && *outcome == StepOutcome::kRow) continue;
      (void)sql_->finalize(*handle);
      if (!outcome) return outcome.error();
      return {};
    }
  }

  // Each must succeed.
  void run_all(std::initializer_list<std::string_view> texts) {
    for (const std::string_view text : texts) run(text).value();
  }

  std::int64_t ask(std::string_view text) {
    const StatementHandle handle = prepare(text);
    EXPECT_EQ(*sql_->step(handle), StepOutcome::kRow) << text;
    const std::int64_t answer = *sql_->column_int64(handle, 0);
    EXPECT_TRUE(sql_->finalize(handle));
    return answer;
  }

  std::int64_t count() { return ask("SELECT count(*) FROM t"); }

  // The answer from committed data only, as after a kill of the process.
  [[nodiscard]] std::int64_t ask_committed(std::string_view text) const {
    const std::filesystem::path copy = temp_.path() / "killed.db";
    for (const char* part : {"", "-wal"}) {
      std::filesystem::copy_file(path_.string() + part, copy.string() + part,
                                 std::filesystem::copy_options::overwrite_existing);
    }
    AgentDatabase killed(copy, database_.key());
    return ask_integer(killed.connection(), text);
  }

  const testing::TempDirectory temp_;
  const TickingClock clock_;
  const std::filesystem::path path_ = temp_.path() / "a.db";
  AgentDatabase database_{path_, {"Counter", "alice"}};
  std::optional<PluginSql> sql_;
};

}  // namespace hearth::storage
