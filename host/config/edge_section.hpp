#pragma once
// `auth`, `cors` and `routes`: how clients authenticate, which pages may read answers, which paths
// lead to agents.

#include "base/client_rules.hpp"
#include "config/config.hpp"
#include "config/diagnostic.hpp"
#include "config/parse.hpp"
#include "config/setting.hpp"
#include "extensions/class_settings.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace hearth::config {

// A text that is valid by `is_valid`, or empty. `form` describes it.
[[nodiscard]] Setting<ServerConfig> text_setting(std::string path,
                                                 Fields<ServerConfig, std::string> fields,
                                                 std::string kind, std::string_view form,
                                                 bool (*is_valid)(std::string_view),
                                                 std::string meaning);
// For requests of the server itself: https, or http to this machine.
[[nodiscard]] bool is_own_url(std::string_view text);

// The rows of a server file.
[[nodiscard]] Settings<ServerConfig> server_edge_section();

// The rows of a class file.
[[nodiscard]] Settings<extensions::ClassSettings> class_edge_section();

// Mistakes of several rows together: the server asks for proofs that it cannot check.
void check_auth(const ServerConfig& server, Report& report);

// The same for a class file: a name is made of claims that the class's clients do not have.
void check_class_auth(const ClassConfig& agent_class, Report& report);

// Routes whose names are made of claims, to classes whose clients have no claims: no client could
// use them. Ignores classes that were defined over HTTP (config/definitions.hpp): they must not
// keep the server from its start. `server_file`: as diagnostics name it.
[[nodiscard]] Diagnostics check_routes(const Config& config, const ClassSegment& segment,
                                       const std::string& server_file);

// The same when class files are read again: routes whose class had claims `before` and loses them.
// The mistake stands in the file that removes them. Checks all classes, so that correct routes stay
// correct. `servers`: the rules of classes without their own.
[[nodiscard]] Diagnostics lost_claims(const std::vector<RouteRule>& routes,
                                      const AuthRules& servers, const ClassConfigs& before,
                                      const ClassConfigs& now, const ClassSegment& segment);

}  // namespace hearth::config
