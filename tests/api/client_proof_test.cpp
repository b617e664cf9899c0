#include "api/client_proof.hpp"

#include <gtest/gtest.h>

namespace hearth::api {
namespace {

struct ProofCase {
  std::string_view target;
  net::HttpHeaders headers;
  std::optional<std::string> text;  // without one if it is ambiguous
  std::string_view left;            // of the target
  bool is_ambiguous = false;
  std::string_view subprotocol = {};
};

TEST(ClientProofTest, IsFoundWhereClientsPutItAndLeavesTheTarget) {
  const net::HttpHeaders bearer{{"authorization", "bearer abc"}};
  const ProofCase cases[] = {
      {"/a", {}, std::nullopt, "/a"},
      {"/a?x=1", bearer, "abc", "/a?x=1"},
      {"/a", {{"Authorization", "Basic abc"}}, "", "/a"},
      {"/a?token=abc", {}, "abc", "/a"},
      {"/a?_pk=1&token=a%2Bb&y=2", {}, "a+b", "/a?_pk=1&y=2"},
      {"/a?%74oken=abc&y", {}, "abc", "/a?y"},
      {"/a?token", {}, "", "/a"},
      {"/a?tokens=abc&atoken=1", {}, std::nullopt, "/a?tokens=abc&atoken=1"},
      {"/a?", {}, std::nullopt, "/a?"},
      {"/token=abc", {}, std::nullopt, "/token=abc"},
      {"/a", {{"Sec-WebSocket-Protocol", "bearer, abc"}}, "abc", "/a", false, "bearer"},
      {"/a", {{"Sec-WebSocket-Protocol", "bearer ,\tabc,chat"}}, "abc", "/a", false, "bearer"},
      {"/a", {{"Sec-WebSocket-Protocol", "chat, bearer"}}, std::nullopt, "/a"},
      {"/a", {{"Sec-WebSocket-Protocol", "bearer"}}, std::nullopt, "/a"},
      {"/a?token=abc", bearer, std::nullopt, "/a", true},
      {"/a?token=abc&token=abc", {}, std::nullopt, "/a", true},
      {"/a",
       {{"Authorization", "Bearer a"}, {"Authorization", "Bearer a"}},
       std::nullopt,
       "/a",
       true},
  };
  for (const ProofCase& each : cases) {
    const ClientProof proof = proof_of({.method = "GET",
                                        .target = std::string(each.target),
                                        .headers = each.headers,
                                        .body = {},
                                        .peer = {}});
    EXPECT_EQ(proof.is_ambiguous, each.is_ambiguous) << each.target;
    if (!each.is_ambiguous) EXPECT_EQ(proof.text, each.text) << each.target;
    EXPECT_EQ(proof.target, each.left);
    EXPECT_EQ(proof.subprotocol, each.subprotocol) << each.target;
  }
}

TEST(ApiKeyTest, IsABearerOrAnApiKeyAndOnlyOne) {
  const std::pair<net::HttpHeaders, std::string_view> cases[] = {
      {{}, ""},
      {{{"Authorization", "Bearer abc"}}, "abc"},
      {{{"authorization", "bearer abc"}}, "abc"},
      {{{"X-API-Key", "abc"}}, "abc"},
      {{{"Authorization", "Basic abc"}}, ""},
      {{{"Authorization", "abc"}}, ""},
      {{{"Authorization", "Bearer abc"}, {"X-Api-Key", "abc"}}, ""},
      {{{"X-Api-Key", "abc"}, {"X-Api-Key", "def"}}, ""},
      {{{"Authorization", "Basic abc"}, {"X-Api-Key", "abc"}}, ""},
  };
  for (const auto& [headers, key] : cases) EXPECT_EQ(api_key_of(headers), key);
}

}  // namespace
}  // namespace hearth::api
