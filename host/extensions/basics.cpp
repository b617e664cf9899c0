#include "extensions/basics.hpp"

#include "base/escape.hpp"
#include "extensions/abi_call.hpp"
#include "extensions/durable_work.hpp"

#include <chrono>

namespace hearth::extensions {
namespace {

// ---- hearth.clock/1 ----

std::int64_t wall_ms(const hearth_host* host) noexcept {
  return unix_millis(AbiHost::of(host).services().clock.wall_now());
}

std::uint64_t steady_ns(const hearth_host* host) noexcept {
  const auto since = AbiHost::of(host).services().clock.steady_now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

// ---- hearth.log/1 ----

constexpr std::size_t kMaxLogBytes = std::size_t{8} << 10;

LogLevel level_of(std::int32_t level) {
  switch (level) {
    case HEARTH_LOG_DEBUG: return LogLevel::kDebug;
    case HEARTH_LOG_WARN: return LogLevel::kWarn;
    case HEARTH_LOG_ERROR: return LogLevel::kError;
    default: return LogLevel::kInfo;  // a newer plugin may have further levels
  }
}

void write_log(const hearth_host* host, hearth_agent agent, std::int32_t level,
               hearth_bytes text) noexcept {
  const auto bytes = bytes_of(text);
  if (host == nullptr || !bytes) return;
  const std::string_view line = cut_text(*bytes, kMaxLogBytes);
  const bool is_event = (level & HEARTH_LOG_EVENT) != 0;
  level &= ~HEARTH_LOG_EVENT;
  const auto of_agent = [&](AgentContext& it) {
    if (is_event) it.count_event(line.substr(0, line.find(' ')));
    it.log(level_of(level), line);
    return hearth_status{HEARTH_OK};
  };
  if (agent != 0 && for_agent<DoorKind::kWhileClosing>(host, agent, of_agent) == HEARTH_OK) return;
  // From another thread, or for no agent: the line names only the library.
  const AbiHost& abi = AbiHost::of(host);
  abi.services().logger.write(level_of(level), "plugin.log",
                              {{"library", abi.origin()}, {"text", line}});
}

// ---- hearth.random/1 ----

constexpr std::size_t kMaxRandomBytes = std::size_t{1} << 20;

hearth_status fill(const hearth_host* host, void* out, std::size_t size) noexcept {
  if (host == nullptr || size > kMaxRandomBytes) return HEARTH_E_INVALID;
  if (size == 0) return HEARTH_OK;
  if (out == nullptr) return HEARTH_E_INVALID;
  AbiHost::of(host).services().random.fill({static_cast<std::byte*>(out), size});
  return HEARTH_OK;
}

// ---- hearth.agent/1 ----

Result<void> wait_for_person(AgentContext& it, std::string_view key, std::string_view what) {
  if (what.size() > HEARTH_PERSON_MAX || key.size() > HEARTH_PERSON_MAX)
    return Error{Errc::kInvalidArgument,
                 "what a person is to do, and its key, have at most 256 bytes"};
  return it.work().waits_for_person(what, key);
}

}  // namespace

constexpr hearth_agent_v1 kAgentTable = {.evict = kGoneDoor<&AgentContext::evict>,
                                         .destroy = kGoneDoor<&AgentContext::destroy>,
                                         .waits_for_person = kGoneDoor<wait_for_person>};
constexpr hearth_clock_v1 kClockTable = {.wall_ms = wall_ms, .steady_ns = steady_ns};
constexpr hearth_log_v1 kLogTable = {.write = write_log};
constexpr hearth_random_v1 kRandomTable = {.fill = fill};

}  // namespace hearth::extensions
