#pragma once
// The common steps of the C functions of the host's side of the ABI: find the agent, check the
// slices, turn failures into statuses.

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "extensions/abi_host.hpp"
#include "extensions/abi_status.hpp"
#include "extensions/agent_context.hpp"

#include <hearth/abi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string_view>

namespace hearth::extensions {

// HEARTH_OK with the type that all functions return, so that all returns of a lambda have one type.
inline constexpr hearth_status kOk = HEARTH_OK;

// The bytes of a slice; absent if a null pointer has a length, or the length is impossible.
[[nodiscard]] inline std::optional<std::string_view> bytes_of(hearth_bytes slice) noexcept {
  if (slice.len == 0) return std::string_view();
  if (slice.ptr == nullptr || slice.len > static_cast<std::size_t>(PTRDIFF_MAX))
    return std::nullopt;
  return std::string_view(static_cast<const char*>(slice.ptr), slice.len);
}

// As bytes_of(), and absent if it is not UTF-8.
[[nodiscard]] inline std::optional<std::string_view> text_of(hearth_bytes slice) noexcept {
  const auto bytes = bytes_of(slice);
  if (!bytes || !is_valid_utf8(*bytes)) return std::nullopt;
  return bytes;
}

[[nodiscard]] inline hearth_bytes slice_of(std::string_view bytes) noexcept {
  return {bytes.data(), bytes.size()};
}

// Stores `why` for hearth_host.last_error.
inline hearth_status fail(AgentContext& agent, hearth_status status, std::string_view why) {
  agent.last_error.assign(why);
  return status;
}

inline hearth_status fail(AgentContext& agent, const Error& error,
                          hearth_status missing = HEARTH_E_NOT_FOUND) {
  return fail(agent, to_status(error.code, missing), error.message);
}

// The status of a function that has no result.
template <class T>
hearth_status status_of(AgentContext& agent, const Result<T>& result,
                        hearth_status missing = HEARTH_E_NOT_FOUND) {
  return result ? hearth_status{HEARTH_OK} : fail(agent, result.error(), missing);
}

inline hearth_status bad_slice(AgentContext& agent) {
  return fail(agent, HEARTH_E_INVALID, "a slice has a length but no bytes, or a text is not UTF-8");
}

inline hearth_status no_place(AgentContext& agent) {
  return fail(agent, HEARTH_E_INVALID, "the place for the result is null");
}

// fail() after an exception. If there is no memory for the text, last_error becomes empty, so that
// it does not show the text of another call.
inline hearth_status fail_caught(AgentContext* agent, hearth_status status,
                                 const char* why) noexcept {
  if (agent == nullptr) return status;
  try {
    return fail(*agent, status, why);
  } catch (...) {
    agent->last_error.clear();
    return status;
  }
}

// Whether a function still works while its agent's instance is being destroyed.
enum class WhileClosing { kRefuse, kWork };

// Runs `body(AgentContext&)` for an [instance] function. Only here do C functions catch exceptions.
template <WhileClosing kWhileClosing = WhileClosing::kRefuse, class Body>
hearth_status for_agent(const hearth_host* host, hearth_agent handle, const Body& body) noexcept {
  if (host == nullptr) return HEARTH_E_INVALID;
  AgentContext* agent = nullptr;
  try {
    const auto found = AbiHost::of(host).services().agents.find(handle);
    using Lookup = AgentDirectory::Lookup;
    if (found.lookup == Lookup::kGone) return HEARTH_E_GONE;
    if (found.lookup == Lookup::kWrongThread) return HEARTH_E_WRONG_THREAD;
    if (found.lookup == Lookup::kClosing && kWhileClosing == WhileClosing::kRefuse)
      return HEARTH_E_CLOSING;
    agent = found.agent;
    return body(*agent);
  } catch (const StorageError& error) {
    if (agent != nullptr) agent->storage_failed(error.what());
    return fail_caught(agent, HEARTH_E_IO, "the agent's storage failed");
  } catch (const std::bad_alloc&) {
    return fail_caught(agent, HEARTH_E_NOMEM, "out of memory");
  } catch (...) {  // a fault of the host must not end the process inside a plugin's call
    return fail_caught(agent, HEARTH_E_IO, "the host failed");
  }
}

// The texts of these slices; absent if one of them is none (text_of()).
template <std::size_t N>
[[nodiscard]] std::optional<std::array<std::string_view, N>> texts_of(
    const hearth_bytes (&slices)[N]) noexcept {
  std::array<std::string_view, N> texts;
  for (std::size_t i = 0; i < N; ++i) {
    const auto text = text_of(slices[i]);
    if (!text) return std::nullopt;
    texts[i] = *text;
  }
  return texts;
}

// for_agent() with the text of a slice.
template <class Run>
hearth_status for_text(const hearth_host* host, hearth_agent agent, hearth_bytes slice,
                       Run&& run) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    const auto text = text_of(slice);
    return text ? run(it, *text) : bad_slice(it);
  });
}

// The same for a function that changes durable work.
template <class Run>
hearth_status for_work(const hearth_host* host, hearth_agent agent, hearth_bytes slice,
                       Run&& run) noexcept {
  return for_text(host, agent, slice, [&](AgentContext& it, std::string_view text) {
    if (const auto refusal = it.work_refusal()) return fail(it, *refusal);
    return run(it, text);
  });
}

}  // namespace hearth::extensions
