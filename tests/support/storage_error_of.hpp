#pragma once
// The storage error of an action that fails.

#include "base/error.hpp"

#include <string>

namespace hearth::testing {

// The text of the StorageError that it throws; empty if it throws none.
std::string storage_error_of(const auto& action) {
  try {
    action();
  } catch (const StorageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace hearth::testing
