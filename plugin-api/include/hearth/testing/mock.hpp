#pragma once
// The implementation of Host (host.hpp): the server's own storage, durable work and extensions,
// with a clock that the test moves. It is a static library, Hearth::testing. Tests use host.hpp.
//
// Only types of the standard library and of the ABI cross between the two, so that one library
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

// A frame that a client got.
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

  // The value of the header `name`, spelled exactly so; empty: it is missing.
  [[nodiscard]] std::string header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
      if (key == name) return value;
    }
    return {};
  }
};

// The answer to it, or its failure. FetchRequest::timeout ends it as it would on a server.
struct FetchReply {
  // Instead of an answer, or after the pieces.
  struct Failure {
    hearth_status code = HEARTH_E_BUSY;
    std::uint32_t phase = HEARTH_FETCH_PHASE_CONNECT;
    bool sent = false;
    std::string text = "the test says so";
  };

  unsigned status = 200;  // 0: there is no head
  Headers headers = {};
  std::string body = {};
  std::vector<std::string> pieces = {};    // of the body, after `body`
  std::chrono::milliseconds after = {};    // until the head, in time of Host::advance()
  std::chrono::milliseconds between = {};  // and between two pieces
  std::optional<Failure> failure = {};
  bool until_close = false;  // see FetchResponse
};

namespace detail {

// An event that was delivered to the agent, and its outcome.
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

// A request whose body the test sends. Each function returns when nothing is due any more.
class Upload {
 public:
  Upload() = default;
  virtual ~Upload() = default;
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  [[nodiscard]] virtual std::shared_ptr<const CallRecord> record() const = 0;
  virtual void send(std::string_view piece) = 0;
  virtual void end() = 0;
  virtual void cut() = 0;
  [[nodiscard]] virtual std::size_t unread() const = 0;
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
  bool held = false;                  // it does not read
  std::vector<ReceivedFrame> unread;  // frames that were sent since then
  std::vector<std::string> errors;    // of state writes
  std::optional<std::string> state;   // JSON
};

// One agent, in memory or not.
//
// Each function except the questions returns when nothing is due any more. It throws runtime_error
// if that never happens, or if the agent's storage fails.
class MockAgent {
 public:
  MockAgent() = default;
  virtual ~MockAgent() = default;
  MockAgent(const MockAgent&) = delete;
  MockAgent& operator=(const MockAgent&) = delete;

  // ---- events; they wait until the agent has started
  // `client`: the number of the client that calls; 0: the call comes from outside of any
  // connection. The arguments need not be JSON. `claims`: those of its token, if the call comes
  // through no connection; empty: none.
  virtual std::shared_ptr<const CallRecord> call(std::uint64_t client, std::string_view method,
                                                 std::string_view arguments,
                                                 std::string claims) = 0;
  virtual void cancel(const CallRecord& call) = 0;
  virtual std::shared_ptr<const CallRecord> request(std::string_view method, std::string_view path,
                                                    std::string_view body, Headers headers,
                                                    std::string claims) = 0;
  // Throws logic_error: the class has no HEARTH_CLASS_READS_BODIES.
  virtual std::shared_ptr<Upload> upload(std::string_view method, std::string_view path,
                                         Headers headers, std::string claims) = 0;
  virtual std::shared_ptr<ClientRecord> connect(std::string_view query, std::string id,
                                                Headers headers, std::string claims) = 0;
  virtual void receive(const ClientRecord& client, std::string_view frame, bool binary) = 0;
  virtual void set_state(ClientRecord& client, std::string_view json) = 0;
  // It stops to read, or reads again.
  virtual void hold(ClientRecord& client, bool hold) = 0;
  virtual void leave(ClientRecord& client, unsigned code, std::string reason, bool clean) = 0;

  // ---- life
  // Brings it into memory, like an event without effects. Throws runtime_error: why it cannot
  // start.
  virtual void wake() = 0;
  // With a grace of 0 at once, else when EVICT has ended or the grace is over.
  virtual void evict(std::uint32_t reason, std::uint64_t grace_ns) = 0;
  virtual void kill() = 0;
  // Its class from the next event on.
  virtual void become(const hearth_class& definition) = 0;
  [[nodiscard]] virtual void* instance() const = 0;  // null: it is not in memory
  [[nodiscard]] virtual int activations() const = 0;
  [[nodiscard]] virtual bool destroyed() const = 0;

  // ---- questions
  [[nodiscard]] virtual std::optional<std::string> state() = 0;
  // Rows as a JSON array of arrays. Throws runtime_error with SQLite's text.
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

  // From now on like `calls: serial` in the file of its class.
  virtual void set_serial(bool serial) = 0;
  virtual void set_options(std::string options) = 0;

  // ---- agents below
  // An agent right below this one, created if necessary. Throws runtime_error: the
  // name is invalid, or too many agents would stand above it.
  virtual MockAgent& below(const hearth_class& definition, std::string agent_class,
                           std::string_view name, std::string options) = 0;
  // A client asks for an agent of this class and name; SUB_AGENT.
  virtual std::shared_ptr<const CallRecord> ask_for_sub_agent(std::string_view agent_class,
                                                              std::string_view name,
                                                              std::string_view query,
                                                              Headers headers) = 0;
};

// Threads   The thread that made it, except for functions that abi.h allows on other threads.
class MockHost {
 public:
  MockHost() = default;
  virtual ~MockHost() = default;
  MockHost(const MockHost&) = delete;
  MockHost& operator=(const MockHost&) = delete;

  // Its agents are in a directory of its own below $TMPDIR, which it removes at its end.
  [[nodiscard]] static std::unique_ptr<MockHost> make();

  // The result lives as long as the host, and so must the definition. `agent_class`: its name for
  // other agents. If a call of another agent has created the agent, add() gives it, but only once.
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

  // The status that these functions return instead of doing anything, until HEARTH_OK.
  virtual void fail_submit(hearth_status status) = 0;
  virtual void fail_start_fiber(hearth_status status) = 0;
  virtual void hold_offload(bool hold) = 0;
  virtual void on_fetch(std::function<FetchReply(const SentRequest&)> reply) = 0;
};

}  // namespace detail

}  // namespace hearth::testing
