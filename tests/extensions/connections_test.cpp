#include "extensions/connections.hpp"

#include "extensions/abi_fixture.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

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
  // Of the connection 5.
  hearth_status send(std::uint32_t kind, hearth_bytes payload) {
    return connections_.send(host_, kAgent, 5, kind, payload);
  }
  hearth_status add_tag(hearth_bytes tag) { return connections_.add_tag(host_, kAgent, 5, tag); }
  hearth_status set_flags(std::uint32_t flags) {
    return connections_.set_flags(host_, kAgent, 5, flags);
  }
  hearth_status close(std::uint32_t code, hearth_bytes reason) {
    return connections_.close(host_, kAgent, 5, code, reason);
  }
  hearth_status broadcast(std::uint32_t kind, hearth_bytes payload, hearth_bytes tag = kNothing,
                          std::span<const std::uint64_t> except = {}) {
    return connections_.broadcast(host_, kAgent, kind, payload, tag, except.data(), except.size());
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
  EXPECT_EQ(lent(connections_.id, 5U), "ann");
  EXPECT_EQ(lent(connections_.target, 5U), "/agents/plain/x?a=1");
  EXPECT_EQ(lent(connections_.header, 5U, slice("user-agent")), "test");
  EXPECT_EQ(lent(connections_.header, 5U, slice("cookie")), "HEARTH_E_NOT_FOUND");
  EXPECT_EQ(lent(connections_.tag, 5U, 0U), "ann");
  EXPECT_EQ(lent(connections_.tag, 5U, 1U), "red");
  EXPECT_EQ(lent(connections_.tag, 5U, 2U), "HEARTH_E_NOT_FOUND");
  EXPECT_EQ(lent(connections_.tag, 5U, 0xffffffffU), "HEARTH_E_NOT_FOUND");
  EXPECT_EQ(lent(connections_.attachment, 5U), "kept");
  std::uint32_t flags = 0;
  ASSERT_EQ(connections_.flags(host_, kAgent, 5, &flags), HEARTH_OK);
  EXPECT_EQ(flags, static_cast<std::uint32_t>(HEARTH_CONNECTION_READONLY));
}

TEST_F(AbiConnectionsTest, OneThatHasLeftIsGone) {
  std::uint32_t flags = 0;
  EXPECT_EQ(lent(connections_.id, 6U), "HEARTH_E_GONE");
  EXPECT_EQ(lent(connections_.tag, 6U, 0U), "HEARTH_E_GONE");
  EXPECT_EQ(connections_.flags(host_, kAgent, 6, &flags), HEARTH_E_GONE);
  EXPECT_EQ(connections_.send(host_, kAgent, 6, HEARTH_SEND_TEXT, slice("x")), HEARTH_E_GONE);
  EXPECT_EQ(connections_.add_tag(host_, kAgent, 6, slice("x")), HEARTH_E_GONE);
  EXPECT_EQ(connections_.set_flags(host_, kAgent, 6, 0), HEARTH_E_GONE);
  EXPECT_EQ(connections_.set_attachment(host_, kAgent, 6, kNothing), HEARTH_E_GONE);
  EXPECT_EQ(connections_.close(host_, kAgent, 6, 1000, kNothing), HEARTH_E_GONE);
}

TEST_F(AbiConnectionsTest, ShowWhoTheClientHasProvedToBe) {
  EXPECT_EQ(lent(connections_.claims, 5U), "HEARTH_E_NOT_FOUND");
  Origin ann;
  ann.claims = R"({"sub":"ann"})";
  agent_.clients().find(5)->origin = std::make_shared<const Origin>(ann);
  EXPECT_EQ(lent(connections_.claims, 5U), R"({"sub":"ann"})");
  EXPECT_EQ(connections_.claims(host_, kAgent, 5, nullptr), HEARTH_E_INVALID);
  EXPECT_EQ(lent(connections_.claims, 6U), "HEARTH_E_GONE");

  EXPECT_EQ(lent(connections_.request_claims, 1U), "HEARTH_E_NOT_FOUND");
  agent_.view.claims = R"({"sub":"bob"})";
  EXPECT_EQ(lent(connections_.request_claims, 1U), R"({"sub":"bob"})");
  EXPECT_EQ(connections_.request_claims(host_, kAgent, 1, nullptr), HEARTH_E_INVALID);
  agent_.answer = Error{Errc::kNotFound, "it is answered"};
  EXPECT_EQ(lent(connections_.request_claims, 1U), "HEARTH_E_GONE");

  // A call or a message. Whether its client is still there is not asked.
  agent_.origin_call = 7;
  agent_.its_origin.is_in_progress = true;
  EXPECT_EQ(lent(connections_.request_claims, 7U), "HEARTH_E_NOT_FOUND");
  Origin origin;
  origin.claims = R"({"sub":"eve"})";
  agent_.its_origin.origin = std::make_shared<const Origin>(origin);
  EXPECT_EQ(lent(connections_.request_claims, 7U), R"({"sub":"eve"})");
  EXPECT_EQ(lent(connections_.request_claims, 8U), "HEARTH_E_GONE");
}

