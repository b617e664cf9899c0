#include "api/admin_requests.hpp"

#include "api/query_words.hpp"
#include "json/json.hpp"
#include "protocol/request_query.hpp"
#include "storage/agent_key.hpp"

#include <algorithm>
#include <utility>

namespace hearth::api {
namespace {

std::vector<std::string> words_in(std::string_view list) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    words.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

}  // namespace

std::string name_of_key(std::string_view written) {
  const storage::AgentKey key{.agent_class = {}, .name = std::string(written)};
  if (!key.is_sub_agent()) return key.name;
  const auto next = [&written] {
    const std::string_view part = written.substr(0, written.find('/'));
    written.remove_prefix(std::min(part.size() + 1, written.size()));
    return part;
  };
  const std::string_view root_class = next();
  storage::AgentKey at{.agent_class = std::string(root_class), .name = std::string(next())};
  for (std::string_view part = next(); !written.empty(); part = next())
    at = at.child(part, protocol::percent_decode(next()));
  return at.child({}, protocol::percent_decode(key.name.substr(key.name.rfind('/') + 1))).name;
}

Result<AgentPageRequest> read_stuck_page(std::string_view query) {
  QueryReader in(query);
  return in.result(AgentPageRequest{in.word("class"), in.word("after"), in.limit()});
}

Result<AgentPageRequest> read_agent_page(std::string_view query) {
  auto request = read_stuck_page(query);
  if (!request) return request;
  if (request->agent_class.empty())
    return Error{Errc::kInvalidArgument, "name a class: /admin/agents?class=counter"};
  request->after = name_of_key(request->after);
  return request;
}

Result<OperationQuery> read_operation_query(std::string_view text) {
  QueryReader in(text);
  OperationQuery query{.agent_class = in.word("class"),
                       .agent = in.word("agent"),
                       .kind = in.word("kind"),
                       .states = words_in(in.word("state")),
                       .begun_before_ms = {},
                       .after = in.word("after")};
  if (!in.wrong() && !query.agent.empty() && query.agent_class.empty())
    return Error{Errc::kInvalidArgument, "name the class of the agent, too"};
  query.agent = name_of_key(query.agent);
  query.begun_before_ms = in.number("begun_before_ms");
  query.limit = in.limit();
  return in.result(std::move(query));
}

Result<storage::AuditQuery> read_audit_query(std::string_view text) {
  QueryReader in(text);
  storage::AuditQuery query;
  query.event = in.word("event");
  query.actor = in.word("actor");
  query.agent_class = in.word("class");
  query.agent = in.word("agent");
  query.after = in.number("after").value_or(0);
  query.limit = in.limit();
  if (const auto last = in.number("last", 1, kMaxPage)) {
    query.newest = true;
    query.limit = static_cast<std::size_t>(*last);
  }
  query.since_ms = in.number("since_ms");
  query.until_ms = in.number("until_ms");
  return in.result(std::move(query));
}

Result<std::string> read_named_class(const std::string& body) {
  Error wrong{Errc::kInvalidArgument,
              R"(expected no body, or a JSON object such as {"class":"counter"})"};
  if (body.empty()) return std::string();
  if (body.size() > kMaxAdminBody) return wrong;
  const auto json = parse_client_json(body, 4);
  if (!json || !json->is_object()) return wrong;
  if (json->empty()) return std::string();
  const auto found = json->find("class");
  if (json->size() != 1 || found == json->end() || !found->is_string()) return wrong;
  auto name = found->get<std::string>();
  if (name.empty()) return wrong;
  return name;
}

Result<WorkQuery> read_work_query(std::string_view text) {
  QueryReader in(text);
  return in.result(WorkQuery{in.word("kind"), in.word("state"), in.word("after"), in.limit()});
}

Result<WorkChange> read_work_change(const std::string& body) {
  WorkChange change;
  if (body.empty()) return change;
  Error wrong{Errc::kInvalidArgument,
              R"(expected no body, or a JSON object such as {"note":"..."} or )"
              R"({"outcome":{"status":"completed","result":1}})"};
  if (body.size() > kMaxResolution) return wrong;
  const auto json = parse_client_json(body);
  if (!json || !json->is_object()) return wrong;
  for (const auto& [key, value] : json->items()) {
    if (key == "note" && value.is_string()) {
      change.note = value.get<std::string>();
    } else if (key == "outcome" && value.is_object()) {
      change.outcome = dump_json(value);
    } else {
      return wrong;
    }
  }
  return change;
}

Result<std::string> read_sql_text(const std::string& body) {
  const auto json = body.size() > kMaxResolution ? Result<Json>(Json()) : parse_client_json(body);
  if (json && json->is_object() && json->size() == 1 && json->contains("sql") &&
      json->at("sql").is_string())
    return json->at("sql").get<std::string>();
  return Error{Errc::kInvalidArgument, R"(expected a JSON object such as {"sql":"select 1"})"};
}

Result<Resolution> read_resolution(const std::string& body) {
  Error wrong{Errc::kInvalidArgument,
              R"(expected a JSON object such as {"outcome":"completed","result":1,"note":"..."} )"
              R"(or {"outcome":"not_executed","note":"..."})"};
  if (body.size() > kMaxResolution)
    return Error{Errc::kInvalidArgument, "a resolution, its result included, has at most " +
                                             std::to_string(kMaxResolution) + " bytes"};
  const auto json = parse_client_json(body);
  if (!json || !json->is_object()) return wrong;
  Resolution how;
  bool has_outcome = false;
  for (const auto& [key, value] : json->items()) {
    if (key == "outcome" && (value == "completed" || value == "not_executed")) {
      has_outcome = true;
      how.was_executed = value == "completed";
    } else if (key == "note" && value.is_string()) {
      how.note = value.get<std::string>();
    } else if (key == "result") {
      how.result = dump_json(value);
    } else {
      return wrong;
    }
  }
  if (!has_outcome || (!how.was_executed && !how.result.empty())) return wrong;
  return how;
}

}  // namespace hearth::api
