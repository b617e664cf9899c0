#include "server/event_ring.hpp"

#include "base/clock.hpp"
#include "json/json.hpp"
#include "protocol/class_segment.hpp"

#include <charconv>
#include <utility>
#include <variant>

namespace hearth::server {
namespace {

std::string text_of_field(std::span<const LogField> fields, std::string_view key) {
  for (const LogField& field : fields) {
    const auto* const text = std::get_if<std::string_view>(&field.value);
    if (field.key == key && text != nullptr) return std::string(text->substr(0, kMaxLogValueBytes));
  }
  return {};
}

bool is_or_any(std::string_view wanted, std::string_view found) {
  return wanted.empty() || wanted == found;
}

}  // namespace

std::size_t EventRing::Entry::bytes() const {
  return sizeof(Entry) + segment.size() + agent.size() + trace.size() + line.size();
}

bool EventRing::Entry::passes(const EventFilter& filter) const {
  return level >= filter.level && at_ms >= filter.since_ms.value_or(at_ms) &&
         is_or_any(filter.segment, segment) && is_or_any(filter.agent, agent) &&
         trace.find(filter.trace) != std::string::npos;
}

EventRing::EventRing(std::string name, std::size_t max_bytes)
    : name_(std::move(name)), max_bytes_(max_bytes) {}

void EventRing::put(const LogEvent& event) {
  const std::string agent_class = text_of_field(event.fields, "class");
  entries_.push_back({.at_ms = unix_millis(event.time),
                      .level = event.level,
                      .segment = agent_class.empty() ? "" : protocol::kebab_case(agent_class),
                      .agent = text_of_field(event.fields, "agent"),
                      .trace = text_of_field(event.fields, "trace"),
                      .line = render_json_line(event)});
  bytes_ += entries_.back().bytes();
  ++newest_;
  while (bytes_ > max_bytes_) {
    bytes_ -= entries_.front().bytes();
    dropped_until_ms_ = entries_.front().at_ms;
    entries_.pop_front();
  }
}

EventRing::Cursor EventRing::begin(const EventFilter& filter) const {
  if (!filter.since_ms) return {.number = newest_, .gap = {}};
  Cursor first{.number = oldest() - 1, .gap = {}};
  if (dropped_until_ms_ && *dropped_until_ms_ >= *filter.since_ms)
    first.gap = "the server keeps the last events only";
  return first;
}

Result<EventRing::Cursor> EventRing::behind(std::string_view id) const {
  const std::size_t dash = id.find('-');
  std::uint64_t number = 0;
  const char* const end = id.data() + id.size();
  const bool has_number =
      dash != std::string_view::npos &&
      std::from_chars(id.data() + dash + 1, end, number) == std::from_chars_result{end, {}};
  if (!has_number)
    return Error{Errc::kInvalidArgument,
                 "`after` and Last-Event-ID are the id of an event of this stream"};
  if (id.substr(0, dash) == name_ && number <= newest_) return Cursor{.number = number, .gap = {}};
  return Cursor{.number = oldest() - 1, .gap = "the server has started again"};
}

std::string EventRing::id_of(std::uint64_t number) const {
  return name_ + '-' + std::to_string(number);
}

std::string EventRing::read(Cursor& cursor, const EventFilter& filter,
                            std::size_t max_bytes) const {
  std::string text;
  Json missed;
  if (cursor.number + 1 < oldest()) {
    missed = oldest() - 1 - cursor.number;
    cursor.number = oldest() - 1;
    if (cursor.gap.empty()) cursor.gap = "the reader came too late for them";
  }
  if (!cursor.gap.empty()) {
    text = "event: gap\nid: " + id_of(cursor.number) +
           "\ndata: " + dump_json({{"missed", missed}, {"reason", std::exchange(cursor.gap, {})}}) +
           "\n\n";
  }
  while (!is_at_end(cursor) && text.size() < max_bytes) {
    const Entry& entry = entries_[++cursor.number - oldest()];
    if (entry.passes(filter))
      text += "id: " + id_of(cursor.number) + "\ndata: " + entry.line + "\n\n";
  }
  return text;
}

}  // namespace hearth::server
