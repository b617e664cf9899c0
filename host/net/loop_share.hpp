#pragma once
// What the connections of one loop share.

#include "net/buffer_pool.hpp"
#include "net/options.hpp"
#include "net/session_table.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <functional>

namespace hearth::net {

// Threads   `options` and `index` never change; the rest on the loop's thread only.
// Lifetime  Outlives every connection of the loop. A session's last step, on the loop's thread, is
//           `connection_ended`, and nothing of it touches the share after that.
struct LoopShare {
  LoopShare(asio::io_context& io_context, std::size_t loop_index, const NetOptions& net_options,
            std::chrono::milliseconds sweep_period, std::function<void()> ended)
      : loop(io_context),
        index(loop_index),
        options(net_options),
        table(io_context, sweep_period),
        connection_ended(std::move(ended)) {}

  asio::io_context& loop;
  const std::size_t index;
  const NetOptions& options;
  BufferPool buffers;
  SessionTable table;
  std::function<void()> connection_ended;  // for each connection once, after it left the table
};

}  // namespace hearth::net
