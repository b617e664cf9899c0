#pragma once
// `auth`, `cors` and `routes`: who may connect, which pages may read answers, which paths lead to
// agents.

#include "base/client_rules.hpp"
#include "config/config.hpp"
#include "config/diagnostic.hpp"
#include "config/parse.hpp"
#include "config/setting.hpp"
#include "extensions/class_settings.hpp"

#include <string>
#include <vector>

namespace hearth::config {

// The rows of a server file.
[[nodiscard]] Settings<ServerConfig> server_edge_section();

// The rows of a class file.
[[nodiscard]] Settings<extensions::ClassSettings> class_edge_section();

// What only several rows together have wrong: a proof that is asked for and cannot be checked.
void check_auth(const ServerConfig& server, Report& report);

// The same of a class file: a name made of claims that its clients do not have.
void check_class_auth(const ClassConfig& agent_class, Report& report);

// Routes whose names are made of claims, to classes whose clients have none: nobody would be let
// in. Not of classes that were defined over HTTP (config/definitions.hpp): the server starts
// whatever they say. `server_file`: as diagnostics name it.
[[nodiscard]] Diagnostics check_routes(const Config& config, const ClassSegment& segment,
                                       const std::string& server_file);

// The same when class files are read again: routes whose class takes away the claims that its
// clients had `before`, at the file that says so. Of all classes: what was right before stays so.
// `servers`: what holds where a class says nothing.
[[nodiscard]] Diagnostics lost_claims(const std::vector<RouteRule>& routes,
                                      const AuthRules& servers, const ClassConfigs& before,
                                      const ClassConfigs& now, const ClassSegment& segment);

}  // namespace hearth::config
