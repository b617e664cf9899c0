#pragma once
// Warnings about a configuration that is valid: `hearth serve` logs them, `--check-config` prints
// them.

#include "base/logger.hpp"
#include "config/config.hpp"

#include <string>
#include <utility>
#include <vector>

namespace hearth::server {

struct ConfigWarning {
  std::string event;                                        // of the log: "auth.keys_readable"
  std::vector<std::pair<std::string, std::string>> fields;  // the last one is "advice"
};

//   - A value is allowed and hardly meant (config::doubts()).
//   - Other users of this machine can read the data, a token, a signing key or a credential.
//   - A class asks its clients for a proof that no configured file or URL can check, or for claims
//     that its proofs do not have.
//   - The key of objects guards a class at /objects, and not at /agents.
// Looks at the named files; a file that is not there has no warning.
[[nodiscard]] std::vector<ConfigWarning> config_warnings(const config::Config& config);

// No library is served: "server.no_plugins".
[[nodiscard]] ConfigWarning no_plugins_warning(const config::ServerConfig& server);

void write(const ConfigWarning& warning, Logger& logger);
// "classes/shop.yaml: its auth.type needs ... (class.nobody_may_connect class=Shop)"
[[nodiscard]] std::string to_string(const ConfigWarning& warning);

}  // namespace hearth::server
