#include "net/outbound_failure.hpp"

#include <string>

#include <curl/curl.h>

namespace hearth::net {
namespace {

using FailurePhase = OutboundFailure::Phase;

// Codes that libcurl uses only for the TLS handshake.
bool is_tls_code(int code) {
  switch (code) {
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS: return true;
    default: return false;
  }
}

std::string_view broken_text(int code, FailurePhase phase) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION: return "the certificate of the host is not accepted";
    case CURLE_BAD_CONTENT_ENCODING: return "the body of the answer is not compressed as it says";
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return "the answer is not valid HTTP";
    default: break;
  }
  switch (phase) {
    case FailurePhase::kTls: return "the TLS handshake with the host failed";
    case FailurePhase::kSend: return "the connection ended before the request was sent";
    case FailurePhase::kHeaders:
      return "the connection ended before the head of the answer was there";
    case FailurePhase::kBody: return "the connection ended before the body of the answer was there";
    default: return "no connection to the host could be made";
  }
}

std::string_view timeout_text(FailurePhase phase) {
  switch (phase) {
    case FailurePhase::kResolve: return "the host's name was not resolved in time";
    case FailurePhase::kTls: return "the TLS handshake with the host took too long";
    case FailurePhase::kSend: return "the host does not take the request";
    case FailurePhase::kHeaders: return "the host does not answer";
    case FailurePhase::kBody: return "the rest of the answer does not come";
    default: return "the host does not take the connection";
  }
}

}  // namespace

std::string_view to_string(OutboundFailure::Phase phase) noexcept {
  switch (phase) {
    case FailurePhase::kRules: return "rules";
    case FailurePhase::kResolve: return "resolve";
    case FailurePhase::kConnect: return "connect";
    case FailurePhase::kTls: return "tls";
    case FailurePhase::kSend: return "send";
    case FailurePhase::kHeaders: return "headers";
    case FailurePhase::kBody: return "body";
  }
  return "unknown";
}

OutboundFailure curl_failure(int code, OutboundFailure::Phase phase, bool sent) {
  if (code == CURLE_OPERATION_TIMEDOUT) return timeout_failure(phase, sent);
  const FailurePhase where = is_tls_code(code) && !sent ? FailurePhase::kTls : phase;
  return {Errc::kUnavailable, where, sent, std::string(broken_text(code, where))};
}

OutboundFailure rules_failure(bool sent, const OutboundTarget& target) {
  const bool is_v6 = target.host.find(':') != std::string::npos;
  const std::string host = is_v6 ? "[" + target.host + "]" : target.host;
  return {Errc::kForbidden, FailurePhase::kRules, sent, "requests may not go to this host",
          host + ":" + std::to_string(target.port)};
}

OutboundFailure timeout_failure(OutboundFailure::Phase phase, bool sent) {
  return {Errc::kTimeout, phase, sent, std::string(timeout_text(phase))};
}

}  // namespace hearth::net
