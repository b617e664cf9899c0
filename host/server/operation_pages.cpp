#include "server/operation_pages.hpp"

#include "durable/operations.hpp"
#include "extensions/operations.hpp"
#include "server/agent_visits.hpp"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace hearth::server {
namespace {

using durable::OperationState;

constexpr std::array kAllStates = {OperationState::kRunning, OperationState::kInterrupted,
                                   OperationState::kCompleted, OperationState::kNotExecuted,
                                   OperationState::kUnknown};
constexpr std::uint32_t kOpen = static_cast<std::uint32_t>(OperationState::kRunning) |
                                static_cast<std::uint32_t>(OperationState::kInterrupted) |
                                static_cast<std::uint32_t>(OperationState::kUnknown);

Result<std::uint32_t> states_of(const std::vector<std::string>& words) {
  std::uint32_t states = 0;
  for (const std::string& word : words) {
    const std::uint32_t before = states;
    for (const OperationState state : kAllStates) {
      if (word == to_string(state)) states |= static_cast<std::uint32_t>(state);
    }
    if (states == before)
      return Error{Errc::kInvalidArgument,
                   "state is one of running, interrupted, completed, not_executed, unknown, each "
                   "once"};
  }
  return states == 0 ? kOpen : states;
}

// What to list of each agent.
Result<durable::OperationFilter> filter_of(const api::OperationQuery& query, bool is_of_one_agent) {
  const auto states = states_of(query.states);
  if (!states) return states.error();
  if (!is_of_one_agent && (*states & ~kOpen) != 0)
    return Error{Errc::kInvalidArgument,
                 "completed and not_executed operations are listed of one agent: name its class "
                 "and the agent"};
  durable::OperationFilter filter;
  filter.states = *states;
  filter.begun_before_ms = query.begun_before_ms;
  filter.without_documents = true;
  return filter;
}

// The position behind this operation of the agent; without an operation, behind the agent.
struct OperationCursor {
  storage::AgentKey key;
  std::string id;
};

// "Shop/<id>/a": neither a class nor an id has a slash.
std::string text_of(const storage::AgentKey& key, const std::string& id) {
  return key.agent_class + '/' + id + '/' + key.name;
}
std::optional<OperationCursor> read_cursor(const std::string& text) {
  if (text.empty()) return OperationCursor{};
  const std::size_t first = text.find('/');
  const std::size_t second = first == std::string::npos ? first : text.find('/', first + 1);
  if (second == std::string::npos) return std::nullopt;
  return OperationCursor{{text.substr(0, first), text.substr(second + 1)},
                         text.substr(first + 1, second - first - 1)};
}

// Adds the records of a JSON array, each with its agent. Returns the id of the last one.
std::string add_records(const storage::AgentKey& key, const std::string& array, Json& all) {
  std::string id;
  auto records = parse_host_json(array);
  if (!records || !records->is_array()) return id;
  for (Json& record : *records) {
    id = record.value("id", "");
    record["class"] = key.agent_class;
    record["agent"] = key.name;
    all.push_back(std::move(record));
  }
  return id;
}

// The agents to look at: up to one more than a page looks at.
std::vector<storage::AgentKey> agents_of(storage::Directory& directory,
                                         const std::string& agent_class,
                                         const std::optional<storage::AgentKey>& agent,
                                         const OperationCursor& cursor) {
  if (agent) return {*agent};
  std::vector<storage::AgentKey> keys;
  if (!cursor.id.empty()) keys.push_back(cursor.key);
  for (auto& each : directory.with_operations(agent_class, cursor.key, kMostAgentsOfAPage + 1))
    keys.push_back(std::move(each));
  return keys;
}

// Lists the operations of the kind that match the filter, behind the operation `behind`. If that
// was settled and removed meanwhile, lists from the first one. Owns its texts: the visit may take
// place after the request has timed out.
auto list_behind(const durable::OperationFilter& fits, std::string kind, std::string behind) {
  return [fits, kind = std::move(kind),
          behind = std::move(behind)](extensions::AgentContext& visited) -> Result<std::string> {
    durable::OperationRecords& records = visited.work().operations().records();
    durable::OperationFilter filter = fits;
    filter.kind = kind;
    if (records.inspect(behind)) filter.after = behind;
    return records.list(filter);
  };
}

}  // namespace

Result<Json> operation_page(runtime::Runtime& runtime, storage::Directory& directory,
                            const api::OperationQuery& query, const std::string& agent_class,
                            const std::optional<storage::AgentKey>& agent,
                            std::chrono::steady_clock::time_point until) {
  auto filter = filter_of(query, agent.has_value());
  if (!filter) return filter.error();
  const auto cursor = read_cursor(query.after);
  if (!cursor) return Error{Errc::kInvalidArgument, "after is the `next` of a page"};
  Json operations = Json::array();
  Json skipped = Json::array();
  const auto page = [&](const std::string& next) {
    return Json{{"operations", std::move(operations)},
                {"skipped", std::move(skipped)},
                {"next", next.empty() ? Json() : Json(next)}};
  };
  std::string behind = cursor->id;
  const auto keys = agents_of(directory, agent_class, agent, *cursor);
  const std::size_t most = std::min(keys.size(), kMostAgentsOfAPage);
  const auto is_late = [until] { return std::chrono::steady_clock::now() >= until; };
  std::size_t place = 0;
  bool is_first = true;  // visit of this page
  // Behind the last operation of the page and the skipped agents.
  const auto so_far = [&] {
    return behind.empty() ? text_of(keys[place - 1], "") : text_of(keys[place], behind);
  };
  while (place < most) {
    const storage::AgentKey& key = keys[place];
    if (!is_first && is_late()) return page(so_far());
    filter->limit = query.limit - operations.size();
    const auto records = visit_agent(runtime, key, list_behind(*filter, query.kind, behind), until);
    if (!records) {
      // It may have had too little time: the next page begins with it.
      if (!is_first && is_late()) return page(so_far());
      skipped.push_back(
          {{"class", key.agent_class}, {"agent", key.name}, {"reason", records.error().message}});
    } else {
      const std::string last = add_records(key, *records, operations);
      if (operations.size() >= query.limit) return page(text_of(key, last));
      if (!last.empty() && durable::OperationRecords::is_cut_short(*records)) {
        behind = last;  // the same agent again
        is_first = false;
        continue;
      }
    }
    is_first = false;
    behind.clear();
    ++place;
  }
  return page(most < keys.size() ? text_of(keys[most - 1], "") : std::string());
}

}  // namespace hearth::server
