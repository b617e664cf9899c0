// hearth.operations/1, and what a class declares about its kinds.
#include "extensions/operations.hpp"

#include "extensions/durable_calls.hpp"
#include "extensions/fibers.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace hearth::extensions {
namespace {

using namespace testing;

class AbiOperationsTest : public DurableCallsTest {
 protected:
  static hearth_operation_start keyed_operation() {
    hearth_operation_start request = good_operation();
    request.kind = slice("refund");
    request.effect = HEARTH_EFFECT_KEYED;
    request.horizon_ms = 1000;
    return request;
  }
  static hearth_operation_start good_operation() {
    hearth_operation_start request{};
    request.struct_size = sizeof request;
    request.effect = HEARTH_EFFECT_UNSAFE;
    request.kind = slice("charge");
    request.arguments = slice("[5]");
    request.key = slice("order 7");
    return request;
  }
  hearth_status begin(const hearth_operation_start& request) {
    return operations_.begin(host_, kAgent, &request, 77, &begun_);
  }
  hearth_status list(const hearth_operation_filter& filter) {
    return operations_.list(host_, kAgent, &filter, &record_);
  }
  hearth_status settle(std::uint32_t outcome, std::string_view body = "1") {
    return operations_.settle(host_, kAgent, begun_.operation, outcome, slice(body), &state_);
  }
  void expect_settled(std::uint32_t state, std::uint32_t outcome, std::string_view body = "1") {
    EXPECT_EQ(settle(outcome, body), HEARTH_OK);
    EXPECT_EQ(state_, state);
  }
  // Begins one, and returns its id.
  std::string begun(const hearth_operation_start& request) {
    EXPECT_EQ(begin(request), HEARTH_OK) << last_error();
    return id();
  }
  std::string id() const { return std::string(view(begun_.id)); }

