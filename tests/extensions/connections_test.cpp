#include "extensions/connections.hpp"

#include "extensions/abi_fixture.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

namespace hearth::extensions {
namespace {

using namespace testing;

class AbiConnectionsTest : public AbiHostTest {
 protected:
  AbiConnectionsTest() {
    Client& client = agent_.add_client(5, "ann");
    client.target = "/agents/plain/x?a=1";
    client.headers = {{"User-Agent", "test"}};
    client.tags = {"red"};
    client.attachment = "kept";
    client.flags = HEARTH_CONNECTION_READONLY;
    agent_.add_client(8, "bob");
  }
  const hearth_connections_v1& connections_ =
      extension<hearth_connections_v1>(HEARTH_EXT_CONNECTIONS);
};

TEST_F(AbiConnectionsTest, AreWalkedInOrder) {
  std::uint64_t connection = 0;
  ASSERT_EQ(connections_.next(host_, kAgent, 0, kNothing, &connection), HEARTH_OK);
  EXPECT_EQ(connection, 5U);
  ASSERT_EQ(connections_.next(host_, kAgent, 5, kNothing, &connection), HEARTH_OK);
  EXPECT_EQ(connection, 8U);
  EXPECT_EQ(connections_.next(host_, kAgent, 8, kNothing, &connection), HEARTH_E_NOT_FOUND);
  ASSERT_EQ(connections_.next(host_, kAgent, 0, slice("bob"), &connection), HEARTH_OK);
  EXPECT_EQ(connection, 8U);
  EXPECT_EQ(connections_.next(host_, kAgent, 0, slice(kNotUtf8), &connection), HEARTH_E_INVALID);
  EXPECT_EQ(connections_.next(host_, kAgent, 0, kNothing, nullptr), HEARTH_E_INVALID);
}

TEST_F(AbiConnectionsTest, ShowWhatIsKnownOfThem) {
  hearth_bytes out{};
  ASSERT_EQ(connections_.id(host_, kAgent, 5, &out), HEARTH_OK);
  EXPECT_EQ(view(out), "ann");
  ASSERT_EQ(connections_.target(host_, kAgent, 5, &out), HEARTH_OK);
  EXPECT_EQ(view(out), "/agents/plain/x?a=1");
  ASSERT_EQ(connections_.header(host_, kAgent, 5, slice("user-agent"), &out), HEARTH_OK);
  EXPECT_EQ(view(out), "test");
  EXPECT_EQ(connections_.header(host_, kAgent, 5, slice("cookie"), &out), HEARTH_E_NOT_FOUND);
  ASSERT_EQ(connections_.tag(host_, kAgent, 5, 0, &out), HEARTH_OK);
  EXPECT_EQ(view(out), "ann");
  ASSERT_EQ(connections_.tag(host_, kAgent, 5, 1, &out), HEARTH_OK);
  EXPECT_EQ(view(out), "red");
  EXPECT_EQ(connections_.tag(host_, kAgent, 5, 2, &out), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(connections_.tag(host_, kAgent, 5, 0xffffffff, &out), HEARTH_E_NOT_FOUND);
  ASSERT_EQ(connections_.attachment(host_, kAgent, 5, &out), HEARTH_OK);
  EXPECT_EQ(view(out), "kept");
  std::uint32_t flags = 0;
  ASSERT_EQ(connections_.flags(host_, kAgent, 5, &flags), HEARTH_OK);
  EXPECT_EQ(flags, static_cast<std::uint32_t>(HEARTH_CONNECTION_READONLY));
}

TEST_F(AbiConnectionsTest, OneThatHasLeftIsGone) {
  hearth_bytes out{};
  std::uint32_t flags = 0;
  EXPECT_EQ(connections_.id(host_, kAgent, 6, &out), HEARTH_E_GONE);
  EXPECT_EQ(connections_.tag(host_, kAgent, 6, 0, &out), HEARTH_E_GONE);
  EXPECT_EQ(connections_.flags(host_, kAgent, 6, &flags), HEARTH_E_GONE);
  EXPECT_EQ(connections_.send(host_, kAgent, 6, HEARTH_SEND_TEXT, slice("x")), HEARTH_E_GONE);
  EXPECT_EQ(connections_.add_tag(host_, kAgent, 6, slice("x")), HEARTH_E_GONE);
  EXPECT_EQ(connections_.set_flags(host_, kAgent, 6, 0), HEARTH_E_GONE);
  EXPECT_EQ(connections_.set_attachment(host_, kAgent, 6, kNothing), HEARTH_E_GONE);
  EXPECT_EQ(connections_.close(host_, kAgent, 6, 1000, kNothing), HEARTH_E_GONE);
}

TEST_F(AbiConnectionsTest, ShowWhoTheClientHasProvedToBe) {
  hearth_bytes out{};
  EXPECT_EQ(connections_.claims(host_, kAgent, 5, &out), HEARTH_E_NOT_FOUND);
  Origin ann;
  ann.claims = R"({"sub":"ann"})";
  agent_.clients().find(5)->origin = std::make_shared<const Origin>(ann);
  ASSERT_EQ(connections_.claims(host_, kAgent, 5, &out), HEARTH_OK);
  EXPECT_EQ(view(out), R"({"sub":"ann"})");
  EXPECT_EQ(connections_.claims(host_, kAgent, 5, nullptr), HEARTH_E_INVALID);
  EXPECT_EQ(connections_.claims(host_, kAgent, 6, &out), HEARTH_E_GONE);

  EXPECT_EQ(connections_.request_claims(host_, kAgent, 1, &out), HEARTH_E_NOT_FOUND);
  agent_.view.claims = R"({"sub":"bob"})";
  ASSERT_EQ(connections_.request_claims(host_, kAgent, 1, &out), HEARTH_OK);
  EXPECT_EQ(view(out), R"({"sub":"bob"})");
  EXPECT_EQ(connections_.request_claims(host_, kAgent, 1, nullptr), HEARTH_E_INVALID);
  agent_.answer = Error{Errc::kNotFound, "it is answered"};
  EXPECT_EQ(connections_.request_claims(host_, kAgent, 1, &out), HEARTH_E_GONE);

  // A call or a message. Whether its client is still there is not asked.
  agent_.origin_call = 7;
  agent_.its_origin.is_in_progress = true;
  EXPECT_EQ(connections_.request_claims(host_, kAgent, 7, &out), HEARTH_E_NOT_FOUND);
  Origin origin;
  origin.claims = R"({"sub":"eve"})";
  agent_.its_origin.origin = std::make_shared<const Origin>(origin);
  ASSERT_EQ(connections_.request_claims(host_, kAgent, 7, &out), HEARTH_OK);
  EXPECT_EQ(view(out), R"({"sub":"eve"})");
  EXPECT_EQ(connections_.request_claims(host_, kAgent, 8, &out), HEARTH_E_GONE);
}

TEST_F(AbiConnectionsTest, ChangesStayAndFramesAreSent) {
  const std::array<std::uint64_t, 2> except = {8, 6};
  Client& client = *agent_.clients().find(5);
  client.deciding = true;
  EXPECT_EQ(connections_.add_tag(host_, kAgent, 5, slice("blue")), HEARTH_OK);
  EXPECT_EQ(connections_.set_flags(host_, kAgent, 5, HEARTH_CONNECTION_NO_PROTOCOL), HEARTH_OK);
  client.deciding = false;
  EXPECT_EQ(connections_.set_attachment(host_, kAgent, 5, slice(kNotUtf8)), HEARTH_OK);
  EXPECT_EQ(client.tags, (Lines{"red", "blue"}));
  EXPECT_EQ(client.flags, static_cast<std::uint32_t>(HEARTH_CONNECTION_NO_PROTOCOL));
  EXPECT_EQ(client.attachment, kNotUtf8);
  EXPECT_EQ(connections_.send(host_, kAgent, 5, HEARTH_SEND_TEXT, slice("hi")), HEARTH_OK);
  EXPECT_EQ(connections_.send(host_, kAgent, 5, HEARTH_SEND_BINARY, slice(kNotUtf8)), HEARTH_OK);
  EXPECT_EQ(connections_.broadcast(host_, kAgent, HEARTH_SEND_TEXT, slice("red ones"), slice("red"),
                                   nullptr, 0),
            HEARTH_OK);
  EXPECT_EQ(connections_.broadcast(host_, kAgent, HEARTH_SEND_TEXT, slice("but bob"), kNothing,
                                   except.data(), 2),
            HEARTH_OK);
  EXPECT_EQ(
      connections_.broadcast(host_, kAgent, HEARTH_SEND_TEXT, slice("all"), kNothing, nullptr, 0),
      HEARTH_OK);
  EXPECT_EQ(connections_.close(host_, kAgent, 5, 4000, slice("bye")), HEARTH_OK);
  EXPECT_EQ(connections_.send(host_, kAgent, 5, HEARTH_SEND_TEXT, slice("late")), HEARTH_E_GONE);
  EXPECT_EQ(connections_.broadcast(host_, kAgent, HEARTH_SEND_TEXT, slice("who stays"), kNothing,
                                   nullptr, 0),
            HEARTH_OK);
  EXPECT_EQ(agent_.told, (Lines{"send 5 0 hi", "send 5 1 \xff\xfe", "send 0 red ones to 5",
                                "send 0 but bob to 5", "send 0 all to 5 8", "close 5 4000 bye",
                                "send 0 who stays to 8"}));
}

TEST_F(AbiConnectionsTest, WhatIsDecidedWhileAClientConnectsIsNotChangedLater) {
  EXPECT_EQ(connections_.add_tag(host_, kAgent, 5, slice("late")), HEARTH_E_FORBIDDEN);
  EXPECT_EQ(connections_.set_flags(host_, kAgent, 5, HEARTH_CONNECTION_NO_PROTOCOL),
            HEARTH_E_FORBIDDEN);
  EXPECT_EQ(connections_.set_flags(host_, kAgent, 5, 0), HEARTH_OK) << "who may write is decided";
  EXPECT_EQ(connections_.set_flags(host_, kAgent, 5, 4), HEARTH_E_UNSUPPORTED);
  agent_.add_client(9, "new").state = ConnectionState::kWaiting;
  EXPECT_EQ(connections_.send(host_, kAgent, 9, HEARTH_SEND_TEXT, slice("x")), HEARTH_E_FORBIDDEN)
      << "the handshake comes first";
}

TEST_F(AbiConnectionsTest, TagsAttachmentsAndFramesAreBounded) {
  Client& client = *agent_.clients().find(5);
  client.deciding = true;
  EXPECT_EQ(connections_.add_tag(host_, kAgent, 5, kNothing), HEARTH_E_INVALID);
  EXPECT_EQ(connections_.add_tag(host_, kAgent, 5, slice(std::string(257, 'x'))), HEARTH_E_INVALID);
  EXPECT_EQ(connections_.add_tag(host_, kAgent, 5, slice("red")), HEARTH_OK) << "it has it";
  for (int tag = 2; tag < 10; ++tag)
    EXPECT_EQ(connections_.add_tag(host_, kAgent, 5, slice(std::to_string(tag))), HEARTH_OK) << tag;
  EXPECT_EQ(connections_.add_tag(host_, kAgent, 5, slice("more")), HEARTH_E_LIMIT);
  EXPECT_EQ(connections_.set_attachment(host_, kAgent, 5, slice(std::string(16385, 'x'))),
            HEARTH_E_LIMIT);
  const std::string large(1001, 'x');  // TestClients::max_frame_bytes()
  EXPECT_EQ(connections_.send(host_, kAgent, 5, HEARTH_SEND_TEXT, slice(large)), HEARTH_E_LIMIT);
  EXPECT_EQ(connections_.broadcast(host_, kAgent, 0, slice(large), kNothing, nullptr, 0),
            HEARTH_E_LIMIT);
  EXPECT_EQ(connections_.close(host_, kAgent, 5, 1005, kNothing), HEARTH_E_INVALID);
  EXPECT_EQ(connections_.close(host_, kAgent, 5, 4000, slice(std::string(124, 'x'))),
            HEARTH_E_INVALID);
  EXPECT_TRUE(agent_.told.empty());
}

TEST_F(AbiConnectionsTest, BadFramesAreRefusedBeforeTheyAreSent) {
  EXPECT_EQ(connections_.send(host_, kAgent, 5, HEARTH_SEND_TEXT, slice(kNotUtf8)),
            HEARTH_E_INVALID);
  EXPECT_EQ(connections_.send(host_, kAgent, 5, HEARTH_SEND_TEXT, kNullWithLength),
            HEARTH_E_INVALID);
  EXPECT_EQ(connections_.send(host_, kAgent, 5, 7, slice("x")), HEARTH_E_UNSUPPORTED);
  EXPECT_EQ(connections_.broadcast(host_, kAgent, 7, slice("x"), kNothing, nullptr, 0),
            HEARTH_E_UNSUPPORTED);
  EXPECT_EQ(connections_.broadcast(host_, kAgent, 0, slice("x"), kNothing, nullptr, 1),
            HEARTH_E_INVALID);
  EXPECT_EQ(connections_.broadcast(host_, kAgent, 0, slice(kNotUtf8), kNothing, nullptr, 0),
            HEARTH_E_INVALID);
  EXPECT_EQ(connections_.add_tag(host_, kAgent, 5, slice(kNotUtf8)), HEARTH_E_INVALID);
  EXPECT_EQ(connections_.close(host_, kAgent, 5, 1000, slice(kNotUtf8)), HEARTH_E_INVALID);
  EXPECT_TRUE(agent_.told.empty());
}

}  // namespace
}  // namespace hearth::extensions
