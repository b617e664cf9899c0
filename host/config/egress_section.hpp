#pragma once
// `egress` of a class file: where the agents of the class may send requests. And `secrets` of the
// server file.

#include "config/config.hpp"
#include "config/diagnostic.hpp"
#include "config/setting.hpp"
#include "extensions/class_settings.hpp"

namespace hearth::config {

// The rows of the section. Reading checks the patterns, and that each file of a credential exists
// and holds one. read_settings_text() may read a text of an earlier server with this section; then
// the files are not checked, because they may be gone.
[[nodiscard]] Settings<extensions::ClassSettings> egress_section();

// The row of the server file. Reading does not look at the files, because commands of other users
// read the server file too; check_secrets() reports those that are missing or hold no credential.
[[nodiscard]] Setting<ServerConfig> server_secrets_setting();
void check_secrets(const ServerConfig& server, Report& report);
// Why this file cannot be a credential; empty: it can.
[[nodiscard]] std::string credential_mistake(const std::filesystem::path& file);

}  // namespace hearth::config
