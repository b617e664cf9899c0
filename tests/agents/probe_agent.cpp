// An agent that does what a test of the server asks for. Plugin "probe-agent", class ProbeAgent.
//
//   connect   ?readonly=1 ?protocol=0 ?tag=x          in on_connecting
//             ?refuse=1 (4403) ?throw_connecting=1    in on_connecting
//             ?slow_connect=MS ?fail_connect=1 ?close=CODE (reason "asked") ?hello=1   in
//             on_connect, in this order
//   frames    come back as they came; text "throw" throws, "close" closes with 4000
//   HTTP      answers {"method","target","path","body","x_probe"}; ?status=N ?slow=MS ?fail=1
//             ?header=VALUE (X-Probe) ?destroy=1: destroys itself, and answers
//   state     one with the key "forbidden" is rejected
//   below     a sub-agent called "forbidden" is refused, unless the request has ?key=open; "locked"
//             gets a 401 of its own
//   options   fail_create, fail_start: throw there; start_ms: on_start sleeps as long

#include <hearth/agent.hpp>

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

class ProbeAgent : public hearth::Agent {
 public:
  struct Options {
    bool fail_create = false;
    bool fail_start = false;
    int start_ms = 0;
    HEARTH_FIELDS(fail_create, fail_start, start_ms)
  };

  explicit ProbeAgent(Options options) : options_(options), instance_(uuid()) {
    if (options.fail_create) throw std::runtime_error("create failed as asked");
  }

  static void methods(hearth::Methods<ProbeAgent>& m) {
    m.add("add", &ProbeAgent::add);
    m.add("nothing", &ProbeAgent::nothing);
    m.add("null_value", &ProbeAgent::null_value);
    m.add("value_or_nothing", &ProbeAgent::value_or_nothing);
    m.add("fail", &ProbeAgent::fail);
    m.add("refuse", &ProbeAgent::refuse);
    m.add("fail_with", &ProbeAgent::fail_with);
    m.add("fail_oddly", &ProbeAgent::fail_oddly);
    m.add("bad_text", &ProbeAgent::bad_text);
    m.add("not_a_number", &ProbeAgent::not_a_number);
    m.add("slow", &ProbeAgent::slow);
    m.add("never", &ProbeAgent::never);
    m.add("spin", &ProbeAgent::spin);
    m.add("get", &ProbeAgent::get);
    m.add("set", &ProbeAgent::set);
    m.stream("stream_fail", &ProbeAgent::stream_fail);
    m.stream("stream_text", &ProbeAgent::stream_text);
    m.add("close_me", &ProbeAgent::close_me);
    m.add("tags", &ProbeAgent::tags);
    m.add("count_tagged", &ProbeAgent::count_tagged);
    m.add("set_attachment", &ProbeAgent::set_attachment);
    m.add("get_attachment", &ProbeAgent::get_attachment);
    m.add("set_readonly", &ProbeAgent::set_readonly);
    m.add("tell_all", &ProbeAgent::tell_all);
    m.add("evict", &ProbeAgent::evict);
    m.add("sql", &ProbeAgent::run_sql);
    m.add("write_then_fail", &ProbeAgent::write_then_fail);
    m.add("rows", &ProbeAgent::rows);
    m.add("instance", &ProbeAgent::instance);
    m.add("big", &ProbeAgent::big);
    m.add("blob", &ProbeAgent::blob);
    m.add("offload_add", &ProbeAgent::offload_add);
    m.add("journal", &ProbeAgent::journal);
    m.add("destroy", &ProbeAgent::destroy_now);
    m.add("destroy_and_wait", &ProbeAgent::destroy_and_wait);
    m.add("work", &ProbeAgent::work);
    m.add("below", &ProbeAgent::below);
    m.add("destroy_below", &ProbeAgent::destroy_below);
    m.add("path", &ProbeAgent::path);
    m.add("ask_below", &ProbeAgent::ask_below);
    m.add("ask_above", &ProbeAgent::ask_above);
  }

  hearth::Task<std::optional<hearth::Response>> on_sub_agent(
      hearth::SubAgentName child, const hearth::Request& request) override {
    if (child.name == "forbidden" && request.query("key") != "open")
      throw hearth::Error(HEARTH_E_FORBIDDEN, "not without the key");
    if (child.name != "locked") return std::nullopt;
    hearth::Response refusal = hearth::Response::text("sign in first", 401);
    refusal.add_header("WWW-Authenticate", "Bearer realm=\"inbox\"");
    return refusal;
  }

