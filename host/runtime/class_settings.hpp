#pragma once
// What the operator may set: for every shard, and for one class (extensions/class_settings.hpp).
//
// The defaults are those of the configuration files: config/server_file.cpp has a row for each
// limit. Files cannot change max_waiting_bytes, max_operations, max_answer_bytes, max_recovering
// and max_waking.

#include "extensions/call_rules.hpp"
#include "extensions/class_settings.hpp"

#include <chrono>
#include <cstddef>

namespace hearth::runtime {

using extensions::ClassSettings;
using extensions::Durability;

// For every shard.
struct RuntimeLimits {
  // Agents in memory at once in the whole server, divided evenly among the shards. The goal is 64
  // KiB for each idle agent: 10000 of them take some 640 MB.
  std::size_t max_live_agents = 10'000;

  // Objects among them, in the whole server.
  std::size_t max_active_objects = 200;

  // ClassSettings::show_failures for all classes, as `hearth dev` wants it.
  bool show_failures = false;

  // Events that wait for one agent, and the bytes in them. Further calls and requests are refused.
  std::size_t max_waiting = 1000;
  std::size_t max_waiting_bytes = std::size_t{64} << 20;

  // Bytes that are held for all clients together: partly received input, what waits for agents or
  // for the device, and unread output. Past it, a client that needs more is refused. The default is
  // a quarter of a small machine.
  std::size_t client_memory = std::size_t{256} << 20;

  std::size_t max_operations = extensions::kMaxOperations;     // of one agent, in progress
  std::size_t max_answer_bytes = extensions::kMaxAnswerBytes;  // of one answer or frame
  std::size_t max_recovering = 64;  // agents at once, of the whole server
  std::size_t max_waking = 64;      // ... that start because their time has come

  // Percent of an event loop's time for the recovery of interrupted work while clients use the
  // loop. A client waits for one step at most, whatever the share is. A smaller share lets fewer
  // clients meet a step after a restart, but the last fiber goes on later.
  int recovery_share = 40;

  // Limit for waking an agent, its own on_start included.
  std::chrono::milliseconds start_timeout{10'000};

  // Limit for one event in progress; then its caller gets a timeout. Each part of a streaming
  // answer starts the time again. Minutes, because agents wait for language models and for other
  // servers.
  std::chrono::milliseconds call_timeout{300'000};
};

}  // namespace hearth::runtime
