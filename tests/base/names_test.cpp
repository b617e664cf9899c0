#include "base/names.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth {
namespace {

TEST(NamesTest, AcceptsClassNamesThatAreSafeInAPath) {
  for (const char* name : {"Counter", "_", "a", "chat-room", "A1_b-2"})
    EXPECT_TRUE(is_class_name(name)) << name;
  EXPECT_TRUE(is_class_name(std::string(kMaxClassNameBytes, 'x')));
}

TEST(NamesTest, RefusesClassNamesThatAreNot) {
  using std::string_literals::operator""s;
  for (const std::string& name :
       {""s, "."s, ".."s, "a/b"s, "-a"s, "1a"s, "a.b"s, "a b"s, "a\0"s, "a\0b"s, "\xC3\xA4"s,
        "caf\xC3\xA9"s, std::string(kMaxClassNameBytes + 1, 'x')})
    EXPECT_FALSE(is_class_name(name)) << name;
}

TEST(NamesTest, AliasesAreWhatClientsAskForAsItIs) {
  for (const char* alias : {"a", "assistant", "my-chat", "my--chat", "v2", "a-1"})
    EXPECT_TRUE(is_class_alias(alias)) << alias;
  EXPECT_TRUE(is_class_alias(std::string(kMaxClassNameBytes, 'x')));
  using std::string_literals::operator""s;
  for (const std::string& alias :
       {""s, "."s, ".."s, "a/b"s, "-a"s, "a-"s, "-"s, "1a"s, "My-chat"s, "myChat"s, "my_chat"s,
        "a b"s, "a%20b"s, "a\0"s, "\xC3\xA4"s, std::string(kMaxClassNameBytes + 1, 'x')})
    EXPECT_FALSE(is_class_alias(alias)) << alias;
}

}  // namespace
}  // namespace hearth
