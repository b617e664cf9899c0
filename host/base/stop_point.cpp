#include "base/stop_point.hpp"

#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdlib>

#include <signal.h>

namespace hearth {
namespace {

constexpr const char* kVariable = "HEARTH_STOP_AT";

const char* asked_for() {
  return std::getenv(kVariable);  // NOLINT(concurrency-mt-unsafe): nothing changes the environment
}

std::string known_names() {
  std::string names;
  for (const std::string_view name : kStopPoints) names.append("\n  ").append(name);
  return names;
}

}  // namespace

Result<StopRequest> parse_stop_request(std::string_view text) {
  StopRequest request;
  request.name = text.substr(0, text.find(':'));
  if (std::ranges::find(kStopPoints, request.name) == kStopPoints.end()) {
    return Error{Errc::kInvalidArgument, std::string(kVariable) + ": no stop point is called \"" +
                                             request.name + "\". There are:" + known_names()};
  }
  if (request.name.size() == text.size()) return request;
  const std::string_view number = text.substr(request.name.size() + 1);
  const char* const begin = number.data();
  const char* const end = begin + number.size();
  const auto [stopped_at, error] = std::from_chars(begin, end, request.visit);
  if (error != std::errc() || stopped_at != end || request.visit == 0) {
    return Error{Errc::kInvalidArgument,
                 std::string(kVariable) + ": \"" + std::string(number) +
                     "\" is not the number of a visit, which counts from 1"};
  }
  return request;
}

Result<void> check_stop_request() {
  const char* const text = asked_for();
  if (text == nullptr) return {};
  if (const auto request = parse_stop_request(text); request.has_error()) return request.error();
  return {};
}

namespace detail {

const bool kStopRequested = asked_for() != nullptr;

void stop_here(std::string_view name) {
  static const StopRequest request = [] {  // made by the first visit
    const auto parsed = parse_stop_request(asked_for());
    return parsed ? *parsed : StopRequest{};  // an invalid request was refused at the start
  }();
  if (name != request.name) return;
  static std::atomic<unsigned> visits = 0;
  if (++visits != request.visit) return;
  const std::string line = "stopped at " + std::string(name) + "\n";
  static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
  ::raise(SIGSTOP);  // to this thread: it runs no further before all others stop too
}

}  // namespace detail
}  // namespace hearth
