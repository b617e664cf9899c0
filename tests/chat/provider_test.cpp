// Recorded answers in tables: <provider>.json has the events, and the chunks that they become.
#include "recordings.hpp"
#include "rows.hpp"

#include <hearth/chat/provider.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace hearth::chat {
namespace {

struct Recording {
  std::string provider;
  Json row;

  [[nodiscard]] std::string name() const { return provider + "_" + row["name"].get<std::string>(); }
};

// Read by gtest.
// NOLINTNEXTLINE(readability-identifier-naming): gtest's own hook
void PrintTo(const Recording& recording, std::ostream* out) {
  *out << recording.name();
}

std::vector<Recording> recordings() {
  std::vector<Recording> all;
  for (const char* name : kProviders)
    for (const Json& row : read_table(name)) all.push_back({name, row});
  return all;
}

// What an answer has become, in the form of the tables.
Json outcome(const ModelAnswer& answer, const Chunks& chunks) {
  Json out{{"chunks", chunks}, {"finish", answer.finish_reason()}};
  out["usage"] = answer.usage();
  for (auto& [name, count] : out["usage"].items())
    if (!count.is_null()) out["used"][name] = count;
  out.erase("usage");
  if (answer.failure()) {
    out["failure"] =
        std::string(failure_name(answer.failure()->kind)) + ": " + answer.failure()->text;
  }
  for (const AskedCall& call : answer.calls())
    out["calls"].push_back({call.id, call.tool, call.input, call.error});
  if (answer.is_paused()) out["paused"] = true;
  out["has_content"] = answer.has_content();
  return out;
}

class RecordingTest : public ::testing::TestWithParam<Recording> {
 protected:
  RecordingTest() : provider_(make_provider(GetParam().provider)) {}

  // The chunks of each line, and those of the end.
  std::vector<Chunks> read_all(ModelAnswer& answer) const {
    std::vector<Chunks> chunks;
    for (const Json& line : lines_) {
      read_line(*provider_, line, answer);
      chunks.push_back(answer.take());
    }
    answer.end();
    chunks.push_back(answer.take());
    return chunks;
  }
  static void append(Chunks& all, const Chunks& more) {
    all.insert(all.end(), more.begin(), more.end());
  }
  static Chunks joined_from(const std::vector<Chunks>& lines, std::size_t first) {
    Chunks all;
    for (std::size_t i = first; i < lines.size(); ++i) append(all, lines[i]);
    return all;
  }

