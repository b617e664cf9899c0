#include "net/outgoing_queue.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <utility>

namespace hearth::net {
namespace {

// At this size an own piece is closed and another begun, because a piece is freed only when all of
// it was sent.
constexpr std::size_t kLargestPiece = std::size_t{256} << 10;

}  // namespace

void OutgoingQueue::append(std::string_view bytes) {
  if (bytes.empty()) return;
  const bool begins = pieces_.size() == first_ || pieces_.back().shared.has_value() ||
                      pieces_.back().own.size() >= kLargestPiece;
  // There may be many small pieces behind others. A buffer of the pool for each would take most of
  // the memory.
  const bool is_first = pieces_.size() == first_;
  if (begins) {
    pieces_.push_back(
        Piece{.own = is_first ? pool_.take() : std::string(), .shared = std::nullopt});
  }
  pieces_.back().own.append(bytes);
  size_ += bytes.size();
  own_ += bytes.size();
}

void OutgoingQueue::append(std::string_view head, SharedBytes bytes) {
  if (bytes.view().empty()) return append(head);
  if (pieces_.size() == first_ || pieces_.back().shared.has_value()) pieces_.emplace_back();
  size_ += head.size() + bytes.view().size();
  own_ += head.size();
  pieces_.back().own.append(head);
  pieces_.back().shared = std::move(bytes);
}

std::span<const asio::const_buffer> OutgoingQueue::front(Buffers& into) const {
  std::size_t count = 0;
  std::size_t skip = sent_;
  for (std::size_t i = first_; i < pieces_.size(); ++i) {
    for (std::string_view part : {std::string_view(pieces_[i].own), pieces_[i].behind()}) {
      const std::size_t sent = std::min(skip, part.size());
      skip -= sent;
      if (part.size() == sent) continue;
      part.remove_prefix(sent);
      into[count++] = asio::const_buffer(part.data(), part.size());
      if (count == into.size()) return into;
    }
  }
  return std::span(into).first(count);
}

void OutgoingQueue::drop(std::size_t bytes) {
  HEARTH_DEBUG_ASSERT(bytes <= size_, "more has left than was there");
  size_ -= bytes;
  while (bytes != 0) {
    const std::size_t left = pieces_[first_].size() - sent_;
    const std::size_t taken = std::min(left, bytes);
    sent_ += taken;
    bytes -= taken;
    if (taken == left) free_front();
  }
}

void OutgoingQueue::free_front() {
  Piece& piece = pieces_[first_];
  own_ -= piece.own.size();
  pool_.give(std::move(piece.own));
  piece = Piece{};
  sent_ = 0;
  if (++first_ < pieces_.size()) {
    // Sent pieces are at most half of the list, so that moving the others costs little a piece.
    if (first_ < kMostAtOnce || first_ < pieces_.size() / 2) return;
    pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(first_));
  } else if (pieces_.capacity() <= kMostAtOnce) {
    pieces_.clear();
  } else {
    pieces_ = std::vector<Piece>();
  }
  first_ = 0;
}

void OutgoingQueue::clear() {
  while (size_ != 0) drop(std::min(size_, pieces_[first_].size() - sent_));
}

std::string OutgoingQueue::take_all() {
  std::string all;
  all.reserve(size_);
  for (std::size_t i = first_; i < pieces_.size(); ++i)
    all.append(pieces_[i].own).append(pieces_[i].behind());
  all.erase(0, sent_);
  clear();
  return all;
}

}  // namespace hearth::net
