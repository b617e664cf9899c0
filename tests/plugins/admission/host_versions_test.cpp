#include "plugins/admission/host_versions.hpp"

#include <gtest/gtest.h>

namespace hearth::plugins {
namespace {

TEST(HostVersionsTest, KnowsWhatTheLibrariesOfThisProcessDefine) {
  EXPECT_EQ(version_standing("libc.so.6", "GLIBC_2.34"), VersionStanding::kPresent);
  EXPECT_EQ(version_standing("libstdc++.so.6", "GLIBCXX_3.4.30"), VersionStanding::kPresent);
  EXPECT_EQ(version_standing("libstdc++.so.6", "CXXABI_1.3"), VersionStanding::kPresent);
}

TEST(HostVersionsTest, KnowsWhatTheyDoNotDefine) {
  EXPECT_EQ(version_standing("libc.so.6", "GLIBC_9.99"), VersionStanding::kMissing);
  EXPECT_EQ(version_standing("libc.so.6", "GLIBCXX_3.4.30"), VersionStanding::kMissing);
  EXPECT_EQ(version_standing("libc.so.6", ""), VersionStanding::kMissing);
}

TEST(HostVersionsTest, SaysNothingAboutLibrariesThatAreNotHere) {
  EXPECT_EQ(version_standing("libnobodyhas.so.1", "X_1"), VersionStanding::kNotLoaded);
  EXPECT_EQ(version_standing("", "GLIBC_2.34"), VersionStanding::kNotLoaded);
}

}  // namespace
}  // namespace hearth::plugins
