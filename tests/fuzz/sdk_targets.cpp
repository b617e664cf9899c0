// What the SDK reads. (Its names differ from the names of the host, so it has its own source.)
#include "fuzz/targets.hpp"

#include <hearth/sse.hpp>

#include <algorithm>
#include <initializer_list>
#include <vector>

namespace hearth::fuzz {

// The first byte says where the stream is cut.
void sse(std::string_view bytes) {
  if (bytes.empty()) return;
  const auto cut = static_cast<std::size_t>(static_cast<unsigned char>(bytes.front()));
  const std::string_view stream = bytes.substr(1);
  const auto read = [](std::initializer_list<std::string_view> pieces) {
    std::vector<std::string> events;
    SseParser parser(256);
    try {
      for (const std::string_view piece : pieces) parser.feed(piece);
    } catch (const Error&) {
      events.emplace_back("too long");
    }
    while (auto event = parser.take()) events.push_back(event->event + ": " + event->data);
    return events;
  };
  const std::size_t first = std::min(cut, stream.size());
  require(read({stream}) == read({stream.substr(0, first), stream.substr(first)}),
          "events do not depend on where the bytes are cut");
}

}  // namespace hearth::fuzz
