#pragma once
// The lines of the log about a class that is served, or has settings and is not.

#include "base/logger.hpp"
#include "config/config.hpp"
#include "runtime/class_registry.hpp"

#include <string>
#include <string_view>

namespace hearth::plugins {

// class.served, or class.not_served with the reason. `paths`: at which clients find the class.
// `file`: its class file; empty: it has none.
void tell_served(Logger& logger, const runtime::ServedClass& served, std::string_view paths,
                 std::string_view file);

// class.not_found: no library that is served has the class `name`, or the class whose code it runs.
void tell_not_found(Logger& logger, std::string_view name, const config::ClassConfig& its);

}  // namespace hearth::plugins
