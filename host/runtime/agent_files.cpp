#include "runtime/agent_files.hpp"

#include "extensions/agent_context.hpp"

namespace hearth::runtime {

void AgentFiles::record(const storage::AgentKey& key) {
  data_.check_not_lost();
  directory_.record(key, unix_millis(clock_.wall_now()));
}

bool AgentFiles::record_object(const storage::AgentKey& key, Random& random) {
  if (directory_.object(key)) return false;
  data_.check_not_lost();
  const bool is_new =
      directory_.record_object(key, make_uuid(random), unix_millis(clock_.wall_now()));
  if (is_new) {
    (void)logger_.record_limited(LogLevel::kDebug, "object.created", {key.agent_class},
                                 {{"class", key.agent_class}, {"agent", key.name}},
                                 extensions::kAuditLimit);
  }
  return is_new;
}

void AgentFiles::note_active(const storage::AgentKey& key) {
  try {
    directory_.note_active(key, unix_millis(clock_.wall_now()));
  } catch (const StorageError& failure) {
    logger_.write_limited(LogLevel::kWarn, "object.activity_not_noted", {key.agent_class},
                          {{"class", key.agent_class},
                           {"agent", key.name},
                           {"error", std::string_view(failure.what())}});
  }
}

storage::Kept AgentFiles::kept(const storage::AgentKey& key) {
  data_.check_not_lost();
  return directory_.kept(key);
}

void AgentFiles::note_kept(const storage::AgentKey& key, storage::Kept kept) {
  try {
    directory_.note_kept(key, kept);
  } catch (const StorageError& failure) {
    logger_.write_limited(LogLevel::kWarn, "agent.kept_not_noted", {key.agent_class},
                          {{"class", key.agent_class},
                           {"agent", key.name},
                           {"error", std::string_view(failure.what())}});
  }
}

}  // namespace hearth::runtime
