#include "extensions/client.hpp"

#include <algorithm>

namespace hearth::extensions {

bool Client::has_tag(std::string_view tag) const {
  return tag == client_id || std::ranges::find(tags, tag) != tags.end();
}

}  // namespace hearth::extensions
