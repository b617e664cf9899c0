#pragma once
// `egress` of a class file: where the agents of the class may send requests to.

#include "config/setting.hpp"
#include "extensions/class_settings.hpp"

namespace hearth::config {

// The rows of the section. Reading checks the patterns, and that the files of credentials are there
// and hold one. A text of settings (read_settings_text()) of an earlier server may have it: that is
// read without a look at the files, which may have gone since.
[[nodiscard]] Settings<extensions::ClassSettings> egress_section();

}  // namespace hearth::config