  std::unique_ptr<Provider> provider_;
  const Json lines_ = GetParam().row["events"];
};

TEST_P(RecordingTest, C33_C34_C39_BecomesItsChunks) {
  ModelAnswer answer("a1");
  const Json got = outcome(answer, joined_from(read_all(answer), 0));
  const Json now = outcome(answer, got["chunks"].get<Chunks>());  // after the end
  Json expected = GetParam().row;
  expected.erase("name");
  expected.erase("events");
  EXPECT_EQ(now, expected);
}

TEST_P(RecordingTest, C38_EachPrefixReadAgainGivesTheSameWhole) {
  ModelAnswer whole("a1");
  const std::vector<Chunks> chunks = read_all(whole);
  for (std::size_t stored = 0; stored <= lines_.size(); ++stored) {
    ModelAnswer again("a1");
    for (std::size_t i = 0; i < stored; ++i) read_line(*provider_, lines_[i], again);
    (void)again.take();  // the log has these
    Chunks rest;
    for (std::size_t i = stored; i < lines_.size(); ++i) {
      read_line(*provider_, lines_[i], again);
      append(rest, again.take());
    }
    again.end();
    append(rest, again.take());
    EXPECT_EQ(rest, joined_from(chunks, stored)) << "after " << stored << " events";
    EXPECT_EQ(outcome(again, {}), outcome(whole, {}));
  }
}

TEST_P(RecordingTest, IsOneMessageHoweverManyEventsComeInOneRead) {
  ModelAnswer slow("a1");
  Shown shown_slow;
  shown_slow.take(joined_from(read_all(slow), 0));
  ModelAnswer fast("a1");
  for (const Json& line : lines_) read_line(*provider_, line, fast);
  fast.end();
  const Chunks chunks = fast.take();
  Shown shown_fast;
  shown_fast.take(chunks);
  EXPECT_EQ(shown_fast.message(), shown_slow.message());
  const auto same_part = [](const Json& a, const Json& b) {
    return a["type"].get<std::string>().ends_with("-delta") && a["type"] == b["type"] &&
           a.value("id", Json()) == b.value("id", Json()) &&
           a.value("toolCallId", Json()) == b.value("toolCallId", Json());
  };
  EXPECT_EQ(std::adjacent_find(chunks.begin(), chunks.end(), same_part), chunks.end())
      << "adjacent deltas of one part are one chunk";
}

TEST_P(RecordingTest, C33_MayBeCutAtAnyByteAndHaveAnyLineEnd) {
  ModelAnswer whole("a1");
  const Chunks expected = joined_from(read_all(whole), 0);
  for (const std::string line_end : {"\n", "\r\n", "\r"}) {
    ModelAnswer answer("a1");
    Chunks chunks;
    SseParser parser;
    const auto read_bytes = [&](const std::string& bytes) {
      for (const char byte : bytes) {
        parser.feed({&byte, 1});
        while (const auto event = parser.take()) provider_->read(*event, answer);
        append(chunks, answer.take());
      }
    };
    for (const Json& line : lines_) {
      if (line.contains("whole")) {
        read_line(*provider_, line, answer);
      } else {
        const std::string data = line.is_string() ? line.get<std::string>() : to_text(line);
        read_bytes(": keep-alive" + line_end + "event: any" + line_end + "data:" + data + line_end +
                   line_end + ":");
        read_bytes(line_end);
      }
      append(chunks, answer.take());
    }
    answer.end();
    append(chunks, answer.take());
    EXPECT_EQ(chunks, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Providers, RecordingTest, ::testing::ValuesIn(recordings()),
                         [](const auto& info) { return info.param.name(); });

// ---- after a cut

// The events of an answer of one text, in pieces.
Json text_events(std::string_view provider, const std::vector<std::string>& pieces) {
  Json events = Json::array();
  std::int64_t number = 0;
  for (const std::string& piece : pieces) {
    if (provider == "openai_responses") {
      events.push_back({{"type", "response.output_text.delta"},
                        {"sequence_number", number++},
                        {"output_index", 0},
                        {"content_index", 0},
                        {"delta", piece}});
    } else if (provider == "chat_completions") {
      events.push_back(
          {{"choices", Json::array({{{"index", 0}, {"delta", {{"content", piece}}}}})}});
    } else {
      events.push_back({{"type", "content_block_delta"},
                        {"index", 0},
                        {"delta", {{"type", "text_delta"}, {"text", piece}}}});
    }
  }
  if (provider == "openai_responses") {
    events.push_back({{"type", "response.completed"},
                      {"sequence_number", number},
                      {"response", {{"id", "r"}, {"status", "completed"}}}});
  } else if (provider == "chat_completions") {
    events.push_back({{"choices", Json::array({{{"index", 0}, {"finish_reason", "stop"}}})}});
  } else {
    events.push_back({{"type", "message_delta"}, {"delta", {{"stop_reason", "end_turn"}}}});
    events.push_back({{"type", "message_stop"}});
  }
  return events;
}

TEST(ProviderCutTest, C37_TheNextCallGoesOnInTheSamePart) {
  const std::vector<std::string> pieces = {"Once ", "upon ", "a ", "time"};
  for (const char* name : kProviders) {
    const auto provider = make_provider(name);
    for (std::size_t cut = 1; cut <= pieces.size(); ++cut) {
      SCOPED_TRACE(name + std::string(", cut behind piece ") + std::to_string(cut));
      const auto middle = pieces.begin() + static_cast<std::ptrdiff_t>(cut);
      Shown shown;
      ModelAnswer first("a1");
      const Json begin = text_events(name, {pieces.begin(), middle});
      for (std::size_t i = 0; i < cut; ++i) read_line(*provider, begin[i], first);
      first.end();
      shown.take(first.take());
      ASSERT_EQ(first.failure()->kind, FailureKind::kCut);
      EXPECT_TRUE(first.has_content());
      shown.take(closing_chunks(shown.message(), Closing::kContinuation));

      ModelAnswer second("a2", shown.open_text());
      for (const Json& line : text_events(name, {middle, pieces.end()}))
        read_line(*provider, line, second);
      second.end();
      shown.take(second.take());
      EXPECT_EQ(shown.text(), "[Once upon a time]");
      EXPECT_TRUE(second.is_whole());
      EXPECT_EQ(shown.open_text(), "");
    }
  }
}

TEST(ProviderCutTest, C37_TextGoesOnInItsPartAlsoIfTheModelThinksFirst) {
  const ChatCompletions provider;
  Shown shown;
  shown.take(Chunks{json(R"({"type":"start-step"})"), json(R"({"type":"text-start","id":"t4"})"),
                    json(R"({"type":"text-delta","id":"t4","delta":"Once "})")});
  ModelAnswer answer("a2", shown.open_text());
  const Json lines = json(R"([{"choices":[{"delta":{"reasoning":"Go on."}}]},
    {"choices":[{"delta":{"content":"upon a time"}}]},
    {"choices":[{"delta":{"content":""},"finish_reason":"stop"}]}, "[DONE]"])");
  for (const Json& line : lines) read_line(provider, line, answer);
  shown.take(answer.take());
  EXPECT_EQ(shown.text(), "[Once upon a time]");
}

TEST(ProviderCutTest, CallsAfterACutEndTheOpenText) {
  ModelAnswer answer("a2", "t0");
  const ChatCompletions provider;
  read_line(provider, json(R"({"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":
    {"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]})"),
            answer);
  answer.end();
  const Chunks chunks = answer.take();
  EXPECT_EQ(chunks.front(), json(R"({"type":"text-end","id":"t0"})"));
  EXPECT_EQ(chunks[1]["type"], "tool-input-start");
}

TEST(ProviderCutTest, OnlyTextAndWholeCallsAreContent) {
  const ChatCompletions provider;
  const auto has_content = [&](std::string_view delta) {
    ModelAnswer answer;
    read_line(provider, Json{{"choices", Json::array({Json{{"delta", json(delta)}}})}}, answer);
    answer.end();
    return answer.has_content();
  };
  EXPECT_FALSE(has_content(R"({"content":""})"));
  EXPECT_FALSE(has_content(R"({"reasoning":"Hm"})"));
  EXPECT_FALSE(has_content(R"({"tool_calls":[{"index":0,"function":{"name":"f"}}]})"));
  EXPECT_TRUE(has_content(R"({"content":"H"})"));
}

// ---- an answer that goes on without a connection

TEST(ProviderResumeTest, C36_TheRestOfAStreamFollowsTheLastEvent) {
  const OpenAiResponses provider;
  for (const Json& row : read_table("openai_responses")) {
    const Json& lines = row["events"];
    if (!lines[0].contains("response") || row["name"] == "PolledToTheEnd") continue;
    SCOPED_TRACE(row["name"].get<std::string>());
    ModelAnswer whole;
    for (const Json& line : lines) read_line(provider, line, whole);
    Shown expected;
    expected.take(whole.take());
    for (std::size_t cut = 1; cut < lines.size(); ++cut) {
      ModelAnswer answer;
      for (std::size_t i = 0; i < cut; ++i) read_line(provider, lines[i], answer);
      const auto call = provider.follow_up(FollowUp::kResume, answer);
      ASSERT_TRUE(call);
      EXPECT_EQ(call->method, "GET");
      EXPECT_TRUE(call->body.is_null());
      const std::string begin = "/responses/" + lines[0]["response"]["id"].get<std::string>() +
                                "?stream=true&starting_after=";
      ASSERT_EQ(call->path.substr(0, begin.size()), begin);
      const std::int64_t after = std::stoll(call->path.substr(begin.size()));
      // The one server keeps to the cursor, the other sends all again.
      for (const bool keeps : {true, false}) {
        ModelAnswer resumed = answer;
        for (const Json& line : lines)
          if (!keeps || line["sequence_number"] > after) read_line(provider, line, resumed);
        Shown shown;
        shown.take(resumed.take());
        EXPECT_EQ(shown.message(), expected.message()) << "cut behind event " << cut;
        EXPECT_EQ(resumed.is_whole(), whole.is_whole());
      }
    }
  }
}

TEST(ProviderResumeTest, C36_APollAddsWhatIsMissing) {
  const OpenAiResponses provider;
  const Json row = read_table("openai_responses")[0];
  const Json& lines = row["events"];
  for (std::size_t cut = 1; cut < lines.size(); ++cut) {
    ModelAnswer answer;
    for (std::size_t i = 0; i < cut; ++i) read_line(provider, lines[i], answer);
    EXPECT_EQ(provider.follow_up(FollowUp::kPoll, answer)->path, "/responses/resp_1");
    provider.read_whole(lines.back()["response"], answer);
    Shown shown;
    shown.take(answer.take());
    EXPECT_EQ(shown.text(), "[Hello 😀]");
    EXPECT_TRUE(answer.is_whole());
    EXPECT_EQ(answer.usage().total(), 48);
  }
}

TEST(ProviderResumeTest, C36_AStopCancelsTheAnswer) {
  const OpenAiResponses provider;
  ModelAnswer answer;
  EXPECT_FALSE(provider.follow_up(FollowUp::kStop, answer)) << "no event has come";
  read_line(provider, read_table("openai_responses")[0]["events"][0], answer);
  const auto call = provider.follow_up(FollowUp::kStop, answer);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->method + " " + call->path, "POST /responses/resp_1/cancel");
}

TEST(ProviderResumeTest, AnIdThatIsNoIdIsNotPutIntoAPath) {
  const OpenAiResponses provider;
  ModelAnswer answer;
  read_line(provider, json(R"({"type":"response.created","response":{"id":"../files"}})"), answer);
  EXPECT_FALSE(provider.follow_up(FollowUp::kPoll, answer));
}

TEST(ProviderResumeTest, OthersCannotResume) {
  const ModelAnswer answer;
  EXPECT_FALSE(ChatCompletions().follow_up(FollowUp::kResume, answer));
  EXPECT_FALSE(AnthropicMessages().follow_up(FollowUp::kStop, answer));
}

// ---- limits

TEST(ModelAnswerTest, IdsThatNoClientMayHaveAreReplaced) {
  ModelAnswer answer("turn1");
  answer.call("a", std::string(257, 'x'), "f");
  answer.call("b", "same", "f");
  answer.call("c", "same", "f");
  answer.complete();
  std::vector<std::string> ids;
  for (const AskedCall& call : answer.calls()) ids.push_back(call.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"call_turn1_0", "same", "call_turn1_1"}));
}

