#pragma once
// Rules E10 to E17: what a library takes from the system around it, and how it was linked into it.

#include "plugins/admission/elf_image.hpp"
#include "plugins/admission/file_rules.hpp"

#include <vector>

namespace hearth::plugins {

// Adds what `image` breaks of E10 to E17, in their order. Compares with the libraries and the
// sanitizers of this process.
void check_surroundings(const ElfImage& image, std::vector<Finding>& findings);

}  // namespace hearth::plugins
