#pragma once
// The HTTP page of a class: its methods.

#include "net/http.hpp"

#include <string_view>

namespace hearth::api {

// Answers {"class":segment,"methods":[...]}. `methods`: JSON of runtime::AgentClass::methods().
[[nodiscard]] net::HttpResponse methods_answer(std::string_view segment, std::string_view methods);

}  // namespace hearth::api
