#pragma once
// What stands behind Host (host.hpp): the server's own storage, durable work and extensions, with a
// clock that the test moves. It is a static library, Hearth::testing. Tests use host.hpp.
//
// Only what the standard library and the ABI have crosses between the two, so that one library
// serves tests of either compiler, with sanitizers or without.

#include <hearth/abi.h>
#include <hearth/ext/fetch.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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

// A fiber whose work is not over, or whose recovery was given up.
struct FiberRecord {
  std::string id;
  std::string name;
  std::optional<std::string> snapshot;  // JSON
  std::int64_t created_at_ms = 0;
  int attempts = 0;      // recoveries begun since the last checkpoint
  int recoveries = 0;    // and in all
  bool running = false;  // in the instance that is in memory
  bool recovering = false;
  bool dead = false;          // recovery was given up
  bool keeps_record = false;  // after its end
  std::string last_error;

  [[nodiscard]] bool interrupted() const { return !running && !recovering && !dead; }
};

using Headers = std::vector<std::pair<std::string, std::string>>;

// A request that an agent has sent to another server.
struct SentRequest {
  std::string method;
  std::string url;
  Headers headers;
  std::string body;
  std::string credential;  // its name
  bool follow_redirects = false;
  bool http2 = false;

  // Of the header called `name`, as it is written there; empty: there is none.
  [[nodiscard]] std::string header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
      if (key == name) return value;
    }
    return {};
  }
};

// What comes of it.
struct FetchReply {
  // Instead of an answer, or after the pieces that have come.
  struct Failure {
    hearth_status code = HEARTH_E_BUSY;
    std::uint32_t phase = HEARTH_FETCH_PHASE_CONNECT;
    bool sent = false;
    std::string text = "the test says so";
  };

  unsigned status = 200;  // 0: no head comes
  Headers headers = {};
  std::string body = {};
  std::vector<std::string> pieces = {};    // of the body, after `body`
  std::chrono::milliseconds after = {};    // until the head comes, as Host::advance() counts
  std::chrono::milliseconds between = {};  // and between two pieces
  std::optional<Failure> failure = {};
};

namespace detail {

// An event that was handed to the agent, and what became of it.
struct CallRecord {
  std::uint64_t id = 0;
  bool done = false;
  hearth_status status = HEARTH_OK;
  std::string body;
  std::vector<std::string> parts;
  // of a request
  unsigned http_status = 200;
  Headers response_headers;
};

struct ClientRecord {
  std::uint64_t number = 0;
  std::string id;
  std::vector<std::string> tags;
  std::uint32_t flags = 0;
  bool open = true;
  unsigned close_code = 0;
  std::string close_reason;
  bool close_clean = true;
  std::vector<ReceivedFrame> received;
  std::vector<std::string> errors;   // of state writes
  std::optional<std::string> state;  // JSON
};

// One agent, in memory or not.
//
// Each function but the questions ends when nothing is due any more; it throws runtime_error if
// that never comes, or the agent's storage fails.
class MockAgent {
 public:
  MockAgent() = default;
  virtual ~MockAgent() = default;
  MockAgent(const MockAgent&) = delete;
  MockAgent& operator=(const MockAgent&) = delete;

  // ---- events; those that the agent does not begin at once wait for its start
  // `client`: the number of the client that calls; 0: the call comes from outside of any
  // connection. The arguments need not be JSON. `claims`: of its token, if the call comes through
  // no connection; empty: none.
  virtual std::shared_ptr<const CallRecord> call(std::uint64_t client, std::string_view method,
                                                 std::string_view arguments,
                                                 std::string claims) = 0;
  virtual void cancel(const CallRecord& call) = 0;
  virtual std::shared_ptr<const CallRecord> request(std::string_view method, std::string_view path,
                                                    std::string_view body, Headers headers,
                                                    std::string claims) = 0;
  virtual std::shared_ptr<ClientRecord> connect(std::string_view query, std::string id,
                                                Headers headers, std::string claims) = 0;
  virtual void receive(const ClientRecord& client, std::string_view frame, bool binary) = 0;
  virtual void set_state(ClientRecord& client, std::string_view json) = 0;
  virtual void leave(ClientRecord& client, unsigned code, std::string reason, bool clean) = 0;

