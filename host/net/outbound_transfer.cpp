#include "net/outbound_transfer.hpp"

#include "base/assert.hpp"
#include "base/http_token.hpp"
#include "net/outbound_failure.hpp"
#include "net/trust_store.hpp"

#include <sys/socket.h>

#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <tuple>
#include <utility>

#include <curl/curl.h>
#include <netinet/in.h>

namespace hearth::net {
namespace {

// libcurl's buffer for a request that does not fit into one packet: the smallest size it accepts.
constexpr long kUploadBuffer = 16 * 1024;
// libcurl's buffer of a request that asks for server-sent events, which are small: it lives as long
// as they come. libcurl's own has 16 KiB.
constexpr long kEventsBuffer = 4 * 1024;
// Bytes to unpack at once: as many as libcurl passes of a body that is not compressed.
constexpr std::size_t kUnpackedAtOnce = CURL_MAX_WRITE_SIZE;
// Longer than any transfer needs between its start and its connection.
constexpr long kKeepAddressesSeconds = 300;

constexpr const char* kSwitched = "the host switches to a protocol that was not asked for";
constexpr const char* kUnwantedCoding = "the answer has an encoding that was not asked for";

// Of a line as libcurl passes it.
constexpr std::string_view kLineBlanks = " \t\r\n";

// "HTTP/1.1 200 OK": version and status.
std::pair<std::string, int> read_status_line(std::string_view line) {
  line.remove_prefix(std::string_view("HTTP/").size());
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string_view rest = trimmed(line.substr(space), kLineBlanks);
  int status = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), status);
  return {std::string(trimmed(line.substr(0, space), kLineBlanks)), status};
}

// The list in all headers of this name without "identity": "gzip" or "br, gzip".
std::string listed_codings(const HttpHeaders& headers, std::string_view name) {
  std::string all;
  for (const HttpHeader& header : headers) {
    if (!equal_ignoring_case(header.name, name)) continue;
    for (std::string_view rest = header.value; !rest.empty();) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      const std::string_view coding = trimmed(rest.substr(0, comma), kLineBlanks);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      if (coding.empty() || equal_ignoring_case(coding, "identity")) continue;
      if (!all.empty()) all += ", ";
      all += coding;
    }
  }
  return all;
}

// An entry for CURLOPT_RESOLVE. `+`: libcurl does not keep it for ever.
std::string resolve_entry(const OutboundTarget& target, const std::vector<IpAddress>& addresses) {
  std::string entry = "+" + target.host + ":" + std::to_string(target.port) + ":";
  for (const IpAddress& address : addresses) {
    if (!entry.ends_with(':')) entry += ',';
    entry += address.is_v4 ? to_text(address) : "[" + to_text(address) + "]";
  }
  return entry;
}

std::pair<std::optional<IpAddress>, std::uint16_t> read_socket_address(const sockaddr* from) {
  IpAddress address;
  if (from->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, from, sizeof v4);
    address.is_v4 = true;
    std::memcpy(address.bytes.data(), &v4.sin_addr, 4);
    return {address, ntohs(v4.sin_port)};
  }
  if (from->sa_family != AF_INET6) return {std::nullopt, 0};
  sockaddr_in6 v6{};
  std::memcpy(&v6, from, sizeof v6);
  std::memcpy(address.bytes.data(), &v6.sin6_addr, 16);
  return {address, ntohs(v6.sin6_port)};
}

OutboundTransfer& transfer_of(void* self) {
  return *static_cast<OutboundTransfer*>(self);
}

}  // namespace

OutboundTransfer::OutboundTransfer(CurlLoop& loop, Plan plan)
    : loop_(loop), plan_(std::move(plan)), easy_(curl_easy_init()), in_loop_{easy_, plan_.moved} {
  HEARTH_ASSERT(easy_ != nullptr, "libcurl has no memory");
  set_request();
  set_connection();
  set_callbacks();
  loop_.add(in_loop_);
}

OutboundTransfer::~OutboundTransfer() {
  loop_.remove(in_loop_);
  curl_easy_cleanup(easy_);
  curl_slist_free_all(headers_);
  curl_slist_free_all(resolve_);
}

bool OutboundTransfer::has_header(std::string_view name) const {
  const auto is_it = [name](const HttpHeader& header) {
    return equal_ignoring_case(header.name, name);
  };
  return std::ranges::any_of(plan_.request.headers, is_it) ||
         std::ranges::any_of(plan_.request.secret_headers, is_it);
}

bool OutboundTransfer::expects_events() const {
  return std::ranges::any_of(plan_.request.headers, [](const HttpHeader& header) {
    constexpr std::string_view kEvents = "text/event-stream";
    const std::string_view wanted = trimmed(header.value, kLineBlanks);
    return equal_ignoring_case(header.name, "accept") &&
           equal_ignoring_case(wanted.substr(0, kEvents.size()), kEvents);
  });
}

