#include "cli/admin_client.hpp"

#include "config/units.hpp"
#include "net/tls_session.hpp"
#include "server/admin_token.hpp"
#include "storage/agent_key.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include <netdb.h>

namespace hearth::cli {
namespace {

constexpr std::size_t kMaxAnswer = std::size_t{64} << 20;
constexpr timeval kConnectPatience{.tv_sec = 5, .tv_usec = 0};
constexpr timeval kAnswerPatience{.tv_sec = 300, .tv_usec = 0};

// A connected socket. The destructor closes it.
class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&&) = delete;

  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_;
};

Error unreachable(const std::string& address, const std::string& why) {
  return Error{Errc::kUnavailable, "the server at " + address + " cannot be reached: " + why};
}

// The address to connect to. A server that listens on all addresses is reached by loopback.
config::ListenAddress to_connect(config::ListenAddress address) {
  if (address.host == "0.0.0.0") address.host = "127.0.0.1";
  if (address.host == "::") address.host = "::1";
  return address;
}

Result<Socket> connect_to(const std::string& text) {
  auto parsed = config::parse_listen_address(text);
  if (!parsed) return unreachable(text, parsed.error().message);
  const config::ListenAddress address = to_connect(*std::move(parsed));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int outcome =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (outcome != 0) return unreachable(text, ::gai_strerror(outcome));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  int error = 0;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    Socket socket(::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol));
    // The timeout for sending is also the timeout for connecting.
    const bool connected = socket.get() >= 0 &&
                           ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kConnectPatience,
                                        sizeof kConnectPatience) == 0 &&
                           ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerPatience,
                                        sizeof kAnswerPatience) == 0 &&
                           ::connect(socket.get(), each->ai_addr, each->ai_addrlen) == 0;
    if (connected) return socket;
    error = errno;
  }
  return unreachable(text, std::generic_category().message(error));
}

// The socket, or TLS over it. The socket's timeouts bound each call.
class Wire {
 public:
  // The lock on the server's record proves which server answers (PublishedRecord). So the
  // certificate, which has the name for clients, is not checked.
  Wire(const Socket& socket, bool tls) : socket_(socket) {
    if (tls) tls_.emplace(net::TlsContext::for_own_server(), socket.get());
  }

  bool open() { return !tls_ || tls_->handshake() == net::TlsSession::Outcome::kDone; }

  bool send_all(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = send_some(text);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  // Reads until the server closes the connection, as the request asks it to.
  std::optional<std::string> receive_all() {
    std::string text;
    char part[16384];
    for (;;) {
      const auto size = receive(part);
      if (!size) return std::nullopt;
      if (*size == 0) return text;
      text.append(part, *size);
      if (text.size() > kMaxAnswer) return std::nullopt;
    }
  }

  // 0: the end.
  std::optional<std::size_t> receive(std::span<char> into) {
    for (;;) {
      const ssize_t size = receive_some(into);
      if (size < 0 && errno == EINTR) continue;
      return size < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(size));
    }
  }

 private:
  ssize_t send_some(std::string_view text) {
    if (!tls_) return ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    const net::TlsSession::Moved moved = tls_->write(text);
    errno = 0;
    return moved.bytes == 0 ? -1 : static_cast<ssize_t>(moved.bytes);
  }

  ssize_t receive_some(std::span<char> into) {
    if (!tls_) return ::recv(socket_.get(), into.data(), into.size(), 0);
    const net::TlsSession::Moved moved = tls_->read(into);
    errno = 0;
    if (moved.outcome == net::TlsSession::Outcome::kEnded) return 0;
    return moved.bytes == 0 ? -1 : static_cast<ssize_t>(moved.bytes);
  }

  const Socket& socket_;
  std::optional<net::TlsSession> tls_;
};

// 0: the text is not the head of an answer.
int status_of(std::string_view answer) {
  int status = 0;
  if (answer.starts_with("HTTP/1.") && answer.size() > 12)
    std::from_chars(answer.data() + 9, answer.data() + 12, status);
  return status;
}

// The error of an answer that refuses a request.
Error refusal(int status, const Result<Json>& body) {
  Error error{Errc::kUnavailable, "the server answers with status " + std::to_string(status)};
  if (status == 404) error.code = Errc::kNotFound;
  if (status == 400) error.code = Errc::kInvalidArgument;
  if (status == 401 || status == 403) error.code = Errc::kForbidden;
  if (!body || !body->is_object()) return error;
  const auto found = body->find("error");
  if (found != body->end() && found->is_string())  // of /objects
    error.message = found->get<std::string>() + " (" + body->value("code", "") + ")";
  if (found == body->end() || !found->is_object()) return error;
  const auto message = found->find("message");
  if (message != found->end() && message->is_string()) error.message = message->get<std::string>();
  return error;
}

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

