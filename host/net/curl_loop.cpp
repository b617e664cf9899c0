#include "net/curl_loop.hpp"

#include "base/assert.hpp"

#include <algorithm>

#include <curl/curl.h>

namespace hearth::net {
namespace {

CURLM* make_multi() {
  // Once for the process; libcurl 7.84 and newer lock inside.
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  HEARTH_ASSERT(code == CURLE_OK, "libcurl does not start");
  CURLM* const multi = curl_multi_init();
  HEARTH_ASSERT(multi != nullptr, "libcurl has no memory");
  return multi;
}

}  // namespace

CurlLoop::CurlLoop(asio::io_context& loop)
    : multi_(make_multi()),
      sockets_(loop,
               [this](int socket, bool readable, bool writable) {
                 act(socket, (readable ? CURL_CSELECT_IN : 0) | (writable ? CURL_CSELECT_OUT : 0));
               }),
      timer_(loop) {
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &CurlLoop::want_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &CurlLoop::want_timer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  // A connection for each HTTP/2 stream: libcurl 7.88 would keep up to 32 MiB of a stream that
  // waits for credit while it reads other streams of the connection.
  curl_multi_setopt(multi_, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
  bound_connections();
}

CurlLoop::~CurlLoop() {
  HEARTH_ASSERT(transfers_ == 0, "a transfer outlives its loop");
  *gone_ = true;
  curl_multi_cleanup(multi_);
}

void CurlLoop::add(Transfer& transfer) {
  ++transfers_;
  bound_connections();
  curl_easy_setopt(transfer.easy, CURLOPT_PRIVATE, &transfer);
  const CURLMcode code = curl_multi_add_handle(multi_, transfer.easy);
  HEARTH_ASSERT(code == CURLM_OK, "libcurl takes no transfer");
}

void CurlLoop::remove(Transfer& transfer) {
  curl_multi_remove_handle(multi_, transfer.easy);
  std::ranges::replace(moved_, &transfer, nullptr);
  --transfers_;
  bound_connections();
}

void CurlLoop::has_moved(Transfer& transfer) {
  if (std::ranges::find(moved_, &transfer) == moved_.end()) moved_.push_back(&transfer);
}

// libcurl's limit includes connections in use.
void CurlLoop::bound_connections() {
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(transfers_ + kMostIdle));
}

int CurlLoop::want_socket(CurlHandle* /*easy*/, int socket, int what, void* self, void* /*data*/) {
  static_cast<CurlLoop*>(self)->sockets_.watch(socket,
                                               what == CURL_POLL_IN || what == CURL_POLL_INOUT,
                                               what == CURL_POLL_OUT || what == CURL_POLL_INOUT);
  return 0;
}

// libcurl calls this, so it must not call libcurl.
int CurlLoop::want_timer(CurlHandle* /*multi*/, long milliseconds, void* self) {
  auto& loop = *static_cast<CurlLoop*>(self);
  if (milliseconds < 0) {
    loop.timer_.cancel();
    return 0;
  }
  loop.timer_.expires_after(std::chrono::milliseconds(milliseconds));
  loop.timer_.async_wait([&loop, gone = loop.gone_](const boost::system::error_code& error) {
    if (!error && !*gone) loop.act(CURL_SOCKET_TIMEOUT, 0);
  });
  return 0;
}

void CurlLoop::act(int socket, int events) {
  int running = 0;
  curl_multi_socket_action(multi_, socket, events, &running);
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;  // the message does not outlive the next call
    Transfer* transfer = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    transfer->code = code;
    has_moved(*transfer);
  }
  tell();
}

void CurlLoop::tell() {
  for (std::size_t i = 0; i < moved_.size(); ++i) {
    const Transfer* const transfer = std::exchange(moved_[i], nullptr);
    if (transfer == nullptr) continue;
    const std::function<void()> moved = transfer->moved;  // a copy: the call may destroy it
    moved();
  }
  moved_.clear();
}

}  // namespace hearth::net
