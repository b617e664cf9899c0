#include "api/routes.hpp"

#include "api/desk_rows.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace hearth::api {
namespace {

struct RouteCase {
  std::string_view method;
  std::string_view path;
  std::string_view answer;  // the summary of the row; "405" or "404"
  std::string_view values;  // joined by |
};

class RoutesTest : public ::testing::Test {
 protected:
  RoutesTest() {
    add("GET", "/", "root");
    add("GET", "/things", "list");
    add("GET", "/things/all", "all");
    add("GET", "/things/{id}", "read");
    add("DELETE", "/things/{id}", "remove");
    add("POST", "/things/{id}/parts/{part}", "make");
    add("GET", "/files", "index");
    add("*", "/files", "other");
    add("*", "/files/{path...}", "file");
    add("POST", "/trees/{tree}/{leaf...}/fall", "fall");
    add("GET", "/trees/{tree}/{leaf...}/at/{day}", "day");
    add("GET", "/trees/{tree}/{leaf...}", "leaf");
  }

  void add(std::string_view method, std::string_view pattern, std::string_view summary) {
    routes_.add({method, pattern, Access::kUser, summary, [](const RouteCall&) {}});
  }

  Routes routes_;
};

TEST_F(RoutesTest, FindsTheRowOfAMethodAndAPath) {
  const RouteCase cases[] = {
      {"GET", "/", "root", ""},
      {"HEAD", "/", "root", ""},
      {"POST", "/", "405", ""},
      {"GET", "", "404", ""},
      {"GET", "*", "404", ""},
      {"GET", "//", "404", ""},
      {"GET", "/things", "list", ""},
      {"GET", "/Things", "404", ""},
      {"GET", "/things/", "404", ""},
      {"GET", "/things/all", "all", ""},
      {"DELETE", "/things/all", "405", ""},
      {"GET", "/things/a%2Fb", "read", "a%2Fb"},
      {"HEAD", "/things/1", "read", "1"},
      {"DELETE", "/things/1", "remove", "1"},
      {"PUT", "/things/1", "405", "1"},
      {"GET", "/things/1/parts", "404", ""},
      {"POST", "/things/1/parts/2", "make", "1|2"},
      {"GET", "/things/1/parts/2", "405", "1|2"},
      {"POST", "/things//parts/2", "404", ""},
      {"POST", "/things/1/parts/2/", "404", ""},
      {"GET", "/files", "index", ""},
      {"PUT", "/files", "other", ""},
      {"PUT", "/files/", "file", ""},
      {"GET", "/files/a//b/", "file", "a//b/"},
      {"POST", "/trees/oak/a/fall", "fall", "oak|a"},
      {"POST", "/trees/oak/a/b/c/fall", "fall", "oak|a/b/c"},
      {"POST", "/trees/oak/fall", "405", "oak|fall"},
      {"GET", "/trees/oak/a/b/at/1", "day", "oak|a/b|1"},
      {"GET", "/trees/oak/a/b", "leaf", "oak|a/b"},
      {"GET", "/trees/oak/at/1", "leaf", "oak|at/1"},
  };
  for (const RouteCase& each : cases) {
    const Routes::Found found = routes_.find(each.method, each.path);
    std::string_view answer = found.is_path ? "405" : "404";
    if (found.route != nullptr) answer = found.route->summary;
    EXPECT_EQ(answer, each.answer) << each.method << ' ' << each.path;
    std::string values;
    for (const std::string_view value : found.values) {
      if (!values.empty()) values += '|';
      values += value;
    }
    EXPECT_EQ(values, each.values) << each.method << ' ' << each.path;
    if (found.is_path) EXPECT_EQ(found.access, Access::kUser);
  }
}

TEST_F(RoutesTest, AWrongMethodIsToldTheRightOnes) {
  for (const auto& [path, allowed] :
       {std::pair("/things/1", "GET, HEAD, DELETE"), std::pair("/things/1/parts/2", "POST")}) {
    const net::HttpResponse response = routes_.wrong_method(path);
    EXPECT_EQ(response.status, 405);
    EXPECT_EQ(net::find_header(response.headers, "Allow"), allowed);
  }
}

using RoutesDeathTest = RoutesTest;

TEST_F(RoutesDeathTest, OnePathLetsTheSamePeopleIn) {
  EXPECT_DEATH(routes_.add({"PUT", "/things/{id}", Access::kAnybody, "x", {}}), "one path");
}

// A sub-agent's name is the path to it, and its last part may be the word of another row.
TEST_F(RoutesTest, ANameOfAnAgentHasAnOddNumberOfSegments) {
  Routes desks;
  for (const auto& row : testing::kAdminDeskRows)
    desks.add({row.method, row.pattern, row.access, row.pattern, [](const RouteCall&) {}});
  struct Case {
    std::string method, path;
    std::string_view pattern;  // behind /admin/agents/{class}/{name...}
  };
  const Case cases[] = {
      {"GET", "Inbox/u/work", ""},
      {"DELETE", "Inbox/u/evict", ""},
      {"GET", "Inbox/u/why", ""},
      {"GET", "Inbox/u/Chat/c/work", ""},
      {"GET", "Inbox/work/work", ""},
      {"GET", "u/work", "/work"},
      {"GET", "work/work", "/work"},
      {"POST", "Inbox/u/evict/evict", "/evict"},
      {"GET", "Inbox/u/why/why", "/why"},
      {"POST", "Inbox/u/sql/sql", "/sql"},
      {"GET", "Inbox/u/work/work/fiber/f1", "/work/{kind}/{id}"},
      {"POST", "u/work/fiber/f1/cancel", "/work/{kind}/{id}/{action}"},
  };
  for (const Case& each : cases) {
    const auto found = desks.find(each.method, "/admin/agents/Chat/" + each.path);
    ASSERT_NE(found.route, nullptr) << each.path;
    EXPECT_EQ(found.route->summary, "/admin/agents/{class}/{name...}" + std::string(each.pattern))
        << each.path;
  }
}

}  // namespace
}  // namespace hearth::api
