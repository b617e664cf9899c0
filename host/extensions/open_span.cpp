#include "extensions/open_span.hpp"

#include <algorithm>
#include <cmath>

namespace hearth::extensions {

std::size_t SpanRecord::bytes() const {
  std::size_t bytes = sizeof(SpanRecord) + name.size() + error.size();
  for (const auto& [key, value] : attributes) {
    bytes += sizeof(attributes.front()) + key.size();
    if (const auto* const text = std::get_if<std::string>(&value)) bytes += text->size();
  }
  return bytes;
}

// By the last 56 bits, which are random in every trace (W3C Trace Context, level 2); a double has
// 53 of them.
bool is_sampled(const std::array<std::uint64_t, 2>& trace, double ratio) {
  constexpr int kRandomBits = 56;
  constexpr int kBits = 53;
  const std::uint64_t number =
      (trace[1] & ((std::uint64_t{1} << kRandomBits) - 1)) >> (kRandomBits - kBits);
  return static_cast<double>(number) < std::ldexp(ratio, kBits);
}

OpenSpan::OpenSpan(SpanLog* log, const Span& span, SpanKind kind) {
  if (log == nullptr || !span.is_recorded()) return;
  open_ =
      std::make_unique<Open>(Open{.log = *log, .began = log->clock().steady_now(), .record = {}});
  open_->record.span = span;
  open_->record.kind = kind;
  open_->record.began = log->clock().wall_now();
}

OpenSpan& OpenSpan::operator=(OpenSpan&& other) noexcept {
  std::swap(open_, other.open_);
  return *this;
}

OpenSpan::~OpenSpan() {
  if (!open_) return;
  fail("cancelled");
  end();
}

void OpenSpan::name(std::string name) {
  if (open_) open_->record.name = std::move(name);
}

void OpenSpan::set(std::string_view key, SpanValue value) {
  if (!open_) return;
  auto& all = open_->record.attributes;
  const auto found = std::ranges::find(all, key, &std::pair<std::string, SpanValue>::first);
  if (found != all.end()) {
    found->second = std::move(value);
  } else {
    all.emplace_back(key, std::move(value));
  }
}

void OpenSpan::fail(std::string_view error) {
  if (open_) open_->record.error = error;
}

void OpenSpan::end() {
  if (!open_) return;
  const std::unique_ptr<Open> ended = std::move(open_);
  ended->record.length = ended->log.clock().steady_now() - ended->began;
  ended->log.record(std::move(ended->record));
}

}  // namespace hearth::extensions
