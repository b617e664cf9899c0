#include "support/recording_logger.hpp"

#include "base/assert.hpp"
#include "base/log_line.hpp"

#include <algorithm>
#include <set>

namespace hearth::testing {

void RecordingLogger::write(LogLevel level, std::string_view event,
                            std::span<const LogField> fields) {
  std::set<std::string_view> keys{"time", "level", "event"};
  for (const LogField& field : fields)
    HEARTH_ASSERT(keys.insert(field.key).second, "a line has a key twice");
  const std::string line =
      render_human_line({.time = {}, .level = level, .name = event, .fields = fields});
  // The line begins with the time and the level, both of fixed width: "00:00:00.000 WARN  ".
  constexpr std::size_t kPrefix = 19;
  std::string kept(to_string(level));
  kept += ' ';
  kept += std::string_view(line).substr(kPrefix);
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(kept));
}

std::vector<std::string> RecordingLogger::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

std::size_t RecordingLogger::count(std::string_view text) const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count_if(
      events_, [&](const std::string& event) { return event.find(text) != std::string::npos; }));
}

void RecordingLogger::clear() {
  const std::lock_guard lock(mutex_);
  events_.clear();
}

}  // namespace hearth::testing
