#pragma once
// The remote servers, played by the test.

#include "base/clock.hpp"
#include "extensions/http_port.hpp"

#include <hearth/testing/mock.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace hearth::testhost {

// Promises  Parts of replies come only from step(): each at its own time, and only with credit.
// Threads   The test's.
// Lifetime  The clock outlives it.
class HttpReplies final : public extensions::HttpPort {
 public:
  using Reply = std::function<testing::FetchReply(const testing::SentRequest&)>;

  explicit HttpReplies(const Clock& clock) : clock_(clock) {}

  void answer_with(Reply reply) { reply_ = std::move(reply); }

  // Delivers one part that is due; false: no part is due.
  bool step();
  // When the next part is due for which there is credit.
  [[nodiscard]] std::optional<SteadyTime> next_due() const;

  // ---- HttpPort ----
  [[nodiscard]] bool wants_credentials() const override { return false; }
  Result<std::unique_ptr<extensions::RemoteOperation>> make(
      extensions::FetchRequest request) override;

 private:
  class Exchange;

  const Clock& clock_;
  Reply reply_;
  std::vector<Exchange*> running_;  // the started ones, the oldest first
};

}  // namespace hearth::testhost
