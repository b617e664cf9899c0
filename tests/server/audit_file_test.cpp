#include "server/audit_file.hpp"

#include "json/json.hpp"
#include "support/temp_directory.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace hearth::server {
namespace {

using storage::AuditEntry;

const AuditEntry kEntry{.id = 7,
                        .at_ms = 1'767'355'200'005,
                        .event = "ObjectCreated",
                        .actor = "client",
                        .agent_class = "Counter",
                        .agent = "a\nb",
                        .detail = R"({"peer":"127.0.0.1:1"})"};

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::vector<std::string> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(AuditLineTest, IsOneObjectOnOneLine) {
  EXPECT_EQ(parse_json(audit_line(kEntry)).value(), (Json{{"id", 7},
                                                          {"at", "2026-01-02T12:00:00.005Z"},
                                                          {"event", "ObjectCreated"},
                                                          {"actor", "client"},
                                                          {"class", "Counter"},
                                                          {"agent", "a\nb"},
                                                          {"detail", {{"peer", "127.0.0.1:1"}}}}));
  EXPECT_EQ(audit_line(kEntry).find('\n'), std::string::npos);
  EXPECT_EQ(audit_line({.id = 1, .at_ms = 0, .event = "ServerReady", .actor = "server"}),
            R"({"actor":"server","at":"1970-01-01T00:00:00.000Z","event":"ServerReady","id":1})");
}

TEST(AuditFileTest, AppendsAndIsMadeAnewWhenItWasRotated) {
  const hearth::testing::TempDirectory directory;
  const auto path = directory.path() / "audit.jsonl";
  AuditFile file(path);
  const std::vector<AuditEntry> two{kEntry, kEntry};
  ASSERT_TRUE(file.append(two));
  ASSERT_TRUE(file.append(two));
  EXPECT_EQ(lines_of(path).size(), 4U);
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms{0600});
  std::filesystem::rename(path, directory.path() / "audit.jsonl.1");
  ASSERT_TRUE(file.append(two));
  EXPECT_EQ(lines_of(path).size(), 2U);
  EXPECT_EQ(lines_of(directory.path() / "audit.jsonl.1").size(), 4U);
}

// As on a full disk: the file may not grow beyond `bytes`.
class NarrowFiles {
 public:
  explicit NarrowFiles(rlim_t bytes) : before_(::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &limit_), 0);
    const ::rlimit narrow{bytes, limit_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &narrow), 0);
  }
  ~NarrowFiles() {
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit_), 0);
    (void)::signal(SIGXFSZ, before_);
  }
  NarrowFiles(const NarrowFiles&) = delete;
  NarrowFiles& operator=(const NarrowFiles&) = delete;

 private:
  ::rlimit limit_{};
  void (*before_)(int);
};

TEST(AuditFileTest, AnEntryBeginsALineBehindOneThatWasCutOff) {
  const hearth::testing::TempDirectory directory;
  const auto path = directory.path() / "audit.jsonl";
  const std::string line = audit_line(kEntry);
  const std::vector<AuditEntry> one{kEntry};
  const std::string half = line.substr(0, line.size() / 2);
  {
    AuditFile file(path);
    ASSERT_TRUE(file.append(one));
    {
      const NarrowFiles full(line.size() + 1 + half.size());
      ASSERT_FALSE(file.append(one));
      ASSERT_FALSE(file.append(one));
    }
    ASSERT_TRUE(file.append(one));
    EXPECT_EQ(lines_of(path), (std::vector{line, half, line}));
  }
  std::ofstream(path, std::ios::app) << half;  // a server that was killed
  AuditFile file(path);
  ASSERT_TRUE(file.append(one));
  ASSERT_TRUE(file.append(one));
  EXPECT_EQ(lines_of(path), (std::vector{line, half, line, half, line, line}));
}

TEST(AuditFileTest, WhatCannotBeWrittenIsSaid) {
  const hearth::testing::TempDirectory directory;
  AuditFile file(directory.path() / "missing" / "audit.jsonl");
  const auto written = file.append(std::vector<AuditEntry>{kEntry});
  ASSERT_FALSE(written);
  EXPECT_TRUE(written.error().message.starts_with("cannot open the audit file "))
      << written.error().message;
}

TEST(AuditFileTest, APipeThatIsReadLosesNothing) {
  const hearth::testing::TempDirectory directory;
  const auto path = directory.path() / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  constexpr std::size_t kMore = 10'000;  // than a pipe holds
  std::size_t read = 0;
  std::thread reader([&] {
    std::ifstream in(path);
    for (std::string line; read < kMore && std::getline(in, line);) ++read;
  });
  AuditFile file(path);
  EXPECT_TRUE(file.append(std::vector<AuditEntry>(kMore, kEntry)));
  reader.join();
  EXPECT_EQ(read, kMore);
}

TEST(AuditFileTest, APipeThatNobodyReadsHoldsNothingUp) {
  const hearth::testing::TempDirectory directory;
  const auto path = directory.path() / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  ::alarm(30);  // ends a test that waits
  AuditFile file(path);
  constexpr std::size_t kMore = 10'000;  // than a pipe holds
  const auto written = file.append(std::vector<AuditEntry>(kMore, kEntry));
  ::alarm(0);
  ASSERT_FALSE(written);
  EXPECT_TRUE(written.error().message.starts_with("cannot write to the audit file "))
      << written.error().message;
}

}  // namespace
}  // namespace hearth::server
