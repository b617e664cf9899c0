#pragma once
// The lines of the log about classes that are served, and about their settings.

#include "base/logger.hpp"
#include "config/config.hpp"
#include "plugins/versions/rollout.hpp"
#include "runtime/class_registry.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

// class.served, or class.not_served with the reason. `paths`: at which clients find the class.
// `file`: its class file; empty: it has none.
void tell_served(Logger& logger, const runtime::ServedClass& served, std::string_view paths,
                 std::string_view file);

// class.not_found: no library that is served has the class `name`, or the class whose code it runs.
void tell_not_found(Logger& logger, std::string_view name, const config::ClassConfig& its);

// config.doubtful, if the settings name kinds of operations that the class does not list: these
// settings have no effect.
void warn_of_unlisted_kinds(Logger& logger, const ClassVersion& version);

// config.changed, and config.doubtful if what the settings say is. `keys`: of the settings that are
// different. `trying`: how many agents try them.
void tell_new_settings(Logger& logger, const ClassVersion& version,
                       const std::vector<std::string>& keys, std::size_t trying);
// config.done
void tell_settings_done(Logger& logger, const ClassVersion& version);
// config.taken_back
void tell_settings_taken_back(Logger& logger, std::string_view agent_class, const std::string& file,
                              const std::string& reason, std::string_view advice);

}  // namespace hearth::plugins
