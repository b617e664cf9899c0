#pragma once
// What the tables of the tests are written in.

#include <hearth/json.hpp>
#include <hearth/testing/host.hpp>  // shows JSON in failures

#include <string>
#include <string_view>
#include <utility>

namespace hearth::chat {

inline Json json(std::string_view text) {
  return parse_json(text);
}

// An assistant message with these parts, written as JSON.
inline Json assistant(std::string_view parts) {
  return {{"id", "m1"}, {"role", "assistant"}, {"parts", json(parts)}};
}

inline std::string text_of(const char letter, std::size_t size) {
  return std::string(size, letter);
}

// A value of that many levels.
inline Json nested(int levels) {
  Json value = Json::array();
  for (int level = 1; level < levels; ++level) {
    Json outer = Json::array();
    outer.push_back(std::move(value));
    value = std::move(outer);
  }
  return value;
}

}  // namespace hearth::chat
