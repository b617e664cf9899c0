#include "diagnosis/crash_record.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace hearth::diagnosis {
namespace {

CrashReport full() {
  return {.reason = "SIGSEGV",
          .time_ms = 1'700'000'000'123,
          .pid = 42,
          .library = "/plugins/a.so",
          .sha256 = "0123",
          .generation = 7,
          .agent_class = "Room",
          .agent = "lobby",
          .agent_digest = 18'446'744'073'709'551'615U,
          .work = {},
          .call = "call",
          .method = "add",
          .event_number = 9,
          .trace = "00-1-2-01",
          .running_ms = 12,
          .stack = "inner+0x1 (a.so+0x2)"};
}

class CrashRecordTest : public ::testing::Test {
 protected:
  std::string format(const CrashReport& report) {
    return std::string(format_crash(report, buffer_));
  }

  std::array<char, kMaxCrashRecord> buffer_{};
};

TEST_F(CrashRecordTest, WhatIsWrittenIsRead) {
  const CrashRecord record = parse_crash(format(full())).value();
  EXPECT_EQ(record.reason, "SIGSEGV");
  EXPECT_EQ(record.time_ms, 1'700'000'000'123);
  EXPECT_EQ(record.pid, 42);
  EXPECT_EQ(record.library, "/plugins/a.so");
  EXPECT_EQ(record.sha256, "0123");
  EXPECT_EQ(record.generation, 7U);
  EXPECT_EQ(record.agent_class, "Room");
  EXPECT_EQ(record.agent, "lobby");
  EXPECT_EQ(record.agent_digest, 18'446'744'073'709'551'615U);
  EXPECT_EQ(record.call, "call");
  EXPECT_EQ(record.method, "add");
  EXPECT_EQ(record.event_number, 9U);
  EXPECT_EQ(record.trace, "00-1-2-01");
  EXPECT_EQ(record.running_ms, 12);
  EXPECT_EQ(record.stack, "inner+0x1 (a.so+0x2)");
}

TEST_F(CrashRecordTest, NoWorkIsAnotherThingThanUnknownWork) {
  using Work = std::optional<WorkMark>;
  for (const Work& work : {Work(), Work(WorkMark()), Work({17}), Work({17, 18'000'000'000U})}) {
    CrashReport report = full();
    report.work = work;
    EXPECT_EQ(parse_crash(format(report)).value().work, work);
  }
  const std::string text = format(full());
  EXPECT_EQ(parse_crash(text + "job=none\njob_sender=5\n").value().work, std::nullopt);
}

TEST_F(CrashRecordTest, FramesAreReadAndAStackIsAddedToThem) {
  std::array<char, kMaxCrashFrame> line{};
  CrashReport report = full();
  report.stack = {};
  std::string text = format(report);
  for (const std::uint64_t offset : {0x12U, 0x34U})
    text += format_frame({.file = "/staged/a b.so", .offset = offset}, line);
  text += "frame=1 /cut";
  const auto frames = parse_frames(text);
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[1].file, "/staged/a b.so");
  EXPECT_EQ(frames[1].offset, 0x34U);
  EXPECT_EQ(parse_crash(text).value().stack, "");
  text += "\n" + format_stack("f < g");
  EXPECT_EQ(parse_crash(text).value().stack, "f < g");
}

TEST_F(CrashRecordTest, ACrashOutsideOfCallsNamesNoClass) {
  CrashReport report = full();
  report.library = {};
  const CrashRecord record = parse_crash(format(report)).value();
  EXPECT_EQ(record.reason, "SIGSEGV");
  EXPECT_EQ(record.agent_class, "");
  EXPECT_EQ(record.agent, "");
}

TEST_F(CrashRecordTest, ANameCannotBreakOutOfItsLine) {
  CrashReport report = full();
  report.agent = "a\nclass=Other";
  const CrashRecord record = parse_crash(format(report)).value();
  EXPECT_EQ(record.agent_class, "Room");
  EXPECT_EQ(record.agent, "a?class=Other");
  const std::string line(describe_crash(report, buffer_));
  EXPECT_EQ(line,
            "hearth: the server ends (SIGSEGV) in a call into /plugins/a.so, class Room, agent "
            "a?class=Other, call call, method add\n");
}

TEST_F(CrashRecordTest, WhatIsTooLongIsCut) {
  const std::string endless(100'000, 'x');
  CrashReport report = full();
  report.library = report.sha256 = report.agent_class = report.agent = report.call = report.method =
      report.stack = report.reason = endless;
  const std::string text = format(report);
  EXPECT_LE(text.size(), kMaxCrashRecord);
  EXPECT_EQ(parse_crash(text).value().agent_class, std::string(kMaxCrashText, 'x'));
}

TEST_F(CrashRecordTest, OfATextThatWasCutOffTheWholeLinesCount) {
  const std::string text = format(full());
  const std::string cut = text.substr(0, text.find("lobby") + 2);
  const CrashRecord record = parse_crash(cut).value();
  EXPECT_EQ(record.call, "call");
  EXPECT_EQ(record.agent, "");
  EXPECT_FALSE(parse_crash(text.substr(0, text.find("SIGSEGV"))));
}

TEST_F(CrashRecordTest, OtherTextIsNoRecord) {
  EXPECT_FALSE(parse_crash(""));
  EXPECT_FALSE(parse_crash("reason=SIGSEGV\n"));
  EXPECT_EQ(parse_crash("hearth crash 1\nreason=a\ntime_ms=12x\nnew=key\nno key\n").value().time_ms,
            0);
}

}  // namespace
}  // namespace hearth::diagnosis
