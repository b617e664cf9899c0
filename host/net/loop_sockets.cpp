#include "net/loop_sockets.hpp"

#include <utility>

namespace hearth::net {

LoopSockets::LoopSockets(asio::io_context& loop, Ready ready)
    : loop_(loop), ready_(std::move(ready)) {}

LoopSockets::~LoopSockets() {
  for (const auto& [number, watched] : watched_) forget(*watched);
}

void LoopSockets::watch(int descriptor, bool reading, bool writing) {
  const auto found = watched_.find(descriptor);
  if (!reading && !writing) {
    if (found == watched_.end()) return;
    forget(*found->second);
    watched_.erase(found);
    return;
  }
  std::shared_ptr<Watched> watched = found != watched_.end() ? found->second : nullptr;
  if (!watched) {
    watched = std::make_shared<Watched>(loop_);
    boost::system::error_code error;
    watched->descriptor.assign(descriptor, error);
    if (error) return;  // the kernel has no room: the caller's deadline ends the wait
    watched->number = descriptor;
    watched_.emplace(descriptor, watched);
  }
  watched->reading = reading;
  watched->writing = writing;
  await(watched);
}

// The socket stays open: it is borrowed.
void LoopSockets::forget(Watched& watched) {
  watched.is_forgotten = true;
  watched.descriptor.release();
}

void LoopSockets::await(const std::shared_ptr<Watched>& watched) {
  if (watched->reading && !std::exchange(watched->read_awaited, true)) {
    watched->descriptor.async_wait(Descriptor::wait_read, [this, watched](const auto&) {
      watched->read_awaited = false;
      if (watched->is_forgotten) return;
      if (watched->reading) ready_(watched->number, true, false);
      if (!watched->is_forgotten) await(watched);
    });
  }
  if (watched->writing && !std::exchange(watched->write_awaited, true)) {
    watched->descriptor.async_wait(Descriptor::wait_write, [this, watched](const auto&) {
      watched->write_awaited = false;
      if (watched->is_forgotten) return;
      if (watched->writing) ready_(watched->number, false, true);
      if (!watched->is_forgotten) await(watched);
    });
  }
}

}  // namespace hearth::net
