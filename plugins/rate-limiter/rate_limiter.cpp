// A rate limiter as an object: one for each limited client, called with plain HTTP.
//
//   methods   take(cost = 1) -> {"allowed", "remaining", "retry_after_ms"}
//             peek() -> the same, without taking a token
//             reset(): the bucket is full again
//   options   capacity: tokens of a full bucket (10); per_second: tokens that are added (1)
//
// The bucket is two numbers, stored by key: the tokens at a moment, and that moment. Nothing runs
// between calls.

#include <hearth/agent.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>

class RateLimiter : public hearth::Agent {
 public:
  struct Options {
    double capacity = 10;
    double per_second = 1;
    HEARTH_FIELDS(capacity, per_second)
  };
  explicit RateLimiter(Options options) : options_(options) {
    if (!(options_.capacity >= 1) || !(options_.per_second > 0))
      throw hearth::Error(HEARTH_E_INVALID, "capacity must be 1 or more, per_second more than 0");
  }

  static void methods(hearth::Methods<RateLimiter>& m) {
    m.add("take", &RateLimiter::take, "Takes tokens (1), if there are so many.");
    m.add("peek", &RateLimiter::peek, hearth::kReadOnly, "What take() would find.");
    m.add("reset", &RateLimiter::reset, "Fills the bucket.");
  }

  struct Answer {
    bool allowed = false;
    double remaining = 0;             // whole tokens
    std::int64_t retry_after_ms = 0;  // until the same call is allowed; 0: it was
    HEARTH_FIELDS(allowed, remaining, retry_after_ms)
  };

  Answer take(std::optional<double> cost) {
    const double wanted = checked(cost);
    Bucket bucket = bucket_now();
    const Answer answer = judge(bucket, wanted);
    if (answer.allowed) bucket.tokens -= wanted;
    // Without tokens taken nothing is written, except after the clock was set back: the bucket
    // fills from then on.
    if (answer.allowed || was_set_back_) kv().put("bucket", bucket);
    return answer;
  }

  Answer peek(std::optional<double> cost) { return judge(bucket_now(), checked(cost)); }

  void reset() { kv().remove("bucket"); }

 private:
  struct Bucket {
    double tokens = 0;
    std::int64_t at_ms = 0;  // Unix time
    HEARTH_FIELDS(tokens, at_ms)
  };

  [[nodiscard]] double checked(std::optional<double> cost) const {
    const double wanted = cost.value_or(1);
    if (wanted > 0 && wanted <= options_.capacity) return wanted;
    throw hearth::Error(HEARTH_E_INVALID, "a cost is more than 0 and at most the capacity");
  }

  // If the clock was set back, no token is added or removed.
  [[nodiscard]] Bucket bucket_now() {
    const std::int64_t now_ms = now().time_since_epoch().count();
    const auto stored = kv().get<Bucket>("bucket");
    was_set_back_ = stored && stored->at_ms > now_ms;
    if (!stored) return {options_.capacity, now_ms};
    const double seconds =
        static_cast<double>(std::max<std::int64_t>(now_ms - stored->at_ms, 0)) / 1000;
    return {std::min(options_.capacity, stored->tokens + seconds * options_.per_second), now_ms};
  }

  [[nodiscard]] Answer judge(const Bucket& bucket, double wanted) const {
    if (bucket.tokens >= wanted) return {true, std::floor(bucket.tokens - wanted), 0};
    const double seconds = (wanted - bucket.tokens) / options_.per_second;
    return {false, std::floor(bucket.tokens), static_cast<std::int64_t>(std::ceil(seconds * 1000))};
  }

  const Options options_;
  bool was_set_back_ = false;  // the clock, since the bucket was written
};

HEARTH_PLUGIN("rate-limiter", "1.0.0", RateLimiter)