  // ---- life
  // Into memory, as by an event that does nothing. Throws runtime_error: why it cannot start.
  virtual void wake() = 0;
  // With a grace of 0 at once, else after EVICT has ended or the grace is over.
  virtual void evict(std::uint32_t reason, std::uint64_t grace_ns) = 0;
  virtual void kill() = 0;
  // From the next event on of another class.
  virtual void become(const hearth_class& definition) = 0;
  [[nodiscard]] virtual void* instance() const = 0;  // null: it is not in memory
  [[nodiscard]] virtual int activations() const = 0;
  [[nodiscard]] virtual bool destroyed() const = 0;

  // ---- questions
  [[nodiscard]] virtual std::optional<std::string> state() = 0;
  // Rows as a JSON array of arrays. Throws runtime_error: SQLite's words.
  [[nodiscard]] virtual std::string query(const std::string& sql) = 0;
  [[nodiscard]] virtual std::vector<FiberRecord> fibers() = 0;
  // JSON arrays, as the extensions give them: the oldest first, schedules by their time.
  [[nodiscard]] virtual std::string fiber_records() = 0;
  [[nodiscard]] virtual std::string schedules() = 0;
  [[nodiscard]] virtual std::string queue() = 0;
  [[nodiscard]] virtual const std::vector<std::string>& steps() const = 0;
  [[nodiscard]] virtual std::size_t keep_alive() const = 0;
  [[nodiscard]] virtual std::uint32_t schema_version() = 0;
  [[nodiscard]] virtual std::size_t unfinished() const = 0;
  [[nodiscard]] virtual std::size_t clients() const = 0;

  // From now on as with `calls: serial` in the file of its class.
  virtual void set_serial(bool serial) = 0;
  virtual void set_options(std::string options) = 0;

  // ---- agents below
  // One right below this one, made if need be. Throws runtime_error: none can be called so.
  virtual MockAgent& below(const hearth_class& definition, std::string agent_class,
                           std::string_view name, std::string options) = 0;
  // A client asks for one of this class and name; SUB_AGENT.
  virtual std::shared_ptr<const CallRecord> ask_for_sub_agent(std::string_view agent_class,
                                                              std::string_view name,
                                                              std::string_view query,
                                                              Headers headers) = 0;
};

// Threads   The one that made it, but for what abi.h lets other threads do.
class MockHost {
 public:
  MockHost() = default;
  virtual ~MockHost() = default;
  MockHost(const MockHost&) = delete;
  MockHost& operator=(const MockHost&) = delete;

  // Its agents are in a directory of its own below $TMPDIR, which goes with it.
  [[nodiscard]] static std::unique_ptr<MockHost> make();

  // What it gives lives as long as the host, and so must the definition. `agent_class`: how others
  // call it. The agent that another one's call has made is given once.
  virtual MockAgent& add(const hearth_class& definition, std::string agent_class, std::string name,
                         std::string options) = 0;
  [[nodiscard]] virtual const hearth_host* table() const = 0;

  virtual void settle() = 0;
  virtual void advance(std::uint64_t nanoseconds) = 0;
  virtual void set_wall(std::int64_t unix_ms) = 0;
  // Moves the clocks to the moment for which the schedule with this id waits.
  virtual void fire(std::string_view schedule) = 0;
  virtual void seed(std::uint64_t seed) = 0;
  [[nodiscard]] virtual const std::vector<std::string>& log() const = 0;

  // What these functions answer instead of doing anything, until HEARTH_OK.
  virtual void fail_submit(hearth_status status) = 0;
  virtual void fail_start_fiber(hearth_status status) = 0;
  virtual void hold_offload(bool hold) = 0;
  virtual void on_fetch(std::function<FetchReply(const SentRequest&)> reply) = 0;
};

}  // namespace detail

}  // namespace hearth::testing
