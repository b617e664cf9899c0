#include <hearth/connection.hpp>

namespace hearth {

std::optional<std::string> Connection::header(std::string_view name) const {
  hearth_bytes value = {nullptr, 0};
  const hearth_status status =
      table().header(host(), agent(), number_, detail::slice(name), &value);
  if (status == HEARTH_E_NOT_FOUND) return std::nullopt;
  activation_->check(status, "connection header");
  return std::string(detail::view(value));
}

Json Connection::claims() const {
  const auto& table = detail::need(activation_->tables().connections, HEARTH_EXT_CONNECTIONS);
  hearth_bytes json = {nullptr, 0};
  const hearth_status status = table.claims(host(), agent(), number_, &json);
  if (status == HEARTH_E_NOT_FOUND) return {};
  activation_->check(status, "connection claims");
  return parse_json(detail::view(json));
}

std::vector<std::string> Connection::tags() const {
  std::vector<std::string> all;
  for (std::uint32_t index = 0;; ++index) {
    hearth_bytes tag = {nullptr, 0};
    const hearth_status status = table().tag(host(), agent(), number_, index, &tag);
    if (status == HEARTH_E_NOT_FOUND) return all;
    activation_->check(status, "connection tags");
    all.emplace_back(detail::view(tag));
  }
}

Json Connection::attachment() const {
  hearth_bytes bytes = {nullptr, 0};
  activation_->check(table().attachment(host(), agent(), number_, &bytes), "connection attachment");
  return bytes.len == 0 ? Json() : parse_json(detail::view(bytes));
}

void Connection::set_attachment(const Json& value) const {
  const std::string bytes = value.is_null() ? std::string() : to_text(value);
  if (detail::too_deep(bytes)) throw Error(HEARTH_E_INVALID, "JSON is nested too deeply");
  activation_->check(
      table().set_attachment(host(), agent(), number_, detail::slice(std::string_view(bytes))),
      "set attachment");
}

void Connection::set_flag(std::uint32_t flag, bool on) const {
  const std::uint32_t now = flags();
  activation_->check(table().set_flags(host(), agent(), number_, on ? now | flag : now & ~flag),
                     "set flags");
}

std::uint32_t Connection::flags() const {
  std::uint32_t flags = 0;
  activation_->check(table().flags(host(), agent(), number_, &flags), "connection flags");
  return flags;
}

bool Connection::arrived(hearth_status status, std::string_view doing) const {
  if (status == HEARTH_E_GONE || status == HEARTH_E_CLOSING) return false;
  activation_->check(status, doing);
  return true;
}

}  // namespace hearth
