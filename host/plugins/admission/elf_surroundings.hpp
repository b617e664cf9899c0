#pragma once
// Rules E10 to E17: what a library needs from its system, and how it was linked.

#include "plugins/admission/elf_image.hpp"
#include "plugins/admission/file_rules.hpp"

#include <vector>

namespace hearth::plugins {

// Adds a finding for each rule of E10 to E17 that `image` breaks, in their order. Compares with the
// libraries and the sanitizers of this process.
void check_surroundings(const ElfImage& image, std::vector<Finding>& findings);

}  // namespace hearth::plugins
