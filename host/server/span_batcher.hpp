#pragma once
// When spans leave for a collector, and what becomes of those that it does not take. Decisions
// alone: no clock, no socket.

#include "base/clock.hpp"
#include "server/span_queue.hpp"

#include <chrono>
#include <cstddef>
#include <optional>

namespace hearth::server {

// One batch is on its way at most. What the collector answers decides (OTLP/HTTP):
//
//   2xx                        the spans were taken
//   429, 502, 503, 504         the batch is sent again, after Retry-After or a growing pause
//   no answer                  the same
//   any other status           the batch is dropped: it would be refused again
//
// A batch is dropped after kMostTries. The pause before the next batch remains: a collector that is
// away is asked less and less often, until it answers.
//
// Threads   One.
class SpanBatcher {
 public:
  static constexpr std::size_t kBatch = 512;
  static constexpr int kMostTries = 4;
  static constexpr std::chrono::milliseconds kDelay{1'000};  // so that spans leave together
  static constexpr std::chrono::milliseconds kFirstPause{1'000};
  static constexpr std::chrono::milliseconds kLongestPause{60'000};

  struct Answer {
    int status = 0;  // 0: none
    std::optional<std::chrono::seconds> retry_after;
  };
  enum class Verdict { kTaken, kRefused, kAgain, kGivenUp };

  // When the next batch, or the same one again, is to leave. Nothing: no span waits, or a batch is
  // on its way.
  [[nodiscard]] std::optional<SteadyTime> due(const SpanQueue::Waiting& waiting) const;
  // A batch leaves.
  void sends() { is_sending_ = true; }
  // `share`: random, from 0 to 1. It keeps servers from asking a collector at the same moments.
  Verdict answered(const Answer& answer, double share, SteadyTime now);

  // A batch is kept to be sent again.
  [[nodiscard]] bool keeps_batch() const { return tries_ > 0; }

 private:
  bool is_sending_ = false;
  int tries_ = 0;     // of the batch that is kept
  int failures_ = 0;  // since the last answer that took spans, or refused them
  SteadyTime not_before_{};
};

}  // namespace hearth::server
