// The part of Directory that is about objects.
#include "storage/directory.hpp"

#include <array>

namespace hearth::storage {
namespace {

constexpr std::string_view kObjectColumns =
    "SELECT class, name, uuid, created_at, last_active_at FROM objects ";

ObjectEntry object_of(const Rows& rows) {
  return {.key = {std::string(rows.text(0)), std::string(rows.text(1))},
          .uuid = std::string(rows.text(2)),
          .created_at_ms = rows.integer(3),
          .last_active_ms = rows.integer(4)};
}

}  // namespace

bool Directory::record_object(const AgentKey& key, std::string_view uuid, std::int64_t now_ms) {
  if (object(key)) return false;
  Statement insert(connection_.handle(),
                   "INSERT INTO objects(class, name, uuid, created_at, last_active_at) "
                   "VALUES(?1, ?2, ?3, ?4, ?4) ON CONFLICT DO NOTHING");
  const std::array params{Param(key.agent_class), Param(key.name), Param(uuid), Param(now_ms)};
  return insert.execute(params) > 0;
}

void Directory::note_active(const AgentKey& key, std::int64_t at_ms) {
  Statement note(connection_.handle(),
                 "UPDATE objects SET last_active_at = ?3 WHERE class = ?1 AND name = ?2");
  const std::array params{Param(key.agent_class), Param(key.name), Param(at_ms)};
  note.execute(params);
}

std::optional<ObjectEntry> Directory::object(const AgentKey& key) {
  Statement find(connection_.handle(),
                 std::string(kObjectColumns) + "WHERE class = ? AND name = ?");
  const std::array params{Param(key.agent_class), Param(key.name)};
  Rows rows = find.query(params);
  if (!rows.next()) return std::nullopt;
  return object_of(rows);
}

std::optional<ObjectEntry> Directory::object(std::string_view uuid) {
  Statement find(connection_.handle(), std::string(kObjectColumns) + "WHERE uuid = ?");
  const std::array params{Param(uuid)};
  Rows rows = find.query(params);
  if (!rows.next()) return std::nullopt;
  return object_of(rows);
}

std::vector<ObjectEntry> Directory::list_objects(std::string_view agent_class,
                                                 const AgentKey& after, std::size_t limit) {
  Statement list(connection_.handle(), std::string(kObjectColumns) +
                                           "WHERE (class, name) > (?1, ?2) "
                                           "AND (?3 = '' OR class = ?3) "
                                           "ORDER BY class, name LIMIT ?4");
  const std::array params{Param(after.agent_class), Param(after.name), Param(agent_class),
                          Param(static_cast<std::int64_t>(limit))};
  std::vector<ObjectEntry> entries;
  for (Rows rows = list.query(params); rows.next();) entries.push_back(object_of(rows));
  return entries;
}

void Directory::forget_object(const AgentKey& key) {
  Statement erase(connection_.handle(), "DELETE FROM objects WHERE class = ? AND name = ?");
  const std::array params{Param(key.agent_class), Param(key.name)};
  erase.execute(params);
}

}  // namespace hearth::storage
