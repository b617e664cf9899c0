#pragma once
// What the requests of administrators say: values from queries, bodies and paths of /admin.
// Failure of each: kInvalidArgument, with a sentence for the administrator.

#include "base/error.hpp"
#include "storage/audit_store.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::api {

inline constexpr std::size_t kMaxAdminBody = std::size_t{4} << 10;
inline constexpr std::size_t kMaxResolution = std::size_t{64} << 10;

// Names one agent. Neither part is checked yet.
struct AgentName {
  std::string agent_class;  // its name in the code ("ChatRoom"), or its spelling in URLs
  std::string name;         // as it stands in URLs
};

struct AgentPageRequest {
  std::string agent_class;
  std::string after;  // names greater than this; "" from the first
  std::size_t limit = 0;
};

// A search in the ledgers of agents. An empty member does not restrict it.
struct OperationQuery {
  std::string agent_class;
  std::string agent;  // as it stands in URLs; needs `agent_class`
  std::string kind;
  // "running", "interrupted", "unknown"; for one agent also "completed" and "not_executed". Empty:
  // the first three.
  std::vector<std::string> states;
  std::optional<std::int64_t> begun_before_ms;  // Unix time
  std::string after;                            // "next" of the page before
  std::size_t limit = 0;
};

// The outcome that an administrator gives an operation.
struct Resolution {
  bool was_executed = false;
  std::string result;  // JSON, if it was executed; empty: null
  std::string note;
};

// A page of an agent's durable work: server/work_records.hpp.
struct WorkQuery {
  std::string kind;   // empty: all
  std::string state;  // the same
  std::string after;
  std::size_t limit = 0;
};
struct WorkChange {
  std::string outcome;  // JSON; empty: none was given
  std::string note;
};

// The name of an agent's key, as lists print it. In a URL the names of sub-agents may be encoded in
// any way; a root's name is as its URL has it.
[[nodiscard]] std::string name_of_key(std::string_view written);

// Pages have 1 to 1000 items, by default 100.
[[nodiscard]] Result<AgentPageRequest> read_agent_page(std::string_view query);
// The same with or without a class; `after` is the `next` of the page before, as it is.
[[nodiscard]] Result<AgentPageRequest> read_stuck_page(std::string_view query);
[[nodiscard]] Result<OperationQuery> read_operation_query(std::string_view query);
[[nodiscard]] Result<storage::AuditQuery> read_audit_query(std::string_view query);

// {"class":"counter"}; "" for no body. At most kMaxAdminBody are parsed.
[[nodiscard]] Result<std::string> read_named_class(const std::string& body);
[[nodiscard]] Result<WorkQuery> read_work_query(std::string_view query);
// Nothing, or {"outcome":{...},"note":"..."}. At most kMaxResolution are parsed.
[[nodiscard]] Result<WorkChange> read_work_change(const std::string& body);
// {"sql":"select ..."}. At most kMaxResolution are parsed.
[[nodiscard]] Result<std::string> read_sql_text(const std::string& body);

// {"outcome":"completed" or "not_executed","result":...,"note":"..."}. At most kMaxResolution are
// parsed.
[[nodiscard]] Result<Resolution> read_resolution(const std::string& body);

}  // namespace hearth::api
