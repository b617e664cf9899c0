#include <hearth/retry.hpp>

namespace hearth::detail {

void check_retry(const RetryOptions& options) {
  const auto refuse = [](const char* text) { throw Error(HEARTH_E_INVALID, text); };
  if (options.max_attempts < 1) refuse("retry.maxAttempts must be >= 1");
  if (options.base_delay.count() <= 0) refuse("retry.baseDelayMs must be > 0");
  if (options.max_delay.count() <= 0) refuse("retry.maxDelayMs must be > 0");
  if (options.base_delay > options.max_delay)
    refuse("retry.baseDelayMs must be <= retry.maxDelayMs");
}

bool is_final(const std::exception_ptr& failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return error.is_final();
  } catch (...) {
    return false;
  }
}

bool worth_another(const RetryOptions& options, const std::exception_ptr& failure, int attempt) {
  if (attempt >= options.max_attempts) return false;
  try {
    std::rethrow_exception(failure);
  } catch (const Final&) {
    return false;
  } catch (const std::exception& error) {
    return options.should_retry ? options.should_retry(error, attempt + 1) : !is_final(failure);
  } catch (...) {
    return false;
  }
}

std::chrono::milliseconds retry_delay(const RetryOptions& options, int attempt,
                                      std::uint64_t random) {
  double bound = static_cast<double>(options.base_delay.count());
  const double most = static_cast<double>(options.max_delay.count());
  for (int i = 0; i < attempt && bound < most; ++i) bound *= 2;
  const double share = static_cast<double>(random >> 11) * 0x1.0p-53;  // [0, 1)
  return std::chrono::milliseconds(static_cast<std::int64_t>(share * std::min(bound, most)));
}

RetryOptions read_retry(const Json& record) {
  RetryOptions options;
  if (!record.is_object()) return options;
  options.max_attempts = record.value("max_attempts", int{options.max_attempts});
  options.base_delay =
      std::chrono::milliseconds(record.value("base_delay_ms", options.base_delay.count()));
  options.max_delay =
      std::chrono::milliseconds(record.value("max_delay_ms", options.max_delay.count()));
  return options;
}

Json to_json_retry(const RetryOptions& options) {
  return {{"max_attempts", options.max_attempts},
          {"base_delay_ms", options.base_delay.count()},
          {"max_delay_ms", options.max_delay.count()}};
}

}  // namespace hearth::detail