  const hearth_operations_v1& operations_ = extension<hearth_operations_v1>(HEARTH_EXT_OPERATIONS);
  hearth_operation_begun begun_{};
  std::uint32_t state_ = 0;
  hearth_bytes record_{};
  hearth_bytes body_{};
};

TEST_F(AbiOperationsTest, ItsFunctionsKeepTheCommonRules) {
  const auto request = good_operation();
  hearth_operation_filter filter{};
  filter.struct_size = sizeof filter;
  const DurableCall functions[] = {
      durable_call("begin", true, operations_.begin, &request, 1U, &begun_),
      durable_call("settle", true, operations_.settle, 1U, HEARTH_OUTCOME_COMPLETED, slice("1"),
                   &state_),
      durable_call("inspect", false, operations_.inspect, slice("i"), &record_),
      durable_call("list", false, operations_.list, &filter, &record_),
      durable_call("path", false, operations_.path, slice("i"), &record_),
      durable_call("drop_answer", true, operations_.drop_answer, slice("i")),
      durable_call("set_cost", true, operations_.set_cost, slice("i"), 1U),
      durable_call("describe", false, operations_.describe, slice("i"), slice("n"), slice("{}")),
      durable_call("answer", false, operations_.answer, slice("i"), &record_, &body_),
      durable_call("resolve", true, operations_.resolve, slice("i"), HEARTH_OUTCOME_COMPLETED,
                   kNothing, slice("note"), slice("ada")),
  };
  expect_common_rules(functions);
  expect_io_error(functions[0]);
}

TEST_F(AbiOperationsTest, WhatIsToBeRunWaitsForTheTurnsDurability) {
  ASSERT_EQ(begin(good_operation()), HEARTH_OK);
  EXPECT_EQ(begun_.decision, HEARTH_OPERATION_RUN);
  EXPECT_EQ(begun_.attempt, 1U);
  EXPECT_EQ(begun_.wait, 99U);
  EXPECT_EQ(begun_.id.len, 64U);
  EXPECT_EQ(agent_.told, Lines{"submit 3 8 bytes 77"}) << "HEARTH_OP_DRAIN, with the token";
  const std::string its_id = id();
  EXPECT_EQ(settle(HEARTH_OUTCOME_COMPLETED, R"({"receipt":1})"), HEARTH_OK);
  EXPECT_EQ(state_, static_cast<std::uint32_t>(HEARTH_OPERATION_IS_COMPLETED));
  EXPECT_EQ(settle(HEARTH_OUTCOME_COMPLETED), HEARTH_E_GONE);
  ASSERT_EQ(begin(good_operation()), HEARTH_OK);
  EXPECT_EQ(begun_.decision, HEARTH_OPERATION_COMPLETED);
  EXPECT_EQ(id(), its_id);
  EXPECT_EQ(view(begun_.result), R"({"receipt":1})");
  EXPECT_EQ(agent_.told.size(), 1U) << "nothing waits for an answer of the ledger";
}

TEST_F(AbiOperationsTest, OneThatCannotWaitWasNotExecuted) {
  answer(Errc::kLimitExceeded, "too many operations in flight");
  EXPECT_EQ(begin(good_operation()), HEARTH_E_LIMIT);
  agent_.answer.reset();
  ASSERT_EQ(begin(good_operation()), HEARTH_OK);
  EXPECT_EQ(begun_.decision, HEARTH_OPERATION_RUN);
  EXPECT_EQ(begun_.attempt, 2U);
}

TEST_F(AbiOperationsTest, AnotherRunThatCannotWaitMayHaveBeenExecutedBefore) {
  for (const hearth_operation_start& request :
       {with(good_operation(), &hearth_operation_start::can_resume, 1),
        with(keyed_operation(), &hearth_operation_start::key, slice("order 8"))}) {
    const std::string its_id = begun(request);
    durable::Operations& ledger = agent_.work().operations();
    durable::OperationSending sending{.id = its_id, .fingerprint = "f"};
    EXPECT_TRUE(ledger.requests().dispatched(sending));
    ledger.requests().answered(its_id, 200, std::nullopt, R"({"status":200})");
    expect_settled(HEARTH_OPERATION_IS_INTERRUPTED, HEARTH_OUTCOME_CUT_OFF, "lost");

    answer(Errc::kLimitExceeded, "too many operations in flight");
    EXPECT_EQ(begin(request), HEARTH_E_LIMIT);
    agent_.answer.reset();
    ASSERT_EQ(operations_.inspect(host_, kAgent, slice(its_id), &record_), HEARTH_OK);
    EXPECT_EQ(text_in(record_, "state"), "interrupted");
    EXPECT_TRUE(has(record_, R"("fingerprint":"f")")) << "what it has sent stays known";
    ASSERT_EQ(begin(request), HEARTH_OK);
    EXPECT_EQ(begun_.decision, HEARTH_OPERATION_RUN);
    sending.fingerprint = "another";
    EXPECT_EQ(ledger.requests().may_send(sending).error().code, Errc::kConflict);
    ASSERT_EQ(settle(HEARTH_OUTCOME_COMPLETED), HEARTH_OK);
  }
}

TEST_F(AbiOperationsTest, OneThatActsByItsRequestWasNotExecutedWithoutOne) {
  const auto request = with(good_operation(), &hearth_operation_start::acts_by_request, 1);
  for (const std::uint32_t outcome : {HEARTH_OUTCOME_CUT_OFF, HEARTH_OUTCOME_FAILED}) {
    ASSERT_EQ(begin(request), HEARTH_OK);
    expect_settled(HEARTH_OPERATION_IS_NOT_EXECUTED, outcome, "lost");
  }
  const std::string its_id = begun(request);
  EXPECT_EQ(settle(HEARTH_OUTCOME_COMPLETED), HEARTH_E_CONFLICT);
  EXPECT_NE(agent_.last_error.find(".op"), std::string::npos) << agent_.last_error;
  EXPECT_EQ(operations_.drop_answer(host_, kAgent, slice(its_id)), HEARTH_E_NOT_FOUND) << "over";
}

TEST_F(AbiOperationsTest, OneThatIsCancelledWhileItWaitsHasNotBegun) {
  const auto cancel = [&] { return host_->cancel(host_, kAgent, begun_.wait); };
  ASSERT_EQ(begin(good_operation()), HEARTH_OK);
  ASSERT_EQ(settle(HEARTH_OUTCOME_NOT_EXECUTED), HEARTH_OK);
  ASSERT_EQ(begin(good_operation()), HEARTH_OK);
  EXPECT_EQ(begun_.attempt, 2U);
  ASSERT_EQ(cancel(), HEARTH_OK);
  expect_settled(HEARTH_OPERATION_IS_NOT_EXECUTED, HEARTH_OUTCOME_CUT_OFF, "cancelled");

  ASSERT_EQ(begin(good_operation()), HEARTH_OK);
  agent_.answer = Error{Errc::kNotFound, "its result was told"};
  EXPECT_EQ(cancel(), HEARTH_E_GONE);
  agent_.answer.reset();
  expect_settled(HEARTH_OPERATION_IS_UNKNOWN, HEARTH_OUTCOME_CUT_OFF, "cancelled");
}

TEST_F(AbiOperationsTest, RequestsAreChecked) {
  using Start = hearth_operation_start;
  const auto refused = [&](const char* what, auto field, auto value,
                           hearth_status status = HEARTH_E_INVALID) {
    EXPECT_EQ(begin(with(good_operation(), field, value)), status) << what;
  };
  refused("size", &Start::struct_size, 0U);
  refused("effect 0", &Start::effect, 0U);
  refused("effect 6", &Start::effect, 6U);
  refused("effect of another kind", &Start::kind, slice("refund"));
  refused("no such kind", &Start::kind, slice("chrge"));
  refused("flag", &Start::can_probe, 2U);
  refused("another flag", &Start::can_resume, 2U);
  refused("a third flag", &Start::acts_by_request, 2U);
  refused("reserved", &Start::reserved, 1U);
  refused("header", &Start::key_header, slice("a b"));
  refused("horizon", &Start::horizon_ms, 1U);
  refused("neither key nor fiber", &Start::key, kNothing);
  refused("no such fiber", &Start::fiber, 12U, HEARTH_E_GONE);
  refused("no such id", &Start::id, slice("x"), HEARTH_E_NOT_FOUND);
  for (const hearth_bytes bad : kBadSlices) {
    refused("kind", &Start::kind, bad);
    refused("arguments", &Start::arguments, bad);
    refused("key", &Start::key, bad);
    refused("id", &Start::id, bad);
    refused("key header", &Start::key_header, bad);
  }
  EXPECT_EQ(begin(with(keyed_operation(), &hearth_operation_start::horizon_ms, 0)),
            HEARTH_E_INVALID);
  const auto request = good_operation();
  EXPECT_EQ(operations_.begin(host_, kAgent, &request, 1, nullptr), HEARTH_E_INVALID);
  EXPECT_EQ(operations_.settle(host_, kAgent, 1, 0, kNothing, nullptr), HEARTH_E_INVALID);
  EXPECT_EQ(operations_.settle(host_, kAgent, 1, 6, kNothing, nullptr), HEARTH_E_INVALID);
  hearth_operation_filter filter{};
  filter.struct_size = sizeof filter;
  EXPECT_EQ(list(with(filter, &hearth_operation_filter::states, 32)), HEARTH_E_INVALID);
  EXPECT_EQ(list(with(filter, &hearth_operation_filter::limit, 101)), HEARTH_E_INVALID);
}

TEST_F(AbiOperationsTest, AKindThatIsNotListedIsSaid) {
  const auto request = with(good_operation(), &hearth_operation_start::kind, slice("chrge"));
  EXPECT_EQ(begin(request), HEARTH_E_INVALID);
  EXPECT_NE(agent_.last_error.find(R"(lists no operation "chrge")"), std::string::npos)
      << agent_.last_error;
  agent_.kinds["chrge"] = durable::Effect::kRead;
  EXPECT_EQ(begin(request), HEARTH_E_INVALID);
  EXPECT_NE(agent_.last_error.find("another effect"), std::string::npos) << agent_.last_error;
  agent_.kinds["chrge"] = durable::Effect::kUnsafe;
  EXPECT_EQ(begin(request), HEARTH_OK);
}

TEST_F(AbiOperationsTest, AnUnknownOneIsLoggedToldAndResolved) {
  Client& client = agent_.add_client(5, "ada");
  agent_.add_client(6, "no protocol").flags = Client::kNoProtocol;
  const std::string its_id = begun(good_operation());
  expect_settled(HEARTH_OPERATION_IS_UNKNOWN, HEARTH_OUTCOME_CUT_OFF, "lost");
  const std::string text = "operation " + its_id + " may have executed; verify before retrying";
  EXPECT_TRUE(agent_.work_log().contains(text));

  EXPECT_TRUE(agent_.work().due());
  const auto work = agent_.work().dispatch().next(false).value();
  EXPECT_EQ(work.kind, EventKind::kOperationUnknown);
  EXPECT_EQ(work.name, "charge");
  EXPECT_NE(work.body.find(R"("state":"unknown")"), std::string::npos);
  tell_clients_of_unknown(agent_.clients(), work);
  EXPECT_EQ(agent_.told.back(), "send 0 {\"type\":\"cf_agent_operation_unknown\",\"operation\":\"" +
                                    its_id + "\",\"kind\":\"charge\",\"text\":\"" + text +
                                    "\"} to 5");
  const Lines standing = {"{\"type\":\"cf_agent_operation_unknown\",\"operation\":\"" + its_id +
                          "\",\"kind\":\"charge\",\"text\":\"" + text + "\"}"};
  EXPECT_EQ(missed_frames(agent_.work()), standing) << "for who comes later";
  client.closing = true;
  agent_.work().dispatch().ended(work, Error{Errc::kUnsupported, "no such hook"});
  EXPECT_FALSE(agent_.work().dispatch().next(false));

  const auto resolve = [&](std::uint32_t outcome) {
    return operations_.resolve(host_, kAgent, slice(its_id), outcome, slice("7"), slice("looked"),
                               slice("ada"));
  };
  agent_.told.clear();
  EXPECT_EQ(resolve(HEARTH_OUTCOME_CUT_OFF), HEARTH_E_INVALID);
  EXPECT_EQ(operations_.resolve(host_, kAgent, slice(its_id), HEARTH_OUTCOME_COMPLETED, slice("7"),
                                slice("looked"), slice("administrator")),
            HEARTH_E_INVALID)
      << "an agent is none";
  EXPECT_EQ(agent_.told, Lines{}) << "nothing was resolved";
  agent_.answer = Error{Errc::kLimitExceeded, "too many entries"};
  EXPECT_EQ(resolve(HEARTH_OUTCOME_COMPLETED), HEARTH_E_LIMIT) << "nothing without its entry";
  agent_.answer.reset();
  agent_.told.clear();
  EXPECT_EQ(resolve(HEARTH_OUTCOME_COMPLETED), HEARTH_OK);
  EXPECT_EQ(resolve(HEARTH_OUTCOME_COMPLETED), HEARTH_E_CONFLICT);
  EXPECT_EQ(agent_.told, Lines{R"(audit operation.resolved {"operation":")" + its_id +
                               R"(","outcome":"completed","actor":"ada","note":"looked"})"});
  EXPECT_EQ(missed_frames(agent_.work()), Lines{});
  EXPECT_TRUE(agent_.work_log().contains("completed, says ada"));
  ASSERT_EQ(operations_.inspect(host_, kAgent, slice(its_id), &record_), HEARTH_OK);
  EXPECT_EQ(text_in(record_, "settled_by"), "ada");
  EXPECT_TRUE(has(record_, R"("result":7)"));
}