  hearth::Task<void> on_start() override {
    sql("CREATE TABLE IF NOT EXISTS journal (id INTEGER PRIMARY KEY, entry TEXT)");
    if (options_.start_ms > 0) co_await sleep(std::chrono::milliseconds(options_.start_ms));
    if (options_.fail_start) throw std::runtime_error("start failed as asked");
  }

  void on_connecting(hearth::Connecting& client) override {
    if (client.query("readonly")) client.set_readonly();
    if (client.query("protocol") == "0") client.set_no_protocol();
    if (const auto tag = client.query("tag")) client.add_tag(*tag);
    if (client.query("refuse")) client.refuse();
    if (client.query("throw_connecting")) throw std::runtime_error("on_connecting failed as asked");
  }

  hearth::Task<void> on_connect(hearth::Connection client) override {
    if (const auto ms = client.query("slow_connect"))
      co_await sleep(std::chrono::milliseconds(std::stoi(*ms)));
    if (client.query("fail_connect")) throw std::runtime_error("on_connect failed as asked");
    if (const auto code = client.query("close"))
      client.close(static_cast<unsigned>(std::stoi(*code)), "asked");
    if (client.query("hello")) client.send("hello");
  }

  hearth::Task<void> on_message(hearth::Connection client, hearth::Message message) override {
    if (message.is_text() && message.text() == "throw")
      throw std::runtime_error("on_message failed as asked");
    if (message.is_text() && message.text() == "close")
      client.close(4000, "asked");
    else
      client.send(message);
    return {};
  }

  hearth::Task<void> on_close(hearth::Connection client, unsigned code, std::string reason,
                              bool clean) override {
    note("close " + client.id() + " " + std::to_string(code) + " " + reason +
         (clean ? " clean" : " unclean"));
    return {};
  }

  hearth::Task<hearth::Response> on_request(const hearth::Request& request) override {
    if (const auto ms = request.query("slow"))
      co_await sleep(std::chrono::milliseconds(std::stoi(*ms)));
    if (request.query("fail")) throw std::runtime_error("on_request failed as asked");
    if (request.query("destroy")) destroy();
    const hearth::Json seen = {{"method", request.method()},
                               {"target", request.target()},
                               {"path", request.path()},
                               {"body", request.body()},
                               {"x_probe", request.header("X-Probe").value_or("")}};
    hearth::Response response = hearth::Response::json(
        seen, static_cast<unsigned>(std::stoi(request.query("status").value_or("200"))));
    if (const auto header = request.query("header")) response.add_header("X-Probe", *header);
    co_return response;
  }

  void validate_state(const hearth::Json& next, std::optional<hearth::Connection>) override {
    if (next.is_object() && next.contains("forbidden"))
      throw hearth::Error(HEARTH_E_INVALID, "the key forbidden is forbidden");
  }

  hearth::Task<void> on_state_changed(hearth::Json next,
                                      std::optional<hearth::Connection> source) override {
    note("state " + hearth::to_text(next) + (source ? " by " + source->id() : " by the agent"));
    return {};
  }

  hearth::Task<void> on_evict(hearth::EvictReason reason) override {
    note("evict " + std::to_string(static_cast<unsigned>(reason)));
    return {};
  }

