#pragma once
// hearth.fibers/2: the C functions of the host's side, over managed_fibers.hpp and fibers.hpp.

#include <hearth/ext/fibers_2.h>

namespace hearth::extensions {

[[nodiscard]] const hearth_fibers_v2& fibers_2_extension() noexcept;

}  // namespace hearth::extensions