TEST(ModelAnswerTest, HasAThousandPartsAtMost) {
  ModelAnswer answer;
  for (std::size_t i = 0; i <= ModelAnswer::kMaxParts; ++i) answer.text(std::to_string(i), "x");
  ASSERT_TRUE(answer.failure());
  EXPECT_EQ(answer.failure()->kind, FailureKind::kInvalid);
}

// ---- an author's own

class Echo : public Provider {
 public:
  [[nodiscard]] HttpCall request(const Prompt& prompt) const override {
    return {.path = "/echo", .body = prompt.messages};
  }
  void read(const ServerSentEvent& event, ModelAnswer& answer) const override {
    if (event.event != "end") return answer.text("", event.data);
    answer.finish("stop");
    answer.complete();
  }
};

TEST(OwnProviderTest, IsTwoFunctions) {
  const Echo provider;
  EXPECT_EQ(provider.request({.messages = json("[1]")}).body, json("[1]"));
  ModelAnswer answer;
  provider.read({.data = "Hello "}, answer);
  provider.read({.data = "you"}, answer);
  provider.read({.data = "", .event = "end"}, answer);
  Shown shown;
  shown.take(answer.take());
  EXPECT_EQ(shown.text(), "[Hello you]");
  EXPECT_TRUE(answer.is_whole());
  ModelAnswer whole;
  provider.read_whole({}, whole);
  EXPECT_EQ(whole.failure()->kind, FailureKind::kInvalid);
}

TEST(OwnProviderTest, HasANameInTraces) {
  EXPECT_EQ(Echo().name(), "custom");
  EXPECT_EQ(OpenAiResponses().name(), "openai");
  EXPECT_EQ(ChatCompletions().name(), "openai");
  EXPECT_EQ(AnthropicMessages().name(), "anthropic");
}

// A server that cuts a character between two tokens sends its bytes as they are.
TEST(EventTest, HalfACharacterIsReadAsClientsOfStreamsDo) {
  const std::string half = "{\"a\": \"x\xF0\x9F y\"}";
  ModelAnswer answer;
  const auto object = event_object({.data = half}, answer);
  ASSERT_TRUE(object);
  const std::string text = object->at("a");
  EXPECT_TRUE(text.starts_with("x\uFFFD") && text.ends_with(" y")) << text;
  EXPECT_FALSE(event_object({.data = "{\"a\": \xF0"}, answer));
  EXPECT_EQ(answer.failure()->text, "an event that is no JSON object: {\"a\": \uFFFD");
}

}  // namespace
}  // namespace hearth::chat
