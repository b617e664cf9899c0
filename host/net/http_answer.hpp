#pragma once
// The two sides of an answer: the exchange that a handler holds on any thread, and the session that
// sends on its loop.

#include "net/http.hpp"

#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace hearth::net {

namespace asio = boost::asio;

// Receives the calls of an exchange. `number` identifies the request: the sink ignores calls for a
// request that is over.
//
// Threads   The connection's loop only.
class AnswerSink {
 public:
  AnswerSink() = default;
  virtual ~AnswerSink() = default;
  AnswerSink(const AnswerSink&) = delete;
  AnswerSink& operator=(const AnswerSink&) = delete;

  virtual void respond(std::uint64_t number, HttpResponse response) = 0;
  virtual void start(std::uint64_t number, HttpResponse response) = 0;
  virtual void write(std::uint64_t number, std::string_view part) = 0;
  virtual void finish(std::uint64_t number) = 0;
  // The exchange was dropped before its answer to `request` was complete.
  virtual void abandon(std::uint64_t number, const HttpRequest& request) = 0;
  virtual void when_drained(std::uint64_t number, std::function<void()> notice) = 0;
  virtual void read_body(std::uint64_t number, std::size_t bytes, BodyListener listener) = 0;
  virtual void on_abort(std::uint64_t number, std::function<void()> notice) = 0;
};

// An exchange that passes its calls to `sink`: directly on the loop's thread, with a post from
// other threads.
[[nodiscard]] std::shared_ptr<HttpExchange> make_exchange(std::shared_ptr<AnswerSink> sink,
                                                          asio::io_context::executor_type executor,
                                                          std::uint64_t number,
                                                          HttpRequest request);

}  // namespace hearth::net
