#include "durable/operation_identity.hpp"

#include "base/sha256.hpp"
#include "json/json.hpp"

#include <cmath>
#include <utility>

namespace hearth::durable {

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

// Reads it again until it is on disk: the file's first commit writes one.
const std::string& OperationIdentity::incarnation() {
  if (incarnation_is_kept_) return incarnation_;
  if (storage::AgentDatabase& database = table_.database(); database.exists()) {
    storage::Statement find(database.connection(),
                            "SELECT value FROM cf_agents_meta WHERE key = 'incarnation'");
    storage::Rows rows = find.query();
    incarnation_is_kept_ = rows.next();
    if (incarnation_is_kept_) incarnation_ = rows.text(0);
  }
  if (incarnation_.empty()) incarnation_ = make_uuid(random_);
  return incarnation_;
}

// Writes the word in the transaction of the first row whose id has it. If that transaction is the
// file's first, it has just written another word, which this one replaces.
void OperationIdentity::keep_incarnation() {
  if (incarnation_.empty() || incarnation_is_kept_) return;
  table_.run(
      "INSERT INTO cf_agents_meta(key, value) VALUES('incarnation', ?) "
      "ON CONFLICT(key) DO UPDATE SET value = excluded.value",
      incarnation_);
  incarnation_is_kept_ = true;
}

std::int64_t OperationIdentity::next_n(std::string_view path, FiberHandle fiber,
                                       const std::string& likeness) {
  const std::int64_t behind = table_.number(
      "SELECT max(n) FROM cf_agents_operations WHERE scope = ? AND likeness = ? AND behind = 1",
      path, likeness);
  const Used& used = used_[fiber];
  const auto equal = used.find(likeness);
  return behind + 1 + (equal == used.end() ? 0 : static_cast<std::int64_t>(equal->second.size()));
}

Result<IdentifiedOperation> OperationIdentity::identify(const OperationRequest& request) {
  auto json = parse_json(request.arguments.empty() ? "null" : request.arguments);
  if (!json) return Error{Errc::kInvalidArgument, "the arguments of an operation must be JSON"};
  IdentifiedOperation it{.row = {}, .arguments = dump_json(*json)};  // its members are sorted
  make_integral(*json);
  OperationRow& row = it.row;
  row.kind = request.kind;
  row.likeness = id_of(Json::array({row.kind, dump_json(*json)}));
  if (request.fiber != 0) {
    const Job* const fiber = fibers_.find_running(request.fiber);
    if (fiber == nullptr) return Error{Errc::kNotFound, "the fiber has ended"};
    it.scope = fibers_.scope_of(fiber->id);
    std::erase_if(used_,
                  [&](const auto& each) { return fibers_.find_running(each.first) == nullptr; });
  }
  if (request.id.empty()) {
    Json what;
    if (!request.key.empty()) {
      row.key = std::string(request.key);
      what = Json::array({"key", row.kind, *row.key});
    } else if (it.scope) {
      row.scope = it.scope->path;
      row.n = next_n(*row.scope, request.fiber, row.likeness);
      what = Json::array({"scope", *row.scope, row.likeness, row.n});
    } else {
      return Error{Errc::kInvalidArgument, "an operation outside of a fiber needs a key"};
    }
    const storage::AgentKey& agent = table_.database().key();
    row.id = id_of(
        Json::array({kIdVersion, agent.agent_class, agent.name, incarnation(), std::move(what)}));
  }
  auto found = table_.find(request.id.empty() ? std::string_view(row.id) : request.id);
  if (!found) {
    if (!request.id.empty()) return Error{Errc::kNotFound, "no operation has this id"};
    return it;
  }
  if (found->likeness != row.likeness)
    return Error{Errc::kConflict, "the operation of this key has other arguments"};
  row = *std::move(found);
  return it;
}

void OperationIdentity::use(FiberHandle fiber, std::string_view likeness, std::int64_t seq) {
  if (fiber == 0 || fibers_.find_running(fiber) == nullptr) return;
  used_[fiber][std::string(likeness)].insert(seq);
}

void OperationIdentity::checkpointed(std::string_view fiber) {
  for (auto& [handle, used] : used_) {
    const Job* const running = fibers_.find_running(handle);
    if (running == nullptr || running->id != fiber) continue;
    for (const auto& [likeness, rows] : used) {
      for (const std::int64_t seq : rows) {
        table_.run("UPDATE cf_agents_operations SET behind = 1 WHERE seq = ? AND behind = 0", seq);
      }
    }
    used.clear();
  }
}

}  // namespace hearth::durable
