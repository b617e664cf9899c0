#include "protocol/agent_address.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

namespace hearth::protocol {
namespace {

std::optional<AgentAddress> address_in(std::string_view target) {
  const auto parsed = parse_agent_address(target);
  const auto* address = std::get_if<AgentAddress>(&parsed);
  return address ? std::optional(*address) : std::nullopt;
}

std::optional<AddressFault> fault_of(std::string_view target) {
  const auto parsed = parse_agent_address(target);
  const auto* error = std::get_if<AddressError>(&parsed);
  return error ? std::optional(error->fault) : std::nullopt;
}

TEST(AgentAddressTest, SplitsATarget) {
  const auto address = address_in("/agents/counter/room-1/history/2?_pk=7&x=/?");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->class_segment, "counter");
  EXPECT_EQ(address->name, "room-1");
  EXPECT_EQ(address->rest, "/history/2");
  EXPECT_EQ(address->query, "_pk=7&x=/?");
}

TEST(AgentAddressTest, LeavesRestAndQueryEmptyWhenThereAreNone) {
  for (const std::string_view target : {"/agents/counter/a", "/agents/counter/a?"}) {
    const auto address = address_in(target);
    ASSERT_TRUE(address) << target;
    EXPECT_EQ(address->rest, "");
    EXPECT_EQ(address->query, "");
  }
}

TEST(AgentAddressTest, SkipsEmptySegments) {
  const auto address = address_in("//agents///counter//a//b");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->class_segment, "counter");
  EXPECT_EQ(address->name, "a");
  EXPECT_EQ(address->rest, "//b");
}

TEST(AgentAddressTest, KeepsTheNameAsWritten) {
  const auto address = address_in("/agents/counter/Room%201%2Fx");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->name, "Room%201%2Fx");
}

TEST(AgentAddressTest, OtherPathsAreNotOurs) {
  for (const std::string_view target :
       {"", "/", "*", "/healthz", "/Agents/counter/a", "/agentsx/counter/a", "agents/counter/a",
        "/x/agents/counter/a", "/?/agents/counter/a", "/%61gents/counter/a"}) {
    EXPECT_EQ(fault_of(target), AddressFault::kNotOurs) << target;
  }
}

TEST(AgentAddressTest, NeedsAClassAndAName) {
  for (const std::string_view target :
       {"/agents", "/agents/", "/agents/counter", "/agents/counter///", "/agents/counter?/a"}) {
    EXPECT_EQ(fault_of(target), AddressFault::kTooShort) << target;
  }
}

TEST(AgentAddressTest, RefusesDotNamesInEveryForm) {
  for (const std::string_view name : {".", "..", "%2e", "%2E%2e", ".%2e", "%2e."}) {
    EXPECT_EQ(fault_of("/agents/counter/" + std::string(name)), AddressFault::kBadName) << name;
    EXPECT_EQ(fault_of("/agents/" + std::string(name) + "/a"), AddressFault::kBadClass) << name;
  }
  EXPECT_EQ(fault_of("/agents/counter/..."), std::nullopt);
  EXPECT_EQ(fault_of("/agents/counter/..a"), std::nullopt);
}

TEST(AgentAddressTest, RefusesControlCharacters) {
  using namespace std::string_view_literals;
  for (const std::string_view name : {"a\0b"sv, "a%00b"sv, "%00"sv, "a\nb"sv, "a%0Ab"sv, "%7f"sv,
                                      "\x7f"sv, "%C2%85"sv, "\xC2\x9F"sv, "%1f"sv}) {
    EXPECT_EQ(fault_of("/agents/counter/" + std::string(name)), AddressFault::kBadName) << name;
  }
  EXPECT_EQ(fault_of("/agents/coun%00ter/a"), AddressFault::kBadClass);
}

TEST(AgentAddressTest, TakesSpaceAndLettersOfAnyLanguage) {
  for (const std::string_view name :
       {"a%20b", "caf%C3%A9", "café", "%E6%97%A5", "%C2%A0", "a\\b"}) {
    EXPECT_EQ(fault_of("/agents/counter/" + std::string(name)), std::nullopt) << name;
  }
}

TEST(AgentAddressTest, RefusesInvalidUtf8InEitherForm) {
  for (const std::string_view name :
       {"\xFF", "%FF", "%C3", "\xC3", "%ED%A0%80", "%C0%AE%C0%AE", "%C3%", "\xC3%A9"}) {
    EXPECT_EQ(fault_of("/agents/counter/" + std::string(name)), AddressFault::kBadName) << name;
  }
}

TEST(AgentAddressTest, TakesAPercentSignThatEscapesNothing) {
  EXPECT_EQ(fault_of("/agents/counter/100%"), std::nullopt);
  EXPECT_EQ(fault_of("/agents/counter/%zz"), std::nullopt);
}

