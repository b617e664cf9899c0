#include "server/desk.hpp"

#include <utility>

namespace hearth::server {
namespace {

// An administrator waits for each: more at once are a script's mistake.
constexpr std::size_t kMaxWaiting = 64;

Error shutting_down() {
  return {Errc::kClosing, "the server is shutting down"};
}

}  // namespace

Desk::Desk(const storage::DataDirectory& data, Logger& logger, std::string_view failed,
           Refusal refusal)
    : data_(data), logger_(logger), failed_(failed), refusal_(refusal), pool_(1, kMaxWaiting) {}

void Desk::run(const Exchange& exchange, std::function<void()> work) {
  const bool accepted = pool_.run([this, exchange, work = std::move(work)](bool cancelled) {
    if (cancelled) return refuse(exchange, shutting_down());
    if (!succeeds(work))
      refuse(exchange, {Errc::kInternal, "the directory of agents failed; the log says why"});
  });
  if (!accepted) refuse(exchange, too_much());
}

void Desk::run(std::function<void()> work) {
  (void)pool_.run([this, work = std::move(work)](bool cancelled) {
    if (!cancelled) (void)succeeds(work);
  });
}

bool Desk::succeeds(const std::function<void()>& work) const {
  try {
    work();
    return true;
  } catch (const StorageError& failure) {  // agent boundary: the directory of agents failed
    logger_.write(LogLevel::kError, failed_, {{"error", std::string_view(failure.what())}});
    return false;
  }
}

Error Desk::too_much() const {
  return stopping_ ? shutting_down()
                   : Error{Errc::kUnavailable, "too much is asked at once; try again"};
}

void Desk::stop() {
  stopping_ = true;
  pool_.stop();
}

storage::Directory& Desk::directory() {
  if (!directory_) directory_.emplace(data_.directory_path(), data_.directory_vfs());
  return *directory_;
}

}  // namespace hearth::server
