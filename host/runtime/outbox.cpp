#include "runtime/outbox.hpp"

#include "base/assert.hpp"
#include "runtime/event.hpp"

#include <utility>

namespace hearth::runtime {
namespace {

// Limits for what may wait for the device: a sync takes milliseconds, or seconds if the device
// hangs.
constexpr std::size_t kMaxHeldEffects = 4096;
constexpr std::size_t kMaxHeldBytes = std::size_t{4} << 20;

std::size_t text_bytes_of(const FrameEffect& frame) {
  return frame.payload.size() + frame.to.size() * sizeof(ConnectionId);
}
std::size_t text_bytes_of(const CloseEffect& close) {
  return close.reason.size();
}
std::size_t text_bytes_of(const HandshakeEffect& handshake) {
  return handshake.state ? handshake.state->size() : 0;
}
std::size_t text_bytes_of(const PartEffect& part) {
  return part.body.size() + text_bytes(part.head.headers);
}
std::size_t text_bytes_of(const FinishEffect& answer) {
  return text_bytes(answer.head.headers) +
         (answer.outcome.has_error() ? answer.outcome.error().message : *answer.outcome).size();
}
template <class Other>
std::size_t text_bytes_of(const Other& /*effect*/) {
  return 0;
}

}  // namespace

std::size_t bytes_of(const Effect& effect) {
  return std::visit([](const auto& each) { return text_bytes_of(each); }, effect);
}

Outbox::Outbox(OutboxOwner& owner, DurabilityGate* gate, ClientMemory& memory)
    : owner_(owner), gate_(gate), bytes_(memory), self_(std::make_shared<Outbox*>(this)) {}

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
    hold(std::move(effect));
  }
}

bool Outbox::is_crowded() const {
  return gate_ != nullptr &&
         (held_.size() >= kMaxHeldEffects || bytes_.bytes() >= kMaxHeldBytes || bytes_.refused());
}

void Outbox::hold(Effect effect) {
  if (gate_ != nullptr) bytes_.set(bytes_.bytes() + bytes_of(effect));
  held_.push_back(std::move(effect));
}

Effect Outbox::take_first() {
  Effect effect = std::move(held_.front());
  held_.pop_front();
  ++first_;
  if (gate_ != nullptr) bytes_.set(bytes_.bytes() - bytes_of(effect));
  return effect;
}

void Outbox::committed(bool wrote) {
  if (discarding_) return;
  // With a gate, later effects must still wait until these writes are durable. If all held effects
  // wait for earlier answers, an empty frame without receivers takes the place of these writes in
  // the order.
  const bool none_is_new = first_ + held_.size() - 1 <= requested_;
  if (wrote && gate_ != nullptr && (held_.empty() || none_is_new)) hold(FrameEffect{});
  if (held_.empty()) return;
  const std::uint64_t last = first_ + held_.size() - 1;
  if (gate_ == nullptr) {
    release(last);
  } else if (last > requested_) {
    request(last);
  }
}

void Outbox::hold_back() {
  hold(FrameEffect{});  // no receivers
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
  if (ok) {
    release(up_to);
    // Effects that were pushed later and follow no newer write need not wait any more.
    if (requested_ > up_to) return;
    if (!owner_.dirty()) release(first_ + held_.size());
  }
  owner_.synced(ok);
}

void Outbox::release(std::uint64_t up_to) {
  while (!held_.empty() && first_ <= up_to) {
    Effect effect = take_first();
    owner_.apply(effect);
  }
}

void Outbox::withdraw_states(std::uint64_t last_write) {
  std::erase_if(held_, [this, last_write](const Effect& effect) {
    const auto* const frame = std::get_if<FrameEffect>(&effect);
    if (frame == nullptr || frame->state_write <= last_write) return false;
    if (gate_ != nullptr) bytes_.set(bytes_.bytes() - bytes_of(effect));
    return true;
  });
}

void Outbox::discard_all() {
  discarding_ = true;
  while (!held_.empty()) {
    Effect effect = take_first();
    owner_.discard(effect);
  }
}

}  // namespace hearth::runtime
