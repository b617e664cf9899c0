#include "extensions/abi_fixture.hpp"
#include "extensions/basics.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hearth::extensions {
namespace {

using namespace testing;

class AbiAuditTest : public AbiHostTest {
 protected:
  hearth_status record(std::string_view what, std::string_view detail) {
    return audit_.record(host_, kAgent, slice(what), slice(detail));
  }
  const hearth_audit_v1& audit_ = extension<hearth_audit_v1>(HEARTH_EXT_AUDIT);
};

TEST_F(AbiAuditTest, AnEntryHasAWordAndAnObjectOrNothing) {
  EXPECT_EQ(record("price.changed", R"({"to":7})"), HEARTH_OK);
  EXPECT_EQ(record("A_b-9", ""), HEARTH_OK);
  EXPECT_EQ(agent_.told, (Lines{R"(audit price.changed {"to":7})", "audit A_b-9 "}));
}

TEST_F(AbiAuditTest, WhatIsNoEntryIsRefused) {
  for (const std::string& what : {std::string(), std::string("a b"), std::string("\xC3\xA9"),
                                  std::string(HEARTH_AUDIT_WHAT_MAX + 1, 'a')})
    EXPECT_EQ(record(what, ""), HEARTH_E_INVALID) << what;
  for (const std::string_view detail : {"[]", "1", "{", "{} x"})
    EXPECT_EQ(record("a", detail), HEARTH_E_INVALID) << detail;
  EXPECT_EQ(record(std::string(HEARTH_AUDIT_WHAT_MAX, 'a'), "{}"), HEARTH_OK);
  const std::string fits = R"({"a":")" + std::string(HEARTH_AUDIT_DETAIL_MAX - 8, 'x') + R"("})";
  ASSERT_EQ(fits.size(), std::size_t{HEARTH_AUDIT_DETAIL_MAX});
  EXPECT_EQ(record("a", fits), HEARTH_OK);
  EXPECT_EQ(record("a", fits + " "), HEARTH_E_LIMIT);
  std::string grows = R"({"a":[1e14)";
  for (int i = 0; i < 400; ++i) grows += ",1e14";
  ASSERT_LT(grows.size() + 2, std::size_t{HEARTH_AUDIT_DETAIL_MAX});
  EXPECT_EQ(record("a", grows + "]}"), HEARTH_E_LIMIT);
  EXPECT_EQ(audit_.record(host_, kAgent, slice(kNotUtf8), {}), HEARTH_E_INVALID);
  EXPECT_EQ(audit_.record(host_, kAgent, slice("a"), kNullWithLength), HEARTH_E_INVALID);
  EXPECT_EQ(agent_.told.size(), 2U);
}

TEST_F(AbiAuditTest, OneTooManyIsTheLimit) {
  agent_.answer = Error{Errc::kLimitExceeded, "too many"};
  EXPECT_EQ(record("a", ""), HEARTH_E_LIMIT);
}

}  // namespace
}  // namespace hearth::extensions