TEST_F(AbiConnectionsTest, ChangesStayAndFramesAreSent) {
  const std::array<std::uint64_t, 2> except = {8, 6};
  Client& client = *agent_.clients().find(5);
  client.deciding = true;
  EXPECT_EQ(add_tag(slice("blue")), HEARTH_OK);
  EXPECT_EQ(set_flags(HEARTH_CONNECTION_NO_PROTOCOL), HEARTH_OK);
  client.deciding = false;
  EXPECT_EQ(connections_.set_attachment(host_, kAgent, 5, slice(kNotUtf8)), HEARTH_OK);
  EXPECT_EQ(client.tags, (Lines{"red", "blue"}));
  EXPECT_EQ(client.flags, static_cast<std::uint32_t>(HEARTH_CONNECTION_NO_PROTOCOL));
  EXPECT_EQ(client.attachment, kNotUtf8);
  EXPECT_EQ(send(HEARTH_SEND_TEXT, slice("hi")), HEARTH_OK);
  EXPECT_EQ(send(HEARTH_SEND_BINARY, slice(kNotUtf8)), HEARTH_OK);
  EXPECT_EQ(broadcast(HEARTH_SEND_TEXT, slice("red ones"), slice("red")), HEARTH_OK);
  EXPECT_EQ(broadcast(HEARTH_SEND_TEXT, slice("but bob"), kNothing, except), HEARTH_OK);
  EXPECT_EQ(broadcast(HEARTH_SEND_TEXT, slice("all")), HEARTH_OK);
  EXPECT_EQ(close(4000, slice("bye")), HEARTH_OK);
  EXPECT_EQ(send(HEARTH_SEND_TEXT, slice("late")), HEARTH_E_GONE);
  EXPECT_EQ(broadcast(HEARTH_SEND_TEXT, slice("who stays")), HEARTH_OK);
  EXPECT_EQ(agent_.told, (Lines{"send 5 0 hi", "send 5 1 \xff\xfe", "send 0 red ones to 5",
                                "send 0 but bob to 5", "send 0 all to 5 8", "close 5 4000 bye",
                                "send 0 who stays to 8"}));
}

TEST_F(AbiConnectionsTest, WhatIsDecidedWhileAClientConnectsIsNotChangedLater) {
  EXPECT_EQ(add_tag(slice("late")), HEARTH_E_FORBIDDEN);
  EXPECT_EQ(set_flags(HEARTH_CONNECTION_NO_PROTOCOL), HEARTH_E_FORBIDDEN);
  EXPECT_EQ(set_flags(0), HEARTH_OK) << "whether it may write can change later";
  EXPECT_EQ(set_flags(4), HEARTH_E_UNSUPPORTED);
  agent_.add_client(9, "new").state = ConnectionState::kWaiting;
  EXPECT_EQ(connections_.send(host_, kAgent, 9, HEARTH_SEND_TEXT, slice("x")), HEARTH_E_FORBIDDEN)
      << "the handshake comes first";
}

TEST_F(AbiConnectionsTest, TagsAttachmentsAndFramesAreBounded) {
  Client& client = *agent_.clients().find(5);
  client.deciding = true;
  EXPECT_EQ(add_tag(kNothing), HEARTH_E_INVALID);
  EXPECT_EQ(add_tag(slice(std::string(257, 'x'))), HEARTH_E_INVALID);
  EXPECT_EQ(add_tag(slice("red")), HEARTH_OK) << "it has it";
  for (int tag = 2; tag < 10; ++tag)
    EXPECT_EQ(add_tag(slice(std::to_string(tag))), HEARTH_OK) << tag;
  EXPECT_EQ(add_tag(slice("more")), HEARTH_E_LIMIT);
  EXPECT_EQ(connections_.set_attachment(host_, kAgent, 5, slice(std::string(16385, 'x'))),
            HEARTH_E_LIMIT);
  const std::string large(1001, 'x');  // TestClients::max_frame_bytes()
  EXPECT_EQ(send(HEARTH_SEND_TEXT, slice(large)), HEARTH_E_LIMIT);
  EXPECT_EQ(broadcast(0, slice(large)), HEARTH_E_LIMIT);
  EXPECT_EQ(close(1005, kNothing), HEARTH_E_INVALID);
  EXPECT_EQ(close(4000, slice(std::string(124, 'x'))), HEARTH_E_INVALID);
  EXPECT_TRUE(agent_.told.empty());
}

TEST_F(AbiConnectionsTest, BadFramesAreRefusedBeforeTheyAreSent) {
  EXPECT_EQ(send(HEARTH_SEND_TEXT, slice(kNotUtf8)), HEARTH_E_INVALID);
  EXPECT_EQ(send(HEARTH_SEND_TEXT, kNullWithLength), HEARTH_E_INVALID);
  EXPECT_EQ(send(7, slice("x")), HEARTH_E_UNSUPPORTED);
  EXPECT_EQ(broadcast(7, slice("x")), HEARTH_E_UNSUPPORTED);
  EXPECT_EQ(connections_.broadcast(host_, kAgent, 0, slice("x"), kNothing, nullptr, 1),
            HEARTH_E_INVALID);
  EXPECT_EQ(broadcast(0, slice(kNotUtf8)), HEARTH_E_INVALID);
  EXPECT_EQ(add_tag(slice(kNotUtf8)), HEARTH_E_INVALID);
  EXPECT_EQ(close(1000, slice(kNotUtf8)), HEARTH_E_INVALID);
  EXPECT_TRUE(agent_.told.empty());
}

}  // namespace
}  // namespace hearth::extensions
