#include <hearth/http.hpp>

namespace hearth::detail {

void set_head(const Activation& activation, std::uint64_t call, const Response& response) {
  const hearth_http_v1& table = need(activation.tables().http, HEARTH_EXT_HTTP);
  activation.check(table.set_status(activation.host(), activation.id(), call, response.status()),
                   "response status");
  for (const auto& [name, value] : response.headers()) {
    activation.check(
        table.add_header(activation.host(), activation.id(), call, slice(name), slice(value)),
        "response header " + name);
  }
}

}  // namespace hearth::detail

namespace hearth {

ResponseStream Request::stream(const Response& head) const {
  detail::set_head(activation_, call_, head);
  // Sends the head, even if the body is empty. Each write() checks whether a client still reads.
  static_cast<void>(detail::emit_part(activation_, call_, head.body(), "response"));
  return {activation_, call_};
}

detail::NextBodyPiece Request::next() const {
  if (!unread_) {
    const bool is_over = std::exchange(given_, true) || body_.empty();
    return {nullptr, is_over ? std::nullopt : std::optional(body_)};
  }
  if (!reading_) {
    const auto begin = [this](std::uint64_t token, std::uint64_t* id) {
      return table().read_body(activation_.host(), activation_.id(), call_, 0, token, id);
    };
    reading_ = std::make_unique<detail::PartsOperation>(activation_, "request body", begin);
  }
  return {reading_.get(), std::nullopt};
}

std::string Request::target() const {
  hearth_bytes target = {nullptr, 0};
  activation_.check(table().target(activation_.host(), activation_.id(), call_, &target),
                    "request target");
  return std::string(detail::view(target));
}

std::optional<std::string> Request::header(std::string_view name) const {
  hearth_bytes value = {nullptr, 0};
  const hearth_status status =
      table().header(activation_.host(), activation_.id(), call_, detail::slice(name), &value);
  if (status == HEARTH_E_NOT_FOUND) return std::nullopt;
  activation_.check(status, "request header");
  return std::string(detail::view(value));
}

std::vector<std::pair<std::string, std::string>> Request::headers() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (std::uint32_t index = 0;; ++index) {
    hearth_bytes name = {nullptr, 0};
    hearth_bytes value = {nullptr, 0};
    const hearth_status status =
        table().header_at(activation_.host(), activation_.id(), call_, index, &name, &value);
    if (status == HEARTH_E_NOT_FOUND) return all;
    activation_.check(status, "request headers");
    all.emplace_back(detail::view(name), detail::view(value));
  }
}

Json Request::claims() const {
  const auto& extension = detail::need(activation_.tables().connections, HEARTH_EXT_CONNECTIONS);
  hearth_bytes json = {nullptr, 0};
  const hearth_status status =
      extension.request_claims(activation_.host(), activation_.id(), call_, &json);
  if (status == HEARTH_E_NOT_FOUND) return {};
  activation_.check(status, "request claims");
  return parse_json(detail::view(json));
}

Response Response::json(const Json& value, unsigned status) {
  Response response(status, to_text(value));
  response.add_header("Content-Type", "application/json");
  return response;
}

Response Response::text(std::string text, unsigned status) {
  Response response(status, std::move(text));
  response.add_header("Content-Type", "text/plain; charset=utf-8");
  return response;
}

Response& Response::add_header(std::string name, std::string value) {
  headers_.emplace_back(std::move(name), std::move(value));
  return *this;
}

}  // namespace hearth
