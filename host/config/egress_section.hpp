#pragma once
// `egress` of a class file: where the agents of the class may send requests.

#include "config/setting.hpp"
#include "extensions/class_settings.hpp"

namespace hearth::config {

// The rows of the section. Reading checks the patterns, and that each file of a credential exists
// and holds one. read_settings_text() may read a text of an earlier server with this section; then
// the files are not checked, because they may be gone.
[[nodiscard]] Settings<extensions::ClassSettings> egress_section();

}  // namespace hearth::config
