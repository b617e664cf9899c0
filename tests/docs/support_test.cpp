// The chat of plugin-api/chat/README.md, and its provider, as printed.
#include <hearth/chat/chat_agent.hpp>
#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <support.inc>
#include <upper.inc>

namespace {

using hearth::Json;
using std::chrono::seconds;

class Loud : public Support {
 public:
  static void methods(hearth::Methods<Loud>& m) { chat_methods(m); }
  std::unique_ptr<const hearth::chat::Provider> make_provider(
      const hearth::chat::ChatOptions& /*options*/) override {
    return std::make_unique<Upper>();
  }
};

TEST(SupportTest, TheChatAsPrintedAnswersWithTheProviderAsPrinted) {
  hearth::testing::Host host;
  host.on_fetch([](const hearth::testing::SentRequest& request) {
    EXPECT_TRUE(request.url.ends_with("/say"));
    return hearth::testing::FetchReply{.body = "data: HEL\n\ndata: LO\n\ndata: end\n\n"};
  });
  auto agent = host.create<Loud>("a");
  auto client = agent.connect();
  const Json message = {
      {"id", "m1"}, {"role", "user"}, {"parts", Json::array({{{"type", "text"}, {"text", "hi"}}})}};
  const std::string body = hearth::to_text({{"messages", Json::array({message})}});
  client.send(hearth::to_text({{"type", "cf_agent_use_chat_request"},
                               {"id", "r1"},
                               {"init", {{"method", "POST"}, {"body", body}}}}));
  host.advance(seconds(1));
  const Json stored = agent.request("GET", "/agents/support/a/get-messages").json();
  ASSERT_EQ(stored.size(), 2U);
  EXPECT_EQ(stored[1].at("parts").back().at("text"), "HELLO");
}

}  // namespace
