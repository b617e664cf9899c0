#include "extensions/trace.hpp"

#include "extensions/open_span.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

namespace hearth::extensions {
namespace {

constexpr std::size_t kTextBytes = 55;  // of version 00; a later version may continue with a dash
constexpr std::uint8_t kSampled = 1;    // the one flag that later versions have too

void append_hex(std::string& text, std::uint64_t value, int digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    text += kDigits[(value >> static_cast<unsigned>(shift)) & 15U];
}

// At most 16 digits, lower case.
std::optional<std::uint64_t> read_hex(std::string_view text) {
  std::uint64_t value = 0;
  for (const char c : text) {
    const bool is_letter = c >= 'a' && c <= 'f';
    if (!is_letter && (c < '0' || c > '9')) return std::nullopt;
    value = value << 4U | static_cast<std::uint64_t>(is_letter ? c - 'a' + 10 : c - '0');
  }
  return value;
}

}  // namespace

std::string Span::text() const {
  std::string text;
  if (is_none()) return text;
  text.reserve(kTextBytes);
  text = "00-";
  append_hex(text, trace[0], 16);
  append_hex(text, trace[1], 16);
  text += '-';
  append_hex(text, id, 16);
  text += '-';
  append_hex(text, flags, 2);
  return text;
}

Span read_span(std::string_view text) {
  if (text.size() < kTextBytes || text[2] != '-' || text[35] != '-' || text[52] != '-') return {};
  const auto version = read_hex(text.substr(0, 2));
  if (!version || *version == 0xff) return {};
  if (text.size() > kTextBytes && (*version == 0 || text[kTextBytes] != '-')) return {};
  const auto high = read_hex(text.substr(3, 16));
  const auto low = read_hex(text.substr(19, 16));
  const auto id = read_hex(text.substr(36, 16));
  const auto flags = read_hex(text.substr(53, 2));
  if (!high || !low || !id || !flags || (*high == 0 && *low == 0)) return {};
  const auto all = static_cast<std::uint8_t>(*flags);
  return {.trace = {*high, *low},
          .id = *id,
          .flags = *version == 0 ? all : static_cast<std::uint8_t>(all & kSampled)};
}

SpanSource::SpanSource(Random& random, SpanLog* log) : state_(0), log_(log) {
  random.fill(std::as_writable_bytes(std::span(&state_, 1)));
}

// SplitMix64: it visits every number once before it repeats one.
std::uint64_t SpanSource::next() {
  std::uint64_t mixed = 0;
  while (mixed == 0) {
    state_ += 0x9E3779B97F4A7C15U;
    mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
    mixed ^= mixed >> 31U;
  }
  return mixed;
}

Span SpanSource::root() {
  const std::uint64_t high = next();
  const std::uint64_t low = next();
  Span span{.trace = {high, low}, .id = next()};
  if (log_ != nullptr && !is_sampled(span.trace, log_->ratio())) span.flags = 0;
  return span;
}

Span SpanSource::below(const Span& cause) {
  if (cause.is_none()) return root();
  return {.trace = cause.trace, .id = next(), .flags = cause.flags, .parent = cause.id};
}

std::string new_trace(Random& random) {
  return SpanSource(random).root().text();
}

std::string valid_trace(std::string_view text) {
  return read_span(text).text();
}

}  // namespace hearth::extensions
