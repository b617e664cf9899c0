#pragma once
// A logger that keeps its events, for tests that look at them.

#include "base/logger.hpp"

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::testing {

// Each event is kept as `warn plugin.refused file=... reason="..."`: the human form without the
// time. A line with a key twice ends the test's process.
// Threads   All members are safe to call from any thread.
class RecordingLogger final : public Logger {
 public:
  using Logger::write;  // the override below would hide the form with an initializer list

  [[nodiscard]] bool enabled(LogLevel) const override { return true; }
  void write(LogLevel level, std::string_view event, std::span<const LogField> fields) override;

  // A copy of all events so far, oldest first.
  [[nodiscard]] std::vector<std::string> events() const;

  // How many events so far hold `text` anywhere.
  [[nodiscard]] std::size_t count(std::string_view text) const;
  [[nodiscard]] bool contains(std::string_view text) const { return count(text) > 0; }

  void clear();

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> events_;
};

}  // namespace hearth::testing
