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
#include <tuple>

namespace hearth::extensions {

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

enum class DoorKind {
  kAny,
  kWork,          // changes durable work: refuses as AgentContext::work_refusal()
  kWhileClosing,  // works while its agent's instance is being destroyed
};

// Runs `body(AgentContext&)` for an [instance] function. Only here do C functions catch exceptions.
template <DoorKind kKind = DoorKind::kAny, class Body>
hearth_status for_agent(const hearth_host* host, hearth_agent handle, const Body& body) noexcept {
  if (host == nullptr) return HEARTH_E_INVALID;
  AgentContext* agent = nullptr;
  try {
    const auto found = AbiHost::of(host).services().agents.find(handle);
    using Lookup = AgentDirectory::Lookup;
    if (found.lookup == Lookup::kGone) return HEARTH_E_GONE;
    if (found.lookup == Lookup::kWrongThread) return HEARTH_E_WRONG_THREAD;
    if (found.lookup == Lookup::kClosing && kKind != DoorKind::kWhileClosing)
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

// How the C function of a door gets an argument: a text as a slice, all else as it is.
template <class In>
struct Argument {
  using Given = In;
  static In read(Given given, bool& /*are_texts*/) noexcept { return given; }
};
template <>
struct Argument<std::string_view> {
  using Given = hearth_bytes;
  static std::string_view read(Given given, bool& are_texts) noexcept {
    const auto text = text_of(given);
    if (!text) are_texts = false;
    return text.value_or(std::string_view());
  }
};

template <auto kRun, DoorKind kKind, class... In>
constexpr auto door_to(hearth_status (*)(AgentContext&, In...)) {
  return +[](const hearth_host* host, hearth_agent agent,
             typename Argument<In>::Given... given) noexcept -> hearth_status {
    return for_agent<kKind>(host, agent, [&](AgentContext& it) -> hearth_status {
      bool are_texts = true;
      const std::tuple<In...> arguments{Argument<In>::read(given, are_texts)...};
      if (!are_texts) return bad_slice(it);
      if constexpr (kKind == DoorKind::kWork) {
        if (const auto refusal = it.work_refusal()) return fail(it, *refusal);
      }
      return std::apply([&](const In&... each) { return kRun(it, each...); }, arguments);
    });
  };
}

// A door: the [instance] C function of a table that runs `kRun(AgentContext&, ...)`.
template <auto kRun, DoorKind kKind = DoorKind::kAny>
inline constexpr auto kDoor = door_to<kRun, kKind>(kRun);

}  // namespace hearth::extensions
