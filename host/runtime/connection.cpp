#include "runtime/connection.hpp"

#include <algorithm>
#include <utility>

namespace hearth::runtime {

bool Connection::has_tag(std::string_view tag) const {
  return tag == client_id || std::ranges::find(tags, tag) != tags.end();
}

bool Connection::end(std::uint16_t code, std::string_view why) {
  if (std::exchange(closing, true)) return false;
  port->close(code, why);
  return true;
}

}  // namespace hearth::runtime
