#include "server/admin_token.hpp"

#include "base/files.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace hearth::server {
namespace {

namespace fs = std::filesystem;
using fs::perms;

class AdminTokenTest : public ::testing::Test {
 protected:
  void put(const std::string& text, perms mode = perms{0600}) {
    ASSERT_TRUE(write_file_atomically(file_, text, mode));
  }
  [[nodiscard]] perms mode() const { return fs::status(file_).permissions(); }

  testing::TempDirectory directory_;
  testing::SeededRandom random_{1};
  const fs::path file_ = directory_.path() / "admin.token";
};

TEST_F(AdminTokenTest, ANewOneIsForItsUserAloneAndIsKept) {
  const auto made = admin_token_or_create(file_, random_);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->size(), 64U);
  EXPECT_EQ(mode(), perms{0600});
  const auto again = admin_token_or_create(file_, random_);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *made);
}

TEST_F(AdminTokenTest, ReadingMakesNone) {
  const auto read = read_admin_token(file_);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::kNotFound);
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(AdminTokenTest, EndsOfLinesAreNoPartOfIt) {
  put("0123456789abcdef\r\n");
  EXPECT_EQ(read_admin_token(file_).value(), "0123456789abcdef");
}

TEST_F(AdminTokenTest, WhatIsNoTokenIsRefusedAndNeitherShownNorReplaced) {
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("short-secret"),
        std::string("0123456789 abcdef"), std::string("0123456789abcdef\nmore"),
        std::string(kMaxTokenBytes + 1, 'a'), std::string("0123456789abcde\xc3\xa4")}) {
    put(text);
    const auto read = admin_token_or_create(file_, random_);
    ASSERT_FALSE(read) << text;
    EXPECT_NE(read.error().message.find("admin.token"), std::string::npos);
    if (!text.empty() && text != "\n") {
      EXPECT_EQ(read.error().message.find(text), std::string::npos);
    }
    EXPECT_EQ(read_file(file_, 4096).value(), text);
  }
}

TEST_F(AdminTokenTest, TheKeyOfObjectsMustBeThereIfItsFileIsNamed) {
  EXPECT_EQ(read_objects_token({}).value(), "");
  const auto missing = read_objects_token(file_);
  ASSERT_FALSE(missing);
  EXPECT_TRUE(missing.error().message.starts_with("objects.token_file: "));
  put("0123456789abcdef\n");
  EXPECT_EQ(read_objects_token(file_).value(), "0123456789abcdef");
}

}  // namespace
}  // namespace hearth::server
