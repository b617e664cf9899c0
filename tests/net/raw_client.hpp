#pragma once
// A blocking client that sends exactly the bytes of a test, right or wrong.

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

namespace hearth::testing {

struct Reply {
  int status = 0;
  std::string head;  // status line and headers
  std::string body;
};

struct Frame {
  int opcode = 0;
  bool is_final = true;
  std::string payload;

  [[nodiscard]] int close_code() const {
    if (opcode != 8 || payload.size() < 2) return 0;
    return static_cast<unsigned char>(payload[0]) << 8 | static_cast<unsigned char>(payload[1]);
  }
  [[nodiscard]] std::string close_reason() const {
    return payload.size() < 2 ? "" : payload.substr(2);
  }
};

// Waits at most 30 seconds for anything, and throws then: a test never hangs.
class RawClient {
 public:
  // Opcodes with the bit of RFC 7692.
  static constexpr int kPackedText = 0x41;
  static constexpr int kPackedBinary = 0x42;

  // `receive_buffer`: how much the system takes for a client that does not read; 0 is its default.
  explicit RawClient(std::uint16_t port, int receive_buffer = 0) : RawClient(receive_buffer) {
    connect(port);
  }
  // A socket that is not connected yet.
  struct Later {};
  explicit RawClient(Later) : RawClient(0) {}

  // From this address of the machine, such as "127.0.0.2". Before connect().
  void bind_to(const char* address) {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    ::inet_pton(AF_INET, address, &own.sin_addr);
    if (::bind(socket_, reinterpret_cast<sockaddr*>(&own), sizeof own) != 0)
      throw std::runtime_error("cannot bind");
  }
  void connect(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("cannot connect");
    }
  }
  virtual ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  void end_sending() { ::shutdown(socket_, SHUT_WR); }
  // After this, closing resets the connection.
  void reset_on_close() {
    const linger hard{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  }

  // False once the server has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = put(bytes);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  // Only for plain connections: how many bytes the system takes at once; -1 once the server has
  // closed.
  ssize_t send_some(std::string_view bytes) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
    return sent;
  }

  [[nodiscard]] bool takes_more_within(std::chrono::milliseconds time) const {
    pollfd look{.fd = socket_, .events = POLLOUT, .revents = 0};
    return ::poll(&look, 1, static_cast<int>(time.count())) > 0;
  }

  // ---- HTTP -------------------------------------------------------------------------------------
  Reply read_reply(bool has_body = true) {
    Reply reply;
    reply.head = read_until("\r\n\r\n");
    reply.status = std::stoi(reply.head.substr(9, 3));
    const std::size_t length = reply.head.find("Content-Length: ");
    if (!has_body) return reply;
    if (length != std::string::npos) {
      reply.body = read_exactly(std::stoul(reply.head.substr(length + 16)));
    } else if (reply.head.find("chunked") != std::string::npos) {
      for (;;) {
        const std::size_t size = std::stoul(read_until("\r\n"), nullptr, 16);
        reply.body += read_exactly(size);
        read_until("\r\n");
        if (size == 0) break;
      }
    }
    return reply;
  }

  Reply request(std::string_view text, bool has_body = true) {
    send(text);
    return read_reply(has_body);
  }

