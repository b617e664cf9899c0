#pragma once
// A thread that answers requests which may have to wait, with its own connection to the directory
// of agents.

#include "api/admin_api.hpp"
#include "api/routes.hpp"
#include "base/logger.hpp"
#include "net/http.hpp"
#include "runtime/blocking_pool.hpp"
#include "storage/data_directory.hpp"
#include "storage/directory.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::server {

using Exchange = std::shared_ptr<net::HttpExchange>;

// Promises   No event loop waits: what blocks (loader, directory, shards) runs on the thread.
// Bounded    The queue is bounded; further requests get kUnavailable.
// Threads    The constructor, stop() and destruction on one; run() from any; directory() in a work.
// Lifetime   Everything it is given outlives it. stop() before the loops stop.
class Desk {
 public:
  // How a request is answered whose work did not end.
  using Refusal = net::HttpResponse (*)(const Error&);

  // `failed`: the event of the log when the directory of agents fails.
  Desk(const storage::DataDirectory& data, Logger& logger, std::string_view failed,
       Refusal refusal);

  // Runs `work`, which answers the exchange, now or later.
  void run(const Exchange& exchange, std::function<void()> work);
  // Runs `work`, which answers no exchange. It is dropped if too much is asked at once.
  void run(std::function<void()> work);
  void refuse(const Exchange& exchange, const Error& error) const {
    exchange->respond(refusal_(error));
  }
  // Why nothing more is taken.
  [[nodiscard]] Error too_much() const;

  // Waits for the work that runs. Waiting and later requests get kClosing.
  void stop();

  storage::Directory& directory();

 private:
  // False: the directory of agents failed, and the log has it.
  [[nodiscard]] bool succeeds(const std::function<void()>& work) const;

  const storage::DataDirectory& data_;
  Logger& logger_;
  const std::string_view failed_;
  const Refusal refusal_;
  std::atomic<bool> stopping_ = false;
  std::optional<storage::Directory> directory_;  // only the thread; opened on first use
  runtime::BlockingPool pool_;                   // last: its jobs use the fields above
};

// Adds rows with `access`, or with the one that a row gives.
inline auto row_adder(std::vector<api::Route>& rows,
                      api::Access access = api::Access::kAdministrator) {
  return
      [&rows, access](std::string_view method, std::string_view pattern, std::string_view summary,
                      std::function<void(const api::RouteCall&)> answer, api::RouteShape shape,
                      std::optional<api::Access> its = std::nullopt) {
        rows.push_back({method, pattern, its.value_or(access), summary, std::move(answer), shape});
      };
}

// Answers a row at once.
template <class Owner>
auto at_once(Owner& owner, void (Owner::*work)(const api::RouteCall&)) {
  return [&owner, work](const api::RouteCall& call) { (owner.*work)(call); };
}

// Answers a row of /admin with the result of `work`, which runs on the desk's thread.
template <class Owner>
auto on_desk(Desk& desk, Owner& owner, Result<Json> (Owner::*work)(const api::RouteCall&)) {
  return [&desk, &owner, work](const api::RouteCall& call) {
    desk.run(call.exchange, [&desk, &owner, work, call] {
      const auto outcome = (owner.*work)(call);
      if (!outcome) return desk.refuse(call.exchange, outcome.error());
      call.exchange->respond(api::admin_answer(*outcome));
    });
  };
}

}  // namespace hearth::server
