#include "net/outbound_http.hpp"

#include "base/assert.hpp"
#include "net/curl_loop.hpp"
#include "net/outbound_exchange.hpp"
#include "net/outbound_target.hpp"
#include "net/trust_store.hpp"

#include <utility>

namespace hearth::net {
namespace {

class CurlOutboundHttp final : public OutboundHttp {
 public:
  CurlOutboundHttp(asio::io_context& loop, const OutboundOptions& options, TrustStore trusted,
                   std::unique_ptr<NameResolver> resolver)
      : options_(options),
        resolver_(std::move(resolver)),
        trusted_(std::move(trusted)),
        curl_(loop),
        share_{loop, curl_, *resolver_, trusted_, running_} {}
  ~CurlOutboundHttp() override {
    HEARTH_ASSERT(running_ == 0, "an exchange outlives its OutboundHttp");
  }

  Result<std::unique_ptr<OutboundExchange>> start(OutboundRequest request,
                                                  OutboundListener& listener) override {
    HEARTH_ASSERT(request.rules != nullptr, "a request has no rules");
    if (Result<void> checked = check_words(request); !checked) return checked.error();
    Result<OutboundTarget> target = parse_target(request.url);
    if (!target) return target.error();
    std::optional<OutboundTarget> proxy;
    if (!request.proxy.empty()) {
      Result<OutboundTarget> parsed = parse_proxy(request.proxy);
      if (!parsed) return parsed.error();
      proxy = std::move(parsed.value());
      request.proxy = proxy->url;
    }
    if (running_ >= options_.max_exchanges)
      return Error{Errc::kLimitExceeded,
                   std::to_string(running_) + " requests are under way already"};
    return std::unique_ptr<OutboundExchange>(std::make_unique<RunningExchange>(
        share_, std::move(request), std::move(target.value()), std::move(proxy), listener));
  }

  std::size_t running() const override { return running_; }

 private:
  const OutboundOptions options_;
  std::unique_ptr<NameResolver> resolver_;
  TrustStore trusted_;
  std::size_t running_ = 0;
  CurlLoop curl_;
  const OutboundShare share_;
};

}  // namespace

Result<std::unique_ptr<OutboundHttp>> OutboundHttp::make(asio::io_context& loop,
                                                         const OutboundOptions& options,
                                                         std::unique_ptr<NameResolver> resolver) {
  Result<TrustStore> trusted = TrustStore::open(options.extra_ca_file);
  if (!trusted) return trusted.error();
  if (!resolver) resolver = make_name_resolver(loop);
  return std::unique_ptr<OutboundHttp>(std::make_unique<CurlOutboundHttp>(
      loop, options, std::move(trusted.value()), std::move(resolver)));
}

}  // namespace hearth::net
