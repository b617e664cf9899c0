#pragma once
// The rows of the desks, with functions that only note what was asked.
// tests/process/proofs_test.cpp asks the real ones.

#include "api/admin_api.hpp"
#include "api/desk_rows.hpp"
#include "api/routes.hpp"

#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hearth::api::testing {

// Asked on any loop; outlives the server.
class NotingRows {
 public:
  [[nodiscard]] std::vector<Route> rows() {
    std::vector<Route> all;
    for (const auto desk : {std::span<const DeskRow>(kAdminDeskRows), {kObjectDeskRows}})
      for (const DeskRow& row : desk)
        all.push_back({row.method, row.pattern, row.access, "A sentence.",
                       [this](const RouteCall& call) { answer(call); }});
    return all;
  }

  // The methods and targets that were asked since the last call; of users also the object.
  [[nodiscard]] std::vector<std::string> take_asked() {
    const std::lock_guard lock(mutex_);
    return std::exchange(asked_, {});
  }

 private:
  void answer(const RouteCall& call) {
    const net::HttpRequest& request = call.exchange->request();
    std::string what = request.method + ' ' + request.target;
    if (call.object.served != nullptr)
      what += ' ' + call.object.key.agent_class + ' ' + call.object.key.name;
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(std::move(what));
    }
    call.exchange->respond(admin_answer(Json::object()));
  }

  std::mutex mutex_;
  std::vector<std::string> asked_;
};

}  // namespace hearth::api::testing
