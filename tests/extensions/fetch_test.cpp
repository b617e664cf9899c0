#include "extensions/fetch.hpp"

#include "extensions/abi_fixture.hpp"
#include "extensions/durable_work.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::extensions {
namespace {

using namespace testing;
using std::chrono::milliseconds;

// An operation of nothing.
class NoRemote final : public RemoteOperation {
 public:
  void start(RemoteListener& /*listener*/) override {}
  void credit(std::uint64_t /*bytes*/) override {}
};

// Writes down what is asked of it.
class RecordingHttpPort final : public HttpPort {
 public:
  std::vector<FetchRequest> made;
  std::optional<Error> refusal;
  bool wants = true;

  [[nodiscard]] bool wants_credentials() const override { return wants; }
  Result<std::unique_ptr<RemoteOperation>> make(FetchRequest request) override {
    if (refusal) return *refusal;
    made.push_back(std::move(request));
    return std::make_unique<NoRemote>();
  }
};

class AbiFetchTest : public ::testing::Test {
 protected:
  // Before the first request.
  void use(ClassSettings settings, bool has_port = true) {
    directory_.emplace(nullptr);
    agent_.emplace(kAgent, std::move(settings), OutwardPorts{.http = has_port ? &port_ : nullptr});
    directory_.emplace(&*agent_);
    abi_.emplace(
        AbiServices{
            .agents = *directory_, .clock = agent_->clock, .random = random_, .logger = logger_},
        "plain.so");
  }
  static hearth_fetch_request request(std::string_view url) {
    hearth_fetch_request request{};
    request.struct_size = sizeof request;
    request.url = slice(url);
    return request;
  }
  hearth_status start(const hearth_fetch_request& request) {
    if (!agent_) use({});
    const hearth_host* const host = abi_->table();
    const auto* const table =
        static_cast<const hearth_fetch_v1*>(host->get_extension(host, HEARTH_EXT_FETCH));
    id_ = 0;
    return table->start(host, kAgent, &request, 7, &id_);
  }
  hearth_status start(std::string_view url) { return start(request(url)); }
  hearth_status start_with_headers(std::string_view headers) {
    hearth_fetch_request it = request("https://a.example/");
    it.headers = slice(headers);
    return start(it);
  }
  hearth_status start_with_credential(std::string_view name) {
    hearth_fetch_request it = request("https://a.example/");
    it.credential = slice(name);
    return start(it);
  }
  std::string last_error() {
    hearth_bytes text{};
    EXPECT_EQ(abi_->table()->last_error(abi_->table(), kAgent, &text), HEARTH_OK);
    return std::string(view(text));
  }
  // A class with the credential "key", whose file has this text.
  ClassSettings with_key(const std::string& text) {
    const auto file = files_.path() / "key";
    std::ofstream(file) << text;
    ClassSettings settings;
    settings.egress.secrets["key"] = file;
    return settings;
  }