bool OutboundTransfer::may_be_sent_again() const {
  const std::string_view method = plan_.request.method;
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

void OutboundTransfer::add_header(const std::string& line) {
  headers_ = curl_slist_append(headers_, line.c_str());
  HEARTH_ASSERT(headers_ != nullptr, "libcurl has no memory");
}

void OutboundTransfer::set_request() {
  const OutboundRequest& request = plan_.request;
  curl_easy_setopt(easy_, CURLOPT_URL, plan_.target.url.c_str());
  curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
  const bool says_length =
      request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
  if (request.method == "HEAD") {
    curl_easy_setopt(easy_, CURLOPT_NOBODY, 1L);
  } else if (!request.body.empty() || says_length) {
    curl_easy_setopt(easy_, CURLOPT_POST, 1L);
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, request.body.data());
    curl_easy_setopt(easy_, CURLOPT_UPLOAD_BUFFERSIZE, kUploadBuffer);
  } else {
    curl_easy_setopt(easy_, CURLOPT_HTTPGET, 1L);
  }
  curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  // libcurl's syntax: "Name:" removes a header, "Name;" sends it empty.
  add_header("Expect:");
  // Not CURLOPT_ACCEPT_ENCODING: libcurl's decoders accept a body that is cut off, accept codings
  // that were not requested, and unpack 16 KiB without a bound.
  // A part (Range) of a packed body cannot be unpacked.
  add_header(has_header("range") ? "Accept-Encoding: identity" : "Accept-Encoding: gzip, deflate");
  if (!has_header("content-type")) add_header("Content-Type:");
  for (const HttpHeaders* headers : {&request.headers, &request.secret_headers}) {
    for (const HttpHeader& header : *headers)
      add_header(trimmed(header.value, kLineBlanks).empty() ? header.name + ";"
                                                            : header.name + ": " + header.value);
  }
  curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers_);
  curl_easy_setopt(easy_, CURLOPT_HEADEROPT, CURLHEADER_SEPARATE);
  curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION,
                   request.http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1);
}