std::string encoded(std::string_view text, std::string_view kept) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string result;
  for (const char c : text) {
    if (is_plain(c) || kept.find(c) != std::string_view::npos) {
      result += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    result += '%';
    result += kHex[byte >> 4U];
    result += kHex[byte & 15U];
  }
  return result;
}

}  // namespace

AdminClient::AdminClient(server::ServerRecord record, std::string token)
    : record_(std::move(record)), token_(std::move(token)) {}

Result<AdminClient> AdminClient::on(const std::filesystem::path& data) {
  auto record = server::find_server(data);
  if (!record) return record.error();
  auto token = server::read_admin_token(record->token_file);
  if (!token) return token.error();
  return AdminClient(*std::move(record), std::move(*token));
}

Result<Json> AdminClient::ask(std::string_view method, std::string_view target,
                              std::string_view body) const {
  const auto socket = connect_to(record_.address);
  if (!socket) return socket.error();
  std::string more = "Connection: close\r\n";
  if (!body.empty()) more += "Content-Type: application/json\r\n";
  more += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  const std::string request =
      request_head(std::string(method) + " " + std::string(target) + " HTTP/1.1", more) +
      std::string(body);
  Wire wire(*socket, record_.tls);
  if (!wire.open()) return unreachable(record_.address, "it does not speak TLS");
  if (!wire.send_all(request)) return unreachable(record_.address, "it does not listen");
  const auto answer = wire.receive_all();
  if (!answer) return unreachable(record_.address, "it does not answer");
  const std::size_t head_end = answer->find("\r\n\r\n");
  const int status = head_end == std::string::npos ? 0 : status_of(*answer);
  if (status == 0) return unreachable(record_.address, "it went away without an answer");
  Result<Json> json = parse_host_json(std::string_view(*answer).substr(head_end + 4));
  if (status != 200) return refusal(status, json);
  if (!json) return unreachable(record_.address, "its answer is cut off");
  return json;
}

// HTTP/1.0, so that the answer comes without chunks and ends with the connection.
Result<void> AdminClient::follow(const std::string& target, const std::string& last_id,
                                 const std::function<void(std::string_view)>& take) const {
  const auto socket = connect_to(record_.address);
  if (!socket) return socket.error();
  Wire wire(*socket, record_.tls);
  const std::string cursor = last_id.empty() ? "" : "Last-Event-ID: " + last_id + "\r\n";
  if (!wire.open() || !wire.send_all(request_head("GET " + target + " HTTP/1.0", cursor)))
    return unreachable(record_.address, "it does not listen");
  std::string head;
  char part[16384];
  while (head.find("\r\n\r\n") == std::string::npos) {
    const auto size = wire.receive(part);
    if (!size || *size == 0 || head.size() > sizeof part)
      return unreachable(record_.address, "it does not answer");
    head.append(part, *size);
  }
  std::string body = head.substr(head.find("\r\n\r\n") + 4);
  if (const int status = status_of(head); status != 200) {
    body += wire.receive_all().value_or("");
    return refusal(status, parse_host_json(body));
  }
  take(body);
  for (;;) {
    const auto size = wire.receive(part);
    if (!size) return unreachable(record_.address, "it says nothing any more");
    if (*size == 0) return {};
    take(std::string_view(part, *size));
  }
}

std::string AdminClient::request_head(const std::string& line, const std::string& more) const {
  // The address of connect_to(): the links that the server makes begin with it.
  const auto parsed = config::parse_listen_address(record_.address);
  const std::string host = parsed ? config::to_string(to_connect(*parsed)) : record_.address;
  return line + "\r\nHost: " + host + "\r\nAuthorization: Bearer " + token_ + "\r\n" + more +
         "\r\n";
}

std::string url_encoded(std::string_view text) {
  return encoded(text, "");
}

std::string name_in_url(std::string_view name) {
  const storage::AgentKey key{.agent_class = {}, .name = std::string(name)};
  return encoded(name, key.is_sub_agent() ? "%!$&'()*+,;=:@/" : "%!$&'()*+,;=:@");
}

}  // namespace hearth::cli
