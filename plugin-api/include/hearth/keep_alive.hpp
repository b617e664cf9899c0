#pragma once
// An agent that works is not idle:
//
//     auto held = keep_alive();

#include <hearth/detail/activation.hpp>

#include <utility>

namespace hearth {

// One reference that keeps the agent in memory. Fibers and events in progress do that anyway; use
// this for other work, such as waiting for an answer from outside.
//
// Promises  While any reference is held, the agent is not evicted for idleness. After a crash the
//           server wakes the agent again; the references are gone, together with their work.
// Lifetime  Not beyond the agent's: a member of the agent, or a local of a handler. The end of the
//           agent may destroy it. Move-only.
// Failure   keep_alive() throws HostError; releasing cannot fail.
class [[nodiscard]] KeepAlive {
 public:
  KeepAlive() noexcept = default;  // holds nothing
  // If it throws, it has no reference, and its destructor does not run.
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

  // Releases the reference now. A second call does nothing.
  void release() noexcept {
    detail::Activation* const activation = std::exchange(activation_, nullptr);
    if (!activation) return;
    // While the agent is destroyed the host answers CLOSING: no reference is held then.
    static_cast<void>(
        activation->tables().keep_alive->release(activation->host(), activation->id()));
  }
  [[nodiscard]] explicit operator bool() const noexcept { return activation_ != nullptr; }

 private:
  detail::Activation* activation_ = nullptr;
};

}  // namespace hearth
