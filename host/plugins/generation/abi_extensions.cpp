#include "plugins/generation/abi_extensions.hpp"

namespace hearth::plugins {

const void* find_extension(std::string_view id) noexcept {
  if (id == HEARTH_EXT_AGENT) return &agent_extension();
  if (id == HEARTH_EXT_CLOCK) return &clock_extension();
  if (id == HEARTH_EXT_CONNECTIONS) return &connections_extension();
  if (id == HEARTH_EXT_FIBERS) return &fibers_extension();
  if (id == HEARTH_EXT_HTTP) return &http_extension();
  if (id == HEARTH_EXT_KEEP_ALIVE) return &keep_alive_extension();
  if (id == HEARTH_EXT_LOG) return &log_extension();
  if (id == HEARTH_EXT_MANAGED_FIBERS) return &managed_fibers_extension();
  if (id == HEARTH_EXT_QUEUE) return &queue_extension();
  if (id == HEARTH_EXT_RANDOM) return &random_extension();
  if (id == HEARTH_EXT_SCHEDULE) return &schedule_extension();
  if (id == HEARTH_EXT_SQL) return &sql_extension();
  if (id == HEARTH_EXT_STATE) return &state_extension();
  return nullptr;
}

}  // namespace hearth::plugins
