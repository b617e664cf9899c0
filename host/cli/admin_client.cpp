#include "cli/admin_client.hpp"

#include "config/units.hpp"
#include "server/admin_token.hpp"
#include "storage/agent_key.hpp"

#include <cstddef>
#include <memory>
#include <system_error>

#include <curl/curl.h>

namespace hearth::cli {
namespace {

constexpr std::size_t kMaxAnswer = std::size_t{64} << 20;
constexpr long kConnectPatience = 5;   // seconds
constexpr long kAnswerPatience = 300;  // the same, between two bytes

Error unreachable(const std::string& address, const std::string& why) {
  return Error{Errc::kUnavailable, "the server at " + address + " cannot be reached: " + why};
}

// The address to connect to. A server that listens on all addresses is reached by loopback.
config::ListenAddress to_connect(config::ListenAddress address) {
  if (address.host == "0.0.0.0") address.host = "127.0.0.1";
  if (address.host == "::") address.host = "::1";
  return address;
}

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

// One request.
class Exchange {
 public:
  Exchange(const server::ServerRecord& record, const std::string& token)
      : record_(record), handle_(curl_easy_init(), &curl_easy_cleanup) {
    add_header("Authorization: Bearer " + token);
    add_header("Accept:");
    add_header("Connection: close");
    set(CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
    set(CURLOPT_PROXY, "");
    // The lock on the server's record proves which server answers (PublishedRecord). So the
    // certificate, which has the name for clients, is not checked.
    set(CURLOPT_SSL_VERIFYPEER, 0L);
    set(CURLOPT_SSL_VERIFYHOST, 0L);
    set(CURLOPT_CONNECTTIMEOUT, kConnectPatience);
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, kAnswerPatience);
    set(CURLOPT_WRITEFUNCTION, &Exchange::take);
    set(CURLOPT_WRITEDATA, this);
  }

  void send_body(std::string_view body) {
    add_header(body.empty() ? "Content-Type:" : "Content-Type: application/json");
    add_header("Expect:");
    set(CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
    set(CURLOPT_COPYPOSTFIELDS, body.empty() ? "" : body.data());
  }
  // HTTP/1.0, so that the answer ends with the connection. `to` gets what a 200 says.
  void stream_to(const std::function<void(std::string_view)>& to) {
    set(CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_0});
    set(CURLOPT_SSL_ENABLE_ALPN, 0L);  // it would offer http/1.0 alone, which the server refuses
    to_ = &to;
  }
  void add_header(const std::string& line) {
    headers_.reset(curl_slist_append(headers_.release(), line.c_str()));
  }

  // The answer's body.
  Result<std::string> run(std::string_view method, std::string_view target) {
    const auto address = config::parse_listen_address(record_.address);
    if (!address) return unreachable(record_.address, address.error().message);
    const std::string url = (record_.tls ? "https://" : "http://") +
                            config::to_string(to_connect(*address)) + std::string(target);
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_PATH_AS_IS, 1L);
    set(CURLOPT_CUSTOMREQUEST, std::string(method).c_str());
    set(CURLOPT_HTTPHEADER, headers_.get());
    const CURLcode outcome = curl_easy_perform(handle_.get());
    if (outcome != CURLE_OK) return unreachable(record_.address, why(outcome));
    return std::move(body_);
  }
  [[nodiscard]] long status() const {
    long status = 0;
    curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
    return status;
  }

 private:
  template <class Value>
  void set(CURLoption option, Value value) {
    curl_easy_setopt(handle_.get(), option, value);
  }

  static std::size_t take(const char* bytes, std::size_t /*one*/, std::size_t size, void* self) {
    auto& exchange = *static_cast<Exchange*>(self);
    if (exchange.to_ != nullptr && exchange.status() == 200) {
      (*exchange.to_)({bytes, size});
      return size;
    }
    exchange.body_.append(bytes, size);
    return exchange.body_.size() <= kMaxAnswer ? size : 0;
  }

  [[nodiscard]] std::string why(CURLcode outcome) const {
    long error = 0;
    curl_easy_getinfo(handle_.get(), CURLINFO_OS_ERRNO, &error);
    switch (outcome) {
      case CURLE_COULDNT_CONNECT:
        if (error != 0) return std::generic_category().message(static_cast<int>(error));
        break;
      case CURLE_SSL_CONNECT_ERROR: return "it does not speak TLS";
      case CURLE_GOT_NOTHING:
      case CURLE_UNSUPPORTED_PROTOCOL: return "it went away without an answer";
      case CURLE_OPERATION_TIMEDOUT:
      case CURLE_WRITE_ERROR:
        return status() == 200 ? "it says nothing any more" : "it does not answer";
      case CURLE_PARTIAL_FILE: return "its answer is cut off";
      default: break;
    }
    return curl_easy_strerror(outcome);
  }

  const server::ServerRecord& record_;
  const std::unique_ptr<CURL, void (*)(CURL*)> handle_;
  std::unique_ptr<curl_slist, FreeList> headers_;
  const std::function<void(std::string_view)>* to_ = nullptr;  // null: body_ gets it
  std::string body_;
};

// The error of an answer that refuses a request.
Error refusal(long status, const Result<Json>& body) {
  Error error{Errc::kUnavailable, "the server answers with status " + std::to_string(status)};
  if (status == 404) error.code = Errc::kNotFound;
  if (status == 400) error.code = Errc::kInvalidArgument;
  if (status == 401 || status == 403) error.code = Errc::kForbidden;
  if (!body || !body->is_object()) return error;
  if (const std::string of_objects = text_member(*body, "error"); !of_objects.empty())
    error.message = of_objects + " (" + text_member(*body, "code") + ")";
  if (const std::string message = text_member(body->value("error", Json()), "message");
      !message.empty())
    error.message = message;
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
  Exchange exchange(record_, token_);
  if (method == "POST") exchange.send_body(body);
  const auto answer = exchange.run(method, target);
  if (!answer) return answer.error();
  Result<Json> json = parse_host_json(*answer);
  if (exchange.status() != 200) return refusal(exchange.status(), json);
  if (!json) return unreachable(record_.address, "its answer is cut off");
  return json;
}

Result<void> AdminClient::follow(const std::string& target, const std::string& last_id,
                                 const std::function<void(std::string_view)>& take) const {
  Exchange exchange(record_, token_);
  if (!last_id.empty()) exchange.add_header("Last-Event-ID: " + last_id);
  exchange.stream_to(take);
  const auto answer = exchange.run("GET", target);
  if (!answer) return answer.error();
  if (exchange.status() != 200) return refusal(exchange.status(), parse_host_json(*answer));
  return {};
}

std::string url_encoded(std::string_view text) {
  return encoded(text, "");
}

std::string name_in_url(std::string_view name) {
  const storage::AgentKey key{.agent_class = {}, .name = std::string(name)};
  // What a request may have as it is: another spelling is another agent.
  const std::string kept = "%!$&'()*+,;=:@[]|\"<>\\^`{}";
  return encoded(name, key.is_sub_agent() ? kept + "/" : kept);
}

std::string with_query(std::string target, QueryValues values) {
  for (const auto& [key, value] : values) {
    if (!value.empty()) target.append("&").append(key).append("=").append(url_encoded(value));
  }
  return target;
}

std::string text_in(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end() || found->is_null()) return {};
  return found->is_string() ? found->get<std::string>() : dump_json(*found);
}

const Json& list_in(const Json& object, const char* key) {
  static const Json none = Json::array();
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_array() ? *found : none;
}

std::optional<std::int64_t> number_in(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

}  // namespace hearth::cli
