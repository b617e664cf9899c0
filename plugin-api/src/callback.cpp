#include <hearth/callback.hpp>

namespace hearth::detail {

bool found(const Activation& activation, hearth_status status, std::string_view doing) {
  if (status == HEARTH_E_NOT_FOUND) return false;
  activation.check(status, doing);
  return true;
}

}  // namespace hearth::detail
