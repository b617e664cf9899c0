#pragma once
// What a check does with an agent: the events of a life, and the methods that it calls.

#include "plugins/check/check_subject.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

// A name that no class exports.
inline constexpr std::string_view kNoSuchMethod = "hearth-check: no such method";

// How much of a life is played.
struct Script {
  std::vector<std::string> methods;  // to call
  bool pumps = true;                 // operations end between the events
};

// The events of a whole life after create(), from START to EVICT, in an order in which a host may
// deliver them. Bodies from the host are well-formed; bodies from clients may not be.
[[nodiscard]] std::vector<CheckEvent> life_events(const hearth_class& table,
                                                  std::span<const std::string> methods);

// Makes an agent of `table`, delivers the events of a life, and destroys it. Returns the status of
// create() if that failed.
//   `after_each` runs after each event with its outcome, if given; false ends the life.
using AfterEach = std::function<bool(CheckInstance&, const CheckEvent&, const Delivered&)>;
hearth_status play(CheckSubject& subject, const hearth_class& table, const std::string& name,
                   const Script& script, const AfterEach& after_each = {});

// The methods of `table` that a check calls: the methods of the setting, if there are any.
// Otherwise texts in the library that could be names, and that an agent does not answer with
// NOT_FOUND. At most kMaxMethods, in the library's order.
inline constexpr std::size_t kMaxMethods = 64;
[[nodiscard]] std::vector<std::string> find_methods(CheckSubject& subject,
                                                    const hearth_class& table);

// The texts of `bytes` that could be names of methods, each once: a letter or _, then up to 40
// letters, digits, _ - and .
[[nodiscard]] std::vector<std::string> find_names(std::span<const std::byte> bytes,
                                                  std::size_t limit);

}  // namespace hearth::plugins
