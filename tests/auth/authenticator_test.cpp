#include "auth/authenticator.hpp"

#include "auth/token_maker.hpp"
#include "support/manual_clock.hpp"
#include "support/recording_logger.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <utility>

namespace hearth::auth {
namespace {

using hearth::testing::ManualClock;
using hearth::testing::RecordingLogger;
using hearth::testing::TokenMaker;
using std::chrono::minutes;
using std::chrono::seconds;

const std::string kToken = "0123456789abcdef";

class AuthenticatorTest : public ::testing::Test {
 protected:
  ProofSources sources() {
    ProofSources made;
    made.tokens = [this](const ProofSources::Answer& answer) { answer(tokens_); };
    made.keys = [this](ProofSources::Answer answer) {
      if (is_slow_) {
        waiting_.push_back(std::move(answer));
      } else {
        ++reads_;
        answer(keys_);
      }
    };
    made.jwt = {.issuer = "me", .audiences = {"you"}};
    return made;
  }

  [[nodiscard]] std::string token_of(const TokenMaker& maker) const {
    const std::int64_t now = unix_millis(clock_.wall_now()) / 1000;
    return maker.sign({{"iss", "me"}, {"aud", "you"}, {"sub", "u1"}, {"exp", now + 3600}});
  }
  static Result<std::string> set_of(const TokenMaker& maker) {
    return dump_json({{"keys", {maker.jwk()}}});
  }

  // The refusal, or nothing.
  static std::optional<Refusal> refusal(const std::variant<Visitor, Refusal>& verdict) {
    const auto* const refused = std::get_if<Refusal>(&verdict);
    return refused == nullptr ? std::nullopt : std::optional(*refused);
  }

  ManualClock clock_;
  RecordingLogger logger_;
  Result<std::string> tokens_ = kToken + "\n";
  Result<std::string> keys_ = std::string();
  int reads_ = 0;
  bool is_slow_ = false;
  std::deque<ProofSources::Answer> waiting_;
};

TEST_F(AuthenticatorTest, EachKindOfProofLetsItsOwnIn) {
  const TokenMaker maker("ES256");
  keys_ = set_of(maker);
  Authenticator authenticator(sources(), clock_, logger_);
  EXPECT_FALSE(authenticator.refresh());
  const std::string jwt = token_of(maker);
  struct Case {
    ProofKind wanted;
    std::optional<std::string_view> proof;
    std::optional<Refusal> refusal;
  };
  const Case cases[] = {
      {ProofKind::kNone, std::nullopt, std::nullopt},
      {ProofKind::kNone, "anything", std::nullopt},
      {ProofKind::kToken, std::nullopt, Refusal::kNoProof},
      {ProofKind::kToken, "", Refusal::kNoProof},
      {ProofKind::kToken, kToken, std::nullopt},
      {ProofKind::kToken, "0123456789abcdeg", Refusal::kBadProof},
      {ProofKind::kToken, jwt, Refusal::kBadProof},
      {ProofKind::kJwt, std::nullopt, Refusal::kNoProof},
      {ProofKind::kJwt, jwt, std::nullopt},
      {ProofKind::kJwt, kToken, Refusal::kBadProof},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(refusal(authenticator.check(each.wanted, each.proof)), each.refusal)
        << static_cast<int>(each.wanted) << ' ' << each.proof.value_or("-");
  }
  const auto visitor = std::get<Visitor>(authenticator.check(ProofKind::kJwt, jwt));
  EXPECT_EQ(visitor.values["sub"], "u1");
  EXPECT_EQ(*parse_json(visitor.claims), visitor.values);
  EXPECT_EQ(logger_.count(kToken), 0U);
  EXPECT_EQ(logger_.count("u1"), 0U);
}

TEST_F(AuthenticatorTest, WithoutSourcesNobodyIsLetIn) {
  Authenticator authenticator({}, clock_, logger_);
  EXPECT_FALSE(authenticator.refresh());
  EXPECT_EQ(refusal(authenticator.check(ProofKind::kToken, kToken)), Refusal::kBadProof);
  EXPECT_EQ(refusal(authenticator.check(ProofKind::kJwt, "a.b.c")), Refusal::kBadProof);
}

TEST_F(AuthenticatorTest, TokensRotateAndASourceThatFailsKeepsTheLast) {
  Authenticator authenticator(sources(), clock_, logger_);
  authenticator.refresh();
  tokens_ = Error{Errc::kNotFound, "no file"};
  EXPECT_TRUE(authenticator.refresh());
  EXPECT_TRUE(logger_.contains("auth.source_failed"));
  EXPECT_EQ(refusal(authenticator.check(ProofKind::kToken, kToken)), std::nullopt);
  tokens_ = std::string("fedcba9876543210\n");
  authenticator.refresh();
  EXPECT_EQ(refusal(authenticator.check(ProofKind::kToken, kToken)), Refusal::kBadProof);
  EXPECT_EQ(refusal(authenticator.check(ProofKind::kToken, "fedcba9876543210")), std::nullopt);
}

TEST_F(AuthenticatorTest, KeysOfAUrlAreReadAgainButNotForEachStranger) {
  const TokenMaker first("ES256", "k1");
  const TokenMaker second("ES256", "k2");
  const TokenMaker stranger("ES256", "k3");
  keys_ = set_of(first);
  ProofSources from_url = sources();
  from_url.key_origin = KeyOrigin::kUrl;
  Authenticator authenticator(from_url, clock_, logger_);
  authenticator.refresh();
  EXPECT_EQ(reads_, 1);
  const auto ask = [&](const TokenMaker& maker) {
    return refusal(authenticator.check(ProofKind::kJwt, token_of(maker)));
  };
  EXPECT_EQ(ask(first), std::nullopt);
  EXPECT_EQ(ask(second), Refusal::kBadProof) << "asked a moment ago";
  keys_ = dump_json({{"keys", {first.jwk(), second.jwk()}}});
  clock_.advance(minutes(1));
  EXPECT_EQ(ask(second), Refusal::kTryAgain);
  EXPECT_EQ(reads_, 2);
  EXPECT_EQ(ask(second), std::nullopt);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ask(stranger), Refusal::kBadProof);
  EXPECT_EQ(reads_, 2);

