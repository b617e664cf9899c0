#pragma once
// Other servers, as a test plays them.

#include "base/clock.hpp"
#include "extensions/http_port.hpp"

#include <hearth/testing/mock.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace hearth::mock {

// Promises  Replies come in step() alone, each part at its own time, and as far as there is credit.
// Threads   The test's.
// Lifetime  The clock outlives it.
class HttpReplies final : public extensions::HttpPort {
 public:
  using Reply = std::function<testing::FetchReply(const testing::SentRequest&)>;

  explicit HttpReplies(const Clock& clock) : clock_(clock) {}

  void answer_with(Reply reply) { reply_ = std::move(reply); }

  // Gives one part that is due; false: none is.
  bool step();
  // When the next part that has credit is due.
  [[nodiscard]] std::optional<SteadyTime> next_due() const;

  // ---- HttpPort ----
  [[nodiscard]] bool wants_credentials() const override { return false; }
  Result<std::unique_ptr<extensions::RemoteOperation>> make(
      extensions::FetchRequest request) override;

 private:
  class Exchange;

  const Clock& clock_;
  Reply reply_;
  std::vector<Exchange*> running_;  // those that have started, the oldest first
};

}  // namespace hearth::mock
