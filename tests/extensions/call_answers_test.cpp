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
  for (const Errc code : {Errc::kUnavailable, Errc::kClosing, Errc::kCancelled}) {
    answers_.note_begun(call_);
    answers_.write();
    answers_.note_ended(call_, Error{code, "later"});
    answers_.write();
    EXPECT_EQ(look(call_), "new");
  }
}

TEST_F(CallAnswersTest, AnAnswerThatIsTooLargeIsAnErrorTheSecondTime) {
  end(call_, std::string_view(std::string(CallAnswers::kMaxBodyBytes + 1, ' ')));
  EXPECT_TRUE(look(call_).starts_with("ended limit_exceeded: the call has ended"));
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

TEST_F(CallAnswersTest, AsManyAreKeptAsTheSettingsSay) {
  for (const char* key : {"1", "2", "3"}) end({key, "f"}, std::string_view("0"));
  EXPECT_EQ(look(call_), "full");
  EXPECT_EQ(look({"2", "f"}), "ended 0");
  agent_.clock.advance(std::chrono::hours(1));
  EXPECT_EQ(look(call_), "new");
  end(call_, std::string_view(std::string(1000, '1')));
  EXPECT_EQ(look({"other", "f"}), "full") << "bytes count, too";
}

}  // namespace
}  // namespace hearth::extensions
