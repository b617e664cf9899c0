#pragma once
// Writes a JSON object as text, member by member.

#include "json/json_text.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hearth {

// The members stand in the order in which they are added. A name needs no escape.
class JsonObjectText {
 public:
  JsonObjectText& text(std::string_view name, std::string_view value) {
    append_json_string(begin(name), value);
    return *this;
  }
  JsonObjectText& number(std::string_view name, std::int64_t value) {
    begin(name) += std::to_string(value);
    return *this;
  }
  JsonObjectText& flag(std::string_view name, bool value) {
    begin(name) += value ? "true" : "false";
    return *this;
  }
  // `value`: JSON.
  JsonObjectText& json(std::string_view name, std::string_view value) {
    begin(name) += value;
    return *this;
  }
  // The same, with null for an absent value.
  JsonObjectText& text_or_null(std::string_view name, const std::optional<std::string>& value) {
    return value ? text(name, *value) : json(name, "null");
  }
  JsonObjectText& number_or_null(std::string_view name, std::optional<std::int64_t> value) {
    return value ? number(name, *value) : json(name, "null");
  }
  JsonObjectText& json_or_null(std::string_view name, const std::optional<std::string>& value) {
    return json(name, value ? std::string_view(*value) : "null");
  }
  // The object. Once, at the end.
  [[nodiscard]] std::string take() {
    text_ += '}';
    return std::move(text_);
  }

 private:
  std::string& begin(std::string_view name) {
    if (text_.size() > 1) text_ += ',';
    text_ += '"';
    text_ += name;
    return text_ += "\":";
  }

  std::string text_ = "{";
};

}  // namespace hearth
