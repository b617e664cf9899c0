#pragma once
// A loop that runs connections.

#include "base/turn_end.hpp"

#include <boost/asio/io_context.hpp>

namespace hearth::net {

namespace asio = boost::asio;

// Lifetime  Both outlive every connection of the loop.
struct NetLoop {
  asio::io_context& context;
  TurnEnd& turn_end;  // sends the gathered bytes of the connections
};

}  // namespace hearth::net
