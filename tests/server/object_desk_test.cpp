// Objects of a directory, without a class that serves them. Answers of a server:
// tests/process/objects_test.cpp.
#include "server/object_desk.hpp"

#include "server/one_loop_fixture.hpp"
#include "storage/directory.hpp"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <utility>

namespace hearth::server {
namespace {

class ObjectDeskTest : public OneLoopTest {
 protected:
  ObjectDeskTest() { loop_.start(); }
  ~ObjectDeskTest() override {
    desk_.stop();
    stop();
  }

  template <class Ask>
  static Result<api::ObjectView> wait_for(const Ask& ask) {
    std::promise<Result<api::ObjectView>> told;
    ask([&told](Result<api::ObjectView> answer) { told.set_value(std::move(answer)); });
    return told.get_future().get();
  }
  Result<api::ObjectView> show(api::ObjectName name) {
    return wait_for([&](auto answer) { desk_.show(std::move(name), std::move(answer)); });
  }
  Result<api::ObjectView> find(std::string uuid) {
    return wait_for([&](auto answer) { desk_.find(std::move(uuid), std::move(answer)); });
  }
  Result<api::ObjectView> remove(api::ObjectName name) {
    return wait_for(
        [&](auto answer) { desk_.remove(std::move(name), "client", std::move(answer)); });
  }

  storage::Directory directory_{data_.directory_path(), data_.directory_vfs()};
  ObjectDesk desk_{runtime_, data_, logger_};
};

TEST_F(ObjectDeskTest, AnObjectThatWasFoundByItsIdIsNotTakenForALaterOneOfItsName) {
  const storage::AgentKey key{"ChatRoom", "a"};
  directory_.record(key, 100);
  ASSERT_TRUE(directory_.record_object(key, "first", 100));
  EXPECT_EQ(find("first").value().name, "a");
  EXPECT_EQ(show({"chat-room", "a", "first"}).value().uuid, "first");
  ASSERT_TRUE(directory_.forget(key));
  directory_.record(key, 200);
  ASSERT_TRUE(directory_.record_object(key, "second", 200));

  EXPECT_EQ(find("first").error().code, Errc::kNotFound);
  EXPECT_EQ(show({"chat-room", "a", "first"}).error().code, Errc::kNotFound);
  EXPECT_EQ(remove({"chat-room", "a", "first"}).error().code, Errc::kNotFound);
  EXPECT_EQ(show({"chat-room", "a", "second"}).value().created_at_ms, 200);
  EXPECT_EQ(show({"ChatRoom", "a"}).value().uuid, "second") << "without an id any will do";
  for (const char* other : {"CHATROOM", "chat_room", "chat-room_"})
    EXPECT_EQ(show({other, "a"}).error().code, Errc::kNotFound) << other;
}

// The desk's thread may wait for a loop that hangs, and users must not wait with it.
TEST_F(ObjectDeskTest, WhatUsersAskDoesNotNeedTheThreadOfAdministrators) {
  desk_.stop();
  EXPECT_EQ(show({"chat-room", "a"}).error().code, Errc::kClosing);
  const api::ObjectAddress object{
      std::make_shared<const runtime::ServedClass>(runtime::ServedClass{"chat-room", nullptr, {}}),
      {"ChatRoom", "a"}};
  std::promise<Result<std::string>> told;
  desk_.alarms(object, {.after = {}, .limit = 1},
               [&told](Result<std::string> answer) { told.set_value(std::move(answer)); });
  EXPECT_EQ(told.get_future().get().error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace hearth::server
