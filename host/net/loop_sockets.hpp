#pragma once
// Tells which of some borrowed sockets can be read from or written to.

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>

#include <functional>
#include <memory>
#include <unordered_map>

namespace hearth::net {

namespace asio = boost::asio;

// For libraries that do their own reading and writing, and ask for no more than this.
//
// Threads   The loop's.
// Lifetime  A socket is forgotten before it is closed. What is destroyed tells nothing any more.
class LoopSockets {
 public:
  // Told again and again while the socket is ready and watched.
  using Ready = std::function<void(int descriptor, bool readable, bool writable)>;

  LoopSockets(asio::io_context& loop, Ready ready);
  ~LoopSockets();
  LoopSockets(const LoopSockets&) = delete;
  LoopSockets& operator=(const LoopSockets&) = delete;

  // Replaces what was said of this socket before. Neither: forgets it.
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
  // Shared with the waits that are under way.
  std::unordered_map<int, std::shared_ptr<Watched>> watched_;
};

}  // namespace hearth::net
