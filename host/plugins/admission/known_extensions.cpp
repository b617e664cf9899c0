#include "plugins/admission/known_extensions.hpp"

#include "extensions/registry.hpp"

#include <hearth/ext/methods.h>
#include <hearth/ext/offload.h>
#include <hearth/ext/operations.h>
#include <hearth/ext/schema.h>

namespace hearth::plugins {

bool knows_extension(std::string_view id) noexcept {
  return extensions::find_extension(id) != nullptr || id == HEARTH_EXT_METHODS ||
         id == HEARTH_EXT_OFFLOAD || id == HEARTH_EXT_OPERATION_KINDS || id == HEARTH_EXT_SCHEMA;
}

}  // namespace hearth::plugins
