#include "net/name_resolver.hpp"

#include "base/assert.hpp"
#include "net/loop_sockets.hpp"
#include "net/net_loop.hpp"

#include <sys/time.h>

#include <boost/asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <unordered_map>
#include <utility>

#include <ares.h>
#include <netdb.h>
#include <netinet/in.h>

namespace hearth::net {
namespace {

// Each try waits twice as long as the one before: 14 seconds for three tries.
constexpr int kFirstTryMs = 2000;
constexpr int kTries = 3;

std::vector<IpAddress> addresses_of(const ares_addrinfo* found) {
  std::vector<IpAddress> addresses;
  for (const ares_addrinfo_node* node = found ? found->nodes : nullptr; node != nullptr;
       node = node->ai_next) {
    IpAddress address{.bytes = {}, .is_v4 = node->ai_family == AF_INET};
    const auto* bytes = reinterpret_cast<const std::byte*>(node->ai_addr);
    if (address.is_v4) {
      bytes += offsetof(sockaddr_in, sin_addr);
    } else if (node->ai_family == AF_INET6) {
      bytes += offsetof(sockaddr_in6, sin6_addr);
    } else {
      continue;
    }
    std::transform(bytes, bytes + (address.is_v4 ? 4 : 16), address.bytes.begin(),
                   [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
    addresses.push_back(address);
  }
  return addresses;
}

// The shortest time to live of the records that led to the addresses.
std::chrono::seconds time_to_live(const ares_addrinfo& found) {
  std::chrono::seconds least = kLongestKept;
  for (const ares_addrinfo_node* node = found.nodes; node != nullptr; node = node->ai_next)
    least = std::min(least, std::chrono::seconds(node->ai_ttl));
  for (const ares_addrinfo_cname* name = found.cnames; name != nullptr; name = name->next)
    least = std::min(least, std::chrono::seconds(name->ttl));
  return least;
}

// The cached answers.
class KeptAddresses {
 public:
  explicit KeptAddresses(std::function<SteadyTime()> now) : now_(std::move(now)) {}

  [[nodiscard]] std::vector<IpAddress> find(const std::string& name) const {
    const auto found = kept_.find(name);
    if (found == kept_.end() || found->second.until <= now_()) return {};
    return found->second.addresses;
  }
  void keep(const std::string& name, const std::vector<IpAddress>& addresses,
            std::chrono::seconds time) {
    if (time <= std::chrono::seconds(0)) return;
    kept_.insert_or_assign(name, Kept{addresses, now_() + time});
    if (kept_.size() <= kMostKept) return;
    kept_.erase(
        std::ranges::min_element(kept_, {}, [](const auto& each) { return each.second.until; }));
  }

 private:
  struct Kept {
    std::vector<IpAddress> addresses;
    SteadyTime until;
  };

  const std::function<SteadyTime()> now_;
  std::unordered_map<std::string, Kept> kept_;
};

// c-ares opens sockets and reports which to watch; the loop tells c-ares which are ready.
class AresResolver {
 public:
  AresResolver(asio::io_context& loop, std::string servers, std::function<SteadyTime()> now)
      : loop_(loop),
        servers_(std::move(servers)),
        kept_(std::move(now)),
        sockets_(loop,
                 [this](int socket, bool readable, bool writable) {
                   go_on(readable ? socket : ARES_SOCKET_BAD, writable ? socket : ARES_SOCKET_BAD);
                 }),
        timer_(loop) {}

  ~AresResolver() {
    *gone_ = true;
    if (channel_ != nullptr) ares_destroy(channel_);
  }
  AresResolver(const AresResolver&) = delete;
  AresResolver& operator=(const AresResolver&) = delete;

  NameQuery resolve(const std::string& name, FoundAddresses found) {
    auto query = std::make_shared<const FoundAddresses>(std::move(found));
    if (std::vector<IpAddress> kept = kept_.find(name); !kept.empty()) {
      tell_soon(query, std::move(kept));
      return query;
    }
    renew_channel();
    ares_addrinfo_hints hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    ++waiting_;
    ares_getaddrinfo(channel_, name.c_str(), nullptr, &hints, &AresResolver::answered,
                     new Asked{*this, query, name});
    await();
    return query;
  }

 private:
  struct Asked {
    AresResolver& resolver;
    std::weak_ptr<const FoundAddresses> query;
    std::string name;
  };

  // The first question after an idle time reads /etc/resolv.conf again.
  void renew_channel() {
    if (waiting_ > 0) return;
    if (channel_ != nullptr) ares_destroy(channel_);
    ares_options options{};
    options.flags = ARES_FLAG_NOALIASES;  // no HOSTALIASES of the environment
    options.timeout = kFirstTryMs;
    options.tries = kTries;
    options.sock_state_cb = [](void* self, ares_socket_t socket, int reading, int writing) {
      static_cast<AresResolver*>(self)->sockets_.watch(socket, reading != 0, writing != 0);
    };
    options.sock_state_cb_data = this;
    const int status = ares_init_options(
        &channel_, &options,
        ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB);
    HEARTH_ASSERT(status == ARES_SUCCESS, "c-ares has no memory");
    if (!servers_.empty()) ares_set_servers_ports_csv(channel_, servers_.c_str());
  }

  // May be called inside ares_getaddrinfo(), and by ares_destroy().
  static void answered(void* argument, int status, int /*timeouts*/, ares_addrinfo* found) {
    const std::unique_ptr<Asked> asked(static_cast<Asked*>(argument));
    std::vector<IpAddress> addresses = addresses_of(status == ARES_SUCCESS ? found : nullptr);
    const std::chrono::seconds time =
        addresses.empty() ? std::chrono::seconds(0) : time_to_live(*found);
    if (found != nullptr) ares_freeaddrinfo(found);
    AresResolver& resolver = asked->resolver;
    --resolver.waiting_;
    if (*resolver.gone_) return;
    resolver.kept_.keep(asked->name, addresses, time);
    resolver.tell_soon(asked->query, std::move(addresses));
  }

  void tell_soon(std::weak_ptr<const FoundAddresses> query, std::vector<IpAddress> found) {
    asio::post(loop_, [asked = std::move(query), found = std::move(found)]() mutable {
      const NameQuery query = asked.lock();
      if (!query) return;
      if (found.empty())
        return (*query)(Error{Errc::kUnavailable, "the host's name has no address"});
      (*query)(std::move(found));
    });
  }

  void go_on(ares_socket_t readable, ares_socket_t writable) {
    ares_process_fd(channel_, readable, writable);
    await();
  }

  void await() {
    timeval left{};
    if (ares_timeout(channel_, nullptr, &left) == nullptr) {
      timer_.cancel();
      return;
    }
    timer_.expires_after(std::chrono::seconds(left.tv_sec) +
                         std::chrono::microseconds(left.tv_usec));
    timer_.async_wait([this, gone = gone_](const boost::system::error_code& error) {
      if (!error && !*gone) go_on(ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    });
  }

  asio::io_context& loop_;
  const std::string servers_;
  KeptAddresses kept_;
  LoopSockets sockets_;
  NetTimer timer_;
  ares_channel channel_ = nullptr;
  std::size_t waiting_ = 0;
  // Shared with the timer's waits, because a wait that is already due cannot be cancelled.
  const std::shared_ptr<bool> gone_ = std::make_shared<bool>(false);
};

}  // namespace

NameResolver make_name_resolver(asio::io_context& loop, std::string servers,
                                std::function<SteadyTime()> now) {
  return [resolver = std::make_shared<AresResolver>(loop, std::move(servers), std::move(now))](
             const std::string& name, FoundAddresses found) {
    return resolver->resolve(name, std::move(found));
  };
}

}  // namespace hearth::net
