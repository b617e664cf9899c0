#pragma once
// The common steps of the C functions of the host's side of the ABI: find the agent, check the
// slices, turn failures into statuses.

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "extensions/abi_host.hpp"
#include "extensions/abi_status.hpp"
#include "extensions/agent_context.hpp"
#include "extensions/durable_work.hpp"

#include <hearth/abi.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

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

inline Error bad_slice() {
  return {Errc::kInvalidArgument, "a slice has a length but no bytes, or a text is not UTF-8"};
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

// The struct as this server knows it. Members that a smaller (older) struct lacks are zero; further
// members of a larger (newer) struct are ignored. Absent for a null pointer, or if `struct_size` is
// too small to hold itself.
template <class T>
[[nodiscard]] std::optional<T> read_struct(const T* given) noexcept {
  if (given == nullptr || given->struct_size < sizeof(given->struct_size)) return std::nullopt;
  T known{};
  std::memcpy(&known, given, std::min<std::size_t>(given->struct_size, sizeof(T)));
  return known;
}

// The sizes in version 1.0 of the tables that a library gives. A later host, whose tables are
// longer, takes these too: HEARTH_HAS says whether a member behind them is there.
inline constexpr std::size_t kPluginSize10 = 48;
inline constexpr std::size_t kClassSize10 = 72;
inline constexpr std::size_t kMethodsSize10 = 16;
inline constexpr std::size_t kOperationKindsSize10 = 16;

inline Error bad_struct() {
  return {Errc::kInvalidArgument, "a request or a filter is missing, or has no struct_size"};
}

// The number of records to list: `by_default` for 0; absent if `limit` is more than `most`.
[[nodiscard]] inline std::optional<std::size_t> read_limit(std::uint32_t limit,
                                                           std::size_t by_default,
                                                           std::size_t most) noexcept {
  if (limit == 0) return by_default;
  if (limit > most) return std::nullopt;
  return limit;
}

// Lends the plugin a text until its next call. `place` may be null: the plugin does not want the
// text.
inline void lend(AgentContext& agent, std::string text, hearth_bytes* place) {
  agent.lent_text = std::move(text);
  if (place != nullptr) *place = slice_of(agent.lent_text);
}

// ---- doors --------------------------------------------------------------------------------------

// Bytes that need not be a text.
struct AnyBytes {
  std::string_view bytes;
};

// An argument of a door, from what the C function was given. If that is wrong, sets `wrong`.
//
//   argument            given
//   std::string_view    a slice of UTF-8
//   AnyBytes            a slice
//   Client&             a connection
//   const RequestView&  a call that is an HTTP request in progress
//   const T&            a struct with a struct_size
//   T&                  a place for a result, which is not null
//   others              the same
template <class Type>
struct Argument {
  using Given = Type;
  Argument(AgentContext& /*it*/, Given given, std::optional<Error>& /*wrong*/) : value(given) {}
  Type get() const { return value; }
  Type value;
};
template <>
struct Argument<std::string_view> {
  using Given = hearth_bytes;
  Argument(AgentContext& /*it*/, Given given, std::optional<Error>& wrong) : value(text_of(given)) {
    if (!value && !wrong) wrong = bad_slice();
  }
  [[nodiscard]] std::string_view get() const { return value.value_or(std::string_view()); }
  std::optional<std::string_view> value;
};
template <>
struct Argument<AnyBytes> {
  using Given = hearth_bytes;
  Argument(AgentContext& /*it*/, Given given, std::optional<Error>& wrong)
      : value(bytes_of(given)) {
    if (!value && !wrong) wrong = bad_slice();
  }
  [[nodiscard]] AnyBytes get() const { return {value.value_or(std::string_view())}; }
  std::optional<std::string_view> value;
};
template <>
struct Argument<Client&> {
  using Given = ConnectionId;
  Argument(AgentContext& it, Given given, std::optional<Error>& wrong)
      : value(it.clients().find(given)) {
    if (value == nullptr && !wrong) wrong = Error{Errc::kNotFound, "the client has left"};
  }
  [[nodiscard]] Client& get() const { return *value; }
  Client* value;
};
template <>
struct Argument<const RequestView&> {
  using Given = CallId;
  Argument(AgentContext& it, Given given, std::optional<Error>& wrong)
      : value(it.calls().request(given)) {
    if (!value && !wrong) wrong = value.error();
  }
  [[nodiscard]] const RequestView& get() const { return *value; }
  Result<RequestView> value;
};
template <class T>
struct Argument<const T&> {
  using Given = const T*;
  Argument(AgentContext& /*it*/, Given given, std::optional<Error>& wrong)
      : value(read_struct(given)) {
    if (!value && !wrong) wrong = bad_struct();
  }
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): no door is entered with a wrong argument
  [[nodiscard]] const T& get() const { return *value; }
  std::optional<T> value;
};
template <class T>
struct Argument<T&> {
  using Given = T*;
  Argument(AgentContext& /*it*/, Given given, std::optional<Error>& wrong) : value(given) {
    if (value == nullptr && !wrong)
      wrong = Error{Errc::kInvalidArgument, "the place for the result is null"};
  }
  [[nodiscard]] T& get() const { return *value; }
  T* value;
};

