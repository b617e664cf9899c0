// Objects of a directory, without a class that serves them. Answers of a server:
// tests/process/objects_test.cpp.
#include "server/object_desk.hpp"

#include "server/asked_rows.hpp"
#include "server/one_loop_fixture.hpp"
#include "storage/directory.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace hearth::server {
namespace {

class ObjectDeskTest : public OneLoopTest {
 protected:
  ObjectDeskTest() {
    loop_.start();
    readiness_.set(api::Readiness::Phase::kReady);
  }
  ~ObjectDeskTest() override {
    desk_.stop();
    stop();
  }

  // The code of the answer, or the object's own id.
  std::string ask(const std::string& method, const std::string& target) {
    const Json answer = rows_.json(method, target);
    return answer.contains("code") ? text_member(answer, "code")
                                   : text_member(answer["data"], "id");
  }

  api::Readiness readiness_;
  storage::Directory directory_{data_.directory_path(), data_.directory_vfs()};
  ObjectDesk desk_{runtime_, data_, readiness_, clock_, logger_, 256};
  AskedRows rows_{desk_};
};

TEST_F(ObjectDeskTest, ItsRowsAreThoseOfTheTable) {
  rows_.expect_rows(api::testing::kObjectDeskRows);
}

TEST_F(ObjectDeskTest, AnObjectThatIsAskedForByItsIdIsNotTakenForALaterOneOfItsName) {
  const storage::AgentKey key{"ChatRoom", "a"};
  directory_.record(key, 100);
  ASSERT_TRUE(directory_.record_object(key, "first", 100));
  EXPECT_EQ(ask("POST", "/objects/chat-room/a/checkpoint"), "first");
  ASSERT_TRUE(directory_.forget(key));
  directory_.record(key, 200);
  ASSERT_TRUE(directory_.record_object(key, "second", 200));

  EXPECT_EQ(ask("GET", "/objects/first"), "object_not_found");
  EXPECT_EQ(ask("DELETE", "/objects/first"), "object_not_found");
  for (const char* const spelled : {"chat-room", "ChatRoom"})
    EXPECT_EQ(ask("GET", std::string("/objects/") + spelled + "/a"), "second");
  EXPECT_EQ(ask("GET", "/objects/second"), "second");
  for (const char* const other : {"CHATROOM", "chat_room", "chat-room_"})
    EXPECT_EQ(ask("GET", std::string("/objects/") + other + "/a"), "class_not_found") << other;
  EXPECT_EQ(ask("GET", "/objects?class=nobody"), "class_not_found");
  EXPECT_EQ(ask("DELETE", "/objects/second"), "second");
  EXPECT_EQ(ask("GET", "/objects/chat-room/a"), "class_not_found") << "nor has it agents now";
}

TEST_F(ObjectDeskTest, WhatIsAskedWronglyIsRefused) {
  struct Case {
    std::string method, target, body;
  };
  const Case cases[] = {
      {"GET", "/objects?limit=0", ""},
      {"GET", "/objects?status=asleep", ""},
      {"GET", "/objects/chat-room/%00", ""},
      {"GET", "/objects/chat-room/a?limit=1001", ""},
      {"POST", "/objects", "{}"},
      {"PATCH", "/objects/first", "{}"},
  };
  for (const Case& each : cases)
    EXPECT_EQ(rows_.ask(each.method, each.target, each.body).status, 400) << each.target;
}

// The desk's thread may wait for a loop that hangs, and users must not wait with it.
TEST_F(ObjectDeskTest, WhatUsersAskDoesNotNeedTheThreadOfAdministrators) {
  desk_.stop();
  EXPECT_EQ(rows_.ask("GET", "/objects/chat-room/a").status, 503);
  const api::ObjectAddress object{
      std::make_shared<const runtime::ServedClass>(runtime::ServedClass{"chat-room", nullptr, {}}),
      {"ChatRoom", "a"}};
  EXPECT_EQ(rows_.ask("GET", "/objects/chat-room/a/alarms", "", object).status, 404);
  EXPECT_EQ(rows_.ask("GET", "/objects/chat-room/a/alarms?limit=0", "", object).status, 400);
  EXPECT_EQ(rows_.ask("POST", "/objects/chat-room/a/alarms", "{}", object).status, 400);
}

}  // namespace
}  // namespace hearth::server
