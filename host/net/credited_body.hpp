#pragma once
// The part of an answer's body that has arrived and was not passed on yet.

#include "base/credit.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::net {

// Promises  Pieces are passed on in order, and only while the credit is positive. Each piece lowers
//           the credit by its bytes; the last piece may make it negative.
// Bounded   The whole body has at most `max_body` bytes.
class CreditedBody {
 public:
  CreditedBody(std::size_t credit, std::size_t max_body) : left_(max_body) {
    raise_credit(credit_, credit);
  }

  void credit(std::size_t bytes) { raise_credit(credit_, bytes); }
  [[nodiscard]] bool has_credit() const { return credit_ > 0; }
  // Whether the waiting bytes use up the credit: the caller then reads no more.
  [[nodiscard]] bool is_full() const { return waiting_ >= credit_; }
  [[nodiscard]] bool is_empty() const { return pieces_.empty(); }

  // False: the body is too long, and the piece is not added.
  [[nodiscard]] bool add(std::string_view piece) {
    if (piece.size() > left_) return false;
    left_ -= piece.size();
    waiting_ += static_cast<std::int64_t>(piece.size());
    if (!piece.empty()) pieces_.emplace_back(piece);
    return true;
  }

  // The next piece, if there is one and the credit is positive.
  [[nodiscard]] std::optional<std::string> take() {
    if (pieces_.empty() || !has_credit()) return std::nullopt;
    std::string piece = std::move(pieces_.front());
    pieces_.pop_front();
    waiting_ -= static_cast<std::int64_t>(piece.size());
    credit_ -= static_cast<std::int64_t>(piece.size());
    return piece;
  }

 private:
  std::int64_t credit_ = 0;
  std::int64_t waiting_ = 0;  // bytes in `pieces_`
  std::size_t left_;          // bytes that may still be added
  std::deque<std::string> pieces_;
};

}  // namespace hearth::net
