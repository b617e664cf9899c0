#include "plugins/admission/known_extensions.hpp"

#include <hearth/ext/agent.h>
#include <hearth/ext/clock.h>
#include <hearth/ext/connections.h>
#include <hearth/ext/fibers.h>
#include <hearth/ext/http.h>
#include <hearth/ext/keep_alive.h>
#include <hearth/ext/log.h>
#include <hearth/ext/managed_fibers.h>
#include <hearth/ext/methods.h>
#include <hearth/ext/offload.h>
#include <hearth/ext/queue.h>
#include <hearth/ext/random.h>
#include <hearth/ext/schedule.h>
#include <hearth/ext/schema.h>
#include <hearth/ext/sql.h>
#include <hearth/ext/state.h>

#include <algorithm>
#include <array>

namespace hearth::plugins {
namespace {

constexpr std::array<std::string_view, 16> kKnown{
    HEARTH_EXT_AGENT,    HEARTH_EXT_CLOCK,      HEARTH_EXT_CONNECTIONS, HEARTH_EXT_FIBERS,
    HEARTH_EXT_HTTP,     HEARTH_EXT_KEEP_ALIVE, HEARTH_EXT_LOG,         HEARTH_EXT_MANAGED_FIBERS,
    HEARTH_EXT_METHODS,  HEARTH_EXT_OFFLOAD,    HEARTH_EXT_QUEUE,       HEARTH_EXT_RANDOM,
    HEARTH_EXT_SCHEDULE, HEARTH_EXT_SCHEMA,     HEARTH_EXT_SQL,         HEARTH_EXT_STATE,
};

}  // namespace

bool knows_extension(std::string_view id) noexcept {
  return std::ranges::find(kKnown, id) != kKnown.end();
}

}  // namespace hearth::plugins
