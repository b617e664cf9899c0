#pragma once
// A class's kinds of operations in the form that the host reads.

#include <hearth/ext/operations.h>
#include <hearth/method.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace hearth::detail {

// The table of hearth.operation_kinds/1.
// Lifetime  As long-lived as the names and answers, which are literals.
class ListedOperations {
 public:
  explicit ListedOperations(const std::vector<NamedOperation>& operations);
  ListedOperations(const ListedOperations&) = delete;
  ListedOperations& operator=(const ListedOperations&) = delete;

  // Null if there are none.
  [[nodiscard]] const hearth_operation_kinds_v1* table() const {
    return listed_.empty() ? nullptr : &table_;
  }

 private:
  static hearth_bytes text(const Answer& answer) { return slice(std::string_view(answer.text())); }

  std::vector<hearth_operation_kind> listed_;
  hearth_operation_kinds_v1 table_;
};

}  // namespace hearth::detail
