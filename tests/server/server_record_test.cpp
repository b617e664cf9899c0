#include "server/server_record.hpp"

#include "base/files.hpp"
#include "support/temp_directory.hpp"

#include <unistd.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

namespace hearth::server {
namespace {

namespace fs = std::filesystem;

class ServerRecordTest : public ::testing::Test {
 protected:
  [[nodiscard]] PublishedRecord publish() const {
    return PublishedRecord::publish(
               data_,
               {.address = "127.0.0.1:1", .token_file = "/t/admin.token", .pid = 7, .tls = true})
        .value();
  }

  testing::TempDirectory directory_;
  const fs::path data_ = directory_.path();
  const fs::path file_ = data_ / "server.json";
};

TEST_F(ServerRecordTest, WhatIsPublishedIsFoundUntilItEnds) {
  {
    const PublishedRecord published = publish();
    EXPECT_EQ(fs::status(file_).permissions(), fs::perms{0600});
    const auto found = find_server(data_);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->address, "127.0.0.1:1");
    EXPECT_EQ(found->token_file, "/t/admin.token");
    EXPECT_TRUE(found->tls);
    EXPECT_EQ(found->pid, 7);
    EXPECT_TRUE(find_server(data_)) << "asking takes no lock";
  }
  EXPECT_FALSE(fs::exists(file_));
  EXPECT_EQ(find_server(data_).error().code, Errc::kNotFound);
}

TEST_F(ServerRecordTest, WhatAnotherUserHasWrittenIsNotBelieved) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs another user";
  const PublishedRecord published = publish();
  fs::permissions(data_, fs::perms{0755});
  fs::permissions(file_, fs::perms{0644});
  ASSERT_EQ(::chown(file_.c_str(), 12345, 12345), 0);
  EXPECT_TRUE(find_server(data_)) << "root asks everybody's";
  ASSERT_EQ(::seteuid(54321), 0);
  const auto found = find_server(data_);
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::kForbidden);
}

TEST_F(ServerRecordTest, AMovedOneEndsOnce) {
  std::optional<PublishedRecord> first(publish());
  const PublishedRecord second(std::move(*first));
  first.reset();
  EXPECT_TRUE(find_server(data_));
}

TEST_F(ServerRecordTest, OneThatAKilledServerHasLeftIsNoServer) {
  ASSERT_TRUE(write_file_atomically(
      file_, R"({"address":"127.0.0.1:1","pid":7,"token_file":"/t/admin.token"})"));
  const auto found = find_server(data_);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::kNotFound);
  EXPECT_NE(found.error().message.find("no server runs"), std::string::npos);
  EXPECT_NE(found.error().message.find(data_.native()), std::string::npos);
  const PublishedRecord published = publish();
  EXPECT_TRUE(find_server(data_)) << "the next server takes its place";
}

TEST_F(ServerRecordTest, WithoutADirectoryThereIsNoServer) {
  EXPECT_EQ(find_server(data_ / "none").error().code, Errc::kNotFound);
  EXPECT_FALSE(PublishedRecord::publish(data_ / "none", {}));
}

}  // namespace
}  // namespace hearth::server
