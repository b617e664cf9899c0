// Memory of streams that wait for credit: N answers of B bytes each begin over TLS, and this
// program asks for none of the bytes. Prints the private memory of this process for each stream.
//
//   build/release/tests/bench/outbound_memory [--http2] [N [B]]
#include "net/outbound_http.hpp"
#include "support/provider.hpp"

#include <sys/resource.h>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace hearth;

struct Waiting final : net::OutboundListener {
  explicit Waiting(std::size_t& count) : begun(count) {}
  void on_head(net::OutboundHead) override { ++begun; }
  void on_body(std::string_view) override {}
  void on_end(std::optional<net::OutboundFailure> failure) override {
    std::fprintf(stderr, "a stream ended: %s\n", failure ? failure->message.c_str() : "complete");
    std::exit(1);
  }
  std::size_t& begun;
  std::unique_ptr<net::OutboundExchange> exchange;
};

net::NameResolver loopback(boost::asio::io_context& loop) {
  return [hosts = net::make_name_resolver(loop)](const std::string&, net::FoundAddresses found) {
    return hosts("localhost", std::move(found));
  };
}

std::size_t private_kib() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  std::size_t sum = 0;
  for (std::string word; rollup >> word;) {
    std::size_t kib = 0;
    if (word.starts_with("Private_") && rollup >> kib) sum += kib;
  }
  return sum;
}

void run_for(boost::asio::io_context& loop, std::chrono::milliseconds time) {
  loop.restart();
  loop.run_for(time);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool http2 = !words.empty() && words.front() == "--http2";
  if (http2) words.erase(words.begin());
  const std::size_t count = words.empty() ? 1000 : std::stoul(words[0]);
  const std::string bytes = words.size() < 2 ? "1000000" : words[1];

  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);

  const testing::Provider provider;
  boost::asio::io_context loop(1);
  const auto http =
      net::OutboundHttp::make(loop, {.extra_ca_file = provider.certificate()}, loopback(loop));
  const std::vector<std::string> allow = {"*", "127.0.0.0/8", "::1"};
  const auto rules = std::make_shared<const EgressRules>(EgressRules::parse(allow, {}).value());
  std::size_t begun = 0;
  std::vector<std::unique_ptr<Waiting>> streams;
  const auto start = [&](std::size_t wanted) {
    while (streams.size() < wanted) {
      net::OutboundRequest request;
      request.method = "GET";
      request.url = provider.https_url("/bytes?n=" + bytes);
      request.http2 = http2;
      request.credit = 0;
      request.connect_timeout = std::chrono::seconds(60);
      request.rules = rules;
      streams.push_back(std::make_unique<Waiting>(begun));
      streams.back()->exchange = http.value()->start(std::move(request), *streams.back()).value();
    }
    while (begun < wanted) run_for(loop, std::chrono::milliseconds(100));
    run_for(loop, std::chrono::seconds(3));  // what else comes without credit
  };
  start(1);  // what the first one alone costs
  const std::size_t before = private_kib();
  start(1 + count);
  const std::size_t after = private_kib();
  std::printf("%zu paused streams, HTTP/%s over TLS: %.1f KiB each\n", count, http2 ? "2" : "1.1",
              static_cast<double>(after - before) / static_cast<double>(count));
  streams.clear();
  return 0;
}
