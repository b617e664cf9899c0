#pragma once
// The proof of identity that a client sends with its request, and where it stands.

#include "net/http.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace hearth::api {

// The query parameter, and the subprotocol, for what can set no headers: a browser's WebSocket.
inline constexpr std::string_view kTokenParameter = "token";
inline constexpr std::string_view kTokenSubprotocol = "bearer";

struct ClientProof {
  std::optional<std::string> text;
  // The client sent more than one token. The server accepts none of them.
  bool is_ambiguous = false;
  // What the answer to the upgrade chooses; empty: nothing.
  std::string subprotocol;
  // The request's target without the proof. Else it would be in every place that keeps a target.
  std::string target;
};

// Looks for
//   Authorization: Bearer TOKEN
//   ?token=TOKEN
//   Sec-WebSocket-Protocol: bearer, TOKEN
[[nodiscard]] ClientProof proof_of(const net::HttpRequest& request);

// The token of `Authorization: Bearer TOKEN`; empty if the value is not that.
[[nodiscard]] std::string_view bearer_token(std::string_view authorization);

// The key of an administrator, or of the user of /objects: the one value of
//
//   Authorization: Bearer KEY
//   X-Api-Key: KEY
//
// Empty if there is none, or more than one. Points into the headers.
[[nodiscard]] std::string_view api_key_of(const net::HttpHeaders& headers);

}  // namespace hearth::api
