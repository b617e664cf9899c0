#pragma once
// Runs libcurl's transfers on a loop: its sockets and its one timer.

#include "net/loop_sockets.hpp"
#include "net/net_loop.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace hearth::net {

// libcurl's CURL and CURLM are both void.
using CurlHandle = void;

// Promises  `moved` is called outside of libcurl's calls, so that it may call libcurl and remove
//           any transfer.
// Bounded   At most kMostIdle idle connections are kept, besides those in use.
// Threads   The loop's.
// Lifetime  Outlives its transfers.
class CurlLoop {
 public:
  static constexpr std::size_t kMostIdle = 32;

  struct Transfer {
    CurlHandle* const easy;
    // Called after the transfer has made progress. It may remove and destroy the transfer.
    const std::function<void()> moved;
    std::optional<int> code = {};  // a CURLcode, once it is done
  };

  explicit CurlLoop(asio::io_context& loop);
  ~CurlLoop();
  CurlLoop(const CurlLoop&) = delete;
  CurlLoop& operator=(const CurlLoop&) = delete;

  void add(Transfer& transfer);
  void remove(Transfer& transfer);
  // For libcurl's callbacks: requests a call of `moved`.
  void has_moved(Transfer& transfer);

 private:
  static int want_socket(CurlHandle* easy, int socket, int what, void* self, void* data);
  static int want_timer(CurlHandle* multi, long milliseconds, void* self);
  void act(int socket, int events);
  void tell();
  void bound_connections();

  CurlHandle* const multi_;
  LoopSockets sockets_;
  NetTimer timer_;
  std::size_t transfers_ = 0;
  std::vector<Transfer*> moved_;  // null: removed meanwhile
  // Shared with the timer's waits, because a wait that is already due cannot be cancelled.
  const std::shared_ptr<bool> gone_ = std::make_shared<bool>(false);
};

}  // namespace hearth::net
