#include "api/definitions_endpoint.hpp"

#include "api/object_answer.hpp"
#include "protocol/request_query.hpp"

#include <memory>
#include <string>
#include <utility>

namespace hearth::api {
namespace {

using Mode = DefinitionActions::Mode;

DefinitionActions::Answer definition_answer(const std::shared_ptr<net::HttpExchange>& exchange,
                                            int status = 200) {
  return [exchange, status](const Result<std::string>& outcome) {
    if (outcome) return exchange->respond(object_data(*outcome, status));
    const Error& error = outcome.error();
    switch (error.code) {
      case Errc::kNotFound:
        return exchange->respond(object_error(404, "definition_not_found", error.message));
      case Errc::kConflict:
        return exchange->respond(object_error(409, "definition_exists", error.message));
      case Errc::kUnsupported:
        return exchange->respond(object_error(422, "unsupported", error.message));
      default: return exchange->respond(object_error(error));
    }
  };
}

std::string class_in(const RouteCall& call) {
  return protocol::percent_decode(call.values[0]);
}

}  // namespace

void DefinitionsEndpoint::add_routes(Routes& routes) {
  struct Row {
    std::string_view method, pattern, summary;
    void (DefinitionsEndpoint::*answer)(const RouteCall&);
    RouteShape shape;
  };
  static constexpr std::string_view kAll = "/objects/definitions";
  static constexpr std::string_view kOne = "/objects/definitions/{class}";
  static constexpr Row kRows[] = {
      {"GET",
       kAll,
       "The definitions of classes.",
       &DefinitionsEndpoint::list,
       {.answer = "DefinitionList"}},
      {"POST",
       kAll,
       "Gives a class its settings.",
       &DefinitionsEndpoint::create,
       {.body = "Definition", .status = 201, .answer = "DefinitionAnswer"}},
      {"GET",
       kOne,
       "The definition of a class.",
       &DefinitionsEndpoint::show,
       {.answer = "DefinitionAnswer"}},
      {"PUT",
       kOne,
       "Gives a class other settings.",
       &DefinitionsEndpoint::replace,
       {.body = "Definition", .answer = "DefinitionAnswer"}},
      {"DELETE",
       kOne,
       "Removes the settings of a class.",
       &DefinitionsEndpoint::remove,
       {.answer = "DefinitionAnswer"}},
  };
  for (const Row& row : kRows) {
    routes.add({row.method, row.pattern, Access::kAdministrator, row.summary,
                [this, answer = row.answer](const RouteCall& call) { (this->*answer)(call); },
                row.shape});
  }
}

void DefinitionsEndpoint::list(const RouteCall& call) {
  actions_.list(definition_answer(call.exchange));
}

void DefinitionsEndpoint::create(const RouteCall& call) {
  actions_.set({}, call.exchange->request().body, Mode::kCreate,
               definition_answer(call.exchange, 201));
}

void DefinitionsEndpoint::show(const RouteCall& call) {
  actions_.show(class_in(call), definition_answer(call.exchange));
}

void DefinitionsEndpoint::replace(const RouteCall& call) {
  actions_.set(class_in(call), call.exchange->request().body, Mode::kReplace,
               definition_answer(call.exchange));
}

void DefinitionsEndpoint::remove(const RouteCall& call) {
  actions_.remove(class_in(call), definition_answer(call.exchange));
}

}  // namespace hearth::api
