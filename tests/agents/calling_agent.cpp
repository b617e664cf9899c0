// Agents that call each other. Plugin "calling", classes CallingAgent and SerialCaller (for a class
// file with `calls: serial`), which do the same.
//
//   call      add(by)                        counts on in the state, and gives the sum
//             version()                      of the library
//             hold(ms)                       waits, and gives the sum; idempotent
//             ask(class, name, method, args) calls it, and gives the answer; args: an array of at
//                                            most one
//             ask_often(class, name, times)  add(1) so often, one after the other
//             chain([[class, name], ...])    calls chain of the first with the rest; gives the
//                                            length of that chain
//             dive(class, name)              calls dive of it with its own class and name
//             stream(parts, bytes)           so many parts, each once its reader has taken most
//                                            of the earlier parts
//             read(class, name, parts, bytes, ms)   reads such a stream, waits between its parts,
//                                            and gives the number of bytes
//             notify(class, name, from, to)  a notification note(n) for each number
//             note(n)                        keeps the number under the id of the notification
//             notes()                        [[n, times that its id came], ...], ordered by the
//                                            first arrival of each id
//             undelivered()                  how many wait
//             spread(width, depth)           notifies so many agents below its name, which spread
//                                            with a depth less, down to 0

#include <hearth/agent.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

class CallingAgent : public hearth::Agent {
 public:
  CallingAgent() {
    sql("CREATE TABLE IF NOT EXISTS notes (id TEXT PRIMARY KEY, n INTEGER, times INTEGER)");
  }

  template <class T>
  static void list(hearth::Methods<T>& m) {
    m.add("add", &T::add);
    m.add("version", &T::version);
    m.add("hold", &T::hold, hearth::kIdempotent);
    m.add("ask", &T::ask);
    m.add("ask_often", &T::ask_often);
    m.add("chain", &T::chain);
    m.add("dive", &T::dive);
    m.stream("stream", &T::stream);
    m.add("read", &T::read);
    m.add("notify", &T::notify);
    m.add("note", &T::note);
    m.add("notes", &T::notes);
    m.add("undelivered", &T::undelivered);
    m.add("spread", &T::spread);
  }
  static void methods(hearth::Methods<CallingAgent>& m) { list(m); }

  int add(int by) {
    const int sum = (state().is_null() ? 0 : state().get<int>()) + by;
    set_state(sum);
    return sum;
  }
  std::string version() { return VERSION; }
  hearth::Task<int> hold(int ms) {
    co_await sleep(std::chrono::milliseconds(ms));
    co_return add(0);
  }
  hearth::Task<hearth::Json> ask(std::string agent_class, std::string name, std::string method,
                                 hearth::Json arguments) {
    hearth::AgentRef other = agent(agent_class, name);
    if (arguments.empty()) co_return co_await other.call(method);
    co_return co_await other.call(method, arguments.at(0));
  }
  hearth::Task<int> ask_often(std::string agent_class, std::string name, int times) {
    hearth::AgentRef other = agent(agent_class, name);
    int sum = 0;
    for (int call = 0; call < times; ++call) sum = co_await other.call<int>("add", 1);
    co_return sum;
  }
  hearth::Task<int> chain(std::vector<std::vector<std::string>> others) {
    if (others.empty()) co_return 0;
    const std::vector<std::string> next = others.front();
    others.erase(others.begin());
    hearth::AgentRef other = agent(next.at(0), next.at(1));
    const int behind = co_await other.call<int>("chain", others);
    co_return behind + 1;
  }
  hearth::Task<void> dive(std::string agent_class, std::string other_name) {
    hearth::AgentRef other = agent(agent_class, other_name);
    const std::string own_class(class_name());
    co_await other.call<void>("dive", own_class, name());
  }
  hearth::Task<void> stream(hearth::Stream& out, int parts, int bytes) {
    const std::string part(static_cast<std::size_t>(bytes), 'x');
    for (int count = 0; count < parts; ++count) {
      out.send(part);
      const bool reads = co_await out.drained();
      if (!reads) break;
    }
  }
  hearth::Task<std::int64_t> read(std::string agent_class, std::string name, int parts, int bytes,
                                  int ms) {
    hearth::CallStream stream = agent(agent_class, name).stream("stream", parts, bytes);
    std::int64_t had = 0;
    for (;;) {
      const std::optional<std::string> part = co_await stream.next<std::string>();
      if (!part) break;
      had += static_cast<std::int64_t>(part->size());
      co_await sleep(std::chrono::milliseconds(ms));
    }
    co_return had;
  }
  void notify(std::string agent_class, std::string name, int from, int to) {
    for (int number = from; number <= to; ++number) agent(agent_class, name).notify("note", number);
  }
  void note(int number) {
    sql("INSERT INTO notes VALUES (?, ?, 1) ON CONFLICT (id) DO UPDATE SET times = times + 1",
        *caller_agent()->notification, number);
    log.info("note ", number);
  }
  hearth::Json notes() { return sql("SELECT n, times FROM notes ORDER BY rowid").json(); }
  int undelivered() { return static_cast<int>(notifications().size()); }
  void spread(int width, int depth) {
    for (int child = 0; depth > 0 && child < width; ++child)
      agent(std::string(class_name()), std::string(name()) + "." + std::to_string(child))
          .notify("spread", width, depth - 1);
  }
};

class SerialCaller : public CallingAgent {
 public:
  static void methods(hearth::Methods<SerialCaller>& m) { list(m); }
};

HEARTH_PLUGIN("calling", VERSION, CallingAgent, SerialCaller)
