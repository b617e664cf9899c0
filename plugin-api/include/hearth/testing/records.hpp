#pragma once
// What the mock host knows of agents, clients and calls. Tests use the handles in host.hpp.

#include <hearth/abi.h>
#include <hearth/ext/fibers.h>
#include <hearth/json.hpp>
#include <hearth/testing/database.hpp>
#include <hearth/testing/durable_records.hpp>
#include <hearth/testing/slices.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::testing {

// A frame as a client got it.
struct ReceivedFrame {
  std::string payload;
  bool binary = false;

  friend bool operator==(const ReceivedFrame&, const ReceivedFrame&) = default;
  // A text frame equals its text.
  friend bool operator==(const ReceivedFrame& frame, std::string_view text) {
    return !frame.binary && frame.payload == text;
  }
};

// A row of cf_agents_runs: a fiber whose work is not over.
struct FiberRecord {
  std::string id;
  std::string name;
  std::optional<std::string> snapshot;  // JSON
  std::int64_t created_at_ms = 0;
  int attempts = 0;      // recoveries begun since the last checkpoint
  int recoveries = 0;    // and in all
  bool running = false;  // in the instance that is in memory
  bool recovering = false;
  bool dead = false;      // recovery was given up
  bool managed = false;   // has a record too
  bool retrying = false;  // its work failed, and begins again
  std::string refusal;    // what create, or an event that it refused, said of it
  std::string last_error;
  hearth_fiber handle = 0;   // while it runs
  std::uint64_t due_ns = 0;  // recovery is not begun before

  [[nodiscard]] bool interrupted() const { return !running && !recovering && !dead; }
};

using Headers = std::vector<std::pair<std::string, std::string>>;

namespace detail {

// An event that was handed to the agent, and what became of it.
struct CallRecord {
  std::uint64_t id = 0;
  std::uint32_t kind = 0;
  std::uint64_t connection = 0;
  bool done = false;
  bool refused = false;  // on_event did not accept it
  hearth_status status = HEARTH_OK;
  std::string body;
  std::vector<std::string> parts;
  std::shared_ptr<unsigned> state_chain;  // of STATE_CHANGED: changes that handlers made in a row
  // of a request
  std::string target;
  Headers request_headers;
  unsigned http_status = 200;
  Headers response_headers;
  // run once when it is done
  std::function<void(CallRecord&)> then;
};

struct ClientRecord {
  std::uint64_t number = 0;
  std::string id;
  std::string target;
  Headers headers;
  std::vector<std::string> tags;
  std::uint32_t flags = 0;
  std::string attachment;
  bool connecting = true;  // CONNECTING runs
  bool greeted = false;    // on_connect has ended
  bool open = true;
  bool close_sent = false;  // the CLOSE event was delivered or queued
  unsigned close_code = 0;
  std::string close_reason;
  bool close_clean = true;
  std::vector<ReceivedFrame> received;
  std::vector<std::string> errors;  // of state writes
  std::optional<Json> state;
  std::deque<std::function<void()>> waiting;  // until on_connect has ended
};

struct OperationRecord {
  hearth_agent agent = 0;
  std::uint64_t token = 0;
  std::uint32_t kind = 0;
  std::uint64_t due_ns = 0;  // of a sleep
  std::uint64_t job = 0;     // of an offload
  bool job_ran = false;
  hearth_status status = HEARTH_OK;
};

// How an instance has its interrupted fibers recovered.
struct RecoveryState {
  bool asked = false;   // on_fibers_recovered was called
  bool asking = false;  // and has not ended
  std::vector<std::string> order;
  std::size_t parallel = 1;
};

// One agent: its storage and clients, and its instance while it is in memory.
struct AgentRecord {
  const hearth_class* definition = nullptr;
  std::string name;
  std::string options;

  // in memory only; `id` is new with each activation
  hearth_agent id = 0;
  void* instance = nullptr;
  bool started = false;
  bool closing = false;
  bool evict_requested = false;
  bool destroy_requested = false;
  std::map<std::uint64_t, std::shared_ptr<CallRecord>> calls;
  std::optional<std::string> default_state;
  std::string refusal;  // what create, or an event that it refused, said of it
  std::string last_error;
  Slices lent;
  std::map<hearth_statement, Slices> column_bytes;  // of statements that are not finalised
  std::deque<std::function<void()>> waiting;        // until START has ended
  std::size_t keep_alive = 0;
  RecoveryState recovery;
  // What each open savepoint goes back to, the outermost first; and the changes of the state that
  // are told once none is open.
  struct Savepoint {
    std::optional<std::string> state;
    std::size_t untold = 0;
  };
  std::vector<Savepoint> savepoints;
  std::vector<std::string> untold;
  // While it migrates: the state before.
  std::optional<std::optional<std::string>> migrates_from;

  // what stays
  Database database;
  std::optional<std::string> state;
  std::map<std::uint64_t, std::shared_ptr<ClientRecord>> clients;
  bool has_lived = false;      // an instance has started
  bool must_be_awake = false;  // the last one held a keep-alive reference when it ended
  std::uint32_t schema = 0;    // the version of its data; 0: none
  int activations = 0;
  int destructions = 0;
  std::vector<FiberRecord> fibers;  // in order of creation; the table is their copy for readers
  std::vector<std::string> fiber_failures;  // "name: why"
  DurableRows durable;
};

}  // namespace detail

}  // namespace hearth::testing
