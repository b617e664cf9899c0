#include <hearth/operation.hpp>

namespace hearth::detail {

void OperationAwaiter::on_result(const hearth_result& result) {
  status_ = result.status;
  if (status_ < 0) error_ = view(result.body);
  waiting_.resume();
}

bool OperationAwaiter::submit(hearth_bytes request, std::coroutine_handle<> waiting) {
  context_ = activation_.context();
  status_ = activation_.submit(operation_, request, *this, token_, host_id_);
  if (status_ < 0) {
    error_ = activation_.last_error(status_, name_);
    return false;
  }
  waiting_ = waiting;
  return true;
}

void OperationAwaiter::finish() {
  waiting_ = nullptr;
  if (status_ >= 0) return;
  throw HostError(status_, error_.empty()
                               ? std::string(name_) + ": " + std::string(status_name(status_))
                               : error_);
}

}  // namespace hearth::detail
