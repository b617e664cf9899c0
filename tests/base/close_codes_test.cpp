#include "base/close_codes.hpp"

#include "base/files.hpp"
#include "support/built.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

namespace hearth {
namespace {

// Clients of the agents protocol do not come back after these.
bool stops_clients(int code) {
  return code == 1008 || (code >= 4000 && code <= 4999);
}

std::string text_of(std::string_view source) {
  return read_file(testing::built::sources() / source, 1U << 20U).value();
}

// What authors are told: "comes back" or "stays away", by code.
std::map<int, std::string> documented() {
  std::map<int, std::string> rows;
  const std::string text = text_of("plugin-api/README.md");
  std::size_t at = text.find("\n| code | what it means here | the client |\n");
  for (at = text.find("\n| 1", at); text.substr(at, 3) == "\n| "; at = text.find('\n', at + 1)) {
    const std::string row = text.substr(at + 3, text.find('\n', at + 1) - at - 3);
    const std::size_t last = row.rfind(" | ") + 3;
    rows[std::stoi(row)] = row.substr(last, row.size() - last - 2);
  }
  return rows;
}

TEST(CloseCodesTest, AuthorsAreToldOfEachThatTheHostSends) {
  const std::map<int, std::string> rows = documented();
  const auto all = {kCloseNormal,         kCloseGoingAway,     kCloseProtocolError,
                    kCloseInvalidText,    kCloseTooBig,        kCloseInternalError,
                    kCloseServiceRestart, kCloseTryAgainLater, kClosePolicyViolation,
                    kCloseBadAddress,     kCloseUnauthorized,  kCloseForbidden,
                    kCloseUnknownClass,   kCloseDestroyed};
  EXPECT_EQ(rows.size(), all.size());
  for (const int code : all) {
    ASSERT_TRUE(rows.contains(code)) << code;
    EXPECT_EQ(rows.at(code), stops_clients(code) ? "stays away" : "comes back") << code;
    EXPECT_TRUE(is_sendable(static_cast<CloseCode>(code))) << code;
  }
}

TEST(CloseCodesTest, TheInterfaceOfPluginsSaysTheSame) {
  EXPECT_NE(text_of("plugin-api/include/hearth/ext/connections.h")
                .find("1000, 1001, 1008, 1011 to 1013 or 3000 to 4999"),
            std::string::npos);
  EXPECT_NE(text_of("plugin-api/include/hearth/abi.h").find("close code 4403, else 1011"),
            std::string::npos);
  EXPECT_NE(text_of("plugin-api/include/hearth/connection.hpp").find("unsigned code = 4403"),
            std::string::npos);
  EXPECT_EQ(kCloseForbidden, 4403);
  EXPECT_EQ(kCloseInternalError, 1011);
}

TEST(CloseCodesTest, AnAgentMayUseWhatItIsToldAndNothingElse) {
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const bool told = code == 1000 || code == 1001 || code == 1008 ||
                      (code >= 1011 && code <= 1013) || (code >= 3000 && code <= 4999);
    EXPECT_EQ(is_agents_close_code(code), told) << code;
    if (told) EXPECT_TRUE(is_sendable(static_cast<CloseCode>(code))) << code;
  }
  EXPECT_FALSE(is_agents_close_code(0x10000 + 1000));
}

TEST(CloseCodesTest, ReservedAndUnassignedCodesMayNotBeSent) {
  for (const int code : {0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535}) {
    EXPECT_FALSE(is_sendable(static_cast<CloseCode>(code))) << code;
  }
  for (const int code : {1000, 1001, 1003, 1007, 1011, 1012, 1014, 3000, 4000, 4999}) {
    EXPECT_TRUE(is_sendable(static_cast<CloseCode>(code))) << code;
  }
}

}  // namespace
}  // namespace hearth
