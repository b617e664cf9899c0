#pragma once
// Metrics of the whole process: its build, uptime, use of the machine, and lines that its log lost.

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "telemetry/metrics.hpp"

#include <vector>

namespace hearth::server {

// hearth_build_info, hearth_uptime_seconds, hearth_process_*, hearth_log_lost_bytes_total,
// hearth_log_lines_dropped_total.
//
// Cost       Only when /metrics is read: a few reads of /proc.
// Failure    A value that the system does not provide is 0.
// Threads    As Metrics::text().
// Lifetime   The metrics, the logger and the clock outlive it.
class ServerMetrics {
 public:
  ServerMetrics(Metrics& metrics, const Logger& logger, const Clock& clock);

 private:
  std::vector<Metrics::Watch> watches_;
};

}  // namespace hearth::server
