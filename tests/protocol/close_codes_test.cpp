#include "protocol/close_codes.hpp"

#include <gtest/gtest.h>

namespace hearth::protocol {
namespace {

TEST(CloseCodesTest, OnlyPolicyAndApplicationCodesStopAClient) {
  for (const CloseCode code :
       {kClosePolicyViolation, kCloseBadAddress, kCloseUnauthorized, kCloseForbidden,
        kCloseUnknownClass, kCloseDestroyed, CloseCode{4000}, CloseCode{4999}}) {
    EXPECT_TRUE(stops_client(code)) << code;
  }
  for (const CloseCode code :
       {kCloseNormal, kCloseGoingAway, kCloseProtocolError, kCloseUnsupportedData,
        kCloseInvalidText, kCloseTooBig, kCloseInternalError, kCloseServiceRestart,
        kCloseTryAgainLater, CloseCode{1005}, CloseCode{1006}, CloseCode{3000}, CloseCode{3999},
        CloseCode{5000}}) {
    EXPECT_FALSE(stops_client(code)) << code;
  }
}

TEST(CloseCodesTest, ReservedAndUnassignedCodesMayNotBeSent) {
  for (const int code : {0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535}) {
    EXPECT_FALSE(is_sendable_close_code(static_cast<CloseCode>(code))) << code;
  }
  for (const int code : {1000, 1001, 1003, 1007, 1011, 1012, 1014, 3000, 4000, 4999}) {
    EXPECT_TRUE(is_sendable_close_code(static_cast<CloseCode>(code))) << code;
  }
}

}  // namespace
}  // namespace hearth::protocol
