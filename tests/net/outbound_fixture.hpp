#pragma once
// An OutboundHttp on a loop that the test runs, the provider of tests/support, and names with
// addresses that the test sets.

#include "net/outbound_http.hpp"
#include "support/provider.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::net {

using Phase = OutboundFailure::Phase;

inline std::ostream& operator<<(std::ostream& out, Phase phase) {
  return out << to_string(phase);
}

// A name without an address cannot be resolved. A held name is never answered.
class NamedAddresses {
 public:
  explicit NamedAddresses(asio::io_context& loop) : loop_(loop) {}

  NameQuery resolve(const std::string& name, FoundAddresses found) {
    asked_.push_back(name);
    auto query = std::make_shared<const FoundAddresses>(std::move(found));
    if (name == held_) return query;
    asio::post(loop_, [this, name, asked = std::weak_ptr(query)] {
      const NameQuery query = asked.lock();
      if (!query) return;
      std::vector<IpAddress> addresses;
      for (const std::string& text : addresses_[name])
        addresses.push_back(parse_ip_address(text).value());
      if (addresses.empty()) return (*query)(Error{Errc::kUnavailable, "no such name"});
      (*query)(std::move(addresses));
    });
    return query;
  }

  std::map<std::string, std::vector<std::string>> addresses_;
  std::string held_;
  std::vector<std::string> asked_;

 private:
  asio::io_context& loop_;
};

// One exchange, and what its listener was told.
struct Heard final : OutboundListener {
  void on_redirect(OutboundRedirect got, OutboundExchange& from) override {
    EXPECT_FALSE(is_calling || head || ended) << "a redirect at the wrong time";
    redirects.push_back(got);
    if (at_redirect) return at_redirect();
    from.follow();
  }
  void on_head(OutboundHead got) override {
    EXPECT_FALSE(is_calling || head || ended) << "a head at the wrong time";
    head = std::move(got);
    if (at_head) at_head();
  }
  void on_body(std::string_view piece) override {
    EXPECT_TRUE(!is_calling && head && !ended) << "a piece at the wrong time";
    EXPECT_FALSE(piece.empty());
    body += piece;
    ++pieces;
    if (at_body) at_body();
  }
  void on_end(std::optional<OutboundFailure> got) override {
    EXPECT_FALSE(is_calling || ended) << "an end at the wrong time";
    ended = true;
    failure = std::move(got);
    if (at_end) at_end();
  }

  void credit(std::size_t bytes) {
    is_calling = true;
    exchange->credit(bytes);
    is_calling = false;
  }
  void cancel() {
    is_calling = true;
    exchange.reset();
    is_calling = false;
  }

  std::vector<OutboundRedirect> redirects;
  std::optional<OutboundHead> head;
  std::string body;
  int pieces = 0;
  bool ended = false;
  std::optional<OutboundFailure> failure;
  std::function<void()> at_redirect;  // instead of following it
  std::function<void()> at_head;
  std::function<void()> at_body;
  std::function<void()> at_end;
  bool is_calling = false;  // the test is inside a call that must not call back
  std::unique_ptr<OutboundExchange> exchange;
};

class OutboundFixture : public ::testing::Test {
 protected:
  OutboundFixture() {
    options_.extra_ca_file = provider_.certificate();
    make_client();
  }
  // Every exchange is over, and the loop has only handlers that do nothing.
  ~OutboundFixture() override {
    EXPECT_EQ(http_->running(), 0U);
    http_.reset();
    loop_.restart();
    loop_.poll();
  }

  void make_client() {
    http_.reset();
    names_ = std::make_shared<NamedAddresses>(loop_);
    names_->addresses_ = {{"provider.test", {"127.0.0.1"}}, {"other.test", {"127.0.0.1"}}};
    auto made = OutboundHttp::make(loop_, options_,
                                   [names = names_](const std::string& name, FoundAddresses found) {
                                     return names->resolve(name, std::move(found));
                                   });
    ASSERT_TRUE(made) << made.error().message;
    http_ = std::move(made.value());
  }

  static std::shared_ptr<const EgressRules> rules(std::vector<std::string> allow,
                                                  std::vector<std::string> deny = {}) {
    auto parsed = EgressRules::parse(allow, deny);
    EXPECT_TRUE(parsed) << parsed.error().message;
    return std::make_shared<const EgressRules>(std::move(parsed.value()));
  }

  // To the provider, whose address is allowed.
  OutboundRequest get(std::string url) const {
    OutboundRequest request;
    request.method = "GET";
    request.url = std::move(url);
    request.rules = rules({"*", "127.0.0.1"});
    return request;
  }
  OutboundRequest to(std::string_view path) const { return get(provider_.http_url(path)); }

  std::unique_ptr<Heard> start(OutboundRequest request) {
    auto heard = std::make_unique<Heard>();
    begin(*heard, std::move(request));
    return heard;
  }
  void begin(Heard& heard, OutboundRequest request) {
    heard.is_calling = true;
    auto started = http_->start(std::move(request), heard);
    heard.is_calling = false;
    ASSERT_TRUE(started) << started.error().message;
    heard.exchange = std::move(started.value());
  }

  // Runs the loop until the condition holds. Fails after twenty seconds.
  template <class Condition>
  void run_until(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "what was waited for did not come";
      loop_.restart();
      loop_.run_one_for(std::chrono::milliseconds(100));
    }
  }
  // Runs all work that needs no wait.
  void settle() {
    loop_.restart();
    loop_.poll();
  }

  std::unique_ptr<Heard> finish(OutboundRequest request) {
    auto heard = start(std::move(request));
    run_until([&] { return heard->ended; });
    return heard;
  }
  // The failure of a request that must fail.
  OutboundFailure fail(OutboundRequest request) {
    const auto heard = finish(std::move(request));
    EXPECT_TRUE(heard->failure) << "it did not fail";
    return heard->failure.value_or(OutboundFailure{});
  }
  // The answer to a GET of the path, with a client of its own.
  std::string ask(std::string_view path) {
    const auto heard = finish(to(path));
    EXPECT_FALSE(heard->failure) << heard->failure->message;
    return heard->body;
  }
  int stat(const std::string& name) {
    const std::string text = ask("/stats");
    const std::size_t place = text.find("\"" + name + "\":");
    return place == std::string::npos ? -1 : std::stoi(text.substr(place + name.size() + 3));
  }

  testing::Provider provider_;
  asio::io_context loop_{1};
  OutboundOptions options_;
  std::shared_ptr<NamedAddresses> names_;  // the client's
  std::unique_ptr<OutboundHttp> http_;
};

}  // namespace hearth::net
