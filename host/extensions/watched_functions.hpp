#pragma once
// Makes the tables of watched_tables.hpp: each function tells the watcher, and calls the real one.

#include "extensions/abi_host.hpp"
#include "extensions/watched_tables.hpp"

#include <hearth/abi.h>
#include <hearth/ext/sql.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace hearth::extensions {

// A text as a template argument.
template <std::size_t kSize>
struct Name {
  consteval Name(const char (&given)[kSize]) {  // NOLINT(google-explicit-constructor)
    std::copy_n(given, kSize, text);
  }
  char text[kSize]{};
};

enum class Tag {
  kInstance,
  kClosing,  // [instance]; works while the agent is being destroyed
  kAny,
};

// One member of a table, with its name for messages.
template <auto kMember, Name kName, Tag kTag = Tag::kInstance>
struct Member {
  static constexpr auto kPointer = kMember;
  static constexpr AbiFunction kFunction{.name = std::string_view(kName.text),
                                         .any_thread = kTag == Tag::kAny,
                                         .while_closing = kTag == Tag::kClosing};
};

// The first argument of a call is its agent, if the tag says that it has one. The second is a
// statement in the functions of hearth.sql/1 in which it is a number of 64 bits.
template <class Table, class... Rest>
AbiCall call_of(const AbiFunction& function, Rest... /*rest*/) {
  return {.function = function};
}
template <class Table, class... Rest>
AbiCall call_of(const AbiFunction& function, hearth_agent agent, Rest... /*rest*/) {
  return {.function = function, .agent = agent};
}
template <class Table, class... Rest>
AbiCall call_of(const AbiFunction& function, hearth_agent agent, std::uint64_t second,
                Rest... /*rest*/) {
  const bool is_of_sql = std::same_as<Table, hearth_sql_v1>;
  return {.function = function, .agent = agent, .statement = is_of_sql ? second : 0};
}

template <class Argument>
void tell_lent(AbiWatcher& watcher, const AbiCall& call, Argument argument) {
  if constexpr (std::same_as<Argument, hearth_bytes*>) watcher.lent(call, argument);
}

template <auto kReal, class Entry, class Pointer>
struct Watched;

// kReal gives the table of AbiWatcher::abi(), or of an extension. Entry names one member of it.
template <auto kReal, class Entry, class Table, class R, class... Arguments>
struct Watched<kReal, Entry, R (*Table::*)(const hearth_host*, Arguments...)> {
  static R call(const hearth_host* table, Arguments... arguments) {
    AbiWatcher& watcher = watcher_of(table);
    const AbiCall call = call_of<Table>(Entry::kFunction, arguments...);
    const hearth_host* const real = watcher.abi().table();
    const auto refused = watcher.enter(call);
    if constexpr (std::same_as<R, hearth_status>) {
      const R result = refused ? *refused : (kReal(real)->*Entry::kPointer)(real, arguments...);
      if (!refused && result >= 0) (tell_lent(watcher, call, arguments), ...);
      watcher.left(call);
      return result;
    } else if constexpr (std::is_void_v<R>) {
      (kReal(real)->*Entry::kPointer)(real, arguments...);
      watcher.left(call);
    } else {
      const R result = (kReal(real)->*Entry::kPointer)(real, arguments...);
      watcher.left(call);
      return result;
    }
  }
};

// Lets the watcher see these members of the table.
template <auto kReal, class... Entries, class Table>
constexpr void watch(Table& table) {
  ((table.*Entries::kPointer =
        &Watched<kReal, Entries, std::remove_const_t<decltype(Entries::kPointer)>>::call),
   ...);
}

}  // namespace hearth::extensions
