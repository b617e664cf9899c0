#pragma once
// Metrics of the whole process: its build, uptime, use of the machine, and lines that its log lost.

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "storage/data_directory.hpp"
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

// hearth_storage_free_bytes, hearth_storage_size_bytes (of the disk of the data directory; 0 if the
// system does not say) and hearth_storage_full. The metrics and the directory outlive the result.
[[nodiscard]] std::vector<Metrics::Watch> watch_storage(Metrics& metrics,
                                                        const storage::DataDirectory& data);

}  // namespace hearth::server
