#include "extensions/agent_line.hpp"

#include "support/recording_logger.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth::extensions {
namespace {

TEST(AgentLineTest, ALineSaysWhoseItIsAndLeavesOutWhatIsNotKnown) {
  struct Case {
    LineOrigin origin;
    std::string line;
  };
  const LineOrigin whole{
      .agent_class = "C", .agent = "a", .call = 7, .method = "ask", .trace = "00-1-2-01"};
  LineOrigin no_method = whole;
  no_method.method = "";
  for (const auto& [origin, line] :
       {Case{whole, "info said class=C agent=a text=hi call=7 method=ask trace=00-1-2-01"},
        Case{no_method, "info said class=C agent=a text=hi call=7 trace=00-1-2-01"},
        Case{{.agent_class = "C", .agent = "a"}, "info said class=C agent=a text=hi"}}) {
    hearth::testing::RecordingLogger logger;
    logger.write_limited(LogLevel::kInfo, "said", {"C"}, agent_line(origin, {{"text", "hi"}}));
    EXPECT_EQ(logger.events().back(), line);
  }
}

}  // namespace
}  // namespace hearth::extensions
