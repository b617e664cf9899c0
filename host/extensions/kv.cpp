#include "extensions/kv.hpp"

#include "base/utf8.hpp"
#include "extensions/abi_call.hpp"
#include "json/json_scanner.hpp"
#include "json/json_text.hpp"
#include "storage/agent_database.hpp"

#include <utility>

namespace hearth::extensions {
namespace {

using storage::Rows;

constexpr std::size_t kMaxKeyBytes = 2048;
constexpr std::size_t kMaxPageBytes = std::size_t{4} << 20;
constexpr std::size_t kEntriesListedByDefault = 100;
constexpr std::size_t kMostEntriesListed = 1000;

bool is_key(std::string_view key) {
  return !key.empty() && key.size() <= kMaxKeyBytes && key.find('\0') == std::string_view::npos &&
         is_valid_utf8(key);
}

Error no_key() {
  return Error{Errc::kInvalidArgument, "a key is 1 to 2048 bytes of UTF-8 without NUL"};
}

// A text that sorts after all keys that begin with `prefix`, and before all later keys. (No byte of
// UTF-8 is 0xff.)
std::string end_of(std::string_view prefix) {
  if (prefix.empty()) return "\xff";
  std::string end(prefix);
  ++end.back();
  return end;
}

}  // namespace

// ---- what it does -------------------------------------------------------------------------------

bool KvExtension::exists() {
  return agent_.database().has_table("cf_agents_kv_usage");
}

std::uint64_t KvExtension::size_of(std::string_view key) {
  if (!exists()) return 0;
  Rows rows = agent_.database()
                  .kept("SELECT length(CAST(value AS BLOB)) FROM cf_agents_kv WHERE key = ?")
                  .query(key);
  return rows.next() ? key.size() + static_cast<std::uint64_t>(rows.integer(0)) : 0;
}

KvUsage KvExtension::usage() {
  if (!exists()) return {};
  Rows rows = agent_.database().kept("SELECT keys, bytes FROM cf_agents_kv_usage").query();
  if (!rows.next()) return {};
  return {.keys = static_cast<std::uint64_t>(rows.integer(0)),
          .bytes = static_cast<std::uint64_t>(rows.integer(1))};
}

void KvExtension::store_usage(const KvUsage& usage) {
  agent_.database()
      .kept("UPDATE cf_agents_kv_usage SET keys = ?, bytes = ?")
      .execute(usage.keys, usage.bytes);
}

Result<std::string> KvExtension::get(std::string_view key) {
  if (!is_key(key)) return no_key();
  if (exists()) {
    Rows rows = agent_.database().kept("SELECT value FROM cf_agents_kv WHERE key = ?").query(key);
    if (rows.next()) return std::string(rows.text(0));
  }
  return Error{Errc::kNotFound, "nothing is kept under this key"};
}

Result<void> check_entry(const KvSettings& limits, std::string_view key, std::string_view json) {
  if (!is_key(key)) return no_key();
  if (json.size() > limits.max_value_bytes) {
    return Error{Errc::kTooLarge,
                 "a value has at most " + std::to_string(limits.max_value_bytes) + " bytes"};
  }
  if (!is_json(json)) return Error{Errc::kInvalidArgument, "a value must be JSON"};
  return {};
}

Result<void> check_usage(const KvSettings& limits, const KvUsage& used) {
  if (used.keys > limits.max_keys) {
    return Error{Errc::kLimitExceeded,
                 "an agent has at most " + std::to_string(limits.max_keys) + " keys"};
  }
  if (used.bytes > limits.max_total_bytes) {
    return Error{Errc::kLimitExceeded, "the keys and values of an agent have at most " +
                                           std::to_string(limits.max_total_bytes) + " bytes"};
  }
  return {};
}

Result<void> KvExtension::put(std::string_view key, std::string_view json) {
  const KvSettings& limits = agent_.settings().kv;
  if (auto checked = check_entry(limits, key, json); checked.has_error()) return checked;
  const std::uint64_t before = size_of(key);
  KvUsage used = usage();
  used.keys += before == 0 ? 1 : 0;
  used.bytes += key.size() + json.size() - before;
  if (auto checked = check_usage(limits, used); checked.has_error()) return checked;
  agent_.database().begin_write();
  if (!exists()) {
    sqlite3& connection = agent_.database().connection();
    storage::Statement(connection,
                       "CREATE TABLE cf_agents_kv(key TEXT PRIMARY KEY NOT NULL, "
                       "value TEXT NOT NULL)")
        .execute();
    storage::Statement(connection,
                       "CREATE TABLE cf_agents_kv_usage(keys INTEGER NOT NULL, "
                       "bytes INTEGER NOT NULL)")
        .execute();
    storage::Statement(connection, "INSERT INTO cf_agents_kv_usage VALUES(0, 0)").execute();
  }
  // Copies: both may lie in a row that the first of these statements ends.
  const std::string its_key(key);
  const std::string its_value(json);
  agent_.database()
      .kept(
          "INSERT INTO cf_agents_kv(key, value) VALUES(?, ?) "
          "ON CONFLICT(key) DO UPDATE SET value = excluded.value")
      .execute(its_key, its_value);
  store_usage(used);
  return {};
}

Result<void> KvExtension::remove(std::string_view key) {
  if (!is_key(key)) return no_key();
  const std::uint64_t before = size_of(key);
  if (before == 0) return Error{Errc::kNotFound, "nothing is kept under this key"};
  const KvUsage used = usage();
  agent_.database().begin_write();
  agent_.database().kept("DELETE FROM cf_agents_kv WHERE key = ?").execute(key);
  store_usage({.keys = used.keys - 1, .bytes = used.bytes - before});
  return {};
}

Result<std::string> KvExtension::list(const KvFilter& filter) {
  std::string entries = "[";
  if (!exists()) return entries + "]";
  const std::string end = end_of(filter.prefix);
  // One bound on each side, so that a page reads only its own rows.
  const bool goes_on = filter.after >= filter.prefix;
  storage::Statement& page =
      goes_on ? agent_.database().kept(
                    "SELECT key, value FROM cf_agents_kv WHERE key > ? AND key < ? "
                    "ORDER BY key LIMIT ?")
              : agent_.database().kept(
                    "SELECT key, value FROM cf_agents_kv WHERE key >= ? AND key < ? "
                    "ORDER BY key LIMIT ?");
  Rows rows = page.query(goes_on ? filter.after : filter.prefix, end, filter.limit);
  while (entries.size() < kMaxPageBytes && rows.next()) {
    entries += entries.size() == 1 ? "{\"key\":" : ",{\"key\":";
    append_json_string(entries, rows.text(0));
    entries += ",\"value\":";
    entries += rows.text(1);
    entries += '}';
  }
  return entries + "]";
}

// ---- its C functions ----------------------------------------------------------------------------

namespace {

// The JSON check covers UTF-8.
Result<void> put_value(AgentContext& it, std::string_view key, AnyBytes value) {
  return it.of<KvExtension>().put(key, value.bytes);
}

Result<std::string> list_values(AgentContext& it, const hearth_kv_filter& filter) {
  const auto texts = texts_of({filter.prefix, filter.after});
  if (!texts) return bad_slice();
  const auto limit = read_limit(filter.limit, kEntriesListedByDefault, kMostEntriesListed);
  if (!limit) return Error{Errc::kInvalidArgument, "at most 1000 values are listed at once"};
  const auto& [prefix, after] = *texts;
  return it.of<KvExtension>().list({prefix, after, *limit});
}

void values_usage(AgentContext& it, std::uint64_t* keys, std::uint64_t* bytes) {
  const KvUsage used = it.of<KvExtension>().usage();
  if (keys != nullptr) *keys = used.keys;
  if (bytes != nullptr) *bytes = used.bytes;
}

}  // namespace

constexpr hearth_kv_v1 kKvTable = {.get = kDoor<&KvExtension::get>,
                                   .put = kDoor<put_value>,
                                   .remove = kDoor<&KvExtension::remove>,
                                   .list = kDoor<list_values>,
                                   .usage = kDoor<values_usage>};

}  // namespace hearth::extensions
