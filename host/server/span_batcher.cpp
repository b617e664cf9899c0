#include "server/span_batcher.hpp"

#include <algorithm>

namespace hearth::server {
namespace {

using std::chrono::milliseconds;

bool may_pass(int status) {
  return status == 0 || status == 429 || (status >= 502 && status <= 504);
}

}  // namespace

std::optional<SteadyTime> SpanBatcher::due(const SpanQueue::Waiting& waiting) const {
  if (is_sending_) return std::nullopt;
  if (keeps_batch()) return not_before_;
  if (waiting.spans == 0) return std::nullopt;
  const milliseconds delay = waiting.spans >= kBatch ? milliseconds(0) : kDelay;
  return std::max(not_before_, waiting.since + delay);
}

SpanBatcher::Verdict SpanBatcher::answered(const Answer& answer, double share, SteadyTime now) {
  is_sending_ = false;
  if (!may_pass(answer.status)) {
    tries_ = 0;
    failures_ = 0;
    return answer.status >= 200 && answer.status < 300 ? Verdict::kTaken : Verdict::kRefused;
  }
  constexpr int kMostDoublings = 10;
  milliseconds pause =
      std::min(kLongestPause, kFirstPause * (1 << std::min(failures_, kMostDoublings)));
  pause -= milliseconds(static_cast<std::int64_t>(static_cast<double>(pause.count()) * share / 2));
  if (answer.retry_after) pause = std::min<milliseconds>(*answer.retry_after, kLongestPause);
  ++failures_;
  not_before_ = now + pause;
  if (++tries_ < kMostTries) return Verdict::kAgain;
  tries_ = 0;
  return Verdict::kGivenUp;
}

}  // namespace hearth::server
