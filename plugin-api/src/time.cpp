#include <hearth/time.hpp>

namespace hearth::detail {

std::optional<Time> find_time(const Json& record, const char* name) {
  const auto found = record.find(name);
  if (found == record.end() || found->is_null()) return std::nullopt;
  return read_time(*found);
}

std::optional<std::string> find_text(const Json& record, const char* name) {
  const auto found = record.find(name);
  if (found == record.end() || found->is_null()) return std::nullopt;
  return found->get<std::string>();
}

Json find_json(const Json& record, const char* name) {
  const auto found = record.find(name);
  return found == record.end() ? Json() : *found;
}

Json parse_record(std::string_view text) {
  return Json::parse(text.begin(), text.end());
}

}  // namespace hearth::detail
