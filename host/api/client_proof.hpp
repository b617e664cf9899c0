#pragma once
// The proof of identity that a client sends with its request, and where it stands.

#include "net/http.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::api {

// The query parameter and the subprotocol for a client that can set no headers: a WebSocket in a
// browser.
inline constexpr std::string_view kTokenParameter = "token";
inline constexpr std::string_view kTokenSubprotocol = "bearer";

struct ClientProof {
  std::optional<std::string> text;
  // Of X-Api-Key, which carries only the key of objects. With a token elsewhere, or twice, the
  // proof is ambiguous for classes that ask for that key.
  std::vector<std::string> api_keys;
  // The client sent more than one token. The server then accepts none of them.
  bool is_ambiguous = false;
  // The subprotocol that the answer to the upgrade chooses; empty: none.
  std::string subprotocol;
  // The request's target without the proof, so that logs and other copies of the target have no
  // token.
  std::string target;
};

// Looks for
//   Authorization: Bearer TOKEN
//   ?token=TOKEN
//   Sec-WebSocket-Protocol: bearer, TOKEN
[[nodiscard]] ClientProof proof_of(const net::HttpRequest& request);

// The token of `Authorization: Bearer TOKEN`; empty if the value is not that.
[[nodiscard]] std::string_view bearer_token(std::string_view authorization);

// The key of an administrator or of a user of /objects: the value of the one header
//
//   Authorization: Bearer KEY
//   X-Api-Key: KEY
//
// Empty if there is no such header, or more than one. Points into the headers.
[[nodiscard]] std::string_view api_key_of(const net::HttpHeaders& headers);

}  // namespace hearth::api
