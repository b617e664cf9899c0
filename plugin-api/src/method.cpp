#include <hearth/method.hpp>

namespace hearth::detail {

Arguments::Arguments(std::string_view text) {
  if (text.empty() || text == "[]" || read_small_integer(text)) return;
  Json parsed = parse_json(text);
  if (!parsed.is_array()) throw Error(HEARTH_E_INVALID, "the arguments are no array");
  values_ = std::move(parsed.get_ref<Json::array_t&>());
}

bool Arguments::read_small_integer(std::string_view text) {
  if (text.size() < 3 || text.size() > 18 || text.front() != '[' || text.back() != ']')
    return false;
  const char* const end = text.data() + text.size() - 1;
  const char* const begin = text.data() + 1;
  if (*begin == '0' && end - begin > 1) return false;  // no JSON: leading zero
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || stop != end || *begin == '-') return false;
  values_.emplace_back(value);
  return true;
}

}  // namespace hearth::detail
