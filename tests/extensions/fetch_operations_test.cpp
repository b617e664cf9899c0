// Requests of operations: what the ledger keeps of them and of their answers.
#include "extensions/durable_work.hpp"
#include "extensions/fetch_fixture.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::extensions {
namespace {

using namespace testing;

class AbiLedgerFetchTest : public AbiFetchTest {
 protected:
  AbiLedgerFetchTest() { use({}); }
  void begin(durable::Effect effect = durable::Effect::kUnsafe, std::string_view header = "") {
    const durable::OperationRequest wanted{
        .effect = effect, .can_resume = true, .kind = "charge", .key = "k", .key_header = header};
    begun_ = *ledger().begin(wanted);
  }
  durable::Operations& ledger() { return agent_->work().operations(); }
  hearth_fetch_request request_of_it() const {
    hearth_fetch_request it = request("https://a.example/");
    it.operation = slice(begun_.id);
    return it;
  }
  // The answer without its first four bytes.
  hearth_fetch_request rest_of_it() const {
    return with(with(request_of_it(), &hearth_fetch_request::flags, HEARTH_FETCH_RESUME),
                &hearth_fetch_request::resume_from, 4);
  }
  std::string record() { return *ledger().records().inspect(begun_.id); }
  bool record_has(std::string_view text) { return record().find(text) != std::string::npos; }
  // The agent is about to be told.
  void tell(const Result<std::string>& outcome, bool is_end, std::uint32_t flags) {
    agent_->remote->telling(outcome, is_end, flags);
  }

  void tell_answer(unsigned status, std::string_view piece, const Headers& headers = {}) {
    tell(fetch_head(status, "", headers), false, HEARTH_FETCH_HEAD);
    tell(std::string(piece), false, 0);
  }
  // Begins one, and starts its request.
  void send(durable::Effect effect = durable::Effect::kUnsafe) {
    begin(effect);
    ASSERT_EQ(start(request_of_it()), HEARTH_OK);
  }
  durable::OperationState settle(
      durable::OperationOutcome outcome = durable::OperationOutcome::kCutOff) {
    return *ledger().settle(begun_.operation, outcome, "why");
  }

