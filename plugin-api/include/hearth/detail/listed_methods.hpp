#pragma once
// A list of methods in the form that the host reads.

#include <hearth/ext/methods.h>
#include <hearth/method.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::detail {

// The table of hearth.methods/1 for a list of methods.
// Lifetime  As long-lived as the names and descriptions of the methods, which are literals.
class ListedMethods {
 public:
  explicit ListedMethods(const std::vector<Method>& methods);
  ListedMethods(const ListedMethods&) = delete;
  ListedMethods& operator=(const ListedMethods&) = delete;

  // Null if there are none.
  [[nodiscard]] const hearth_methods_v1* table() const {
    return listed_.empty() ? nullptr : &table_;
  }

 private:
  hearth_bytes keep(std::string text);

  std::vector<std::string> texts_;
  std::vector<hearth_method> listed_;
  hearth_methods_v1 table_;
};

}  // namespace hearth::detail
