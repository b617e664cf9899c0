#include "extensions/kv_storage.hpp"

#include "extensions/kv.hpp"
#include "json/json.hpp"
#include "storage/agent_database.hpp"
#include "storage/statement.hpp"

#include <utility>

namespace hearth::extensions {
namespace {

// A savepoint of the host's own in the agent's transaction; rolled back if it is not kept.
class PatchSavepoint {
 public:
  explicit PatchSavepoint(storage::AgentDatabase& database) : database_(database) {
    database_.begin_write();
    run("SAVEPOINT hearth_patch");
  }
  void keep() { run("RELEASE hearth_patch"); }
  void undo() {
    run("ROLLBACK TO hearth_patch");
    run("RELEASE hearth_patch");
    database_.forget_schema();
  }

 private:
  void run(std::string_view sql) { storage::Statement(database_.connection(), sql).execute(); }

  storage::AgentDatabase& database_;
};

Result<Json> read_patch(std::string_view patch) {
  auto parsed = parse_client_json(patch);
  if (parsed && !parsed->is_object())
    return Error{Errc::kInvalidArgument, "a patch of the storage must be a JSON object"};
  return parsed;
}

Result<void> patch_value(KvExtension& kv, const std::string& key, const Json& patch) {
  if (patch.is_null()) {
    auto removed = kv.remove(key);
    if (removed.has_error() && removed.error().code != Errc::kNotFound) return removed;
    return {};
  }
  Json value;
  if (const auto old = kv.get(key)) {
    auto parsed = parse_host_json(*old);
    if (!parsed) return parsed.error();  // a merge into invalid JSON would replace it
    value = *std::move(parsed);
  }
  value.merge_patch(patch);
  return kv.put(key, dump_json(value));
}

}  // namespace

Result<std::string> storage_page(AgentContext& agent, std::string_view after, std::size_t limit) {
  const auto listed = agent.of<KvExtension>().list({.after = after, .limit = limit + 1});
  if (!listed) return listed.error();
  auto entries = parse_host_json(*listed);
  if (!entries) return entries.error();
  Json storage = Json::object();
  Json next = nullptr;
  std::string last;
  for (Json& entry : *entries) {
    if (storage.size() == limit) {
      next = last;
      break;
    }
    last = text_member(entry, "key");
    storage[last] = std::move(entry["value"]);
  }
  // The page may have ended at its limit of bytes.
  if (next.is_null() && !last.empty() &&
      agent.of<KvExtension>().list({.after = last, .limit = 1}).value() != "[]")
    next = last;
  return dump_json({{"storage", std::move(storage)}, {"next", std::move(next)}});
}

Result<void> check_first_patch(const KvSettings& limits, std::string_view patch) {
  const auto parsed = read_patch(patch);
  if (!parsed) return parsed.error();
  KvUsage used;
  for (const auto& [key, change] : parsed->items()) {
    if (change.is_null()) continue;
    Json value;
    value.merge_patch(change);
    const std::string json = dump_json(value);
    if (auto checked = check_entry(limits, key, json); checked.has_error()) return checked;
    ++used.keys;
    used.bytes += key.size() + json.size();
  }
  return check_usage(limits, used);
}

Result<void> patch_storage(AgentContext& agent, std::string_view patch) {
  const auto parsed = read_patch(patch);
  if (!parsed) return parsed.error();
  KvExtension& kv = agent.of<KvExtension>();
  PatchSavepoint savepoint(agent.database());
  // First remove keys: that makes room for the others.
  for (const bool removes : {true, false}) {
    for (const auto& [key, value] : parsed->items()) {
      if (value.is_null() != removes) continue;
      if (const auto done = patch_value(kv, key, value); done.has_error()) {
        savepoint.undo();
        return done;
      }
    }
  }
  savepoint.keep();
  return {};
}

}  // namespace hearth::extensions
