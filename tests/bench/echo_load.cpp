// Load on one WebSocket: keeps a fixed number of requests in progress and measures each round trip.
//
//   echo_load --port 8787 --path /agents/counter/a --depth 64 --seconds 5
//   echo_load --port 8787 --path /agents/counter/a --depth 64 --tls yes
//   echo_load --port 8787 --path /agents/counter/a --depth 16
//             --frame '{"type":"rpc","id":"{id}","method":"increment","args":[1]}' --expect
//             '"success":true'
//
// Prints one line of JSON: messages, seconds, rate, and the round trip's p50, p95 and p99 in
// nanoseconds. Answers are taken in order: each belongs to the oldest request in progress.
//
// With Beast the client would cost more than the server under test. So this program frames by
// itself, writes the frames of a turn in one call, and masks with zero. RFC 6455 allows a test to
// do that.

#include <sys/socket.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>

namespace {

using Steady = std::chrono::steady_clock;

struct Options {
  std::string host = "127.0.0.1";
  std::string port = "8787";
  std::string path = "/";
  std::size_t depth = 64;
  double seconds = 5;
  double warmup = 1;
  std::size_t payload = 16;
  std::string frame;   // instead of `payload` letters; {id} becomes a counter
  bool tls = false;    // whatever certificate the server has
  std::string expect;  // a frame counts as an answer if it holds this; empty: every data frame
};

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "echo_load: %s\n", why.c_str());
  std::exit(1);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--help") {
      std::puts(
          "echo_load [--host H] [--port P] [--path /...] [--depth N] [--seconds S] [--warmup S]\n"
          "          [--payload BYTES | --frame TEXT] [--expect SUBSTRING] [--tls yes]");
      std::exit(0);
    }
    if (i + 1 == argc) fail(std::string(name) + " needs a value");
    const char* value = argv[++i];
    if (name == "--host") {
      options.host = value;
    } else if (name == "--port") {
      options.port = value;
    } else if (name == "--path") {
      options.path = value;
    } else if (name == "--depth") {
      options.depth = std::strtoul(value, nullptr, 10);
    } else if (name == "--seconds") {
      options.seconds = std::strtod(value, nullptr);
    } else if (name == "--warmup") {
      options.warmup = std::strtod(value, nullptr);
    } else if (name == "--payload") {
      options.payload = std::strtoul(value, nullptr, 10);
    } else if (name == "--frame") {
      options.frame = value;
    } else if (name == "--tls") {
      options.tls = std::string_view(value) == "yes";
    } else if (name == "--expect") {
      options.expect = value;
    } else {
      fail("unknown option " + std::string(name));
    }
  }
  if (options.depth == 0) fail("--depth must be at least 1");
  return options;
}

int connect_to(const Options& options) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(options.host.c_str(), options.port.c_str(), &hints, &found) != 0) {
    fail("cannot resolve " + options.host);
  }
  const int socket = ::socket(found->ai_family, SOCK_STREAM, 0);
  if (::connect(socket, found->ai_addr, found->ai_addrlen) != 0) {
    fail("cannot connect to " + options.host + ":" + options.port);
  }
  ::freeaddrinfo(found);
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