TEST(AgentAddressTest, BoundsTheNameAsWritten) {
  const std::string longest(7, 'n');
  const auto parse = [](const std::string& name) {
    return parse_agent_address("/agents/counter/" + name, 7);
  };
  EXPECT_TRUE(std::holds_alternative<AgentAddress>(parse(longest)));
  EXPECT_TRUE(std::holds_alternative<AddressError>(parse(longest + "n")));
  EXPECT_TRUE(std::holds_alternative<AddressError>(parse("%41%41%41")));  // 9 bytes for 3
  EXPECT_EQ(fault_of("/agents/counter/" + std::string(10'000, 'n')), AddressFault::kBadName);
}

TEST(AgentAddressTest, BoundsTheClass) {
  EXPECT_EQ(fault_of("/agents/" + std::string(kMaxClassSegmentBytes, 'c') + "/a"), std::nullopt);
  EXPECT_EQ(fault_of("/agents/" + std::string(kMaxClassSegmentBytes + 1, 'c') + "/a"),
            AddressFault::kBadClass);
}

TEST(AgentAddressTest, SaysWhatIsWrongWithoutQuotingIt) {
  const auto parsed = parse_agent_address("/agents/counter/%00secret");
  const auto* error = std::get_if<AddressError>(&parsed);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->reason, "the agent name contains a control character");
}

TEST(NameProblemTest, IsEmptyForAGoodNameOnly) {
  EXPECT_EQ(name_problem("room-1", 16), "");
  EXPECT_EQ(name_problem("", 16), "the agent name is empty");
  EXPECT_EQ(name_problem("..", 16), "the agent name must not be . or ..");
  EXPECT_EQ(name_problem("0123456789abcdefg", 16), "the agent name is too long");
}

// "chat a, counter b"; or the reason why not.
std::string steps_in(std::string_view rest) {
  const auto parsed =
      parse_sub_agents(rest, [](std::string_view segment) { return segment.starts_with("c"); });
  if (const auto* error = std::get_if<AddressError>(&parsed)) return std::string(error->reason);
  std::string found;
  for (const SubAgentStep& step : std::get<std::vector<SubAgentStep>>(parsed)) {
    found += found.empty() ? "" : ", ";
    found += std::string(step.class_segment) + " " + step.name;
  }
  return found;
}

TEST(SubAgentsTest, AreTheKnownClassesBetweenSubAndAName) {
  EXPECT_EQ(steps_in("/sub/chat/a"), "chat a");
  EXPECT_EQ(steps_in("/leaf//sub//chat//a/sub/counter/b"), "chat a, counter b");
  EXPECT_EQ(steps_in("/sub/chat/a/leaf/sub/counter/b/rest"), "chat a, counter b");
  EXPECT_EQ(steps_in("/sub/other/a/sub/counter/b"), "counter b");
  EXPECT_EQ(steps_in("/sub/sub/chat/a"), "chat a");
  EXPECT_EQ(steps_in("/sub/chat/sub/sub/counter/b"), "chat sub, counter b");
  EXPECT_EQ(steps_in("/sub/chat/chat%2Fa%20b"), "chat chat/a b");
  for (const std::string_view rest :
       {"", "/", "/sub", "/sub/chat", "/sub/chat/", "/sub/other/a", "/chat/a", "/Sub/chat/a"}) {
    EXPECT_EQ(steps_in(rest), "") << rest;
  }
}

TEST(SubAgentsTest, AreRefusedForANameThatCannotBeAndWhenTheyAreTooMany) {
  EXPECT_EQ(steps_in("/sub/chat/a%00b"), "the agent name contains a control character");
  EXPECT_EQ(steps_in("/sub/chat/%FF"), "the agent name is not valid UTF-8");
  EXPECT_EQ(steps_in("/sub/chat/.."), "the agent name must not be . or ..");
  std::string rest;
  for (std::size_t i = 0; i < kMaxSubAgentSteps; ++i) rest += "/sub/chat/a";
  EXPECT_EQ(steps_in(rest).find("too many"), std::string::npos);
  EXPECT_EQ(steps_in(rest + "/sub/chat/a"), "too many agents stand above this one");
}

TEST(AgentAddressTest, SegmentsAreTakenFromTheFrontWithoutEmptyOnes) {
  std::string_view path = "//a/b c//";
  EXPECT_EQ(take_segment(path), "a");
  EXPECT_EQ(path, "/b c//");
  EXPECT_EQ(take_segment(path), "b c");
  EXPECT_EQ(take_segment(path), "");
  EXPECT_EQ(path, "");
}

TEST(ClassAloneTest, APathWithAClassAndNoNameHasOne) {
  EXPECT_EQ(class_alone("/agents/counter"), "counter");
  EXPECT_EQ(class_alone("//agents//counter//?a=/b"), "counter");
  for (const char* other : {"/agents/counter/a", "/agents", "/agents/", "/agents?counter", "/x/y",
                            "agents/counter", "", "/?/agents/counter"}) {
    EXPECT_EQ(class_alone(other), "") << other;
  }
}

}  // namespace
}  // namespace hearth::protocol
