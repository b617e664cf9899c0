#pragma once
// `operations` of a class file: how long the ledger keeps settled operations, and how many the
// agents of the class may begin on one day.

#include "config/setting.hpp"
#include "extensions/class_settings.hpp"

namespace hearth::config {

[[nodiscard]] Settings<extensions::ClassSettings> operations_section();

}  // namespace hearth::config
