#pragma once
// What the operator may set: for every shard, and (extensions/class_settings.hpp) for one class.
//
// The defaults are those of configuration files: config/server_file.cpp has a row for each limit,
// but for max_waiting_bytes, max_operations, max_answer_bytes, max_recovering and max_waking: no
// file can change those.

#include "extensions/call_rules.hpp"
#include "extensions/class_settings.hpp"

#include <chrono>
#include <cstddef>

namespace hearth::runtime {

using extensions::ClassSettings;
using extensions::Durability;

// For every shard.
struct RuntimeLimits {
  // Agents in memory at once, of the whole server, shared evenly by the shards. 10000 idle ones are
  // some 640 MB at the goal of 64 KiB each.
  std::size_t max_live_agents = 10'000;

  // Of them, objects: of the whole server.
  std::size_t max_active_objects = 200;

  // Events that wait for one agent to start; past it they are refused. And the bytes in them.
  std::size_t max_waiting = 1000;
  std::size_t max_waiting_bytes = std::size_t{64} << 20;

  // Bytes that are held for all clients together: what they have sent in part, what waits for
  // agents or for the device, and what they have not read yet. Past it, a client that needs more is
  // refused. A quarter of a small machine.
  std::size_t client_memory = std::size_t{256} << 20;

  std::size_t max_operations = extensions::kMaxOperations;     // of one agent in flight
  std::size_t max_answer_bytes = extensions::kMaxAnswerBytes;  // of one answer or frame
  std::size_t max_recovering = 64;  // agents at once, of the whole server
  std::size_t max_waking = 64;      // ... that start because a time has come

  // Percent of an event loop's time in which interrupted work is recovered while clients use the
  // loop. It is theirs otherwise: the smaller the share, the less they notice of a restart, and the
  // longer it takes until the last fiber goes on.
  int recovery_share = 6;

  // How long waking an agent may take, its own on_start included.
  std::chrono::milliseconds start_timeout{10'000};

  // How long one event may be in progress before its caller gets a time-out; each part of a
  // streaming answer starts it anew. Minutes, because agents wait for language models and for
  // people's servers.
  std::chrono::milliseconds call_timeout{300'000};
};

}  // namespace hearth::runtime
