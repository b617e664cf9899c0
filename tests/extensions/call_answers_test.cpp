#include "extensions/call_answers.hpp"

#include "extensions/test_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

namespace hearth::extensions {
namespace {

using hearth::testing::TestAgent;
using Verdict = CallAnswers::Verdict;

class CallAnswersTest : public ::testing::Test {
 protected:
  static ClassSettings settings() {
    ClassSettings settings;
    settings.answers = {.keep = std::chrono::hours(1), .max_answers = 3, .max_total_bytes = 1000};
    return settings;
  }

  void end(const CallKey& call, const Result<std::string_view>& outcome) {
    answers_.note_begun(call);
    answers_.note_ended(call, outcome);
    EXPECT_TRUE(answers_.has_unwritten());
    answers_.write();
    agent_.commit_now();
  }
  // "new", "ended 5", "ended code: text" ...
  std::string look(const CallKey& call) {
    const auto [verdict, outcome] = answers_.look(call);
    switch (verdict) {
      case Verdict::kNew: return "new";
      case Verdict::kCutOff: return "cut off";
      case Verdict::kAnother: return "another";
      case Verdict::kFull: return "full";
      case Verdict::kEnded: break;
    }
    if (outcome.has_value()) return "ended " + *outcome;
    return "ended " + std::string(to_string(outcome.error().code)) + ": " + outcome.error().message;
  }

  TestAgent agent_{1, settings()};
  CallAnswers& answers_ = agent_.of<CallAnswers>();
  const CallKey call_{"k", "f"};
};

TEST_F(CallAnswersTest, AValueAndAnErrorAreGivenAgain) {
  EXPECT_EQ(look(call_), "new");
  EXPECT_FALSE(agent_.has_stored()) << "looking writes nothing";
  end(call_, std::string_view("5"));
  EXPECT_EQ(look(call_), "ended 5");
  EXPECT_EQ(look({"k", "g"}), "another");
  end({"e", "f"}, Error{Errc::kNotFound, "no room"});
  EXPECT_EQ(look({"e", "f"}), "ended not_found: no room");
}

TEST_F(CallAnswersTest, ACallThatHasBegunAndNotEndedIsKnown) {
  answers_.note_begun(call_);
  EXPECT_FALSE(answers_.write()) << "no end was among it";
  EXPECT_EQ(look(call_), "cut off");
  answers_.note_ended(call_, std::string_view());
  EXPECT_TRUE(answers_.write());
  EXPECT_EQ(look(call_), "ended ");
}

TEST_F(CallAnswersTest, AnErrorThatAsksForAnotherTryIsNotKept) {
  for (int number = 1; number <= static_cast<int>(Errc::kTooLarge); ++number) {
    const auto code = static_cast<Errc>(number);
    const CallKey call{std::to_string(number), "f"};
    answers_.note_begun(call);
    answers_.write();
    answers_.note_ended(call, Error{code, "why"});
    answers_.write();
    const std::string kept = "ended " + std::string(to_string(code)) + ": why";
    EXPECT_EQ(look(call), CallAnswers::keeps(code) ? kept : "new");
  }
}

TEST_F(CallAnswersTest, AnAnswerThatIsTooLargeIsAnErrorTheSecondTime) {
  end(call_, std::string_view(std::string(CallAnswers::kMaxBodyBytes + 1, ' ')));
  EXPECT_TRUE(look(call_).starts_with("ended conflict: the call has ended")) << look(call_);
}

TEST_F(CallAnswersTest, AnswersExpireAndAreRemovedAsOthersCome) {
  end(call_, std::string_view("5"));
  agent_.clock.advance(std::chrono::hours(1));
  EXPECT_EQ(look(call_), "new");
  end({"l", "f"}, std::string_view("6"));
  storage::Statement count(agent_.database().connection(),
                           "SELECT count(*) FROM cf_agents_answers");
  storage::Rows rows = count.query();
  ASSERT_TRUE(rows.next());
  EXPECT_EQ(rows.integer(0), 1);
}

TEST_F(CallAnswersTest, PastALimitTheOldestAnswersGo) {
  for (const char* key : {"1", "2", "3"}) end({key, "f"}, std::string_view("0"));
  EXPECT_EQ(look(call_), "new") << "a full store refuses nobody";
  end(call_, std::string_view("5"));
  EXPECT_EQ(look({"1", "f"}), "new");
  for (const char* key : {"2", "3"}) EXPECT_EQ(look({key, "f"}), "ended 0");
  EXPECT_EQ(look(call_), "ended 5");
  agent_.clock.set_wall(agent_.clock.wall_now() - std::chrono::minutes(30));
  end({"earlier", "f"}, std::string_view("6"));
  EXPECT_EQ(look({"2", "f"}), "new") << "the oldest, whatever the wall clock says";
  EXPECT_EQ(look({"earlier", "f"}), "ended 6");
  end({"large", "f"}, std::string_view(std::string(990, '1')));
  EXPECT_EQ(look({"earlier", "f"}), "new") << "bytes count, too";
  EXPECT_TRUE(look({"large", "f"}).starts_with("ended 1"));
}

TEST_F(CallAnswersTest, NothingIsKeptForLongerIfTheClockWasAhead) {
  const auto right = agent_.clock.wall_now();
  agent_.clock.set_wall(right + std::chrono::years(1));
  for (const char* key : {"1", "2", "3"}) answers_.note_begun({key, "f"});
  answers_.write();
  agent_.clock.set_wall(right);
  CallAnswers next(agent_);
  EXPECT_EQ(next.look(call_).verdict, CallAnswers::Verdict::kFull);
  agent_.clock.advance(std::chrono::hours(1));
  EXPECT_EQ(next.look(call_).verdict, CallAnswers::Verdict::kNew);
}

TEST_F(CallAnswersTest, ACallWhoseEndIsNotKnownStaysUntilItExpires) {
  for (const char* key : {"1", "2", "3"}) answers_.note_begun({key, "f"});
  answers_.write();
  EXPECT_EQ(look(call_), "full");
  answers_.note_ended({"2", "f"}, std::string_view("0"));
  EXPECT_EQ(look(call_), "new");
  end(call_, std::string_view("5"));
  EXPECT_EQ(look({"2", "f"}), "new");
  for (const char* key : {"1", "3"}) EXPECT_EQ(look({key, "f"}), "cut off");
  agent_.clock.advance(std::chrono::hours(1));
  EXPECT_EQ(look({"1", "f"}), "new");
}

TEST_F(CallAnswersTest, WhatIsStoredAlreadyCounts) {
  for (const char* key : {"1", "2", "3"}) end({key, "f"}, std::string_view("0"));
  CallAnswers later(agent_);  // of the next instance
  later.note_begun(call_);
  later.note_ended(call_, std::string_view("5"));
  later.write();
  EXPECT_EQ(look({"1", "f"}), "new");
  EXPECT_EQ(look({"2", "f"}), "ended 0");
}

}  // namespace
}  // namespace hearth::extensions
