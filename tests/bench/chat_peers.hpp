#pragma once
// Both ends of a chat server, in one loop of one thread, so that one clock times both: the provider
// of the model, which streams prepared words, and the tabs of clients.
//
// The words of an answer are "w000000 ", "w000001 ", ... So each tab knows what it misses.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::bench {

using Steady = std::chrono::steady_clock;
using Time = Steady::time_point;

inline constexpr std::size_t kWordBytes = 8;

[[noreturn]] void fail(const std::string& why);

// A socket that the loop watches.
class Watched {
 public:
  Watched() = default;
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  virtual ~Watched();
  virtual void on_readable() = 0;
  // Sends what fits, and the rest when there is room.
  void send(std::string_view bytes);
  void flush();
  [[nodiscard]] bool is_open() const { return socket_ >= 0; }

 protected:
  // False: the socket is closed.
  bool receive(std::string& into);
  void watch(int socket, bool reads = true);
  void close();
  [[nodiscard]] int socket() const { return socket_; }

 private:
  int socket_ = -1;
  bool reads_ = true;
  bool waits_ = false;  // for room
  std::string unsent_;
  std::size_t sent_ = 0;  // of it
};

// How an answer is sent: the first `pause` words at once, or one `every`. Provider::finish() sends
// the other words and the end.
struct Plan {
  std::uint32_t pause = 1;
  std::chrono::nanoseconds every{0};
};

class Provider;

class Answer : public Watched {
 public:
  Answer(Provider& provider, int socket);
  void on_readable() override;
  void send_due(Time now);
  void finish();
  [[nodiscard]] Time due() const;  // of the next word

 private:
  void take_request(std::string_view body);

  Provider& provider_;
  std::string received_;
  bool is_streaming_ = false;
  std::uint32_t next_ = 0;
  Time due_;
};

// Speaks chat/completions. A request that has the begin of an answer gets the words behind it.
class Provider : public Watched {
 public:
  Provider();
  void on_readable() override;
  void send_due(Time now);
  // How long nothing is to be sent, at most a millisecond.
  [[nodiscard]] std::chrono::nanoseconds pause(Time now) const;
  // Ends all answers.
  void finish();
  [[nodiscard]] int port() const { return port_; }

  Plan plan;
  std::uint64_t requests = 0;
  Time asked_at;              // the first byte of the last request
  std::vector<Time> sent_at;  // by word, of the last answer with it

 private:
  int port_ = 0;
  std::vector<std::unique_ptr<Answer>> answers_;
};

// A client of one chat.
class Tab : public Watched {
 public:
  Tab(int port, std::string name);
  void on_readable() override;
  // Another socket. What it gets is a replay, from the first word.
  void connect(int port, bool is_deaf = false);
  void read_at_last();
  void send_frame(std::string_view text);
  void submit();  // a new message
  void call();    // the least question that a chat answers: resume_none
  [[nodiscard]] std::uint32_t words() const { return next_; }
  [[nodiscard]] bool is_between_frames() const { return received_.empty(); }

  bool is_ready = false;  // the greeting has come
  bool is_done = false;   // the last frame of the turn has come
  bool is_live = false;   // a word has come that is not of a replay
  bool has_transcript = false;
  std::uint64_t answers = 0;  // to call()
  std::uint64_t frames = 0;   // with words
  std::uint64_t lost = 0;
  std::uint64_t doubled = 0;
  Time word_at;
  std::function<void(std::uint32_t word, Time at)> on_word;

 private:
  void take(std::string_view frame, Time now);
  void take_words(std::string_view delta, Time now);

  std::string name_;
  std::string received_;
  std::uint32_t next_ = 0;
  std::uint64_t submitted_ = 0;
};

// Runs the loop until it holds.
void run_until(Provider& provider, const std::string& what, const std::function<bool()>& holds,
               std::chrono::seconds limit = std::chrono::seconds(120));

}  // namespace hearth::bench
