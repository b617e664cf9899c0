#pragma once
// hearth.alarms/1: the host's side, over durable/alarms.hpp.

#include "durable/alarms.hpp"

#include <hearth/ext/alarms.h>

namespace hearth::extensions {

[[nodiscard]] const hearth_alarms_v1& alarms_extension() noexcept;

}  // namespace hearth::extensions
