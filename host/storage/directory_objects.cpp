// The part of Directory that is about objects.
#include "storage/directory.hpp"

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
  return insert.execute(key.agent_class, key.name, uuid, now_ms) > 0;
}

void Directory::note_active(const AgentKey& key, std::int64_t at_ms) {
  Statement note(connection_.handle(),
                 "UPDATE objects SET last_active_at = ?3 WHERE class = ?1 AND name = ?2");
  note.execute(key.agent_class, key.name, at_ms);
}

std::optional<ObjectEntry> Directory::object(const AgentKey& key) {
  Statement find(connection_.handle(),
                 std::string(kObjectColumns) + "WHERE class = ? AND name = ?");
  Rows rows = find.query(key.agent_class, key.name);
  if (!rows.next()) return std::nullopt;
  return object_of(rows);
}

std::optional<ObjectEntry> Directory::object(std::string_view uuid) {
  Statement find(connection_.handle(), std::string(kObjectColumns) + "WHERE uuid = ?");
  Rows rows = find.query(uuid);
  if (!rows.next()) return std::nullopt;
  return object_of(rows);
}

std::vector<ObjectEntry> Directory::list_objects(std::string_view agent_class,
                                                 const AgentKey& after, std::size_t limit) {
  Statement list(connection_.handle(), std::string(kObjectColumns) +
                                           "WHERE (class, name) > (?1, ?2) "
                                           "AND (?3 = '' OR class = ?3) "
                                           "ORDER BY class, name LIMIT ?4");
  std::vector<ObjectEntry> entries;
  for (Rows rows = list.query(after.agent_class, after.name, agent_class, limit); rows.next();)
    entries.push_back(object_of(rows));
  return entries;
}

void Directory::forget_object(const AgentKey& key) {
  Statement erase(connection_.handle(), "DELETE FROM objects WHERE class = ? AND name = ?");
  erase.execute(key.agent_class, key.name);
}

}  // namespace hearth::storage
