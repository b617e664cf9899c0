#include "api/failure_text.hpp"

namespace hearth::api {
namespace {

// Of a traceparent: 00-TRACE-SPAN-FLAGS.
constexpr std::size_t kTraceAt = 3;
constexpr std::size_t kTraceLength = 32;

}  // namespace

std::string FailureText::of(const Error& error) const {
  if (error.code != Errc::kPlugin || shows_all_) return error.message;
  if (span_.is_none()) return "the method failed";
  return "the method failed (trace " + span_.text().substr(kTraceAt, kTraceLength) + ")";
}

}  // namespace hearth::api
