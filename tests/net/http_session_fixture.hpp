#pragma once
// A server whose requests a test may hold, and the texts of requests.

#include "net/raw_client.hpp"
#include "net/server_fixture.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::net {

inline std::string get(std::string_view target, std::string_view headers = "") {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: test\r\n" + std::string(headers) +
         "\r\n";
}

inline HttpResponse with_body(std::string body) {
  HttpResponse response;
  response.body = std::move(body);
  return response;
}

class HttpSessionFixture : public ServerFixture {
 protected:
  void hold_requests() {
    on_request_ = [this](std::shared_ptr<HttpExchange> exchange) {
      exchanges_.add(std::move(exchange));
    };
  }
  void answer_with(const std::string& body) {
    on_request_ = [body](const std::shared_ptr<HttpExchange>& exchange) {
      exchange->respond(with_body(body));
    };
  }
  // The exchange of a request whose server holds it.
  std::shared_ptr<HttpExchange> ask(testing::RawClient& client,
                                    const std::string& request = get("/")) {
    client.send(request);
    return exchanges_.wait();
  }
  Events<std::shared_ptr<HttpExchange>> exchanges_;
};

}  // namespace hearth::net
