#include "cli/confirmation.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>

namespace hearth::cli {
namespace {

class ConfirmationTest : public ::testing::Test {
 protected:
  ConfirmationTest() : person_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    EXPECT_EQ(::grantpt(person_), 0);
    EXPECT_EQ(::unlockpt(person_), 0);
    std::array<char, 128> name{};
    EXPECT_EQ(::ptsname_r(person_, name.data(), name.size()), 0);
    terminal_ = ::open(name.data(), O_RDWR | O_NOCTTY);
  }
  ~ConfirmationTest() override {
    ::close(terminal_);
    ::close(person_);
  }
  Confirmation says(const std::string& answer) const {
    EXPECT_EQ(::write(person_, answer.data(), answer.size()), static_cast<ssize_t>(answer.size()));
    return ask_person("Really? ", terminal_, terminal_);
  }

  int person_;  // the other end of the terminal
  int terminal_ = -1;
};

TEST_F(ConfirmationTest, OnlyAYesIsOne) {
  EXPECT_EQ(says("y\n"), Confirmation::kYes);
  EXPECT_EQ(says("yes\n"), Confirmation::kYes);
  for (const char* const other : {"\n", "n\n", "no\n", "Y\n", "yes!\n", " yes\n", "\x04"})
    EXPECT_EQ(says(other), Confirmation::kNo) << other;
  EXPECT_EQ(says(std::string(100, 'y') + "\n"), Confirmation::kNo);
}

TEST_F(ConfirmationTest, TheQuestionIsShown) {
  EXPECT_EQ(says("y\n"), Confirmation::kYes);
  std::string shown;
  while (shown.find("Really? ") == std::string::npos) {
    std::array<char, 64> part{};
    const ssize_t got = ::read(person_, part.data(), part.size());
    ASSERT_GT(got, 0) << shown;
    shown.append(part.data(), static_cast<std::size_t>(got));
  }
}

TEST_F(ConfirmationTest, WithoutATerminalNobodyIsAsked) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ASSERT_EQ(::write(ends[1], "yes\n", 4), 4);
  EXPECT_EQ(ask_person("Really? ", ends[0], ends[1]), Confirmation::kNobody);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace hearth::cli
