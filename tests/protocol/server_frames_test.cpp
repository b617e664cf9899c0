#include "protocol/server_frames.hpp"

#include "json/json.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth::protocol {
namespace {

Json parsed(std::string_view frame) {
  return parse_json(frame).value();
}

TEST(ServerFramesTest, IdentityNamesTheAgent) {
  EXPECT_EQ(identity_frame("room-1", "counter", StateFollows::kNo),
            R"({"type":"cf_agent_identity","name":"room-1","agent":"counter"})");
}

TEST(ServerFramesTest, IdentityAnnouncesTheStateOnlyWhenItFollows) {
  EXPECT_EQ(parsed(identity_frame("a", "b", StateFollows::kYes))["stateFollows"], true);
  EXPECT_FALSE(parsed(identity_frame("a", "b", StateFollows::kNo)).contains("stateFollows"));
}

TEST(ServerFramesTest, IdentityKeepsTheNameUndecoded) {
  EXPECT_EQ(parsed(identity_frame("Room%201", "b", StateFollows::kNo))["name"], "Room%201");
}

TEST(ServerFramesTest, StateIsCopiedAsItIs) {
  EXPECT_EQ(state_frame(R"({"count": 1.50})"),
            R"({"type":"cf_agent_state","state":{"count": 1.50}})");
  EXPECT_EQ(state_frame("null"), R"({"type":"cf_agent_state","state":null})");
}

TEST(ServerFramesTest, StateErrorCarriesTheMessage) {
  EXPECT_EQ(state_error_frame(kReadonlyConnection),
            R"({"type":"cf_agent_state_error","error":"Connection is readonly"})");
  EXPECT_EQ(state_error_frame(kStateRejected),
            R"({"type":"cf_agent_state_error","error":"State update rejected"})");
}

TEST(ServerFramesTest, McpServersAreEmpty) {
  EXPECT_EQ(parsed(mcp_servers_frame()),
            parsed(R"({"mcp":{"prompts":[],"resources":[],"servers":{},"tools":[]},
                       "type":"cf_agent_mcp_servers"})"));
}

TEST(ServerFramesTest, AResultIsDone) {
  EXPECT_EQ(rpc_result_frame(R"("7")", R"({"n":3})"),
            R"({"type":"rpc","id":"7","success":true,"done":true,"result":{"n":3}})");
}

TEST(ServerFramesTest, AVoidAnswerHasNoResult) {
  EXPECT_EQ(rpc_void_frame(R"("7")"), R"({"type":"rpc","id":"7","success":true,"done":true})");
}

TEST(ServerFramesTest, AChunkIsNotDone) {
  EXPECT_EQ(rpc_chunk_frame(R"("7")", R"("part")"),
            R"({"type":"rpc","id":"7","success":true,"done":false,"result":"part"})");
}

TEST(ServerFramesTest, AnErrorHasATextAndNoDone) {
  EXPECT_EQ(rpc_error_frame(R"("7")", "it \"broke\""),
            R"({"type":"rpc","id":"7","success":false,"error":"it \"broke\""})");
}

TEST(ServerFramesTest, HostileTextStaysInsideItsString) {
  const std::string hostile = "\",\"success\":true,\"x\":\"\n\xFF\\";
  const std::string shown = "\",\"success\":true,\"x\":\"\n\xEF\xBF\xBD\\";
  EXPECT_EQ(parsed(rpc_error_frame(R"("7")", hostile)),
            (Json{{"type", "rpc"}, {"id", "7"}, {"success", false}, {"error", shown}}));
  EXPECT_EQ(parsed(identity_frame(hostile, "c", StateFollows::kNo))["name"], shown);
  EXPECT_EQ(parsed(state_error_frame(hostile))["error"], shown);
}

}  // namespace
}  // namespace hearth::protocol