// What a door that is a member runs on.
template <class Part>
decltype(auto) part_of(AgentContext& agent) {
  if constexpr (std::same_as<Part, AgentContext>) {
    return (agent);
  } else if constexpr (std::same_as<Part, CallPort>) {
    return (agent.calls());
  } else if constexpr (std::derived_from<Part, AgentExtension>) {
    return (agent.of<Part>());
  } else if constexpr (std::derived_from<Part, durable::WorkPart>) {
    return (agent.work().kind<Part>());
  } else {
    return Part(agent);
  }
}

// What a door runs: a function, or a member of a part of the agent.
template <class R, class... Type>
struct DoorBody {
  static constexpr bool kIsText = std::same_as<R, Result<std::string>>;
  static constexpr bool kIsNumber = std::same_as<R, Result<std::uint64_t>>;
  using ResultPlace = std::conditional_t<kIsText, hearth_bytes*, std::uint64_t*>;

  template <auto kRun, DoorKind kKind, hearth_status kMissing, class Place>
  static hearth_status enter(const hearth_host* host, hearth_agent agent, Place place,
                             typename Argument<Type>::Given... given) noexcept {
    return for_agent<kKind>(host, agent, [&](AgentContext& it) -> hearth_status {
      std::optional<Error> wrong;
      const std::tuple<Argument<Type>...> arguments{Argument<Type>(it, given, wrong)...};
      if constexpr (kIsNumber) (void)Argument<std::uint64_t&>(it, place, wrong);
      if constexpr (kKind == DoorKind::kWork) {
        if (!wrong) wrong = it.work_refusal();
      }
      if (wrong) return fail(it, *wrong, kMissing);
      const auto run = [&](const auto&... each) -> R { return kRun(it, each.get()...); };
      if constexpr (std::is_void_v<R>) {
        std::apply(run, arguments);
        return HEARTH_OK;
      } else if constexpr (std::same_as<R, hearth_status>) {
        return std::apply(run, arguments);
      } else {
        R result = std::apply(run, arguments);
        if (!result) return fail(it, result.error(), kMissing);
        if constexpr (kIsText) lend(it, std::move(result.value()), place);
        if constexpr (kIsNumber) *place = *result;
        return HEARTH_OK;
      }
    });
  }
  template <auto kRun, DoorKind kKind, hearth_status kMissing>
  static constexpr auto make() {
    if constexpr (kIsText || kIsNumber) {
      return +[](const hearth_host* host, hearth_agent agent,
                 typename Argument<Type>::Given... given, ResultPlace place) noexcept {
        return enter<kRun, kKind, kMissing>(host, agent, place, given...);
      };
    } else {
      return +[](const hearth_host* host, hearth_agent agent,
                 typename Argument<Type>::Given... given) noexcept {
        return enter<kRun, kKind, kMissing>(host, agent, nullptr, given...);
      };
    }
  }
};

template <auto kRun, DoorKind kKind, hearth_status kMissing, class R, class... Type>
constexpr auto door_to(R (*)(AgentContext&, Type...)) {
  return DoorBody<R, Type...>::template make<kRun, kKind, kMissing>();
}
template <auto kRun, DoorKind kKind, hearth_status kMissing, class R, class Part, class... Type>
constexpr auto door_to(R (Part::*)(Type...)) {
  constexpr auto kOfPart = [](AgentContext& it, const Type&... in) {
    return (part_of<Part>(it).*kRun)(in...);
  };
  return DoorBody<R, Type...>::template make<kOfPart, kKind, kMissing>();
}

// A door: the [instance] C function of a table that runs `kRun`, which is f(AgentContext&, ...) or
// a member, with the arguments that Argument makes. A failure becomes its status, and kNotFound
// `kMissing`. A text is lent, and a number is written, to the last argument of the C function.
template <auto kRun, DoorKind kKind = DoorKind::kAny, hearth_status kMissing = HEARTH_E_NOT_FOUND>
inline constexpr auto kDoor = door_to<kRun, kKind, kMissing>(+kRun);
template <auto kRun, DoorKind kKind, hearth_status kMissing>
  requires std::is_member_function_pointer_v<decltype(kRun)>
inline constexpr auto kDoor<kRun, kKind, kMissing> = door_to<kRun, kKind, kMissing>(kRun);
// ... where what is missing is gone.
template <auto kRun, DoorKind kKind = DoorKind::kAny>
inline constexpr auto kGoneDoor = kDoor<kRun, kKind, HEARTH_E_GONE>;

}  // namespace hearth::extensions