TEST_F(AbiOperationsTest, AKeyedOneBehindItsHorizonIsTold) {
  ASSERT_EQ(begin(keyed_operation()), HEARTH_OK);
  expect_settled(HEARTH_OPERATION_IS_INTERRUPTED, HEARTH_OUTCOME_CUT_OFF, "lost");
  extensions::DurableWork& work = agent_.work();
  EXPECT_FALSE(work.due());
  EXPECT_EQ(work.next_look_ms(), unix_millis(agent_.clock.wall_now()) + 1000);
  EXPECT_EQ(work.wake().at_ms, work.next_look_ms());
  agent_.clock.advance(std::chrono::milliseconds(1000));
  EXPECT_TRUE(work.due());
  const auto told = work.dispatch().next(false).value();
  EXPECT_EQ(told.kind, EventKind::kOperationUnknown);
  EXPECT_EQ(told.name, "refund");
}

TEST_F(AbiOperationsTest, WhatIsStoredOfAnAnswerIsLent) {
  hearth_operation_start request = good_operation();
  request.can_resume = 1;
  request.key_header = slice("X-Key");
  const std::string its_id = begun(request);
  const auto answer = [&] {
    return operations_.answer(host_, kAgent, slice(its_id), &record_, &body_);
  };
  EXPECT_EQ(answer(), HEARTH_E_NOT_FOUND) << "it has sent nothing";
  durable::Operations& ledger = agent_.work().operations();
  const durable::OperationSending sending{.id = its_id, .fingerprint = "f"};
  EXPECT_EQ(*ledger.requests().may_send(sending), "X-Key");
  EXPECT_TRUE(ledger.requests().dispatched(sending));
  ASSERT_EQ(answer(), HEARTH_OK);
  EXPECT_EQ(view(record_), R"({"can_resume":false,"whole":false,"head":null})");
  EXPECT_EQ(view(body_), "");
  ledger.requests().answered(its_id, 200, std::nullopt, R"({"status":200})");
  ledger.requests().received(its_id, "half \xff");
  ASSERT_EQ(answer(), HEARTH_OK);
  EXPECT_EQ(view(record_), R"({"can_resume":true,"whole":false,"head":{"status":200}})");
  EXPECT_EQ(view(body_), "half \xff");
  EXPECT_EQ(operations_.answer(host_, kAgent, slice(its_id), nullptr, &body_), HEARTH_E_INVALID);
  EXPECT_EQ(operations_.answer(host_, kAgent, kBadSlices[0], &record_, &body_), HEARTH_E_INVALID);
}

