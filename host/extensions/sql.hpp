#pragma once
// hearth.sql/1: the host's side.

#include "extensions/agent_context.hpp"
#include "storage/plugin_sql.hpp"

#include <hearth/ext/sql.h>

namespace hearth::extensions {

// The statements and savepoints of one agent.
//
// Threads  As AgentContext.
class SqlExtension final : public AgentExtension {
 public:
  explicit SqlExtension(AgentContext& agent);

  [[nodiscard]] storage::PluginSql& sql() { return sql_; }

  void end_turn() override { sql_.end_turn(); }
  void trim(Trim what) override {
    if (what == Trim::kAll) return sql_.release_memory();
    sql_.release_unused();
  }
  [[nodiscard]] bool in_transaction() const override { return sql_.has_savepoints(); }

 private:
  storage::PluginSql sql_;
};

extern const hearth_sql_v1 kSqlTable;

}  // namespace hearth::extensions
