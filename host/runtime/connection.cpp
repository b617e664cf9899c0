#include "runtime/connection.hpp"

#include <algorithm>

namespace hearth::runtime {

bool Connection::has_tag(std::string_view tag) const {
  return tag == client_id || std::ranges::find(tags, tag) != tags.end();
}

}  // namespace hearth::runtime
