#pragma once
// Parts of values, to be compared at once, and what a call throws.

#include <hearth/error.hpp>
#include <hearth/json.hpp>

#include <string>
#include <vector>

// The values of these fields, in their order.
inline hearth::Json fields(const hearth::Json& object, const std::vector<std::string>& names) {
  hearth::Json values = hearth::Json::array();
  for (const std::string& name : names) values.push_back(object.at(name));
  return values;
}

// What the call throws; HEARTH_OK and "accepted": nothing.
struct Refusal {
  hearth_status code = HEARTH_OK;
  std::string text = "accepted";
};
template <class Call>
Refusal refusal_of(const Call& call) {
  try {
    static_cast<void>(call());
  } catch (const hearth::Error& error) {
    return {error.code(), error.what()};
  }
  return {};
}
