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

Outbox::Outbox(EffectPort& port, std::function<bool()> dirty, bool awaits_device,
               ClientMemory& memory)
    : port_(port), dirty_(std::move(dirty)), awaits_device_(awaits_device), bytes_(memory) {}

Outbox::~Outbox() {
  HEARTH_ASSERT(held_.empty(), "outbox destroyed with effects held: flush or discard first");
}

bool Outbox::open() const {
  return held_.empty() && !discarding_ && !dirty_();
}

void Outbox::push(Effect effect) {
  if (discarding_) {
    port_.discard(effect);
  } else if (open()) {
    port_.apply(effect);
  } else {
    hold(std::move(effect));
  }
}

bool Outbox::is_crowded() const {
  return awaits_device_ &&
         (held_.size() >= kMaxHeldEffects || bytes_.bytes() >= kMaxHeldBytes || bytes_.refused());
}

void Outbox::hold(Effect effect) {
  if (awaits_device_) bytes_.set(bytes_.bytes() + bytes_of(effect));
  held_.push_back(std::move(effect));
}

Effect Outbox::take_first() {
  Effect effect = std::move(held_.front());
  held_.pop_front();
  ++first_;
  if (awaits_device_) bytes_.set(bytes_.bytes() - bytes_of(effect));
  return effect;
}

Outbox::Mark Outbox::committed(bool wrote) {
  if (discarding_) return 0;
  if (!awaits_device_) {
    release(last());
    return 0;
  }
  // Later effects must still wait until these writes are durable. If all held effects wait for
  // earlier answers, an empty frame without receivers takes the place of these writes in the order.
  if (wrote && (held_.empty() || last() <= requested_)) hold(FrameEffect{});
  if (held_.empty() || last() <= requested_) return 0;
  return requested_ = last();
}

Outbox::Mark Outbox::hold_back() {
  hold(FrameEffect{});  // no receivers
  return requested_ = last();
}

bool Outbox::durable(Mark up_to) {
  if (discarding_) return false;
  release(up_to);
  // Effects that were pushed later and follow no newer write need not wait any more.
  if (requested_ > up_to) return false;
  if (!dirty_()) release(last());
  return true;
}

void Outbox::release(Mark up_to) {
  while (!held_.empty() && first_ <= up_to) {
    Effect effect = take_first();
    port_.apply(effect);
  }
}

void Outbox::withdraw_states(std::uint64_t last_write) {
  std::erase_if(held_, [this, last_write](const Effect& effect) {
    const auto* const frame = std::get_if<FrameEffect>(&effect);
    if (frame == nullptr || frame->state_write <= last_write) return false;
    if (awaits_device_) bytes_.set(bytes_.bytes() - bytes_of(effect));
    return true;
  });
}

void Outbox::discard_all() {
  discarding_ = true;
  while (!held_.empty()) {
    Effect effect = take_first();
    port_.discard(effect);
  }
}

}  // namespace hearth::runtime