// The bytes of one connection, frames in and out.
class Client {
 public:
  explicit Client(const Options& options) : socket_(connect_to(options)), chunk_(256 * 1024) {
    if (options.tls) begin_tls();
    outgoing_ = "GET " + options.path + " HTTP/1.1\r\nHost: " + options.host +
                "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    flush();
    std::size_t end = 0;
    while ((end = incoming_.find("\r\n\r\n")) == std::string::npos) receive();
    if (!incoming_.starts_with("HTTP/1.1 101")) fail("no upgrade: " + incoming_.substr(0, end));
    read_ = end + 4;
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void add_frame(int opcode, std::string_view payload) {
    outgoing_.push_back(static_cast<char>(0x80 | opcode));
    if (payload.size() < 126) {
      outgoing_.push_back(static_cast<char>(0x80 | payload.size()));
    } else {
      const int bytes = payload.size() < 65536 ? 2 : 8;
      outgoing_.push_back(static_cast<char>(0x80 | (bytes == 2 ? 126 : 127)));
      for (int i = bytes - 1; i >= 0; --i) {
        outgoing_.push_back(static_cast<char>(payload.size() >> (8 * i) & 0xFF));
      }
    }
    outgoing_.append(4, '\0');
    outgoing_.append(payload);
  }

  void flush() {
    std::string_view rest = outgoing_;
    while (!rest.empty()) {
      const ssize_t sent = put(rest);
      if (sent <= 0) fail("the server has closed the connection");
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    outgoing_.clear();
  }

  // Waits for more bytes.
  void receive() {
    incoming_.erase(0, read_);
    read_ = 0;
    const ssize_t got = get();
    if (got <= 0) fail("the server has closed the connection");
    incoming_.append(chunk_.data(), static_cast<std::size_t>(got));
  }

  // The next data frame that has arrived whole. Pings are answered on the way. The view is valid
  // until receive() is called.
  std::optional<std::string_view> next_frame() {
    for (;;) {
      const std::string_view rest = std::string_view(incoming_).substr(read_);
      if (rest.size() < 2) return std::nullopt;
      std::size_t length = static_cast<unsigned char>(rest[1]) & 0x7F;
      const std::size_t wide = length == 126 ? 2 : length == 127 ? 8 : 0;
      if (rest.size() < 2 + wide) return std::nullopt;
      if (wide != 0) length = 0;
      for (std::size_t i = 0; i < wide; ++i) {
        length = length << 8 | static_cast<unsigned char>(rest[2 + i]);
      }
      if (rest.size() < 2 + wide + length) return std::nullopt;
      const std::string_view payload = rest.substr(2 + wide, length);
      read_ += 2 + wide + length;
      const int opcode = rest[0] & 0x0F;
      if (opcode == 8) fail("the server has closed the WebSocket");
      if (opcode == 9) add_frame(10, payload);
      if (opcode <= 2) return payload;
    }
  }

 private:
  void begin_tls() {
    context_.reset(SSL_CTX_new(TLS_client_method()));
    SSL_CTX_set_read_ahead(context_.get(), 1);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), socket_);
    if (SSL_connect(ssl_.get()) != 1) fail("no TLS");
  }
  ssize_t put(std::string_view bytes) {
    if (ssl_) return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
    return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  ssize_t get() {
    if (ssl_) return SSL_read(ssl_.get(), chunk_.data(), static_cast<int>(chunk_.size()));
    return ::recv(socket_, chunk_.data(), chunk_.size(), 0);
  }

  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  const int socket_;
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> ssl_;  // none: plain TCP
  std::vector<char> chunk_;
  std::string incoming_;
  std::string outgoing_;
  std::size_t read_ = 0;
};

// What to send, with a counter in the place of {id}.
class Requests {
 public:
  explicit Requests(const Options& options) {
    const std::string text =
        options.frame.empty() ? std::string(options.payload, 'x') : options.frame;
    constexpr std::string_view kId = "{id}";
    const std::size_t place = text.find(kId);
    counted_ = place != std::string::npos;
    before_ = text.substr(0, place);
    if (counted_) after_ = text.substr(place + kId.size());
  }
  std::string_view next() {
    if (!counted_) return before_;
    text_ = before_ + std::to_string(++count_) + after_;
    return text_;
  }

 private:
  std::string before_;
  std::string after_;
  std::string text_;
  std::uint64_t count_ = 0;
  bool counted_ = false;
};

std::int64_t percentile(std::vector<std::int64_t>& sorted, double share) {
  if (sorted.empty()) return 0;
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  Client client(options);
  Requests requests(options);
  std::deque<Steady::time_point> under_way;
  std::vector<std::int64_t> round_trips;
  round_trips.reserve(8'000'000);

  const auto seconds = [](double s) {
    return std::chrono::duration_cast<Steady::duration>(std::chrono::duration<double>(s));
  };
  const Steady::time_point measure_from = Steady::now() + seconds(options.warmup);
  const Steady::time_point end = measure_from + seconds(options.seconds);
  Steady::time_point now = Steady::now();
  Steady::time_point last = measure_from;
  while (now < end) {
    while (under_way.size() < options.depth) {
      client.add_frame(1, requests.next());
      under_way.push_back(now);
    }
    client.flush();
    client.receive();
    now = Steady::now();  // once for all answers that came together: they arrived together
    while (const auto frame = client.next_frame()) {
      if (!options.expect.empty() && frame->find(options.expect) == std::string_view::npos)
        continue;
      if (under_way.empty()) continue;  // something else that the server says, like its greeting
      if (now >= measure_from) {
        round_trips.push_back((now - under_way.front()).count());
        last = now;
      }
      under_way.pop_front();
    }
  }

  const double elapsed = std::chrono::duration<double>(last - measure_from).count();
  std::sort(round_trips.begin(), round_trips.end());
  std::printf(
      "{\"messages\":%zu,\"seconds\":%.3f,\"rate\":%.0f,\"p50_ns\":%lld,\"p95_ns\":%lld,"
      "\"p99_ns\":%lld}\n",
      round_trips.size(), elapsed,
      elapsed > 0 ? static_cast<double>(round_trips.size()) / elapsed : 0.0,
      static_cast<long long>(percentile(round_trips, 0.50)),
      static_cast<long long>(percentile(round_trips, 0.95)),
      static_cast<long long>(percentile(round_trips, 0.99)));
}
