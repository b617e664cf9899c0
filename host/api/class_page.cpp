#include "api/class_page.hpp"

#include "json/json_text.hpp"

#include <utility>

namespace hearth::api {

net::HttpResponse methods_answer(std::string_view segment, std::string_view methods) {
  net::HttpResponse response;
  response.headers.push_back({"Content-Type", "application/json"});
  response.body = R"({"class":)";
  append_json_string(response.body, segment);
  response.body += R"(,"methods":)";
  response.body += methods;
  response.body += '}';
  return response;
}

}  // namespace hearth::api
