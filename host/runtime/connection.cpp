#include "runtime/connection.hpp"

#include <utility>

namespace hearth::runtime {

bool Connection::end(std::uint16_t code, std::string_view why) {
  if (std::exchange(closing, true)) return false;
  port->close(code, why);
  return true;
}

void Connection::forget_headers() {
  headers = {};
  if (held) held->set(client_id.size() + target.size() + claims().size());
}

}  // namespace hearth::runtime
