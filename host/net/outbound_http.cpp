#include "net/outbound_http.hpp"

#include "base/assert.hpp"
#include "net/outbound_exchange.hpp"
#include "net/outbound_target.hpp"

#include <utility>

namespace hearth::net {

Result<std::unique_ptr<OutboundHttp>> OutboundHttp::make(asio::io_context& loop,
                                                         const OutboundOptions& options,
                                                         NameResolver resolver) {
  Result<TrustStore> trusted = TrustStore::open(options.extra_ca_file);
  if (!trusted) return trusted.error();
  if (!resolver) resolver = make_name_resolver(loop);
  std::unique_ptr<OutboundShare> share(new OutboundShare{
      .loop = loop,
      .resolver = std::move(resolver),
      .trusted = std::move(trusted.value()),
      .curl = CurlLoop(loop),
  });
  return std::unique_ptr<OutboundHttp>(new OutboundHttp(options, std::move(share)));
}

OutboundHttp::OutboundHttp(const OutboundOptions& options, std::unique_ptr<OutboundShare> share)
    : options_(options), share_(std::move(share)) {}

OutboundHttp::~OutboundHttp() {
  HEARTH_ASSERT(share_->running == 0, "an exchange outlives its OutboundHttp");
}

Result<std::unique_ptr<OutboundExchange>> OutboundHttp::start(OutboundRequest request,
                                                              OutboundListener& listener) {
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
  if (running() >= options_.max_exchanges)
    return Error{Errc::kLimitExceeded,
                 std::to_string(running()) + " requests are under way already"};
  return std::unique_ptr<OutboundExchange>(std::make_unique<RunningExchange>(
      *share_, std::move(request), std::move(target.value()), std::move(proxy), listener));
}

std::size_t OutboundHttp::running() const {
  return share_->running;
}

}  // namespace hearth::net