TEST_F(AbiOperationsTest, OneThatRunsHasAFileOfItsOwn) {
  const std::string its_id = begun(good_operation());
  ASSERT_EQ(operations_.path(host_, kAgent, slice(its_id), &record_), HEARTH_OK);
  EXPECT_TRUE(view(record_).ends_with(".files/" + its_id)) << view(record_);
  EXPECT_EQ(operations_.path(host_, kAgent, slice("../a"), &record_), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(operations_.path(host_, kAgent, kBadSlices[0], &record_), HEARTH_E_INVALID);
}

TEST_F(AbiOperationsTest, ACheckpointIsBehindWhatWasUsed) {
  const auto& fibers = extension<hearth_fibers_v1>(HEARTH_EXT_FIBERS);
  hearth_fiber_start start{};
  start.struct_size = sizeof start;
  start.name = slice("work");
  hearth_fiber fiber = 0;
  ASSERT_EQ(fibers.start(host_, kAgent, &start, &fiber, nullptr), HEARTH_OK);
  hearth_operation_start request = good_operation();
  request.key = kNothing;
  request.fiber = fiber;
  const std::string first = begun(request);
  ASSERT_EQ(settle(HEARTH_OUTCOME_COMPLETED), HEARTH_OK);
  ASSERT_EQ(fibers.stash(host_, kAgent, fiber, slice("1")), HEARTH_OK);
  storage::Statement behind(agent_.database().connection(),
                            "SELECT id FROM cf_agents_operations WHERE behind = 1");
  storage::Rows rows = behind.query();
  ASSERT_TRUE(rows.next());
  EXPECT_EQ(rows.text(0), first);
}

// ---- kinds --------------------------------------------------------------------------------------

hearth_operation_kind good_kind() {
  return {slice("charge"), HEARTH_EFFECT_KEYED, 0, slice("a"), slice("b"), slice("c"), slice("d")};
}

std::string problem_with(std::vector<hearth_operation_kind> kinds) {
  const hearth_operation_kinds_v1 table = {sizeof table, static_cast<std::uint32_t>(kinds.size()),
                                           kinds.data()};
  return problem_with_operations(&table);
}

TEST(OperationKindsTest, TheyAreFoundWithTheirEffects) {
  const hearth_operation_kind kind = good_kind();
  hearth_operation_kinds_v1 table = {sizeof table, 1, &kind};
  const OperationKinds kinds = operation_kinds(&table);
  EXPECT_EQ(effect_in(kinds, "charge"), durable::Effect::kKeyed);
  EXPECT_EQ(effect_in(kinds, "chrge"), std::nullopt);
  EXPECT_TRUE(operation_kinds(nullptr).empty());
  table.struct_size = 0;
  EXPECT_TRUE(operation_kinds(&table).empty());
}

TEST(OperationKindsTest, EachKindHasItsClassAndItsFourAnswers) {
  EXPECT_EQ(problem_with_operations(nullptr), "");
  EXPECT_EQ(problem_with({}), "");
  hearth_operation_kind other = good_kind();
  other.name = slice("refund");
  EXPECT_EQ(problem_with({good_kind(), other}), "");
  const auto broken = [](auto change) {
    hearth_operation_kind kind = good_kind();
    change(kind);
    return problem_with({kind});
  };
  const std::string too_long(HEARTH_OPERATION_ANSWER_MAX + 1, 'x');
  struct Case {
    std::string problem;
    std::string says;
  };
  for (const auto& [problem, says] : {
           Case{broken([](auto& each) { each.name = kNothing; }), "1 to 64 bytes"},
           Case{broken([](auto& each) { each.effect = 0; }), "without a class of effect"},
           Case{broken([](auto& each) { each.effect = 6; }), "without a class of effect"},
           Case{broken([](auto& each) { each.same = kNothing; }), "the same operation?"},
           Case{broken([](auto& each) { each.interrupted = kNothing; }), "what does recovery do"},
           Case{broken([](auto& each) { each.upstream = kNothing; }), "the other side do"},
           Case{broken([](auto& each) { each.unknown = kNothing; }), "we do not know"},
           Case{broken([&](auto& each) { each.unknown = slice(too_long); }), "we do not know"},
           Case{broken([](auto& each) { each.unknown = slice(kNotUtf8); }), "we do not know"},
           Case{problem_with({good_kind(), good_kind()}), "twice"},
       }) {
    EXPECT_NE(problem.find(says), std::string::npos) << problem << " / " << says;
  }
  hearth_operation_kinds_v1 table = {0, 0, nullptr};
  EXPECT_NE(problem_with_operations(&table).find("struct_size"), std::string::npos);
  table = {sizeof table, 1, nullptr};
  EXPECT_NE(problem_with_operations(&table), "");
  table.count = HEARTH_OPERATION_KINDS_MAX + 1;
  EXPECT_NE(problem_with_operations(&table).find("more than"), std::string::npos);
}

}  // namespace
}  // namespace hearth::extensions
