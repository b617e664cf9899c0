#pragma once
// Everything that the server answers, as one table of paths.

#include "api/agents_endpoint.hpp"
#include "api/readiness.hpp"
#include "base/logger.hpp"
#include "base/random.hpp"
#include "net/http.hpp"
#include "protocol/agent_address.hpp"
#include "runtime/runtime.hpp"

#include <cstddef>
#include <memory>
#include <string_view>

namespace hearth::api {

struct HttpApiOptions {
  // Bytes of an agent's name, as it stands in the URL. The network's limit on a target must leave room for names
  // that are too long: only who gets here can be told to stop trying.
  std::size_t max_name_bytes = protocol::kDefaultMaxNameBytes;
};

//  GET /                 what this is, as text
//  GET /healthz          200 {"status":"ok"} for as long as the loop answers
//  GET /readyz           200 {"status":"ready","classes":[...]}, or 503 {"status":"starting" or "stopping"};
//                        classes as they are spelled in URLs, in alphabetical order
//  /agents/...           agents, any method; see AgentsEndpoint
//  anything else         404 {"error":{"code","message"}}
//
// The first three take HEAD like GET and answer other methods 405.
//
// Threads    Called on any of the server's loops, concurrently.
// Lifetime   As AgentsEndpoint.
class HttpApi final : public net::HttpHandler {
 public:
  HttpApi(runtime::Runtime& runtime, const Readiness& readiness, Random& random, Logger& logger,
          HttpApiOptions options = {});

  void on_request(std::shared_ptr<net::HttpExchange> exchange) override;
  net::UpgradePlan on_upgrade(const net::HttpRequest& request) override;

 private:
  struct Page {
    std::string_view path;
    net::HttpResponse (HttpApi::*answer)() const;
  };
  static const Page kPages[];

  [[nodiscard]] net::HttpResponse front_page() const;
  [[nodiscard]] net::HttpResponse health() const;
  [[nodiscard]] net::HttpResponse readiness() const;

  runtime::Runtime& runtime_;
  const Readiness& readiness_;
  AgentsEndpoint agents_;
};

}  // namespace hearth::api
