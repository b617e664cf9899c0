#include "chat_peers.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include <arpa/inet.h>
#include <netinet/tcp.h>

namespace hearth::bench {

namespace {

constexpr int kMostEvents = 256;
constexpr std::chrono::milliseconds kLongestPause{1};  // between two looks at what is waited for
constexpr std::size_t kReadBytes = std::size_t{256} * 1024;
constexpr std::string_view kHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

int poller() {
  static const int poller = ::epoll_create1(EPOLL_CLOEXEC);
  return poller;
}

sockaddr_in local(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void send_at_once(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

std::string word(std::uint32_t number) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "w%06u ", number % 1'000'000);
  return text.data();
}

// One server-sent event, in one chunk of HTTP.
std::string event(std::string_view choice) {
  const std::string text =
      "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,"
      "\"model\":\"words\",\"choices\":[{\"index\":0," +
      std::string(choice) + "}]}\n\n";
  std::array<char, 20> size{};
  std::snprintf(size.data(), size.size(), "%zx\r\n", text.size());
  return size.data() + text + "\r\n";
}

std::string first_event() {
  return event(R"("delta":{"role":"assistant","content":""},"finish_reason":null)");
}

std::string word_event(std::uint32_t number) {
  return event(R"("delta":{"content":")" + word(number) + R"("},"finish_reason":null)");
}

std::string last_events() {
  return event(R"("delta":{},"finish_reason":"stop")") + "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";
}

// Nothing: no word begins here.
std::optional<std::uint32_t> number_at(std::string_view text) {
  std::uint32_t number = 0;
  const std::string_view word = text.substr(0, kWordBytes - 1);
  const auto [end, error] = std::from_chars(word.data() + 1, word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + kWordBytes - 1) return std::nullopt;
  return number;
}

// The number behind the last word in the text.
std::uint32_t words_in(std::string_view text) {
  for (std::size_t at = text.size(); at-- > 0;)
    if (text[at] == 'w')
      if (const auto number = number_at(text.substr(at))) return *number + 1;
  return 0;
}

std::string_view between(std::string_view text, std::string_view before, char end) {
  const std::size_t begin = text.find(before);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = text.substr(begin + before.size());
  return rest.substr(0, rest.find(end));
}

std::string websocket_frame(int opcode, std::string_view payload) {
  std::string frame(1, static_cast<char>(0x80 | opcode));
  const std::size_t wide = payload.size() < 126 ? 0 : payload.size() < 65536 ? 2 : 8;
  frame += static_cast<char>(0x80 | (wide == 0 ? payload.size() : wide == 2 ? 126U : 127U));
  for (std::size_t i = wide; i-- > 0;) frame += static_cast<char>(payload.size() >> (8 * i) & 0xFF);
  return frame.append(4, '\0').append(payload);  // masked with zeros
}

}  // namespace

void fail(const std::string& why) {
  std::fprintf(stderr, "chat_load: %s\n", why.c_str());
  std::exit(1);
}

// ---- sockets ------------------------------------------------------------------------------------

Watched::~Watched() {
  close();
}

void Watched::watch(int socket, bool reads) {
  const int how = socket == socket_ ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  socket_ = socket;
  reads_ = reads;
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
  epoll_event wanted{.events = reads ? EPOLLIN : 0U, .data = {.ptr = this}};
  if (::epoll_ctl(poller(), how, socket, &wanted) != 0) fail("epoll_ctl");
}

void Watched::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
  unsent_.clear();
  sent_ = 0;
  waits_ = false;
}

void Watched::send(std::string_view bytes) {
  if (socket_ < 0) return;
  unsent_ += bytes;
  flush();
}

void Watched::flush() {
  if (socket_ < 0) return;
  while (sent_ < unsent_.size()) {
    const ssize_t count = ::send(socket_, unsent_.data() + sent_,
                                 std::min(unsent_.size() - sent_, kReadBytes), MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN) return close();
    if (count < 0) break;
    sent_ += static_cast<std::size_t>(count);
  }
  const bool waits = sent_ < unsent_.size();
  if (!waits) {
    unsent_.clear();
    sent_ = 0;
  }
  if (waits == std::exchange(waits_, waits)) return;
  epoll_event wanted{.events = (reads_ ? EPOLLIN : 0U) | (waits ? EPOLLOUT : 0U),
                     .data = {.ptr = this}};
  ::epoll_ctl(poller(), EPOLL_CTL_MOD, socket_, &wanted);
}

