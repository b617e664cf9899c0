#pragma once
// Reports which of a set of borrowed sockets are readable or writable.

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>

#include <functional>
#include <memory>
#include <unordered_map>

namespace hearth::net {

namespace asio = boost::asio;

// For libraries that do their own reading and writing.
//
// Threads   The loop's.
// Lifetime  Forget a socket before it is closed. After the destructor `ready` is not called.
class LoopSockets {
 public:
  // Called repeatedly while the socket is ready and watched.
  using Ready = std::function<void(int descriptor, bool readable, bool writable)>;

  LoopSockets(asio::io_context& loop, Ready ready);
  ~LoopSockets();
  LoopSockets(const LoopSockets&) = delete;
  LoopSockets& operator=(const LoopSockets&) = delete;

  // Replaces earlier calls for this socket. Both false: forgets the socket.
  void watch(int descriptor, bool reading, bool writing);

 private:
  using Descriptor = asio::posix::basic_stream_descriptor<asio::io_context::executor_type>;

  struct Watched {
    explicit Watched(asio::io_context& loop) : descriptor(loop) {}
    Descriptor descriptor;
    int number = -1;
    bool reading = false;
    bool writing = false;
    bool read_awaited = false;
    bool write_awaited = false;
    bool is_forgotten = false;
  };

  static void forget(Watched& watched);
  void await(const std::shared_ptr<Watched>& watched);

  asio::io_context& loop_;
  const Ready ready_;
  // Shared with the waits in progress.
  std::unordered_map<int, std::shared_ptr<Watched>> watched_;
};

}  // namespace hearth::net
