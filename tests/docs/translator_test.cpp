// The streaming example of plugin-api/README.md, as printed: a stream that is cut is no answer.
#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <string>

#include <translator.inc>

namespace {

using hearth::testing::FetchReply;
using hearth::testing::SentRequest;

std::string word(const std::string& text) {
  return R"(data: {"choices":[{"delta":{"content":")" + text + "\"}}]}\n\n";
}

TEST(TranslatorTest, GivesOnlyAWholeStreamAsTheAnswer) {
  const std::string words = word("two ") + word("words");
  const FetchReply::Failure broken{.phase = HEARTH_FETCH_PHASE_BODY, .sent = true};
  struct Case {
    FetchReply reply;
    bool is_whole;
  };
  for (const auto& [reply, is_whole] :
       {Case{{.body = words + "data: [DONE]\n\n"}, true}, Case{{.body = words}, false},
        Case{{.body = words, .failure = broken}, false},
        Case{{.body = words, .until_close = true}, false}}) {
    hearth::testing::Host host;
    host.on_fetch([reply](const SentRequest&) { return reply; });
    const auto call = host.create<Translator>("a").start("translate", "zwei Worte");
    EXPECT_EQ(call.parts(), (std::vector<hearth::Json>{"two ", "words"}));
    EXPECT_EQ(call.failed(), !is_whole) << reply.body;
  }
}

}  // namespace
