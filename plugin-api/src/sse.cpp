#include <hearth/sse.hpp>

namespace hearth::detail {

void append_sse_field(std::string& out, std::string_view name, std::string_view value) {
  if (value.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos)
    throw Error(HEARTH_E_INVALID, "the " + std::string(name) + " of an event is one line");
  out.append(name).append(": ").append(value).append("\n");
}

void append_sse_data(std::string& out, std::string_view data) {
  for (;;) {
    const std::size_t end = data.find_first_of("\r\n");
    out.append("data: ").append(data.substr(0, end)).append("\n");
    if (end == std::string_view::npos) return;
    const bool both = data[end] == '\r' && end + 1 < data.size() && data[end + 1] == '\n';
    data.remove_prefix(end + (both ? 2 : 1));
  }
}

}  // namespace hearth::detail

namespace hearth {

WholeEvents whole_events(std::string_view stream) {
  WholeEvents whole;
  std::string id;
  for (std::size_t begin = 0;;) {
    const std::size_t end = stream.find_first_of("\r\n", begin);
    if (end == std::string_view::npos) return whole;
    const std::string_view line = stream.substr(begin, end - begin);
    begin = end + (stream.substr(end, 2) == "\r\n" ? 2 : 1);
    if (line.empty()) {
      whole = {begin, id};
    } else if (line.substr(0, 3) == "id:") {
      id = line.substr(line.substr(3, 1) == " " ? 4 : 3);
    }
  }
}

std::vector<ServerSentEvent> read_events(std::string_view stream) {
  SseParser parser(stream.size() + 1);
  parser.feed(stream);
  std::vector<ServerSentEvent> all;
  while (auto event = parser.take()) all.push_back(*std::move(event));
  return all;
}

void SseParser::feed(std::string_view bytes) {
  for (const char c : bytes) {
    const bool after_cr = std::exchange(after_cr_, c == '\r');
    if (c == '\r' || (c == '\n' && !after_cr)) {
      take_line();
    } else if (c != '\n') {
      if (line_.size() >= max_bytes_) throw Error(HEARTH_E_LIMIT, "a line of events is too long");
      line_ += c;
    }
  }
}

std::optional<ServerSentEvent> SseParser::take() {
  if (events_.empty()) return std::nullopt;
  std::optional<ServerSentEvent> event(std::move(events_.front()));
  events_.pop_front();
  return event;
}

void SseParser::take_line() {
  std::string_view line = line_;
  if (std::exchange(first_line_, false) && line.substr(0, 3) == "\xef\xbb\xbf")
    line.remove_prefix(3);
  if (line.empty()) {
    dispatch();
  } else {
    const std::size_t colon = line.find(':');
    std::string_view value;
    if (colon != std::string_view::npos) value = line.substr(colon + 1);
    if (!value.empty() && value.front() == ' ') value.remove_prefix(1);
    take_field(line.substr(0, colon), value);
  }
  line_.clear();
}

void SseParser::take_field(std::string_view name, std::string_view value) {
  if (name == "data") {
    if (data_.size() + value.size() >= max_bytes_)
      throw Error(HEARTH_E_LIMIT, "the data of an event are too long");
    data_.append(value).append("\n");
  } else if (name == "event") {
    type_ = value;
  } else if (name == "id" && value.find('\0') == std::string_view::npos) {
    id_ = value;
  } else if (name == "retry") {
    take_retry(value);
  }
}

void SseParser::take_retry(std::string_view value) {
  constexpr std::size_t kMostDigits = 15;
  if (value.empty() || value.size() > kMostDigits) return;
  std::int64_t time = 0;
  for (const char c : value) {
    if (c < '0' || c > '9') return;
    time = time * 10 + (c - '0');
  }
  retry_ = std::chrono::milliseconds(time);
}

void SseParser::dispatch() {
  const std::string type = std::exchange(type_, {});
  std::string data = std::exchange(data_, {});
  if (data.empty()) return;
  data.pop_back();  // the last line feed
  events_.push_back({std::move(data), type.empty() ? "message" : type, id_});
}

void SseReader::check_end() const {
  if (end_.last.empty() && (end_.may_close || !response_.until_close())) return;
  throw FetchError(HEARTH_E_BUSY,
                   end_.last.empty()
                       ? "the stream of events has no length and names no last event: it may be "
                         "cut off (SseEnd)"
                       : "the stream of events was cut off before its last event",
                   FetchPhase::kBody, true);
}

}  // namespace hearth
