#pragma once
// A page of a list of records, as a JSON array.

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::durable {

// The page is full once it has `limit` records, or `most_bytes` or more. So each page but the last
// has at least one record.
class RecordPage {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{4} << 20;

  explicit RecordPage(std::size_t limit, std::size_t most_bytes = kMostBytes)
      : limit_(limit), most_bytes_(most_bytes) {}

  [[nodiscard]] bool full() const { return count_ >= limit_ || text_.size() >= most_bytes_; }
  // False: the page is full now, and takes no further record.
  bool add(std::string_view record) {
    if (count_++ > 0) text_ += ',';
    text_ += record;
    return !full();
  }
  // The array. Once, at the end.
  [[nodiscard]] std::string take() {
    text_ += ']';
    return std::move(text_);
  }

 private:
  const std::size_t limit_;
  const std::size_t most_bytes_;
  std::size_t count_ = 0;
  std::string text_ = "[";
};

}  // namespace hearth::durable
