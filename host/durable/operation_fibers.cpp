#include "durable/operation_fibers.hpp"

#include "base/sha256.hpp"
#include "json/json.hpp"

#include <string>
#include <vector>

namespace hearth::durable {

namespace {

constexpr std::size_t kMaxScopeBytes = 512;
constexpr int kDeepestScope = 32;

}  // namespace

// A child fiber has the same key in each run of its parent, but not the same id: a failed child is
// replaced.
OperationScope OperationFibers::scope_of(const std::string& fiber, int depth) {
  const auto job = jobs_.find(JobKind::kFiber, fiber);
  if (!job || !job->parent || depth >= kDeepestScope) return {fiber, fiber};
  if (const auto kept = jobs_.document(job->seq, JobPart::kScope)) {
    const auto json = parse_json(*kept);
    if (json && json->is_object()) return {text_member(*json, "root"), text_member(*json, "path")};
  }
  OperationScope scope = scope_of(*job->parent, depth + 1);
  scope.unkept = job->seq;
  std::string_view own = job->key ? std::string_view(*job->key) : std::string_view(job->id);
  const std::string of_parent = *job->parent + "/";  // a parent's id may change with its next run
  if (own.starts_with(of_parent)) own.remove_prefix(of_parent.size());
  scope.path += "/";
  scope.path += own;
  if (scope.path.size() > kMaxScopeBytes) scope.path = scope.root + "/" + sha256_hex(scope.path);
  return scope;
}

void OperationFibers::keep(const OperationScope& scope) {
  if (scope.unkept == 0) return;
  jobs_.put(scope.unkept, JobPart::kScope,
            dump_json(Json{{"root", scope.root}, {"path", scope.path}}));
}

// A fiber may outlive the fibers that wait for it.
bool OperationFibers::may_go_on(const std::optional<std::string>& root) {
  return !root || may_go_on(*root, {}) || roots_of_open().contains(*root);
}

bool OperationFibers::may_go_on(const std::string& root, const Roots& of_open) {
  const auto job = jobs_.find(JobKind::kFiber, root);
  return (job && !job->ended_at_ms && !job->dead) || of_open.contains(root);
}

OperationFibers::Roots OperationFibers::roots_of_open() {
  return roots_of("WHERE kind = 2 AND parent IS NOT NULL AND ended_at IS NULL AND dead = 0");
}

OperationFibers::Roots OperationFibers::roots_of_needed() {
  return roots_of(
      "WHERE kind = 2 AND parent IS NOT NULL AND (ended_at IS NULL OR dead <> 0 OR "
      "status = 'interrupted')");
}

OperationFibers::Roots OperationFibers::roots_of(std::string_view where) {
  std::vector<std::string> ids;
  jobs_.each(where, {}, [&](const Job& job) {
    ids.push_back(job.id);
    return true;
  });
  Roots roots;
  for (const std::string& id : ids) roots.insert(scope_of(id).root);
  return roots;
}

}  // namespace hearth::durable
