#pragma once
// A loop that connections live on.

#include "base/turn_end.hpp"

#include <boost/asio/io_context.hpp>

namespace hearth::net {

namespace asio = boost::asio;

// Lifetime  Both outlive every connection of the loop.
struct NetLoop {
  asio::io_context& context;
  TurnEnd& turn_end;  // when what the connections have gathered leaves
};

}  // namespace hearth::net
