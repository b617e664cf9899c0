#include "api/openapi.hpp"

#include "api/openapi_schemas.hpp"
#include "json/json.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace hearth::api {
namespace {

class OpenApiTest : public ::testing::Test {
 protected:
  void add(std::string_view method, std::string_view pattern, Access access = Access::kUser,
           RouteShape shape = {}) {
    routes_.add({method, pattern, access, "A sentence.", [](const RouteCall&) {}, shape});
  }
  [[nodiscard]] Json document() const { return parse_json(openapi_document(routes_)).value(); }

  Routes routes_;
};

TEST_F(OpenApiTest, EachRowIsAnOperation) {
  add("GET", "/things/{id}");
  add("*", "/things/{id}");
  add("POST", "/files/{path...}");
  const Json paths = document()["paths"];
  EXPECT_EQ(paths.size(), 2U);
  std::set<std::string> methods;
  for (const auto& [method, operation] : paths["/things/{id}"].items()) methods.insert(method);
  EXPECT_EQ(methods, (std::set<std::string>{"delete", "get", "patch", "post", "put"}));
  const Json post = paths["/files/{path}"]["post"];
  EXPECT_EQ(post["summary"], "A sentence.");
  EXPECT_EQ(post["parameters"][0]["name"], "path");
  EXPECT_EQ(post["parameters"][0]["required"], true);
  EXPECT_FALSE(post.contains("requestBody"));
}

TEST_F(OpenApiTest, ARowTellsItsShape) {
  add("POST", "/objects", Access::kObjectsOwner,
      {.query = "a b", .body = "NewObject", .status = 201, .answer = "ObjectAnswer"});
  const Json made = document()["paths"]["/objects"]["post"];
  EXPECT_EQ(made["parameters"][1]["name"], "b");
  EXPECT_EQ(made["parameters"][1]["in"], "query");
  const auto schema = [](const Json& content) {
    return content["content"]["application/json"]["schema"]["$ref"].get<std::string>();
  };
  EXPECT_EQ(schema(made["requestBody"]), "#/components/schemas/NewObject");
  EXPECT_EQ(schema(made["responses"]["201"]), "#/components/schemas/ObjectAnswer");
  EXPECT_EQ(schema(made["responses"]["default"]), "#/components/schemas/ObjectError");
}

TEST_F(OpenApiTest, TellsWhoMayAsk) {
  add("GET", "/open", Access::kAnybody);
  add("GET", "/users", Access::kUser);
  add("GET", "/administrators", Access::kAdministrator);
  const Json paths = document()["paths"];
  EXPECT_EQ(paths["/open"]["get"]["security"], Json::array());
  EXPECT_EQ(paths["/users"]["get"]["security"].size(), 3U) << "nothing, or one of two keys";
  EXPECT_EQ(paths["/administrators"]["get"]["security"],
            Json::parse(R"([{"bearer":[]},{"key":[]}])"));
}

TEST_F(OpenApiTest, WhereObjectsAskForAKeyNothingBelowThemIsOpenToAll) {
  add("GET", "/users", Access::kUser);
  add("GET", "/objects/{class}/{id}", Access::kUser);
  const Json paths = parse_json(openapi_document(routes_, true)).value()["paths"];
  EXPECT_EQ(paths["/users"]["get"]["security"].size(), 3U);
  EXPECT_EQ(paths["/objects/{class}/{id}"]["get"]["security"],
            Json::parse(R"([{"bearer":[]},{"key":[]}])"));
}

// The names after "#/components/schemas/" in a document.
void find_references(const Json& json, std::set<std::string>& names) {
  for (const auto& [key, value] : json.items()) {
    if (key == "$ref") names.insert(value.get<std::string>().substr(21));
    if (value.is_structured()) find_references(value, names);
  }
}

TEST_F(OpenApiTest, SchemasReferToSchemas) {
  const auto schemas = parse_json(openapi_schemas());
  ASSERT_TRUE(schemas) << schemas.error().message;
  std::set<std::string> names;
  find_references(*schemas, names);
  EXPECT_FALSE(names.empty());
  for (const std::string& name : names) EXPECT_TRUE(schemas->contains(name)) << name;
}

}  // namespace
}  // namespace hearth::api