  std::string read_exactly(std::size_t size) {
    while (incoming_.size() < size) need_more(std::to_string(size) + " bytes");
    return take(size);
  }
  std::string read_until(std::string_view end) {
    std::size_t found = 0;
    while ((found = incoming_.find(end)) == std::string::npos)
      need_more("the end of a line or head");
    return take(found + end.size());
  }
  // Everything until the server closes.
  std::string read_to_end() {
    while (more()) {
    }
    return std::exchange(incoming_, std::string());
  }
  // Whether there are unread bytes. Does not wait.
  [[nodiscard]] bool has_unread() const {
    char first = 0;
    return !incoming_.empty() || ::recv(socket_, &first, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
  }
  // True if the server closes (or resets) without another byte.
  bool at_end() { return incoming_.empty() && !more(); }

  // ---- WebSocket --------------------------------------------------------------------------------
  static std::string upgrade_text(std::string_view target, std::string_view extra = "") {
    return "GET " + std::string(target) +
           " HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
           std::string(extra) + "\r\n";
  }
  Reply upgrade(std::string_view target = "/", std::string_view extra = "") {
    return request(upgrade_text(target, extra), false);
  }

  // The mask is not zero, so that unmasking is tested too.
  static std::string frame(int opcode, std::string_view payload, bool is_final = true,
                           bool is_masked = true) {
    constexpr unsigned char kMask[4] = {0x37, 0xfa, 0x21, 0x3d};
    std::string text(1, static_cast<char>((is_final ? 0x80 : 0) | opcode));
    const int mask_bit = is_masked ? 0x80 : 0;
    if (payload.size() < 126) {
      text.push_back(static_cast<char>(mask_bit | static_cast<int>(payload.size())));
    } else if (payload.size() < 65536) {
      text.push_back(static_cast<char>(mask_bit | 126));
      for (int shift = 8; shift >= 0; shift -= 8) text.push_back(byte(payload.size() >> shift));
    } else {
      text.push_back(static_cast<char>(mask_bit | 127));
      for (int shift = 56; shift >= 0; shift -= 8) text.push_back(byte(payload.size() >> shift));
    }
    if (is_masked) text.append(reinterpret_cast<const char*>(kMask), 4);
    for (std::size_t i = 0; i < payload.size(); ++i) {
      text.push_back(is_masked ? static_cast<char>(payload[i] ^ kMask[i % 4]) : payload[i]);
    }
    return text;
  }
  static std::string text_frame(std::string_view payload) { return frame(1, payload); }
  static std::string close_frame(int code, std::string_view reason = "") {
    std::string payload{byte(static_cast<std::size_t>(code) >> 8),
                        byte(static_cast<std::size_t>(code))};
    return frame(8, payload.append(reason));
  }

  Frame read_frame() {
    const std::string head = read_exactly(2);
    Frame frame;
    frame.is_final = (head[0] & 0x80) != 0;
    frame.opcode = head[0] & 0x0F;
    std::size_t length = static_cast<unsigned char>(head[1]) & 0x7F;
    if ((head[1] & 0x80) != 0) throw std::runtime_error("a server's frame is masked");
    const std::size_t more_length = length == 126 ? 2 : length == 127 ? 8 : 0;
    if (more_length != 0) {
      length = 0;
      for (const char c : read_exactly(more_length)) {
        length = length << 8 | static_cast<unsigned char>(c);
      }
    }
    frame.payload = read_exactly(length);
    return frame;
  }
  std::string read_text() { return read_frame().payload; }

 protected:
  // send() and recv(); TLS does the same.
  virtual ssize_t put(std::string_view bytes) {
    return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  virtual ssize_t get(char* into, std::size_t size) { return ::recv(socket_, into, size, 0); }
  [[nodiscard]] int descriptor() const { return socket_; }

 private:
  explicit RawClient(int receive_buffer) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer != 0) {
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    const timeval limit{30, 0};  // ServerProcess::kPatience
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }

  static char byte(std::size_t value) { return static_cast<char>(value & 0xFF); }

  std::string take(std::size_t size) {
    std::string taken = incoming_.substr(0, size);
    incoming_.erase(0, size);
    return taken;
  }
  bool more() {
    char chunk[16384];
    const ssize_t got = get(chunk, sizeof chunk);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      throw std::runtime_error("the server says nothing");
    }
    if (got > 0) incoming_.append(chunk, static_cast<std::size_t>(got));
    return got > 0;
  }
  void need_more(const std::string& for_what) {
    if (more()) return;
    throw std::runtime_error("the server closed while the client waited for " + for_what +
                             "; unread: " + incoming_);
  }

  int socket_;
  std::string incoming_;
};

// A client with an open WebSocket.
class SocketClient : public RawClient {
 public:
  explicit SocketClient(std::uint16_t port, int receive_buffer = 0)
      : RawClient(port, receive_buffer) {
    upgrade();
  }
};

}  // namespace hearth::testing
