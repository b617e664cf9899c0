#pragma once
// A server that asks some of its clients for a proof of identity.

#include "api/api_fixture.hpp"
#include "auth/token_maker.hpp"

namespace hearth::api::testing {

inline const std::string kClientToken = "0123456789abcdef-of-a-client";

class EdgeFixture : public ApiFixture {
 protected:
  // What each class asks its clients for. Only named has no objects. Other classes ask for what
  // the server's setting says.
  //   open     nothing
  //   guarded  a token
  //   users    a JSON Web Token
  //   mine     a JSON Web Token whose `sub` is the agent's name
  //   named    as mine
  void open(ProofKind servers = ProofKind::kNone) {
    auth::ProofSources sources;
    sources.tokens = [](const auth::ProofSources::Answer& answer) { answer(kClientToken); };
    sources.keys = [this](const auth::ProofSources::Answer& answer) {
      answer(dump_json(maker_.jwk()));
    };
    sources.jwt = {.issuer = "me", .audiences = {"hearth"}, .clock_skew = skew_};
    authenticator_.emplace(std::move(sources), system_clock_, logger_);
    ASSERT_FALSE(authenticator_->refresh());
    edge_.authenticator = &*authenticator_;
    edge_.auth.type = servers;
    start();
    serve_with("Open", {.type = ProofKind::kNone, .name = {}});
    serve_with("Guarded", {.type = ProofKind::kToken, .name = {}});
    serve_with("Users", {.type = ProofKind::kJwt, .name = {}});
    serve_with("Mine", {.type = ProofKind::kJwt, .name = "{sub}"});
    serve_with("Named", {.type = ProofKind::kJwt, .name = "{sub}"}, {}, false);
    runtime_->classes().set_aliases({{"ours", "mine"}});
  }

  void serve_with(std::string name, AuthRules auth, CorsRules cors = {}, bool is_object = true) {
    runtime::ClassSettings settings;
    settings.auth = std::move(auth);
    settings.cors = std::move(cors);
    settings.list_methods = true;
    settings.is_object = is_object;
    serve(std::move(name), sampler, settings);
  }

  [[nodiscard]] std::string jwt(const Json& sub, int seconds = 300) const {
    const std::int64_t now = unix_millis(system_clock_.wall_now()) / 1000;
    return maker_.sign({{"iss", "me"}, {"aud", "hearth"}, {"sub", sub}, {"exp", now + seconds}});
  }
  static std::string bearer(const std::string& token) {
    return "Authorization: Bearer " + token + "\r\n";
  }

  std::chrono::seconds skew_{0};

 private:
  SystemClock system_clock_;
  hearth::testing::TokenMaker maker_{"EdDSA"};
  std::optional<auth::Authenticator> authenticator_;
};

}  // namespace hearth::api::testing
