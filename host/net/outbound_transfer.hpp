#pragma once
// One request to one URL with libcurl, without redirects. Its only deadline is that for connecting.

#include "base/ip_address.hpp"
#include "net/body_inflater.hpp"
#include "net/credited_body.hpp"
#include "net/curl_loop.hpp"
#include "net/outbound_http.hpp"
#include "net/outbound_target.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct curl_slist;  // NOLINT(readability-identifier-naming): libcurl's

namespace hearth::net {

class TrustStore;

// Keeps arrived data until the owner takes them: libcurl's callbacks do not call the owner.
//
// Threads   The loop's.
// Lifetime  The plan's references outlive it. The destructor ends the transfer; do not call it
//           inside libcurl.
class OutboundTransfer {
 public:
  struct Plan {
    const OutboundRequest& request;
    const OutboundTarget& target;
    // The addresses to try. Empty: the host is an address itself.
    std::vector<IpAddress> addresses;
    const OutboundTarget* proxy = nullptr;  // then the addresses are the proxy's
    TrustStore& trusted;
    CreditedBody& body;
    std::function<void()> moved;  // of CurlLoop::Transfer
  };

  OutboundTransfer(CurlLoop& loop, Plan plan);
  ~OutboundTransfer();
  OutboundTransfer(const OutboundTransfer&) = delete;
  OutboundTransfer& operator=(const OutboundTransfer&) = delete;

  // The head of the answer, once.
  [[nodiscard]] std::optional<OutboundHead> take_head();
  // The target of a redirect that the request follows: then there is no head.
  [[nodiscard]] const std::optional<std::string>& location() const { return location_; }
  [[nodiscard]] int status() const { return head_.status; }
  // Bytes of the redirect's body that have arrived.
  [[nodiscard]] std::uint64_t dropped_bytes() const { return dropped_bytes_; }

  // Whether reading waits for credit; resume() continues it.
  [[nodiscard]] bool is_paused() const { return has_packed() || (is_paused_ && !stopped_); }
  void resume();

  [[nodiscard]] bool is_done() const { return in_loop_.code.has_value() && !has_packed(); }
  // After is_done(): the failure, or nothing.
  [[nodiscard]] std::optional<OutboundFailure> failure() const;
  // What the transfer is doing.
  [[nodiscard]] OutboundFailure::Phase phase() const;
  // Whether a byte of the request may have left.
  [[nodiscard]] bool is_sent() const { return phase_ >= Phase::kSend; }
  [[nodiscard]] bool has_head() const { return phase_ == Phase::kBody; }
  // When the last byte was received or sent, as far as libcurl has reported it; and the bytes sent,
  // which libcurl does not report by itself.
  [[nodiscard]] std::chrono::steady_clock::time_point last_activity() const { return activity_; }
  [[nodiscard]] std::int64_t bytes_uploaded() const;

 private:
  using Phase = OutboundFailure::Phase;
  void set_request();
  void set_connection();
  void set_callbacks();
  void add_header(const std::string& line);
  [[nodiscard]] bool has_header(std::string_view name) const;
  [[nodiscard]] bool expects_events() const;
  [[nodiscard]] bool may_be_sent_again() const;
  [[nodiscard]] bool may_connect(const IpAddress& address, std::uint16_t port);
  // False, for libcurl: it must not go on.
  bool stop(Errc code, Phase phase, std::string why);
  bool take_line(std::string_view line);
  bool end_head();
  bool take_body(std::string_view piece);
  bool add_to_body(std::string_view piece);
  // Whether packed bytes of the body wait.
  [[nodiscard]] bool has_packed() const { return inflater_ && !stopped_ && inflater_->has_more(); }
  bool unpack();
  int open_socket(const void* address);

  CurlLoop& loop_;
  const Plan plan_;
  CurlHandle* const easy_;
  CurlLoop::Transfer in_loop_;
  curl_slist* headers_ = nullptr;
  curl_slist* resolve_ = nullptr;

  OutboundHead head_;  // empty once it is taken
  std::size_t head_bytes_ = 0;
  std::optional<std::string> location_;
  std::uint64_t dropped_bytes_ = 0;
  std::string codings_;                   // of the body
  std::optional<BodyInflater> inflater_;  // for a body that has a coding
  std::chrono::steady_clock::time_point activity_ = std::chrono::steady_clock::now();
  std::optional<OutboundFailure> stopped_;  // why libcurl was told to stop
  Phase phase_ = Phase::kConnect;           // kSend until the head is complete
  bool is_paused_ = false;
  bool is_resuming_ = false;
};

}  // namespace hearth::net
