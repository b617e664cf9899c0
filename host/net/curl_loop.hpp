#pragma once
// libcurl's transfers on a loop: its sockets and its one timer.

#include "net/loop_sockets.hpp"

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

namespace hearth::net {

// libcurl's name for it; CURL and CURLM are void.
using CurlHandle = void;

// Promises  Whoever runs a transfer is told of it outside of libcurl's calls, so that all of
//           libcurl may be called then, and each transfer removed.
// Bounded   kMostIdle connections are kept for later, beside those in use.
// Threads   The loop's.
// Lifetime  Outlives its transfers.
class CurlLoop {
 public:
  static constexpr std::size_t kMostIdle = 32;

  // One transfer, which libcurl knows by an easy handle whose CURLOPT_PRIVATE is this.
  class Transfer {
   public:
    Transfer() = default;
    virtual ~Transfer() = default;
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;

    [[nodiscard]] virtual CurlHandle* handle() const = 0;
    // With a CURLcode. It may not be removed within; on_moved() follows.
    virtual void on_done(int code) = 0;
    // Something has come since the last call. It may be removed and destroyed within.
    virtual void on_moved() = 0;
  };

  explicit CurlLoop(asio::io_context& loop);
  ~CurlLoop();
  CurlLoop(const CurlLoop&) = delete;
  CurlLoop& operator=(const CurlLoop&) = delete;

  void add(Transfer& transfer);
  void remove(Transfer& transfer);
  // From libcurl's callbacks: on_moved() is to be called.
  void has_moved(Transfer& transfer);

 private:
  static int want_socket(CurlHandle* easy, int socket, int what, void* self, void* data);
  static int want_timer(CurlHandle* multi, long milliseconds, void* self);
  void act(int socket, int events);
  void tell();
  void bound_connections();

  CurlHandle* const multi_;
  LoopSockets sockets_;
  asio::basic_waitable_timer<std::chrono::steady_clock,
                             asio::wait_traits<std::chrono::steady_clock>,
                             asio::io_context::executor_type>
      timer_;
  std::size_t transfers_ = 0;
  std::vector<Transfer*> moved_;  // null: removed meanwhile
  // Shared with the timer's waits: one that is due already cannot be taken back.
  const std::shared_ptr<bool> gone_ = std::make_shared<bool>(false);
};

}  // namespace hearth::net
