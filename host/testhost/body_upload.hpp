#pragma once
// A request whose body a test sends in pieces.

#include "extensions/remote_operation.hpp"

#include <hearth/testing/mock.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::testhost {

class TestHost;

// Threads   The test's.
// Lifetime  The world outlives it. The agent's code, and the test, may go earlier.
class BodyUpload final : public testing::detail::Upload,
                         public std::enable_shared_from_this<BodyUpload> {
 public:
  explicit BodyUpload(TestHost& host) : host_(host) {}

  [[nodiscard]] const std::shared_ptr<testing::detail::CallRecord>& call() const { return record_; }
  [[nodiscard]] extensions::BodyReader reader();

  // ---- Upload ----
  [[nodiscard]] std::shared_ptr<const testing::detail::CallRecord> record() const override {
    return record_;
  }
  void send(std::string_view piece) override;
  void end() override { finish(std::string()); }
  void cut() override { finish(Error{Errc::kNotFound, "the client has left"}); }
  [[nodiscard]] std::size_t unread() const override;

 private:
  class Read;
  void finish(Result<std::string> outcome);
  // What has come goes on once no code of the agent runs.
  void pass_on();
  void pass_on_now();

  TestHost& host_;
  const std::shared_ptr<testing::detail::CallRecord> record_ =
      std::make_shared<testing::detail::CallRecord>();
  std::deque<std::string> pieces_;
  std::optional<Result<std::string>> end_;  // of the body
  Read* read_ = nullptr;                    // the agent reads
};

}  // namespace hearth::testhost
