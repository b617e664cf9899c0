#pragma once
// A loop that runs connections, and its timers.

#include "base/turn_end.hpp"

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>

namespace hearth::net {

namespace asio = boost::asio;

// With the concrete executor of a loop: cheaper than Asio's type-erased default.
using NetTimer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                            asio::wait_traits<std::chrono::steady_clock>,
                                            asio::io_context::executor_type>;

// Lifetime  Both outlive every connection of the loop.
struct NetLoop {
  asio::io_context& context;
  TurnEnd& turn_end;  // sends the gathered bytes of the connections
};

}  // namespace hearth::net
