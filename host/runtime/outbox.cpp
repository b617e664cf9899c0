#include "runtime/outbox.hpp"

#include "base/assert.hpp"

#include <utility>

namespace hearth::runtime {

Outbox::Outbox(OutboxOwner& owner, DurabilityGate* gate)
    : owner_(owner), gate_(gate), self_(std::make_shared<Outbox*>(this)) {}

Outbox::~Outbox() {
  *self_ = nullptr;
  HEARTH_ASSERT(held_.empty(), "outbox destroyed with effects held: flush or discard first");
}

bool Outbox::open() const {
  return held_.empty() && !discarding_ && !owner_.dirty();
}

void Outbox::push(Effect effect) {
  if (discarding_) {
    owner_.discard(effect);
  } else if (open()) {
    owner_.apply(effect);
  } else {
    held_.push_back(std::move(effect));
  }
}

void Outbox::flush() {
  if (discarding_) return;
  const bool wrote = owner_.dirty();
  if (wrote) owner_.commit();
  // Later effects must still wait for these writes, if somebody else must make them durable. When
  // nothing is held but what waits for an earlier answer, an empty frame to nobody holds their
  // place in the order.
  const bool none_is_new = first_ + held_.size() - 1 <= requested_;
  if (wrote && gate_ != nullptr && (held_.empty() || none_is_new))
    held_.emplace_back(FrameEffect{});
  if (held_.empty()) return;
  const std::uint64_t last = first_ + held_.size() - 1;
  if (gate_ == nullptr) {
    release(last);
  } else if (last > requested_) {
    request(last);
  }
}

void Outbox::hold_back() {
  held_.emplace_back(FrameEffect{});  // to nobody
  request(first_ + held_.size() - 1);
}

void Outbox::request(std::uint64_t up_to) {
  requested_ = up_to;
  gate_->request([self = self_, up_to](bool ok) {
    if (*self != nullptr) (*self)->durable(up_to, ok);
  });
}

void Outbox::durable(std::uint64_t up_to, bool ok) {
  if (discarding_) return;
  if (!ok) {
    owner_.durability_lost();
    return;
  }
  release(up_to);
  // What was pushed since then and follows no later write has nothing left to wait for.
  if (requested_ > up_to) return;
  if (!owner_.dirty()) release(first_ + held_.size());
  owner_.all_durable();
}

void Outbox::release(std::uint64_t up_to) {
  while (!held_.empty() && first_ <= up_to) {
    Effect effect = std::move(held_.front());
    held_.pop_front();
    ++first_;
    owner_.apply(effect);
  }
}

void Outbox::withdraw_states(std::uint64_t last_write) {
  std::erase_if(held_, [last_write](const Effect& effect) {
    const auto* const frame = std::get_if<FrameEffect>(&effect);
    return frame != nullptr && frame->state_write > last_write;
  });
}

void Outbox::discard_all() {
  discarding_ = true;
  while (!held_.empty()) {
    Effect effect = std::move(held_.front());
    held_.pop_front();
    ++first_;
    owner_.discard(effect);
  }
}

}  // namespace hearth::runtime