void OutboundTransfer::set_connection() {
  const OutboundRequest& request = plan_.request;
  curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
  if (expects_events()) curl_easy_setopt(easy_, CURLOPT_BUFFERSIZE, kEventsBuffer);
  curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(request.connect_timeout.count()));
  // Set even if empty: otherwise libcurl would read the environment.
  curl_easy_setopt(easy_, CURLOPT_PROXY, plan_.proxy ? request.proxy.c_str() : "");
  curl_easy_setopt(easy_, CURLOPT_NOPROXY, "");
  curl_easy_setopt(easy_, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(easy_, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
  // `trusted` has the authorities, read once.
  curl_easy_setopt(easy_, CURLOPT_CAINFO, nullptr);
  curl_easy_setopt(easy_, CURLOPT_CAPATH, nullptr);
  if (!plan_.addresses.empty()) {
    resolve_ = curl_slist_append(
        nullptr, resolve_entry(plan_.proxy ? *plan_.proxy : plan_.target, plan_.addresses).c_str());
    curl_easy_setopt(easy_, CURLOPT_RESOLVE, resolve_);
    curl_easy_setopt(easy_, CURLOPT_DNS_CACHE_TIMEOUT, kKeepAddressesSeconds);
  }
}

void OutboundTransfer::set_callbacks() {
  // Called after the connection is made (with a proxy, the tunnel), before the handshake.
  curl_easy_setopt(easy_, CURLOPT_SSL_CTX_DATA, this);
  curl_easy_setopt(
      easy_, CURLOPT_SSL_CTX_FUNCTION, +[](CURL*, void* context, void* self) {
        OutboundTransfer& transfer = transfer_of(self);
        transfer.phase_ = std::max(transfer.phase_, Phase::kTls);
        SSL_CTX_set1_cert_store(static_cast<SSL_CTX*>(context), transfer.plan_.trusted.get());
        return CURLE_OK;
      });
  // Called before libcurl would make a thread to resolve a name; also for addresses.
  curl_easy_setopt(easy_, CURLOPT_RESOLVER_START_DATA, this);
  curl_easy_setopt(
      easy_, CURLOPT_RESOLVER_START_FUNCTION,
      +[](void*, void*, void* self) { return transfer_of(self).plan_.addresses.empty() ? 0 : 1; });
  curl_easy_setopt(easy_, CURLOPT_OPENSOCKETDATA, this);
  curl_easy_setopt(
      easy_, CURLOPT_OPENSOCKETFUNCTION,
      +[](void* self, curlsocktype, curl_sockaddr* address) -> curl_socket_t {
        return transfer_of(self).open_socket(address);
      });
  curl_easy_setopt(easy_, CURLOPT_PREREQDATA, this);
  curl_easy_setopt(
      easy_, CURLOPT_PREREQFUNCTION, +[](void* self, char* address, char*, int port, int) {
        OutboundTransfer& transfer = transfer_of(self);
        // libcurl sends a request again when a kept connection ends before the answer begins. The
        // other side may have acted on the first one.
        if (transfer.is_sent() && !transfer.may_be_sent_again()) {
          transfer.stopped_ = curl_failure(CURLE_GOT_NOTHING, Phase::kHeaders, true);
          return CURL_PREREQFUNC_ABORT;
        }
        const auto read = parse_ip_address(address);
        if (!read || !transfer.may_connect(*read, static_cast<std::uint16_t>(port)))
          return CURL_PREREQFUNC_ABORT;
        transfer.stopped_.reset();  // another address may have been refused
        transfer.phase_ = std::max(transfer.phase_, Phase::kSend);
        transfer.activity_ = std::chrono::steady_clock::now();
        transfer.loop_.has_moved(transfer.in_loop_);
        return CURL_PREREQFUNC_OK;
      });
  curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(
      easy_, CURLOPT_HEADERFUNCTION,
      +[](char* bytes, std::size_t size, std::size_t count, void* self) {
        const std::string_view line(bytes, size * count);
        return transfer_of(self).take_line(line) ? line.size() : std::size_t{0};
      });
  curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(
      easy_, CURLOPT_WRITEFUNCTION,
      +[](char* bytes, std::size_t size, std::size_t count, void* self) {
        OutboundTransfer& transfer = transfer_of(self);
        const std::string_view piece(bytes, size * count);
        transfer.activity_ = std::chrono::steady_clock::now();
        transfer.loop_.has_moved(transfer.in_loop_);
        // During a resume, libcurl passes the bytes that it has kept, and would copy the
        // rest of them at each pause.
        const bool is_full = transfer.plan_.body.is_full() || transfer.has_packed();
        if (is_full && !transfer.is_resuming_ && !transfer.location_) {
          transfer.is_paused_ = true;
          return std::size_t{CURL_WRITEFUNC_PAUSE};
        }
        return transfer.take_body(piece) ? piece.size() : std::size_t{0};
      });
}

bool OutboundTransfer::may_connect(const IpAddress& address, std::uint16_t port) {
  if (plan_.proxy != nullptr) {
    // The proxy's addresses from the resolver, or its own address.
    const auto& known = plan_.addresses;
    const bool is_it = known.empty() ? parse_ip_address(plan_.proxy->host) == address
                                     : std::ranges::find(known, address) != known.end();
    if (is_it && port == plan_.proxy->port) return true;
  } else if (plan_.request.rules->may_connect(address, port)) {
    return true;
  }
  stopped_ = rules_failure(is_sent(), plan_.target);
  return false;
}

int OutboundTransfer::open_socket(const void* address) {
  const auto& wanted = *static_cast<const curl_sockaddr*>(address);
  const auto [ip, port] = read_socket_address(&wanted.addr);
  if (!ip || !may_connect(*ip, port)) return CURL_SOCKET_BAD;
  return ::socket(wanted.family, wanted.socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, wanted.protocol);
}

bool OutboundTransfer::stop(Errc code, Phase phase, std::string why) {
  stopped_ = OutboundFailure{code, phase, is_sent(), std::move(why)};
  return false;
}

bool OutboundTransfer::take_line(std::string_view line) {
  activity_ = std::chrono::steady_clock::now();
  head_bytes_ += line.size();
  if (head_bytes_ > OutboundHttp::kMostHeadBytes)
    return stop(Errc::kLimitExceeded, has_head() ? Phase::kBody : Phase::kHeaders,
                "the head of the answer is longer than 64 KiB");
  if (has_head()) return true;  // trailers, which libcurl keeps
  if (line.starts_with("HTTP/")) {
    head_.headers.clear();
    std::tie(head_.http_version, head_.status) = read_status_line(line);
    return true;
  }
  if (trimmed(line, kLineBlanks).empty()) return end_head();
  const std::size_t colon = line.find(':');
  if ((line.front() == ' ' || line.front() == '\t') && !head_.headers.empty()) {
    head_.headers.back().value += " " + std::string(trimmed(line, kLineBlanks));  // a folded value
  } else if (colon != std::string_view::npos) {
    head_.headers.push_back({std::string(trimmed(line.substr(0, colon), kLineBlanks)),
                             std::string(trimmed(line.substr(colon + 1), kLineBlanks))});
  }
  return true;
}

bool OutboundTransfer::end_head() {
  constexpr int kSwitchingProtocols = 101;
  if (head_.status == kSwitchingProtocols)  // libcurl would treat the next bytes as a body
    return stop(Errc::kUnavailable, Phase::kHeaders, kSwitched);
  if (head_.status < 200) return true;
  // libcurl would also decode other transfer codings.
  const std::string transfer_codings = listed_codings(head_.headers, "transfer-encoding");
  if (!transfer_codings.empty() && !equal_ignoring_case(transfer_codings, "chunked"))
    return stop(Errc::kUnavailable, Phase::kHeaders, kUnwantedCoding);
  codings_ = listed_codings(head_.headers, "content-encoding");
  head_.until_close = head_.http_version.starts_with('1') && codings_.empty() &&
                      transfer_codings.empty() && !find_header(head_.headers, "content-length");
  phase_ = Phase::kBody;
  head_.url = plan_.target.url;
  if (plan_.request.follow_redirects && is_redirect(head_.status)) {
    if (const auto location = find_header(head_.headers, "location"))
      location_ = std::string(*location);
  }
  loop_.has_moved(in_loop_);
  return true;
}

// A redirect's body is not needed: the connection is closed instead. A body without bytes has no
// coding to check.
bool OutboundTransfer::take_body(std::string_view piece) {
  if (!has_head()) return stop(Errc::kUnavailable, Phase::kHeaders, kSwitched);
  if (location_) {
    dropped_bytes_ += piece.size();
    return false;
  }
  if (codings_.empty()) return add_to_body(piece);
  if (!inflater_) {
    const auto coding = BodyInflater::coding_of(codings_);
    if (!coding) return stop(Errc::kUnavailable, Phase::kBody, kUnwantedCoding);
    inflater_.emplace(*coding);
  }
  inflater_->add(piece);
  return unpack();
}

bool OutboundTransfer::add_to_body(std::string_view piece) {
  if (plan_.body.add(piece)) return true;
  return stop(
      Errc::kLimitExceeded, Phase::kBody,
      "the body of the answer is longer than " + std::to_string(plan_.request.max_body) + " bytes");
}

// Unpacks while there is credit; the rest stays packed.
bool OutboundTransfer::unpack() {
  std::array<char, kUnpackedAtOnce> room;
  while (inflater_ && inflater_->has_more() && !plan_.body.is_full()) {
    const auto piece = inflater_->next(room);
    if (!piece) {
      stopped_ = curl_failure(CURLE_BAD_CONTENT_ENCODING, Phase::kBody, is_sent());
      return false;
    }
    if (!add_to_body(*piece)) return false;
  }
  return true;
}

std::optional<OutboundHead> OutboundTransfer::take_head() {
  if (!has_head() || location_ || head_.status == 0) return std::nullopt;
  return std::exchange(head_, {});
}

void OutboundTransfer::resume() {
  if (has_packed()) {
    if (!unpack() && !in_loop_.code) in_loop_.code = CURLE_WRITE_ERROR;
    return;
  }
  is_paused_ = false;
  is_resuming_ = true;
  const CURLcode code = curl_easy_pause(easy_, CURLPAUSE_CONT);
  is_resuming_ = false;
  activity_ = std::chrono::steady_clock::now();
  if (code != CURLE_OK && !in_loop_.code) in_loop_.code = code;
}

std::int64_t OutboundTransfer::bytes_uploaded() const {
  curl_off_t bytes = 0;
  curl_easy_getinfo(easy_, CURLINFO_SIZE_UPLOAD_T, &bytes);
  return bytes;
}

OutboundFailure::Phase OutboundTransfer::phase() const {
  if (stopped_ && stopped_->phase == Phase::kRules) return Phase::kRules;
  if (phase_ != Phase::kSend) return phase_;
  const bool all_sent = bytes_uploaded() >= static_cast<std::int64_t>(plan_.request.body.size());
  return all_sent ? Phase::kHeaders : Phase::kSend;
}

std::optional<OutboundFailure> OutboundTransfer::failure() const {
  if (stopped_) return stopped_;
  const int code = in_loop_.code.value_or(CURLE_OK);
  // libcurl treats an end inside the head as the end of an answer.
  if (code == CURLE_OK && !has_head())
    return curl_failure(CURLE_GOT_NOTHING, Phase::kHeaders, is_sent());
  if (code == CURLE_OK && inflater_ && !inflater_->is_whole())
    return OutboundFailure{Errc::kUnavailable, Phase::kBody, is_sent(),
                           "the compressed body of the answer is cut off"};
  if (code == CURLE_OK) return std::nullopt;
  return curl_failure(code, phase(), is_sent());
}

}  // namespace hearth::net
