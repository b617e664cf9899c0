#include "cli/tail_command.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace hearth::cli {
namespace {

TEST(TailTargetTest, AsksForWhatTheCommandNames) {
  struct Row {
    const char* agent;
    const char* trace;
    std::optional<std::chrono::milliseconds> since;
    const char* target;
  };
  for (const Row& row : std::vector<Row>{
           {"", "", {}, "/admin/events?level=warn"},
           {"Counter", "", {}, "/admin/events?level=warn&class=Counter"},
           {"counter/a b", "", {}, "/admin/events?level=warn&class=counter&agent=a%2520b"},
           {"counter/a%20b", "", {}, "/admin/events?level=warn&class=counter&agent=a%2520b"},
           {"Room/a/Member/b",
            "4bf9",
            {},
            "/admin/events?level=warn&class=Room&agent=a%2FMember%2Fb&trace=4bf9"},
           {"", "", std::chrono::seconds(1), "/admin/events?level=warn&since_ms=4000"}}) {
    TailCommand command;
    command.agent = row.agent;
    command.trace = row.trace;
    command.level = "warn";
    command.since = row.since;
    EXPECT_EQ(tail_target(command, 5000), row.target);
  }
}

TEST(EventLinesTest, EventsComeWholeFromPiecesOfAnySize) {
  const std::string text =
      "retry: 1000\n\nid: r-1\n\nid: r-2\ndata: {\"a\":1}\n\nevent: gap\nid: r-9\ndata: {}\n\nid: "
      "r";
  for (std::size_t size = 1; size < text.size(); ++size) {
    EventLines lines;
    std::string seen;
    for (std::size_t at = 0; at < text.size(); at += size) {
      for (const EventLines::Event& event : lines.add(std::string_view(text).substr(at, size)))
        if (!event.data.empty()) seen += event.type + event.data + " ";
    }
    EXPECT_EQ(seen, "{\"a\":1} gap{} ");
    EXPECT_EQ(lines.last_id(), "r-9");
    (void)lines.add("\nid: r-10\ndata: lost");
    lines.cut();
    EXPECT_EQ(lines.last_id(), "r-9") << "its event did not come whole";
    EXPECT_EQ(lines.add("data: x\n\n").front().data, "x");
  }
}

TEST(EventTextTest, IsOneLineWhateverTheValuesHold) {
  struct Row {
    const char* json;
    const char* text;
  };
  for (const Row& row :
       std::vector<Row>{{R"({"time":"T","level":"info","event":"a.b","class":"C","n":1})",
                         "T info  a.b class=C n=1"},
                        {R"({"time":"T","level":"error","event":"x","why":"two words"})",
                         "T error x why=\"two words\""},
                        {R"({"time":"T","level":"warn","event":"x","k":"\u001b[2J\n"})",
                         "T warn  x k=\\u001b[2J\\n"},
                        {"no json\n", "no json\\n"}}) {
    EXPECT_EQ(event_text(row.json), row.text);
  }
}

}  // namespace
}  // namespace hearth::cli
