// Load over HTTP keep-alive: each connection sends its next request after the whole answer to the
// last one.
//
//   http_load --port 8787 --path /objects/counter/a/call/get --connections 16 --seconds 5
//
// Prints one line of JSON: answers, seconds, rate. Ends with status 1 at an answer that is not 200.

#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

namespace {

using Steady = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "http_load: %s\n", why.c_str());
  std::exit(1);
}

int connect_to(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int one = 1;
  if (socket < 0 || ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0)
    fail("cannot connect");
  return socket;
}

// The length of the first whole answer in `text`; 0: it is not whole.
std::size_t whole_answer(std::string_view text) {
  constexpr std::string_view kLength = "Content-Length: ";
  const std::size_t head = text.find("\r\n\r\n");
  if (head == std::string_view::npos) return 0;
  if (!text.starts_with("HTTP/1.1 200")) fail(std::string(text));
  const std::size_t at = text.find(kLength);
  if (at == std::string_view::npos || at > head) fail("an answer without a length");
  const std::size_t size = head + 4 + std::strtoul(text.data() + at + kLength.size(), nullptr, 10);
  return text.size() >= size ? size : 0;
}

void send_whole(int socket, std::string_view text) {
  if (::send(socket, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
    fail("cannot send");
}

}  // namespace

int main(int argc, char** argv) {
  int port = 8787;
  std::string path = "/";
  std::size_t connections = 16;
  double seconds = 5;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--port") port = std::atoi(argv[i + 1]);
    if (name == "--path") path = argv[i + 1];
    if (name == "--connections") connections = std::strtoul(argv[i + 1], nullptr, 10);
    if (name == "--seconds") seconds = std::strtod(argv[i + 1], nullptr);
  }
  const std::string request =
      "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n[]";
  std::vector<pollfd> sockets;
  std::vector<std::string> received(connections);
  for (std::size_t i = 0; i < connections; ++i) {
    sockets.push_back({connect_to(port), POLLIN, 0});
    send_whole(sockets.back().fd, request);
  }
  constexpr double kWarmUp = 0.5;
  auto begin = Steady::now();
  bool warm = false;
  unsigned long answers = 0;
  double passed = 0;
  while (passed < seconds) {
    if (::poll(sockets.data(), sockets.size(), 1000) <= 0) fail("no answer comes");
    for (std::size_t i = 0; i < connections; ++i) {
      if (sockets[i].revents == 0) continue;
      char part[65536];
      const ssize_t size = ::recv(sockets[i].fd, part, sizeof part, 0);
      if (size <= 0) fail("the server closed the connection");
      received[i].append(part, static_cast<std::size_t>(size));
      const std::size_t whole = whole_answer(received[i]);
      if (whole == 0) continue;
      received[i].erase(0, whole);
      ++answers;
      send_whole(sockets[i].fd, request);
    }
    passed = std::chrono::duration<double>(Steady::now() - begin).count();
    if (!warm && passed >= kWarmUp) {
      warm = true;
      begin = Steady::now();
      answers = 0;
      passed = 0;
    }
  }
  std::printf("{\"answers\":%lu,\"seconds\":%.3f,\"rate\":%.1f}\n", answers, passed,
              static_cast<double>(answers) / passed);
  for (const pollfd& each : sockets) ::close(each.fd);
}
