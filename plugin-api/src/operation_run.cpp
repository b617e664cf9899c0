#include <hearth/detail/operation_run.hpp>

namespace hearth::detail {

void release_joined(Activation& activation, const std::string& id) {
  const auto [first, last] = activation.operation_waiters().equal_range(id);
  for (auto each = first; each != last; ++each) activation.release(*each->second);
  activation.operation_waiters().erase(first, last);
}

}  // namespace hearth::detail
