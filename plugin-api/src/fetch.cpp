#include <hearth/fetch.hpp>

namespace hearth::detail {

bool same_header_name(std::string_view a, std::string_view b) noexcept {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace hearth::detail

namespace hearth {

FetchResponse::FetchResponse(std::unique_ptr<detail::PartsOperation> operation,
                             std::string_view head)
    : operation_(std::move(operation)) {
  const Json read = parse_json(head);
  status_ = read.at("status").get<unsigned>();
  url_ = read.at("url").get<std::string>();
  headers_ = read.at("headers").get<HeaderList>();
}

std::optional<std::string> FetchResponse::header(std::string_view name) const {
  for (const auto& [key, value] : headers_) {
    if (detail::same_header_name(key, name)) return value;
  }
  return std::nullopt;
}

Task<std::string> FetchResponse::text() {
  std::string all;
  while (auto piece = co_await next()) all += *piece;
  co_return all;
}

}  // namespace hearth
