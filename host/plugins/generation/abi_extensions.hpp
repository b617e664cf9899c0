#pragma once
// The tables of the ABI's extensions, one source file each (abi_ext_*.cpp).

#include <hearth/ext/agent.h>
#include <hearth/ext/clock.h>
#include <hearth/ext/connections.h>
#include <hearth/ext/fibers.h>
#include <hearth/ext/http.h>
#include <hearth/ext/keep_alive.h>
#include <hearth/ext/log.h>
#include <hearth/ext/managed_fibers.h>
#include <hearth/ext/queue.h>
#include <hearth/ext/random.h>
#include <hearth/ext/schedule.h>
#include <hearth/ext/sql.h>
#include <hearth/ext/state.h>

#include <string_view>

namespace hearth::plugins {

// Constant tables, the same for every library: the host that a function serves is its first
// argument.
[[nodiscard]] const hearth_agent_v1& agent_extension() noexcept;
[[nodiscard]] const hearth_clock_v1& clock_extension() noexcept;
[[nodiscard]] const hearth_connections_v1& connections_extension() noexcept;
[[nodiscard]] const hearth_fibers_v1& fibers_extension() noexcept;
[[nodiscard]] const hearth_http_v1& http_extension() noexcept;
[[nodiscard]] const hearth_keep_alive_v1& keep_alive_extension() noexcept;
[[nodiscard]] const hearth_log_v1& log_extension() noexcept;
[[nodiscard]] const hearth_managed_fibers_v1& managed_fibers_extension() noexcept;
[[nodiscard]] const hearth_queue_v1& queue_extension() noexcept;
[[nodiscard]] const hearth_random_v1& random_extension() noexcept;
[[nodiscard]] const hearth_schedule_v1& schedule_extension() noexcept;
[[nodiscard]] const hearth_sql_v1& sql_extension() noexcept;
[[nodiscard]] const hearth_state_v1& state_extension() noexcept;

// The table of the extension called `id`, or null.
[[nodiscard]] const void* find_extension(std::string_view id) noexcept;

}  // namespace hearth::plugins
