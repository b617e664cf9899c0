#include "mock/world.hpp"

#include "base/log_line.hpp"

#include <variant>

namespace hearth::mock {
namespace {

std::int64_t whole_ms(std::int64_t ns) {
  return ns / 1'000'000;
}

}  // namespace

void MovedClock::advance_to(SteadyTime when) {
  const std::int64_t ns = when.time_since_epoch().count();
  if (ns <= steady_ns_) return;
  wall_ms_ += whole_ms(ns) - whole_ms(steady_ns_);
  steady_ns_ = ns;
}

void SeededRandom::fill(std::span<std::byte> out) {
  const MutexLock lock(mutex_);
  for (std::byte& each : out) each = static_cast<std::byte>(engine_());
}

void SeededRandom::seed(std::uint64_t seed) {
  const MutexLock lock(mutex_);
  engine_.seed(seed);
}

void Lines::add(LogLevel level, std::string_view text) {
  const MutexLock lock(mutex_);
  lines_.push_back(std::string(to_string(level)) + " " + std::string(text));
}

// The line of a library outside of its agents is the library's own text.
void Lines::write(LogLevel level, std::string_view event, std::span<const LogField> fields) {
  if (event != "plugin.log") return;
  for (const LogField& field : fields) {
    const auto* const text = std::get_if<std::string_view>(&field.value);
    if (field.key == "text" && text != nullptr) add(level, *text);
  }
}

}  // namespace hearth::mock