  hearth::testing::TempDirectory files_;
  RecordingHttpPort port_;
  hearth::testing::SeededRandom random_{7};
  hearth::testing::RecordingLogger logger_;
  std::optional<hearth::testing::TestAgent> agent_;
  std::optional<TestDirectory> directory_;
  std::optional<AbiHost> abi_;
  std::uint64_t id_ = 0;
};

TEST_F(AbiFetchTest, TheTraceOfTheEventGoesAlongUnlessTheAgentSetsOne) {
  use({});
  const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  agent_->origin_call = 5;
  agent_->its_origin.trace = trace;
  hearth_fetch_request it = request("https://a.example/");
  EXPECT_EQ(start(it), HEARTH_OK);
  it.call = 5;
  EXPECT_EQ(start(it), HEARTH_OK);
  it.headers = slice(R"([["TraceParent","mine"]])");
  EXPECT_EQ(start(it), HEARTH_OK);
  ASSERT_EQ(port_.made.size(), 3U);
  EXPECT_EQ(port_.made[0].headers, (Headers{{"traceparent", trace}})) << "a fiber has no event";
  EXPECT_EQ(port_.made[1].headers, (Headers{{"traceparent", trace}}));
  EXPECT_EQ(port_.made[2].headers, (Headers{{"TraceParent", "mine"}}));
}

TEST_F(AbiFetchTest, ARequestSaysWhoseItIs) {
  use({});
  agent_->origin_call = 5;
  agent_->its_origin.trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  agent_->its_origin.method = "ask";
  hearth_fetch_request it = request("https://a.example/");
  it.call = 5;
  ASSERT_EQ(start(it), HEARTH_OK);
  const FetchRequest& made = port_.made.front();
  EXPECT_EQ(made.agent_class, "Plain");
  EXPECT_EQ(made.agent, "a");
  EXPECT_EQ(made.call, 5U);
  EXPECT_EQ(made.its_method, "ask");
  EXPECT_EQ(made.trace, agent_->its_origin.trace);
}

TEST_F(AbiFetchTest, ARequestIsSubmittedWithWhatItSays) {
  hearth_fetch_request it = request("https://a.example/v1?x=1");
  it.flags = HEARTH_FETCH_FOLLOW | HEARTH_FETCH_HTTP2;
  it.method = slice("POST");
  it.headers = slice(R"([["Accept","text/event-stream"],["X","1"]])");
  it.body = slice("\xff{}");
  it.connect_timeout_ms = 1;
  it.idle_timeout_ms = 2;
  it.total_timeout_ms = 3;
  it.max_bytes = 4;
  it.window = 5;
  ASSERT_EQ(start(it), HEARTH_OK);
  EXPECT_EQ(id_, 99U);
  EXPECT_EQ(agent_->told, Lines{"submit remote 4 7"});
  ASSERT_EQ(port_.made.size(), 1U);
  const FetchRequest& made = port_.made.front();
  EXPECT_EQ(made.agent_class, "Plain");
  EXPECT_EQ(made.method, "POST");
  EXPECT_EQ(made.url, "https://a.example/v1?x=1");
  EXPECT_EQ(made.headers, (Headers{{"Accept", "text/event-stream"}, {"X", "1"}}));
  EXPECT_TRUE(made.secret_headers.empty());
  EXPECT_EQ(made.body, "\xff{}");
  EXPECT_TRUE(made.follow_redirects);
  EXPECT_TRUE(made.http2);
  EXPECT_EQ(made.connect_timeout, milliseconds(1));
  EXPECT_EQ(made.idle_timeout, milliseconds(2));
  EXPECT_EQ(made.total_timeout, milliseconds(3));
  EXPECT_EQ(made.max_bytes, 4U);
  EXPECT_EQ(made.window, 5U);
}

TEST_F(AbiFetchTest, TheClassMayDoWithoutHttp2) {
  ClassSettings settings;
  settings.egress.http2 = false;
  use(settings);
  hearth_fetch_request it = request("https://a.example/");
  it.flags = HEARTH_FETCH_HTTP2;
  ASSERT_EQ(start(it), HEARTH_OK);
  EXPECT_FALSE(port_.made.front().http2);
}

TEST_F(AbiFetchTest, ZeroIsTheDefaultOfTheHeader) {
  ASSERT_EQ(start("http://a.example"), HEARTH_OK);
  const FetchRequest& made = port_.made.front();
  EXPECT_EQ(made.method, "GET");
  EXPECT_FALSE(made.follow_redirects);
  EXPECT_FALSE(made.http2);
  EXPECT_EQ(made.connect_timeout, std::chrono::seconds(10));
  EXPECT_EQ(made.idle_timeout, std::chrono::seconds(60));
  EXPECT_EQ(made.total_timeout, milliseconds(0));
  EXPECT_EQ(made.max_bytes, 64U << 20U);
  EXPECT_EQ(made.window, 256U << 10U);
}

TEST_F(AbiFetchTest, TheClassSaysWhereItMayGoAndHowOften) {
  ClassSettings settings;
  settings.egress.allow = {"a.example"};
  settings.egress.proxy = "http://proxy.example:3128";
  settings.egress.limits = {.requests_per_minute = 5, .concurrent = 6, .bytes_per_day = 7};
  use(settings);
  ASSERT_EQ(start("https://b.example/"), HEARTH_OK) << "the port judges";
  const FetchRequest& made = port_.made.front();
  EXPECT_EQ(made.proxy, "http://proxy.example:3128");
  EXPECT_EQ(made.limits.requests_per_minute, 5U);
  EXPECT_EQ(made.limits.concurrent, 6U);
  EXPECT_EQ(made.limits.bytes_per_day, 7U);
  ASSERT_NE(made.rules, nullptr);
  EXPECT_TRUE(made.rules->may_ask("a.example", 443));
  EXPECT_FALSE(made.rules->may_ask("b.example", 443));
  ASSERT_EQ(start("https://a.example/"), HEARTH_OK);
  EXPECT_EQ(port_.made.back().rules, port_.made.front().rules) << "parsed once";
}

TEST_F(AbiFetchTest, WhatTheOperatorSetsHoldsForTheNextRequest) {
  use(with_key("s3cret"));
  ASSERT_EQ(start_with_credential("key"), HEARTH_OK);
  EXPECT_TRUE(port_.made.back().rules->may_ask("a.example", 443));
  EgressSettings tight;
  tight.deny = {"a.example"};
  tight.proxy = "http://proxy.example:3128";
  tight.limits.requests_per_minute = 5;
  agent_->its_egress = std::make_shared<const EgressSettings>(tight);
  ASSERT_EQ(start("https://a.example/"), HEARTH_OK) << "the port judges";
  const FetchRequest& made = port_.made.back();
  EXPECT_FALSE(made.rules->may_ask("a.example", 443));
  EXPECT_EQ(made.proxy, "http://proxy.example:3128");
  EXPECT_EQ(made.limits.requests_per_minute, 5U);
  EXPECT_EQ(start_with_credential("key"), HEARTH_E_NOT_FOUND) << "it was withdrawn";
}

TEST_F(AbiFetchTest, WhatIsWrongIsRefusedAtOnce) {
  for (const std::string_view url :
       {"", "a.example", "ftp://a.example/", "file:///etc/passwd", "http://", "https:///x",
        "https://me:secret@a.example/", "https://a.example/a b", "https://a.example/\n"})
    EXPECT_EQ(start(url), HEARTH_E_INVALID) << url;
  EXPECT_EQ(start("https://a.example/" + std::string(17'000, 'a')), HEARTH_E_INVALID);
  EXPECT_EQ(start("HTTPS://a.example/?me@b"), HEARTH_OK);
  for (const std::string_view headers :
       {"{}", "[1]", R"([["a"]])", R"([["a","b","c"]])", R"([["a",1]])", "[", R"([["a b","c"]])",
        R"([["a","b\r\nc: d"]])", R"([["","b"]])", R"([["connection","close"]])",
        R"([["Content-Length","1"]])", R"([["TRANSFER-ENCODING","chunked"]])",
        R"([["Proxy-Authorization","x"]])", R"([["expect","100-continue"]])"})
    EXPECT_EQ(start_with_headers(headers), HEARTH_E_INVALID) << headers;
  EXPECT_EQ(start_with_headers(R"([["Host","b.example"]])"), HEARTH_OK);
  hearth_fetch_request it = request("https://a.example/");
  for (const std::string_view method : {"GE T", "CONNECT", "TRACE", "trace", "Track", "\r\n"}) {
    it.method = slice(method);
    EXPECT_EQ(start(it), HEARTH_E_INVALID) << method;
  }
  it = request("https://a.example/");
  it.flags = 8;
  EXPECT_EQ(start(it), HEARTH_E_UNSUPPORTED);
  it = request("https://a.example/");
  it.body = kNullWithLength;
  EXPECT_EQ(start(it), HEARTH_E_INVALID);
  it.struct_size = 0;
  EXPECT_EQ(start(it), HEARTH_E_INVALID);
}

TEST_F(AbiFetchTest, ASmallerRequestIsOneWithoutTheRest) {
  hearth_fetch_request it = request("https://a.example/");
  it.struct_size = offsetof(hearth_fetch_request, headers);
  it.headers = kNullWithLength;
  EXPECT_EQ(start(it), HEARTH_OK);
}

TEST_F(AbiFetchTest, AHostWithoutAWayOutSaysSo) {
  use({}, false);
  EXPECT_EQ(start("https://a.example/"), HEARTH_E_UNSUPPORTED);
  EXPECT_EQ(last_error(), "this host makes no requests to other servers");
}

TEST_F(AbiFetchTest, TheWordsOfThePortAndOfTheAgentAreHanded) {
  use({});
  port_.refusal = Error{Errc::kInvalidArgument, "odd"};
  EXPECT_EQ(start("https://a.example/"), HEARTH_E_INVALID);
  EXPECT_EQ(last_error(), "odd");
  port_.refusal.reset();
  agent_->answer = Error{Errc::kForbidden, "not now"};
  EXPECT_EQ(start("https://a.example/"), HEARTH_E_FORBIDDEN);
  EXPECT_EQ(id_, 0U);
}

TEST_F(AbiFetchTest, TheHostAddsTheCredential) {
  use(with_key("X-Api-Key: s3cret\n"));
  ASSERT_EQ(start_with_credential("key"), HEARTH_OK);
  const FetchRequest& made = port_.made.front();
  EXPECT_EQ(made.secret_headers, (Headers{{"X-Api-Key", "s3cret"}}));
  EXPECT_TRUE(made.headers.empty());
}

TEST_F(AbiFetchTest, TheFileIsReadForEachRequest) {
  use(with_key("one"));
  ASSERT_EQ(start_with_credential("key"), HEARTH_OK);
  std::ofstream(files_.path() / "key") << "two";
  ASSERT_EQ(start_with_credential("key"), HEARTH_OK);
  EXPECT_EQ(port_.made.back().secret_headers, (Headers{{"Authorization", "Bearer two"}}));
}

TEST_F(AbiFetchTest, ACredentialThatIsMissingIsNamed) {
  use(with_key("s3cret"));
  EXPECT_EQ(start_with_credential("other"), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(last_error(), "the class has no credential \"other\"");
  EXPECT_TRUE(port_.made.empty());
}

TEST_F(AbiFetchTest, APortThatSendsNothingTakesAnyName) {
  use({});
  port_.wants = false;
  ASSERT_EQ(start_with_credential("key"), HEARTH_OK);
  EXPECT_EQ(port_.made.front().credential, "key");
  EXPECT_TRUE(port_.made.front().secret_headers.empty());
}

TEST_F(AbiFetchTest, AFileThatCannotBeUsedIsToldTheLogAlone) {
  use(with_key("s3cret with spaces"));
  EXPECT_EQ(start_with_credential("key"), HEARTH_E_BUSY);
  const std::string path = (files_.path() / "key").native();
  EXPECT_EQ(last_error().find(path), std::string::npos);
  ASSERT_EQ(agent_->told.size(), 1U);
  EXPECT_NE(agent_->told[0].find(path), std::string::npos);
  EXPECT_EQ((last_error() + agent_->told[0]).find("s3cret"), std::string::npos);
}

// ---- the request of an operation ----------------------------------------------------------------

class AbiLedgerFetchTest : public AbiFetchTest {
 protected:
  AbiLedgerFetchTest() { use({}); }
  void begin(durable::Effect effect = durable::Effect::kUnsafe, std::string_view header = "") {
    durable::OperationRequest wanted;
    wanted.kind = "charge";
    wanted.key = "k";
    wanted.effect = effect;
    wanted.can_resume = true;
    wanted.key_header = header;
    begun_ = *ledger().begin(wanted);
  }
  durable::Operations& ledger() { return agent_->work().operations(); }
  hearth_fetch_request request_of_it() const {
    hearth_fetch_request it = request("https://a.example/");
    it.operation = slice(begun_.id);
    return it;
  }
  std::string record() { return *ledger().inspect(begun_.id); }
  bool record_has(std::string_view text) { return record().find(text) != std::string::npos; }
  // The agent is about to be told.
  void tell(const Result<std::string>& outcome, bool is_end, std::uint32_t flags) {
    agent_->remote->telling(outcome, is_end, flags);
  }

  durable::OperationBegun begun_;
};

TEST_F(AbiLedgerFetchTest, ItIsDispatchedWithItsKeyBeforeItLeaves) {
  begin();
  ASSERT_EQ(start(request_of_it()), HEARTH_OK);
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
    agent_->remote.reset();  // the one before was cancelled
    ASSERT_EQ(start(it), HEARTH_OK);
    all.push_back(ledger().answer(begun_.id)->request.fingerprint);
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
  begin();
  ASSERT_EQ(start(request_of_it()), HEARTH_OK);
  tell(fetch_head(201, "https://a.example/", {{"x-request-ID", "req-7"}}), false,
       HEARTH_FETCH_HEAD);
  EXPECT_TRUE(record_has(R"("status":201,"request_id":"req-7","stored_bytes":0)")) << record();
  tell(std::string("half"), false, 0);
  EXPECT_TRUE(record_has(R"("stored_bytes":4,"whole":false)")) << record();
  tell(std::string(), true, 0);
  EXPECT_TRUE(record_has(R"("whole":true)")) << record();
}

TEST_F(AbiLedgerFetchTest, AFailureThatWasNotSentSettlesIt) {
  begin();
  ASSERT_EQ(start(request_of_it()), HEARTH_OK);
  tell(Error{Errc::kUnavailable, "refused"}, true,
       fetch_failure_flags(HEARTH_FETCH_PHASE_CONNECT, false));
  EXPECT_EQ(*ledger().settle(begun_.operation, durable::OperationOutcome::kCutOff, "refused"),
            durable::OperationState::kNotExecuted);
  begin();
  ASSERT_EQ(start(request_of_it()), HEARTH_OK);
  tell(Error{Errc::kUnavailable, "cut"}, true,
       fetch_failure_flags(HEARTH_FETCH_PHASE_HEADERS, true));
  EXPECT_EQ(*ledger().settle(begun_.operation, durable::OperationOutcome::kCutOff, "cut"),
            durable::OperationState::kUnknown);
}

TEST_F(AbiLedgerFetchTest, OneIsInFlightUntilItsEndIsToldOrItIsCancelled) {
  begin(durable::Effect::kRead);
  const auto refused = [&] {
    EXPECT_EQ(start(request_of_it()), HEARTH_E_CONFLICT);
    return last_error().find("in flight") != std::string::npos;
  };
  ASSERT_EQ(start(request_of_it()), HEARTH_OK);
  EXPECT_TRUE(refused());
  tell(fetch_head(200, "", {}), false, HEARTH_FETCH_HEAD);
  tell(std::string("half"), false, 0);
  EXPECT_TRUE(refused());
  EXPECT_EQ(ledger().answer(begun_.id)->body, "half") << "nothing was mixed in";
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
    begin();
    EXPECT_EQ(start(request_of_it()), HEARTH_OK);
    tell(Error{Errc::kUnavailable, "refused"}, true,
         fetch_failure_flags(HEARTH_FETCH_PHASE_CONNECT, false));
  };
  const auto settle = [&] {
    return *ledger().settle(begun_.operation, durable::OperationOutcome::kCutOff, "refused");
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
  const auto settle = [&] {
    return *ledger().settle(begun_.operation, durable::OperationOutcome::kCutOff, "refused");
  };
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

  begin();
  ASSERT_EQ(start(request_of_it()), HEARTH_OK);
  agent_->remote.reset();
  it = request_of_it();
  it.url = slice("ftp://a.example/");
  EXPECT_EQ(start(it), HEARTH_E_CONFLICT) << "it has sent its request";
  EXPECT_EQ(settle(), durable::OperationState::kUnknown);
}

TEST_F(AbiLedgerFetchTest, AnotherRequestThatCannotBeMadeSaysNothingOfTheOneBefore) {
  begin(durable::Effect::kIdempotent);
  ASSERT_EQ(start(request_of_it()), HEARTH_OK);
  agent_->remote.reset();
  port_.refusal = Error{Errc::kInvalidArgument, "odd"};
  EXPECT_EQ(start(request_of_it()), HEARTH_E_INVALID);
  EXPECT_EQ(*ledger().settle(begun_.operation, durable::OperationOutcome::kCutOff, "refused"),
            durable::OperationState::kInterrupted);
  EXPECT_TRUE(record_has(R"("fingerprint")")) << record();
}

TEST_F(AbiLedgerFetchTest, OfAHostThatMakesNoRequestsNoneHasLeft) {
  use({}, false);
  begin();
  EXPECT_EQ(start(request_of_it()), HEARTH_E_UNSUPPORTED);
  EXPECT_EQ(*ledger().settle(begun_.operation, durable::OperationOutcome::kCutOff, "refused"),
            durable::OperationState::kNotExecuted);
}

TEST_F(AbiLedgerFetchTest, TheRestOfAnAnswerIsAskedForByRequestsThatSaySo) {
  begin();
  ASSERT_EQ(start(request_of_it()), HEARTH_OK);
  tell(fetch_head(200, "", {}), false, HEARTH_FETCH_HEAD);
  tell(std::string("one two"), false, 0);
  hearth_fetch_request it = request_of_it();
  it.resume_from = 4;
  EXPECT_EQ(start(it), HEARTH_E_INVALID) << "without the flag";
  it.flags = HEARTH_FETCH_RESUME;
  it.operation = {nullptr, 0};
  EXPECT_EQ(start(it), HEARTH_E_INVALID) << "without the operation";
  agent_->remote.reset();
  it = request_of_it();
  it.flags = HEARTH_FETCH_RESUME;
  it.resume_from = 4;
  ASSERT_EQ(start(it), HEARTH_OK);
  tell(fetch_head(206, "", {}), false, HEARTH_FETCH_HEAD);
  tell(std::string("TWO"), false, 0);
  EXPECT_EQ(ledger().answer(begun_.id)->body, "one TWO");
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
    begin(durable::Effect::kRead);
    ASSERT_EQ(start(request_of_it()), HEARTH_OK);
    tell(fetch_head(200, "", {}), false, HEARTH_FETCH_HEAD);
    tell(std::string("one "), false, 0);
    agent_->remote.reset();
    hearth_fetch_request it = request_of_it();
    it.flags = HEARTH_FETCH_RESUME;
    it.resume_from = 4;
    const std::string headers = std::string(R"([["range",")") + each.range + "\"]]";
    if (*each.range != '\0') it.headers = slice(headers);
    ASSERT_EQ(start(it), HEARTH_OK);
    Headers answered;
    if (*each.content_range != '\0') answered.emplace_back("Content-Range", each.content_range);
    tell(fetch_head(each.status, "", answered), false, HEARTH_FETCH_HEAD);
    tell(std::string("two"), false, 0);
    const auto answer = ledger().answer(begun_.id);
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

TEST(FetchHeadTest, IsJsonWhateverTheOtherSideSends) {
  EXPECT_EQ(fetch_head(200, "https://a.example/", {}),
            R"({"status":200,"url":"https://a.example/","headers":[]})");
  EXPECT_EQ(fetch_head(404, "http://b", {{"X", "a\"b"}, {"Y", "\xff"}}),
            R"({"status":404,"url":"http://b","headers":[["X","a\"b"],["Y",")"
            "\xef\xbf\xbd\"]]}");
}

TEST(CredentialHeaderTest, IsALineOrAToken) {
  const auto of = [](std::string_view text) {
    const auto header = credential_header(text);
    return header ? header->first + "=" + header->second : "refused";
  };
  EXPECT_EQ(of("X-Key: a b\r\n"), "X-Key=a b");
  EXPECT_EQ(of("Authorization: Basic dTpw"), "Authorization=Basic dTpw");
  EXPECT_EQ(of("sk-123\n"), "Authorization=Bearer sk-123");
  EXPECT_EQ(of("a:b"), "Authorization=Bearer a:b") << "a colon alone makes no header";
  for (const std::string_view text :
       {"", "\n", "two words", "X-Key: ", "a\nb", "X: a\nY: b", "Content-Length: 5", "b d: x"})
    EXPECT_EQ(of(text), "refused") << text;
}

}  // namespace
}  // namespace hearth::extensions
