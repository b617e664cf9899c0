#include <hearth/offload.hpp>

namespace hearth::detail {

hearth_status run_job(std::uint64_t number, std::uint32_t cancelled) noexcept {
  Job* const job = Job::from(number);
  if (cancelled == 0) job->run();
  job->release();
  return HEARTH_OK;
}

}  // namespace hearth::detail
