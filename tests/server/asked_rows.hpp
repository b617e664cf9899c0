#pragma once
// Asks the rows of a desk, as HttpApi does for a request that it has let in.

#include "api/desk_rows.hpp"
#include "api/routes.hpp"
#include "json/json.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hearth::server {

class AskedRows {
 public:
  template <class Desk>
  explicit AskedRows(Desk& desk) {
    std::vector<api::Route> rows;
    desk.add_routes(rows);
    for (api::Route& row : rows) routes_.add(std::move(row));
  }

  void expect_rows(std::span<const api::testing::DeskRow> expected) const {
    using Row = std::tuple<std::string_view, std::string_view, api::Access>;
    std::set<Row> known;
    for (const auto& row : expected) known.emplace(row.method, row.pattern, row.access);
    std::set<Row> real;
    for (const api::Route& row : routes_.all()) real.emplace(row.method, row.pattern, row.access);
    EXPECT_EQ(real, known);
  }

  // Waits for the answer. `object`: of a path for users.
  [[nodiscard]] net::HttpResponse ask(const std::string& method, const std::string& target,
                                      const std::string& body = "",
                                      const api::ObjectAddress& object = {}) const {
    std::promise<net::HttpResponse> answer;
    const auto exchange = std::make_shared<Asked>(
        net::HttpRequest{
            .method = method, .target = target, .headers = {}, .body = body, .peer = "p"},
        answer);
    const std::string_view asked = exchange->request().target;
    const std::string_view path = asked.substr(0, asked.find('?'));
    auto found = routes_.find(method, path);
    if (found.route == nullptr) {
      ADD_FAILURE() << "no row for " << method << ' ' << target;
      return {};
    }
    const std::string_view query = asked.substr(std::min(asked.size(), path.size() + 1));
    found.route->answer({exchange, std::move(found.values), query, {}, object});
    return answer.get_future().get();
  }
  [[nodiscard]] Json json(const std::string& method, const std::string& target,
                          const std::string& body = "") const {
    return parse_json(ask(method, target, body).body).value();
  }

 private:
  class Asked final : public net::HttpExchange {
   public:
    Asked(net::HttpRequest request, std::promise<net::HttpResponse>& answer)
        : request_(std::move(request)), answer_(answer) {}
    [[nodiscard]] const net::HttpRequest& request() const override { return request_; }
    void respond(net::HttpResponse response) override { answer_.set_value(std::move(response)); }
    void start(net::HttpResponse /*response*/) override {}
    void write(std::string /*part*/) override {}
    void finish() override {}
    void when_drained(std::function<void()> /*notice*/) override {}
    void read_body(std::size_t /*bytes*/, net::BodyListener /*listener*/) override {}
    void on_abort(std::function<void()> /*notice*/) override {}

   private:
    const net::HttpRequest request_;
    std::promise<net::HttpResponse>& answer_;
  };

  api::Routes routes_;
};

}  // namespace hearth::server
