#include "cli/why_text.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace hearth::cli {
namespace {

constexpr std::int64_t kNow = 1'000'000'000;

Json wait(const char* urgency, Json since, Json until, const char* action) {
  return {{"kind", "retry"},
          {"urgency", urgency},
          {"what", "It waits."},
          {"since_ms", since},
          {"until_ms", until},
          {"ends_by", nullptr},
          {"do", action == nullptr ? Json() : Json(action)},
          {"run", action == nullptr ? Json() : Json("hearth stuck")}};
}

Json answer(Json waits, Json not_seen = nullptr) {
  return {{"class", "Counter"},
          {"agent", "a"},
          {"state", "cold"},
          {"waits", std::move(waits)},
          {"not_seen", std::move(not_seen)}};
}

struct TextRow {
  const char* name;
  Json answer;
  const char* text;
};

TEST(WhyTextTest, EachAnswerIsSaidInLines) {
  const TextRow rows[] = {
      {"nothing", answer(Json::array()), "Counter/a is cold, and waits for nothing\n"},
      {"a plan", answer(Json::array({wait("none", nullptr, kNow + 7'200'000, nullptr)})),
       "Counter/a is cold:\n  It waits. It ends in 2 h.\n"},
      {"what is overdue",
       answer(Json::array({wait("long", kNow - 300'000, kNow - 130'000, "reload")})),
       "Counter/a is cold:\n~ It waits. For 5 min. It was due 2 min ago.\n    do: reload\n"
       "    run: hearth stuck --data d\n"},
      {"what needs a person",
       answer(Json::array({wait("person", kNow - 3'000, nullptr, "resolve\nit")})),
       "Counter/a is cold:\n! It waits. For 3 s.\n    do: resolve\\nit\n"
       "    run: hearth stuck --data d\n"},
      {"what was not read", answer(Json::array(), "no loop"),
       "Counter/a is cold:\n  Its work was not read: no loop\n"},
      {"no answer of ours", Json::array(), "/ is , and waits for nothing\n"},
  };
  for (const TextRow& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(why_text(row.answer, kNow, " --data d"), row.text);
  }
  Json dashed = wait("long", nullptr, nullptr, "look");
  dashed["run"] = "hearth evict -- Counter -x";
  EXPECT_EQ(why_text(answer(Json::array({dashed})), kNow, " --data d"),
            "Counter/a is cold:\n~ It waits.\n    do: look\n"
            "    run: hearth evict --data d -- Counter -x\n");
  EXPECT_EQ(
      why_text(answer(Json::array({wait("none", nullptr, nullptr, nullptr)})), kNow, "", true),
      "Counter/a is cold:\n");
}

}  // namespace
}  // namespace hearth::cli