  // ---- methods
  double add(double a, double b) { return a + b; }
  void nothing() {}
  hearth::Json null_value() { return nullptr; }
  std::optional<int> value_or_nothing(std::optional<int> value) { return value; }
  void fail(const std::string& message) { throw std::runtime_error(message); }
  void refuse(const std::string& message) { throw hearth::Error(HEARTH_E_CONFLICT, message); }
  void fail_with(int code, const std::string& message) { throw hearth::Error(code, message); }
  void fail_oddly() { throw 42; }  // NOLINT: not a std::exception
  // What JSON cannot hold.
  std::string bad_text() { return "a\xff"; }
  double not_a_number() { return std::numeric_limits<double>::quiet_NaN(); }
  hearth::Task<int> slow(int ms) {
    co_await sleep(std::chrono::milliseconds(ms));
    co_return ms;
  }
  hearth::Task<void> never() { co_await std::suspend_always(); }
  // Blocks the agent's thread, as a plugin must not.
  void spin(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

  hearth::Json get() { return state(); }
  void set(const hearth::Json& next) { set_state(next); }

  hearth::Task<int> stream_fail(hearth::Stream& out, int n) {
    for (int i = 1; i <= n; ++i) {
      out.send(i);
      co_await sleep(std::chrono::milliseconds(1));
    }
    throw std::runtime_error("stream failed as asked");
  }
  // `n` parts of `size` bytes at once, without a wait.
  void stream_text(hearth::Stream& out, int n, std::size_t size) {
    for (int i = 0; i < n; ++i) out.send(std::string(size, 'x'));
  }

  void close_me(unsigned code, const std::string& reason) { me().close(code, reason); }
  std::vector<std::string> tags() { return me().tags(); }
  std::size_t count_tagged(const std::string& tag) { return connections(tag).size(); }
  void set_attachment(const hearth::Json& value) { me().set_attachment(value); }
  hearth::Json get_attachment() { return me().attachment(); }
  void set_readonly(bool on) { me().set_readonly(on); }
  void tell_all(const std::string& text) { broadcast(text); }
  void evict() { request_eviction(); }

  hearth::Json run_sql(const std::string& text) { return sql(text).json(); }
  void write_then_fail() {
    note("written before a failure");
    throw std::runtime_error("failed after a write");
  }
  std::int64_t rows() { return sql("SELECT count(*) FROM journal").value<std::int64_t>(); }
  std::string instance() { return instance_; }
  std::string big(std::size_t bytes) { return std::string(bytes, 'b'); }
  // Stores and reads a BLOB, and sends it to the caller as a binary frame.
  std::size_t blob(std::size_t bytes) {
    hearth::Blob written(bytes);
    fill_random(written);
    sql("CREATE TABLE IF NOT EXISTS blobs (id INTEGER PRIMARY KEY, bytes BLOB)");
    const auto id = sql("INSERT INTO blobs(bytes) VALUES (?)", written).last_insert_rowid();
    const auto read = sql("SELECT bytes FROM blobs WHERE id = ?", id).value<hearth::Blob>();
    if (read != written) throw std::runtime_error("the blob has changed");
    if (const auto client = caller()) client->send(read);
    return read.size();
  }
  hearth::Task<double> offload_add(double a, double b) {
    auto work = [a, b] { return a + b; };
    co_return co_await offload(work);
  }
  // All that could keep an agent awake, and then its end.
  std::string destroy_now() {
    note("written in the last turn");
    held_ = keep_alive();
    work();
    destroy();
    return "destroyed";
  }
  hearth::Task<std::string> destroy_and_wait() {
    destroy();
    co_await sleep(std::chrono::hours(1));
    co_return "too late";
  }
  // A fiber that never ends.
  std::string work() {
    return start_fiber("work", [this](hearth::FiberContext& fiber) { return wait_in(fiber); }).id();
  }
  hearth::Json journal() {
    return sql("SELECT entry FROM journal ORDER BY id").rows<std::string>();
  }

  std::vector<std::string> below() {
    std::vector<std::string> names;
    for (const auto& each : sub_agents().list()) names.push_back(each.class_name + " " + each.name);
    return names;
  }
  bool destroy_below(const std::string& class_name, const std::string& child) {
    return sub_agents().destroy(class_name, child);
  }
  hearth::Task<int> ask_below(std::string class_name, std::string child, int by) {
    co_return co_await sub_agent(class_name, child).call<int>("increment", by);
  }
  hearth::Task<int> ask_above(int a, int b) {
    co_return co_await parent_agent().call<int>("add", a, b);
  }
  std::string path() {
    std::string text;
    for (const auto& each : sub_agents().path()) text += "/" + each.class_name + " " + each.name;
    return text;
  }

 private:
  hearth::Task<void> wait_in(hearth::FiberContext& fiber) {
    fiber.stash(1);
    co_await sleep(std::chrono::hours(1));
  }
  hearth::Connection me() {
    if (const auto client = caller()) return *client;
    throw hearth::Error(HEARTH_E_INVALID, "only for a WebSocket client");
  }
  void note(const std::string& entry) { sql("INSERT INTO journal(entry) VALUES (?)", entry); }

  Options options_;
  std::string instance_;
  std::optional<hearth::KeepAlive> held_;
};

HEARTH_PLUGIN("probe-agent", "1.0.0", ProbeAgent)