bool Watched::receive(std::string& into) {
  static std::vector<char> bytes(kReadBytes);
  const ssize_t count = ::recv(socket_, bytes.data(), bytes.size(), 0);
  if (count > 0) into.append(bytes.data(), static_cast<std::size_t>(count));
  if (count > 0 || (count < 0 && errno == EAGAIN)) return true;
  close();
  return false;
}

void run_until(Provider& provider, const std::string& what, const std::function<bool()>& holds,
               std::chrono::seconds limit) {
  const Time end = Steady::now() + limit;
  std::array<epoll_event, kMostEvents> events{};
  while (!holds()) {
    const timespec pause{.tv_sec = 0, .tv_nsec = provider.pause(Steady::now()).count()};
    const int count = ::epoll_pwait2(poller(), events.data(), kMostEvents, &pause, nullptr);
    for (int i = 0; i < count; ++i) {
      auto* const watched = static_cast<Watched*>(events.at(static_cast<std::size_t>(i)).data.ptr);
      const std::uint32_t ready = events.at(static_cast<std::size_t>(i)).events;
      if ((ready & EPOLLOUT) != 0) watched->flush();
      if ((ready & ~std::uint32_t{EPOLLOUT}) != 0 && watched->is_open()) watched->on_readable();
    }
    const Time now = Steady::now();
    provider.send_due(now);
    if (now > end) fail(what + " did not happen in time");
  }
}

// ---- the provider -------------------------------------------------------------------------------

Provider::Provider() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = local(0);
  socklen_t size = sizeof address;
  if (::bind(socket, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(socket, 4096) != 0 ||
      ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    fail("no port for the provider");
  port_ = ntohs(address.sin_port);
  watch(socket);
}

void Provider::on_readable() {
  for (;;) {
    const int accepted = ::accept4(socket(), nullptr, nullptr, SOCK_CLOEXEC);
    if (accepted < 0) return;
    send_at_once(accepted);
    std::erase_if(answers_, [](const auto& answer) { return !answer->is_open(); });
    answers_.push_back(std::make_unique<Answer>(*this, accepted));
  }
}

void Provider::send_due(Time now) {
  for (const auto& answer : answers_) answer->send_due(now);
}

std::chrono::nanoseconds Provider::pause(Time now) const {
  Time due = now + kLongestPause;
  for (const auto& answer : answers_) due = std::min(due, answer->due());
  return std::max(due - now, std::chrono::nanoseconds(0));
}

void Provider::finish() {
  for (const auto& answer : answers_) answer->finish();
}

Answer::Answer(Provider& provider, int socket) : provider_(provider) {
  watch(socket);
}

void Answer::on_readable() {
  const bool is_first = received_.empty();
  if (!receive(received_)) {
    is_streaming_ = false;
    return;
  }
  if (is_first) provider_.asked_at = Steady::now();
  const std::size_t head = received_.find("\r\n\r\n");
  if (head == std::string::npos) return;
  std::string_view length = between(received_, "ontent-Length: ", '\r');
  if (length.empty()) length = between(received_, "ontent-length: ", '\r');
  const std::size_t bytes = std::strtoul(std::string(length).c_str(), nullptr, 10);
  if (received_.size() < head + 4 + bytes) return;
  take_request(std::string_view(received_).substr(head + 4, bytes));
  received_.clear();
}

void Answer::take_request(std::string_view body) {
  ++provider_.requests;
  next_ = words_in(body.substr(std::min(body.rfind("go\""), body.size())));
  is_streaming_ = true;
  due_ = Steady::now();
  send(std::string(kHead) + first_event());
  send_due(due_);
}

Time Answer::due() const {
  return is_streaming_ && next_ < provider_.plan.pause ? due_ : Time::max();
}

void Answer::send_due(Time now) {
  if (now < due()) return;
  const bool all = provider_.plan.every.count() == 0;
  std::string events;
  while (next_ < provider_.plan.pause && (all || due_ <= now)) {
    if (provider_.sent_at.size() <= next_) provider_.sent_at.resize(next_ + 1);
    provider_.sent_at[next_] = Steady::now();
    if (all)
      events += word_event(next_++);
    else
      send(word_event(next_++));
    due_ += provider_.plan.every;
  }
  send(events);
}

void Answer::finish() {
  if (!std::exchange(is_streaming_, false)) return;
  send(last_events());
}

// ---- tabs ---------------------------------------------------------------------------------------

Tab::Tab(int port, std::string name) : name_(std::move(name)) {
  connect(port);
}

void Tab::connect(int port, bool is_deaf) {
  close();
  received_.clear();
  next_ = 0;
  is_ready = is_done = is_live = has_transcript = false;
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int little = 4096;
  if (is_deaf) ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
  sockaddr_in address = local(port);
  if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    fail("the server takes no connection");
  send_at_once(socket);
  watch(socket, !is_deaf);
  send("GET /agents/assistant/" + name_ +
       " HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
       "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
}

void Tab::read_at_last() {
  watch(socket());
}

void Tab::send_frame(std::string_view text) {
  send(websocket_frame(1, text));
}

void Tab::submit() {
  is_done = false;
  next_ = 0;
  const std::string id = name_ + "-" + std::to_string(++submitted_);
  send_frame(R"({"type":"cf_agent_use_chat_request","id":"r-)" + id +
             R"(","init":{"method":"POST","body":"{\"messages\":[{\"id\":\"u-)" + id +
             R"(\",\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"text\":\"go\"}]}],)"
             R"(\"trigger\":\"submit-message\"}"}})");
}

