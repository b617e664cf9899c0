#pragma once
// An operation whose answer comes in parts, for a coroutine that reads them.

#include <hearth/detail/activation.hpp>
#include <hearth/detail/stop.hpp>

#include <coroutine>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::detail {

// One part of an answer, or its end.
struct Part {
  std::string body;
  std::uint32_t flags = 0;           // of hearth_result
  hearth_status status = HEARTH_OK;  // of the end; < 0: `body` says why
  [[nodiscard]] bool is_end() const noexcept { return (flags & HEARTH_RESULT_FINAL) != 0; }
};

// Keeps the parts until they are read, and gives the host credit for each part that was read.
//
// Bounded   By the credit: at most the window of the request, and one part, wait here.
// Lifetime  If it is destroyed before the end (eviction, or the reader drops the rest), it cancels
//           the operation. At most one coroutine waits for it at a time.
class PartsOperation final : public PendingOperation, public Waiter {
 public:
  // `begin(token, id)` submits it, and returns the status.
  // Failure  HostError with the host's text, or with `doing`.
  template <class Begin>
  PartsOperation(Activation& activation, std::string_view doing, const Begin& begin)
      : activation_(activation), context_(activation.context()) {
    const hearth_status status = activation.submit_with(
        *this, token_, [&](std::uint64_t token) { return begin(token, &host_id_); });
    activation.check(status, doing);
  }
  ~PartsOperation() override {
    if (running_) activation_.forget(token_, host_id_);
    activation_.withdraw(*this);
  }
  PartsOperation(const PartsOperation&) = delete;
  PartsOperation& operator=(const PartsOperation&) = delete;

  void on_part(const hearth_result& result) override { take(result); }
  void on_result(const hearth_result& result) override {
    running_ = false;
    take(result);
  }
  [[nodiscard]] const Context& context() const noexcept override { return context_; }

  // A stop of either token cancels it, unless its end has come. Its end is then CANCELLED with
  // `stopped_text`, and parts that were not read are dropped.
  void stop_at(const std::stop_token& given, const std::stop_token& fiber,
               std::string_view stopped_text) {
    stopped_text_ = stopped_text;
    stops_.watch(given, fiber, *this);
  }
  void stop() noexcept override {
    if (!running_) return;
    running_ = false;
    activation_.forget(token_, host_id_);
    parts_.clear();
    parts_.push_back({std::string(stopped_text_), HEARTH_RESULT_FINAL, HEARTH_E_CANCELLED});
    if (waiting_) activation_.release(*this);
  }
  void resume() override {
    const Activation::Scope scope(activation_, context_);
    if (const auto waiting = std::exchange(waiting_, nullptr)) waiting.resume();
  }

  // co_await gives the next part. After the end it always gives the end.
  class [[nodiscard]] Next {
   public:
    explicit Next(PartsOperation& operation) noexcept : operation_(operation) {}
    ~Next() {
      if (!waiting_ || operation_.waiting_ != waiting_) return;
      operation_.waiting_ = nullptr;
      operation_.activation_.withdraw(operation_);
    }
    Next(const Next&) = delete;
    Next& operator=(const Next&) = delete;

    [[nodiscard]] bool await_ready() const noexcept { return !operation_.parts_.empty(); }
    void await_suspend(std::coroutine_handle<> waiting) {
      operation_.context_ = operation_.activation_.context();
      operation_.waiting_ = waiting_ = waiting;
    }
    Part await_resume() {
      operation_.waiting_ = waiting_ = nullptr;
      return operation_.pop();
    }

   private:
    PartsOperation& operation_;
    std::coroutine_handle<> waiting_;
  };
  [[nodiscard]] Next next() noexcept { return Next(*this); }

 private:
  void take(const hearth_result& result) {
    parts_.push_back({std::string(view(result.body)), result.flags, result.status});
    if (const auto waiting = std::exchange(waiting_, nullptr)) waiting.resume();
  }
  Part pop() {
    if (parts_.front().is_end()) return parts_.front();
    Part part = std::move(parts_.front());
    parts_.pop_front();
    if (running_ && !part.body.empty()) {
      const hearth_host* const host = activation_.host();
      // GONE: its end is on the way.
      static_cast<void>(host->credit(host, activation_.id(), host_id_, part.body.size()));
    }
    return part;
  }

  Activation& activation_;
  Context context_;
  std::uint64_t token_ = 0;
  std::uint64_t host_id_ = 0;
  bool running_ = true;
  std::deque<Part> parts_;
  std::coroutine_handle<> waiting_;
  std::string_view stopped_text_;
  StopWatch stops_;
};

}  // namespace hearth::detail