  keys_ = Error{Errc::kUnavailable, "the provider does not answer"};
  clock_.advance(minutes(10));
  EXPECT_EQ(ask(first), std::nullopt) << "what was read before goes on";
  EXPECT_EQ(reads_, 3);
  keys_ = set_of(second);
  clock_.advance(minutes(10));
  EXPECT_EQ(ask(first), Refusal::kBadProof);
}

TEST_F(AuthenticatorTest, AfterAnIdleTimeNobodyIsJudgedByOldKeys) {
  const TokenMaker withdrawn("ES256", "k1");
  const TokenMaker current("ES256", "k2");
  keys_ = set_of(withdrawn);
  ProofSources from_url = sources();
  from_url.key_origin = KeyOrigin::kUrl;
  Authenticator authenticator(from_url, clock_, logger_);
  authenticator.refresh();
  is_slow_ = true;
  const auto ask = [&](const TokenMaker& maker) {
    return refusal(authenticator.check(ProofKind::kJwt, token_of(maker)));
  };
  clock_.advance(minutes(10));
  EXPECT_EQ(ask(withdrawn), std::nullopt) << "a busy server reads them beside its requests";
  EXPECT_EQ(waiting_.size(), 1U);
  waiting_.back()(set_of(withdrawn));

  clock_.advance(minutes(11));
  EXPECT_EQ(ask(withdrawn), Refusal::kTryAgain);
  EXPECT_EQ(ask(withdrawn), Refusal::kTryAgain);
  EXPECT_EQ(waiting_.size(), 2U) << "asked once";
  waiting_.back()(Error{Errc::kUnavailable, "the provider does not answer"});
  EXPECT_EQ(ask(withdrawn), std::nullopt) << "what was read before goes on";

  clock_.advance(minutes(60));
  EXPECT_EQ(ask(withdrawn), Refusal::kTryAgain);
  waiting_.back()(set_of(current));
  EXPECT_EQ(ask(withdrawn), Refusal::kBadProof);
  EXPECT_EQ(ask(current), std::nullopt);
}

TEST_F(AuthenticatorTest, WhileTheFirstKeysAreOnTheirWayClientsTryAgain) {
  const TokenMaker maker("ES256");
  is_slow_ = true;
  ProofSources from_url = sources();
  from_url.key_origin = KeyOrigin::kUrl;
  Authenticator authenticator(from_url, clock_, logger_);
  authenticator.refresh();
  const std::string token = token_of(maker);
  EXPECT_EQ(refusal(authenticator.check(ProofKind::kJwt, token)), Refusal::kTryAgain);
  EXPECT_EQ(waiting_.size(), 1U);
  waiting_.front()(set_of(maker));
  EXPECT_EQ(refusal(authenticator.check(ProofKind::kJwt, token)), std::nullopt);
}

}  // namespace
}  // namespace hearth::auth