void Tab::call() {
  send_frame(R"({"type":"cf_agent_stream_resume_request"})");
}

void Tab::on_readable() {
  if (!receive(received_)) return;
  const Time now = Steady::now();
  std::size_t at = 0;
  if (received_.starts_with("HTTP/1.1")) {
    const std::size_t head = received_.find("\r\n\r\n");
    if (head == std::string::npos) return;
    if (!received_.starts_with("HTTP/1.1 101")) fail("no upgrade: " + received_.substr(0, head));
    at = head + 4;
  }
  for (;;) {
    const std::string_view rest = std::string_view(received_).substr(at);
    if (rest.size() < 2) break;
    std::size_t length = static_cast<unsigned char>(rest[1]) & 0x7F;
    const std::size_t wide = length == 126 ? 2 : length == 127 ? 8 : 0;
    if (rest.size() < 2 + wide) break;
    if (wide != 0) length = 0;
    for (std::size_t i = 0; i < wide; ++i)
      length = length << 8 | static_cast<unsigned char>(rest[2 + i]);
    if (rest.size() < 2 + wide + length) break;
    const std::string_view payload = rest.substr(2 + wide, length);
    at += 2 + wide + length;
    const int opcode = rest[0] & 0x0F;
    if (opcode == 8) {
      std::fprintf(stderr, "chat_load: closed: %s\n", std::string(payload.substr(2)).c_str());
      return close();
    }
    if (opcode == 9) send(websocket_frame(10, payload));
    if (opcode == 1) take(payload, now);
    if (!is_open()) return;
  }
  received_.erase(0, at);
}

void Tab::take(std::string_view frame, Time now) {
  constexpr std::string_view kDelta = R"(\"delta\":\")";
  const auto has = [&](std::string_view text) {
    return frame.find(text) != std::string_view::npos;
  };
  if (const std::string_view delta = between(frame, kDelta, '\\'); !delta.empty()) {
    ++frames;
    is_live = is_live || !has(R"("replay":true)");
    return take_words(delta, now);
  }
  if (has("cf_agent_chat_messages")) {
    has_transcript = true;
  } else if (has("cf_agent_stream_resuming")) {
    next_ = 0;
    send_frame(R"({"type":"cf_agent_stream_resume_ack","id":")" +
               std::string(between(frame, R"("id":")", '"')) + R"("})");
  } else if (has("cf_agent_stream_resume_none")) {
    ++answers;
  } else if (has("cf_agent_mcp_servers")) {
    is_ready = true;
  } else if (has(R"("done":true)")) {
    if (has(R"("error":true)")) fail("a turn has failed: " + std::string(frame));
    is_done = true;
  }
}

void Tab::take_words(std::string_view delta, Time now) {
  word_at = now;
  for (; delta.size() >= kWordBytes; delta.remove_prefix(kWordBytes)) {
    const std::uint32_t number = number_at(delta).value_or(next_);
    if (number < next_) ++doubled;
    if (number > next_) lost += number - next_;
    if (number < next_) continue;
    next_ = number + 1;
    if (on_word) on_word(number, now);
  }
}

}  // namespace hearth::bench
