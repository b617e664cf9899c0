#pragma once
// The log of a program, on stderr; stdout has only the answers of commands. Human lines on a
// terminal, JSON lines elsewhere.

#include "base/logger.hpp"

#include <memory>

namespace hearth {

enum class LogFormat {
  kAuto,   // kHuman if stderr is a terminal, else kJson
  kHuman,  // 12:00:00.000 WARN  plugin.refused file=... reason="..."
  kJson,   // {"time":"2026-01-02T12:00:00.000Z","level":"warn","event":"plugin.refused","file":...}
};

// Waits until each line is written. For commands.
std::unique_ptr<Logger> make_stderr_logger(LogLevel level, LogFormat format);

// Writes through a LogQueue: no caller waits for a line. For a server or a supervisor, which must
// go on when nothing reads stderr.
std::unique_ptr<Logger> make_queued_stderr_logger(LogLevel level, LogFormat format);

}  // namespace hearth
