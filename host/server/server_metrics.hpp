#pragma once
// Figures about the process as a whole: what it is, how long it runs, what of the machine it uses,
// what its log lost.

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "telemetry/metrics.hpp"

#include <vector>

namespace hearth::server {

// hearth_build_info, hearth_uptime_seconds, hearth_process_*, hearth_log_lost_bytes_total,
// hearth_log_lines_dropped_total.
//
// Cost       Nothing until somebody scrapes; then a few reads of /proc.
// Failure    What the system does not tell is reported as 0.
// Threads    Those of text().
// Lifetime   The metrics, the logger and the clock outlive it.
class ServerMetrics {
 public:
  ServerMetrics(Metrics& metrics, const Logger& logger, const Clock& clock);

 private:
  std::vector<Metrics::Watch> watches_;
};

}  // namespace hearth::server
