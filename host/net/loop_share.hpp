#pragma once
// What the connections of one loop share.

#include "base/logger.hpp"
#include "net/buffer_pool.hpp"
#include "net/drop_counts.hpp"
#include "net/http_date.hpp"
#include "net/message_packing.hpp"
#include "net/net_loop.hpp"
#include "net/options.hpp"
#include "net/session_table.hpp"
#include "net/supplies.hpp"

#include <chrono>
#include <functional>
#include <string_view>

namespace hearth::net {

// Threads   `options` never change; the rest on the loop's thread only.
// Lifetime  Outlives every connection of the loop. A session's last step is `connection_ended`, on
//           the loop's thread; it does not use the share after that.
struct LoopShare {
  LoopShare(const NetLoop& net_loop, const NetOptions& net_options,
            std::chrono::milliseconds sweep_period, const NetSupplies& supplies,
            std::function<void()> ended)
      : loop(net_loop.context),
        turn_end(net_loop.turn_end),
        options(net_options),
        logger(supplies.logger),
        drops(supplies.metrics),
        buffers(supplies.memory),
        table(net_loop.context, sweep_period),
        connection_ended(std::move(ended)) {}

  // Counts and logs a client that is dropped.
  void note_drop(DropReason reason) {
    drops.add(reason);
    const std::string_view name = name_of(reason);
    logger.write_limited(LogLevel::kInfo, "net.client_dropped", {name}, {{"reason", name}});
  }

  asio::io_context& loop;
  TurnEnd& turn_end;
  const NetOptions& options;
  Logger& logger;
  DropCounts drops;
  HttpDate date;
  BufferPool buffers;
  PackingShare packing;
  SessionTable table;
  std::function<void()> connection_ended;  // once for each connection, after it left the table
};

}  // namespace hearth::net
