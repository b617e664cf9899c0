// Which operation a request is about: when two requests are one operation, and the ids.
#include "base/sha256.hpp"
#include "durable/operations.hpp"
#include "json/json.hpp"

#include <array>
#include <cmath>
#include <utility>

namespace hearth::durable {

using storage::Param;
using storage::Rows;

namespace {

// A part of each id, so that another way to make ids never gives the same ones.
constexpr const char* kIdVersion = "hearth.operations/1";

// 500 and 500.0 are one value: integral numbers become integers, as far as doubles are exact.
void make_integral(Json& value) {
  constexpr double kMostExact = 9'007'199'254'740'992;  // 2^53
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::trunc(number) == number && std::abs(number) <= kMostExact)
      value = static_cast<std::int64_t>(number);
  } else if (value.is_structured()) {
    for (Json& each : value) make_integral(each);
  }
}

std::string id_of(const Json& parts) {
  return sha256_hex(dump_json(parts));
}

}  // namespace

Result<Operations::Arguments> Operations::read_arguments(const OperationRequest& request) {
  auto json = parse_json(request.arguments.empty() ? "null" : request.arguments);
  if (!json) return Error{Errc::kInvalidArgument, "the arguments of an operation must be JSON"};
  Arguments arguments;
  arguments.json = dump_json(*json);  // its members are sorted
  make_integral(*json);
  arguments.likeness = id_of(Json::array({std::string(request.kind), dump_json(*json)}));
  return arguments;
}

// Reads it again until it is on disk: the file's first commit writes one.
const std::string& Operations::incarnation() {
  if (incarnation_is_kept_) return incarnation_;
  if (database_.exists()) {
    storage::Statement find(database_.connection(),
                            "SELECT value FROM cf_agents_meta WHERE key = 'incarnation'");
    Rows rows = find.query();
    incarnation_is_kept_ = rows.next();
    if (incarnation_is_kept_) incarnation_ = rows.text(0);
  }
  if (incarnation_.empty()) incarnation_ = make_uuid(random_);
  return incarnation_;
}

// Writes the word in the transaction of the first row whose id has it. If that transaction is the
// file's first, it has just written another word, which this one replaces.
void Operations::keep_incarnation() {
  if (incarnation_.empty() || incarnation_is_kept_) return;
  database_
      .kept(
          "INSERT INTO cf_agents_meta(key, value) VALUES('incarnation', ?) "
          "ON CONFLICT(key) DO UPDATE SET value = excluded.value")
      .execute(std::array{Param(std::string_view(incarnation_))});
  incarnation_is_kept_ = true;
}

std::int64_t Operations::next_n(const Scope& scope, FiberHandle fiber,
                                const std::string& likeness) {
  std::int64_t n = 1;
  if (exists()) {
    Rows rows = database_
                    .kept(
                        "SELECT max(n) FROM cf_agents_operations WHERE scope = ? AND likeness = ? "
                        "AND behind = 1")
                    .query(std::array{Param(std::string_view(scope.path)),
                                      Param(std::string_view(likeness))});
    if (rows.next()) n += storage::integer_or_none(rows, 0).value_or(0);
  }
  const Used& used = used_[fiber];
  if (const auto equal = used.find(likeness); equal != used.end())
    n += static_cast<std::int64_t>(equal->second.size());
  return n;
}

// The existing row, or a new one without a seq.
Result<Operations::Row> Operations::identify(const OperationRequest& request,
                                             const std::string& likeness,
                                             const std::optional<Scope>& scope) {
  if (!request.id.empty()) {
    auto row = find(request.id);
    if (!row) return Error{Errc::kNotFound, "no operation has this id"};
    return *std::move(row);
  }
  if (request.key.empty() && !scope)
    return Error{Errc::kInvalidArgument, "an operation outside of a fiber needs a key"};
  Row wanted;
  wanted.kind = request.kind;
  wanted.likeness = likeness;
  Json what;
  if (!request.key.empty()) {
    wanted.key = std::string(request.key);
    what = Json::array({"key", wanted.kind, *wanted.key});
  } else if (scope) {
    wanted.scope = scope->path;
    wanted.n = next_n(*scope, request.fiber, likeness);
    what = Json::array({"scope", scope->path, likeness, wanted.n});
  }
  const storage::AgentKey& agent = database_.key();
  wanted.id = id_of(
      Json::array({kIdVersion, agent.agent_class, agent.name, incarnation(), std::move(what)}));
  auto row = find(wanted.id);
  return row ? *std::move(row) : std::move(wanted);
}

}  // namespace hearth::durable
