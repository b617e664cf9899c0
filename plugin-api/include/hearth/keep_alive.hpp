#pragma once
// An agent that works is not idle:
//
//     auto held = keep_alive();

#include <hearth/detail/activation.hpp>

#include <utility>

namespace hearth {

// One reference that keeps the agent in memory. Fibers and events in progress do so anyway: this is
// for work that is neither, such as an answer that is waited for from outside.
//
// Promises  Not evicted for idleness while any is held. After a crash the server wakes the agent
//           again; what was held is then gone with the work that it stood for.
// Lifetime  Not beyond the agent's: a member of the agent, or a local of a handler. The end of the
//           agent may destroy it. Move-only.
// Failure   keep_alive() throws HostError; releasing cannot fail.
class [[nodiscard]] KeepAlive {
 public:
  KeepAlive() noexcept = default;  // holds nothing
  // One that throws is not destroyed, and so releases nothing.
  explicit KeepAlive(detail::Activation& activation) : activation_(&activation) {
    const auto& table = detail::need(activation.tables().keep_alive, HEARTH_EXT_KEEP_ALIVE);
    activation.check(table.acquire(activation.host(), activation.id()), "keep alive");
  }
  KeepAlive(KeepAlive&& other) noexcept : activation_(std::exchange(other.activation_, nullptr)) {}
  KeepAlive& operator=(KeepAlive&& other) noexcept {
    if (this != &other) {
      release();
      activation_ = std::exchange(other.activation_, nullptr);
    }
    return *this;
  }
  ~KeepAlive() { release(); }

  // Gives it up now. Again: does nothing.
  void release() noexcept {
    detail::Activation* const activation = std::exchange(activation_, nullptr);
    if (!activation) return;
    // While the agent is destroyed the host answers CLOSING: nothing is held any longer.
    static_cast<void>(
        activation->tables().keep_alive->release(activation->host(), activation->id()));
  }
  [[nodiscard]] explicit operator bool() const noexcept { return activation_ != nullptr; }

 private:
  detail::Activation* activation_ = nullptr;
};

}  // namespace hearth