  durable::OperationBegun begun_;
};

TEST_F(AbiLedgerFetchTest, ItIsDispatchedWithItsKeyBeforeItLeaves) {
  send();
  EXPECT_EQ(port_.made.front().headers, (Headers{{"Idempotency-Key", begun_.id}}));
  EXPECT_TRUE(record_has(R"("request":{"fingerprint":")")) << record();
  EXPECT_TRUE(record_has(R"("status":null)")) << record();
  EXPECT_EQ(start(request_of_it()), HEARTH_E_CONFLICT) << "a second effect";
  EXPECT_EQ(port_.made.size(), 1U);
}

TEST_F(AbiLedgerFetchTest, TheFingerprintIsOfWhatIsAskedFor) {
  begin(durable::Effect::kRead);
  std::vector<std::string> all;
  const auto add = [&](const hearth_fetch_request& it) {
    agent_->remote.reset();  // the earlier one was cancelled
    ASSERT_EQ(start(it), HEARTH_OK);
    all.push_back(ledger().requests().answer(begun_.id)->request.fingerprint);
  };
  hearth_fetch_request it = request_of_it();
  add(it);
  it.headers = slice(R"([["X-Time","12:00"]])");
  add(it);
  EXPECT_EQ(all[0], all[1]);
  EXPECT_EQ(all[0].size(), 64U);
  it.body = slice("1");
  add(it);
  it.method = slice("POST");
  add(it);
  it.url = slice("https://a.example/2");
  add(it);
  for (std::size_t i = 2; i < all.size(); ++i) EXPECT_NE(all[i], all[i - 1]) << i;
}

TEST_F(AbiLedgerFetchTest, TheKindNamesTheHeaderUnlessTheRequestHasIt) {
  begin(durable::Effect::kRead, "X-Once");
  ASSERT_EQ(start(request_of_it()), HEARTH_OK);
  EXPECT_EQ(port_.made.back().headers, (Headers{{"X-Once", begun_.id}}));
  agent_->remote.reset();
  hearth_fetch_request it = request_of_it();
  it.headers = slice(R"([["x-once","mine"]])");
  ASSERT_EQ(start(it), HEARTH_OK);
  EXPECT_EQ(port_.made.back().headers, (Headers{{"x-once", "mine"}}));
}

TEST_F(AbiLedgerFetchTest, WhatComesOfItIsWrittenWithTheTurnThatIsToldOfIt) {
  send();
  tell(fetch_head(201, "https://a.example/", {{"x-request-ID", "req-7"}}), false,
       HEARTH_FETCH_HEAD);
  EXPECT_TRUE(record_has(R"("status":201,"request_id":"req-7","stored_bytes":0)")) << record();
  tell(std::string("half"), false, 0);
  EXPECT_TRUE(record_has(R"("stored_bytes":4,"whole":false)")) << record();
  tell(std::string(), true, 0);
  EXPECT_TRUE(record_has(R"("whole":true)")) << record();
}

TEST_F(AbiLedgerFetchTest, AFailureThatWasNotSentSettlesIt) {
  send();
  tell(Error{Errc::kUnavailable, "refused"}, true,
       fetch_failure_flags(HEARTH_FETCH_PHASE_CONNECT, false));
  EXPECT_EQ(settle(), durable::OperationState::kNotExecuted);
  send();
  tell(Error{Errc::kUnavailable, "cut"}, true,
       fetch_failure_flags(HEARTH_FETCH_PHASE_HEADERS, true));
  EXPECT_EQ(settle(), durable::OperationState::kUnknown);
}

TEST_F(AbiLedgerFetchTest, AFailureAfterAWholeRequestRefusesItsAnswer) {
  using durable::OperationState;
  struct Case {
    const char* what;
    Result<std::string> end;
    std::uint32_t flags;
    OperationState state;
  };
  const Error cut{Errc::kUnavailable, "cut"};
  for (const auto& [what, end, flags, state] :
       {Case{"whole", std::string(), 0, OperationState::kUnknown},
        Case{"cut off", cut, fetch_failure_flags(HEARTH_FETCH_PHASE_BODY, true),
             OperationState::kInterrupted}}) {
    send();
    tell_answer(200, "half");
    tell(end, true, flags);
    EXPECT_EQ(settle(durable::OperationOutcome::kFailed), state) << what;
    ASSERT_TRUE(
        ledger().resolve(begun_.id, durable::OperationOutcome::kNotExecuted, "", "", "ada"));
  }
}

TEST_F(AbiLedgerFetchTest, OneIsInFlightUntilItsEndIsToldOrItIsCancelled) {
  begin(durable::Effect::kRead);
  const auto refused = [&] {
    EXPECT_EQ(start(request_of_it()), HEARTH_E_CONFLICT);
    return last_error().find("in flight") != std::string::npos;
  };
  ASSERT_EQ(start(request_of_it()), HEARTH_OK);
  EXPECT_TRUE(refused());
  tell_answer(200, "half");
  EXPECT_TRUE(refused());
  EXPECT_EQ(ledger().requests().answer(begun_.id)->body, "half") << "nothing was mixed in";
  tell(std::string(), true, 0);
  ASSERT_EQ(start(request_of_it()), HEARTH_OK);
  EXPECT_TRUE(refused());
  tell(Error{Errc::kUnavailable, "cut"}, true, fetch_failure_flags(HEARTH_FETCH_PHASE_BODY, true));
  ASSERT_EQ(start(request_of_it()), HEARTH_OK);
  EXPECT_TRUE(refused());
  agent_->remote.reset();
  EXPECT_EQ(start(request_of_it()), HEARTH_OK);
}

TEST_F(AbiLedgerFetchTest, WhatIsSentWithoutAnOperationMayBeOfOneThatRuns) {
  const auto fail_unsent = [&] {
    send();
    tell(Error{Errc::kUnavailable, "refused"}, true,
         fetch_failure_flags(HEARTH_FETCH_PHASE_CONNECT, false));
  };
  fail_unsent();
  EXPECT_EQ(start("ftp://a.example/"), HEARTH_E_INVALID) << "this one is not sent";
  EXPECT_EQ(settle(), durable::OperationState::kNotExecuted);
  fail_unsent();
  EXPECT_EQ(start("https://a.example/"), HEARTH_OK);
  EXPECT_EQ(settle(), durable::OperationState::kUnknown);
}

TEST_F(AbiLedgerFetchTest, OneThatIsNotTakenHasNotLeft) {
  begin();
  agent_->answer = Error{Errc::kLimitExceeded, "too many operations in flight"};
  EXPECT_EQ(start(request_of_it()), HEARTH_E_LIMIT);
  agent_->answer.reset();
  EXPECT_TRUE(record_has(R"("request":null)")) << record();
  port_.refusal = Error{Errc::kInvalidArgument, "odd"};
  EXPECT_EQ(start(request_of_it()), HEARTH_E_INVALID);
  EXPECT_TRUE(record_has(R"("request":null)")) << record();
  port_.refusal.reset();
  EXPECT_EQ(start(request_of_it()), HEARTH_OK);
}

TEST_F(AbiLedgerFetchTest, OneThatCannotBeMadeHasNotLeft) {
  begin();
  port_.refusal = Error{Errc::kInvalidArgument, "odd"};
  EXPECT_EQ(start(request_of_it()), HEARTH_E_INVALID);
  port_.refusal.reset();
  EXPECT_EQ(settle(), durable::OperationState::kNotExecuted);
  begin();
  hearth_fetch_request it = request_of_it();
  it.url = slice("ftp://a.example/");
  EXPECT_EQ(start(it), HEARTH_E_INVALID);
  EXPECT_EQ(settle(), durable::OperationState::kNotExecuted);
  begin();
  it = request_of_it();
  it.credential = slice("key");
  EXPECT_EQ(start(it), HEARTH_E_NOT_FOUND) << "the class has none";
  EXPECT_EQ(settle(), durable::OperationState::kNotExecuted);

  send();
  agent_->remote.reset();
  it = request_of_it();
  it.url = slice("ftp://a.example/");
  EXPECT_EQ(start(it), HEARTH_E_CONFLICT) << "it has sent its request";
  EXPECT_EQ(settle(), durable::OperationState::kUnknown);
}

TEST_F(AbiLedgerFetchTest, AnotherRequestThatCannotBeMadeSaysNothingOfTheOneBefore) {
  send(durable::Effect::kIdempotent);
  agent_->remote.reset();
  port_.refusal = Error{Errc::kInvalidArgument, "odd"};
  EXPECT_EQ(start(request_of_it()), HEARTH_E_INVALID);
  EXPECT_EQ(settle(), durable::OperationState::kInterrupted);
  EXPECT_TRUE(record_has(R"("fingerprint")")) << record();
}

TEST_F(AbiLedgerFetchTest, OfAHostThatMakesNoRequestsNoneHasLeft) {
  use({}, false);
  begin();
  EXPECT_EQ(start(request_of_it()), HEARTH_E_UNSUPPORTED);
  EXPECT_EQ(settle(), durable::OperationState::kNotExecuted);
}

TEST_F(AbiLedgerFetchTest, TheRestOfAnAnswerIsAskedForByRequestsThatSaySo) {
  send();
  tell_answer(200, "one two");
  hearth_fetch_request it = request_of_it();
  it.resume_from = 4;
  EXPECT_EQ(start(it), HEARTH_E_INVALID) << "without the flag";
  it.flags = HEARTH_FETCH_RESUME;
  it.operation = {nullptr, 0};
  EXPECT_EQ(start(it), HEARTH_E_INVALID) << "without the operation";
  agent_->remote.reset();
  ASSERT_EQ(start(rest_of_it()), HEARTH_OK);
  tell_answer(206, "TWO");
  EXPECT_EQ(ledger().requests().answer(begun_.id)->body, "one TWO");
}

TEST_F(AbiLedgerFetchTest, APartThatWasAskedForByARangeBeginsThere) {
  struct Case {
    const char* range;  // empty: none
    unsigned status;
    const char* content_range;  // empty: none
    bool goes_on;
  };
  for (const Case& each : {
           Case{"", 200, "", true},
           Case{"", 206, "bytes 9-20/21",
                true},  // the server's own choice: there is no range to compare
           Case{"", 404, "", false},
           Case{"bytes=4-", 206, "bytes 4-20/21", true},
           Case{"bytes=4-20", 206, "BYTES 4-20/*", true},
           Case{"lines=4-", 206, "lines 4-9/*", true},
           Case{"bytes=4-", 200, "", false},  // all of it, once more
           Case{"bytes=4-", 200, "bytes 4-20/21", false},
           Case{"bytes=4-", 206, "", false},
           Case{"bytes=4-", 206, "bytes 0-20/21", false},
           Case{"bytes=4-", 206, "bytes 40-50/51", false},
           Case{"bytes=4-", 416, "bytes */4", false},
           Case{"bytes=-4", 206, "bytes 4-7/8", false},  // these begin nowhere
           Case{"bytes=4-5,7-", 206, "bytes 4-5/9", false},
           Case{"bytes=4", 206, "bytes 4", false},
           Case{"4-", 206, "4-", false},
       }) {
    SCOPED_TRACE(std::string(each.range) + " / " + std::to_string(each.status) + " " +
                 each.content_range);
    send(durable::Effect::kRead);
    tell_answer(200, "one ");
    agent_->remote.reset();
    hearth_fetch_request it = rest_of_it();
    const std::string headers = std::string(R"([["range",")") + each.range + "\"]]";
    if (*each.range != '\0') it.headers = slice(headers);
    ASSERT_EQ(start(it), HEARTH_OK);
    Headers answered;
    if (*each.content_range != '\0') answered.emplace_back("Content-Range", each.content_range);
    tell_answer(each.status, "two", answered);
    const auto answer = ledger().requests().answer(begun_.id);
    EXPECT_EQ(answer->body, each.goes_on ? "one two" : "");
    EXPECT_EQ(answer->request.can_resume, each.goes_on);
    agent_->remote.reset();
    ASSERT_TRUE(ledger().settle(begun_.operation, durable::OperationOutcome::kNotExecuted, ""));
  }
}

TEST_F(AbiLedgerFetchTest, OnlyOneThatRunsMaySend) {
  hearth_fetch_request it = request("https://a.example/");
  it.operation = slice("none");
  EXPECT_EQ(start(it), HEARTH_E_NOT_FOUND);
  it.operation = kNullWithLength;
  EXPECT_EQ(start(it), HEARTH_E_INVALID);
  begin();
  agent_->its_phase = AgentPhase::kMigrating;
  EXPECT_EQ(start(request_of_it()), HEARTH_E_INVALID);
  EXPECT_TRUE(port_.made.empty());
}

}  // namespace
}  // namespace hearth::extensions
