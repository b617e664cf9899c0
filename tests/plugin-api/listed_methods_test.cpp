// What the host reads of the methods of a class, hearth.methods/1, and what it does with it.

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using hearth::Json;
using hearth::Stream;
using hearth::Task;
using hearth::testing::Host;

struct Place {
  double x = 0;
  double y = 0;
  HEARTH_FIELDS(x, y)
};

struct Order {
  std::string from;
  int pages = 10;
  std::optional<Place> at;
  std::vector<unsigned> marks;
  Json more;
  HEARTH_FIELDS(from, pages, at, marks, more)
  HEARTH_REQUIRED(from, at)
};

// Holds itself.
struct Tree {
  std::string name;
  std::vector<Tree> branches;
  HEARTH_FIELDS(name, branches)
};

template <class T>
struct Eight {
  T a, b, c, d, e, f, g, h;
  HEARTH_FIELDS(a, b, c, d, e, f, g, h)
};
using Huge = Eight<Eight<Eight<Eight<Eight<Eight<Eight<int>>>>>>>;

class Clerk : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Clerk>& m) {
    m.add("plain", &Clerk::plain);
    m.add("described", &Clerk::plain, "Does nothing.");
    m.add("repeatable", &Clerk::plain, hearth::kIdempotent);
    m.add("read", &Clerk::read, hearth::kReadOnly, "Reads it.");
    m.add("turned", &Clerk::read, "Reads it.", hearth::kReadOnly);
    m.stream("follow", &Clerk::follow, "Follows it.");
    m.stream("repeatable stream", &Clerk::follow, hearth::kIdempotent);
    m.add("alone", &Clerk::plain, hearth::kExclusive, "Does nothing.");
    m.add("alone again", &Clerk::plain, hearth::kExclusive | hearth::kIdempotent);
    m.add("order", &Clerk::order);
    m.add("mixed", &Clerk::mixed);
    m.add("tree", &Clerk::tree);
    m.add("huge", &Clerk::huge);
    m.add("other", &Clerk::other);
    m.add("late", &Clerk::late, hearth::kIdempotent);
    m.callback("tick", &Clerk::plain);
  }
  void plain() {}
  bool read(const std::string& /*what*/) const { return true; }
  Task<int> follow(Stream& out, std::string from) {
    out.send(from);
    co_return 1;
  }
  Task<std::optional<Order>> order(Order wanted) { co_return wanted; }
  Json mixed(std::optional<int> /*first*/, float /*second*/, Json /*third*/,
             std::optional<bool> /*fourth*/) {
    return nullptr;
  }
  Task<int> late(int value) {
    co_await sleep(std::chrono::seconds(1));
    co_return value;
  }
  const char* tree(const Tree& /*root*/) { return "tree"; }
  Huge huge(const Huge& all) { return all; }
  std::map<std::string, int> other(std::map<std::string, int> map) { return map; }
};

class Inheriting : public Clerk {};
class Empty : public hearth::Agent {};
class Plain : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Plain>& m) { m.add("put", &Plain::put); }
  void put() {}
};

class Unlistable : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Unlistable>&) { throw std::runtime_error("no list today"); }
};

template <class T>
const hearth_methods_v1* listed() {
  const hearth_class& definition = hearth::testing::detail::kClassUnderTest<T>;
  return static_cast<const hearth_methods_v1*>(
      definition.get_extension(&definition, HEARTH_EXT_METHODS));
}

const hearth_method& clerk(std::string_view name) {
  const hearth_methods_v1* const table = listed<Clerk>();
  for (std::uint32_t i = 0; i < table->count; ++i) {
    if (hearth::detail::view(table->methods[i].name) == name) return table->methods[i];
  }
  throw std::out_of_range("no such method");
}

Json schema(const hearth_bytes& text) {
  return hearth::parse_json(hearth::detail::view(text));
}

TEST(ListedMethodsTest, EveryMethodForClientsIsListedInItsOrder) {
  ASSERT_NE(listed<Clerk>(), nullptr);
  EXPECT_EQ(listed<Clerk>()->struct_size, sizeof(hearth_methods_v1));
  EXPECT_EQ(listed<Clerk>()->count, 15U) << "the callback is for no client";
  EXPECT_EQ(hearth::detail::view(listed<Clerk>()->methods[0].name), "plain");
  EXPECT_EQ(listed<Clerk>(), listed<Clerk>()) << "it is constant";
  ASSERT_EQ(listed<Inheriting>()->count, 15U) << "a list that is inherited counts";
  for (std::uint32_t i = 0; i < 15; ++i) {
    const hearth_method& own = listed<Clerk>()->methods[i];
    const hearth_method& inherited = listed<Inheriting>()->methods[i];
    EXPECT_EQ(hearth::detail::view(inherited.name), hearth::detail::view(own.name));
    EXPECT_EQ(inherited.flags, own.flags) << hearth::detail::view(own.name);
  }
}

TEST(ListedMethodsTest, WithoutMethodsThereIsNoTable) {
  EXPECT_EQ(listed<Empty>(), nullptr);
  EXPECT_EQ(listed<Plain>()->count, 1U) << "also if it promises nothing";
  EXPECT_EQ(listed<Unlistable>(), nullptr);
  Host host;
  const auto call = host.create<Unlistable>("a").start("plain");
  EXPECT_EQ(call.error(), "no list today") << "each call says why";
}

TEST(ListedMethodsTest, FlagsAreThePromisesAndTheKind) {
  EXPECT_EQ(clerk("plain").flags, 0U);
  EXPECT_EQ(clerk("described").flags, 0U);
  EXPECT_EQ(clerk("repeatable").flags, std::uint32_t{HEARTH_METHOD_IDEMPOTENT});
  EXPECT_EQ(clerk("follow").flags, std::uint32_t{HEARTH_METHOD_STREAMING});
  EXPECT_EQ(clerk("repeatable stream").flags,
            std::uint32_t{HEARTH_METHOD_STREAMING} | HEARTH_METHOD_IDEMPOTENT);
  const std::uint32_t both = std::uint32_t{HEARTH_METHOD_READ_ONLY} | HEARTH_METHOD_IDEMPOTENT;
  EXPECT_EQ(clerk("read").flags, both) << "what only reads can be repeated";
  EXPECT_EQ(clerk("turned").flags, both);
  EXPECT_EQ(clerk("alone").flags, std::uint32_t{HEARTH_METHOD_EXCLUSIVE});
  EXPECT_EQ(clerk("alone again").flags,
            std::uint32_t{HEARTH_METHOD_EXCLUSIVE} | HEARTH_METHOD_IDEMPOTENT);
}

TEST(ListedMethodsTest, AnIdempotentOneIsCalledAsAllOthersAndAgainAfterAnEviction) {
  Host host;
  auto agent = host.create<Clerk>("a");
  EXPECT_EQ(agent.call("read", "x"), true);
  const auto follow = agent.start("repeatable stream", "x");
  EXPECT_EQ(follow.parts(), std::vector<Json>{"x"});
  EXPECT_EQ(follow.value(), 1);
  const auto undisturbed = agent.start("late", 6);
  host.advance(std::chrono::seconds(1));
  EXPECT_EQ(undisturbed.value(), 6);
  const auto late = agent.start("late", 7);
  agent.evict();
  host.advance(std::chrono::seconds(5));
  EXPECT_EQ(late.value(), 7);
  EXPECT_EQ(agent.activations(), 2);
}

TEST(ListedMethodsTest, ADescriptionIsTheAuthors) {
  EXPECT_EQ(hearth::detail::view(clerk("plain").description), "");
  EXPECT_EQ(hearth::detail::view(clerk("described").description), "Does nothing.");
  EXPECT_EQ(hearth::detail::view(clerk("read").description), "Reads it.");
  EXPECT_EQ(hearth::detail::view(clerk("turned").description), "Reads it.");
  EXPECT_EQ(hearth::detail::view(clerk("follow").description), "Follows it.");
}

TEST(ListedMethodsTest, ArgumentsAreAnArrayWithASchemaForEach) {
  EXPECT_EQ(schema(clerk("plain").arguments), (Json{{"type", "array"}, {"maxItems", 0}}));
  const Json one_string = {
      {"type", "array"}, {"prefixItems", {{{"type", "string"}}}}, {"minItems", 1}, {"maxItems", 1}};
  EXPECT_EQ(schema(clerk("read").arguments), one_string);
  EXPECT_EQ(schema(clerk("follow").arguments), one_string) << "the stream is no argument";
}

TEST(ListedMethodsTest, WhatMayBeLeftOutAtTheEndIsNotNeeded) {
  const Json mixed = schema(clerk("mixed").arguments);
  EXPECT_EQ(mixed["minItems"], 2);
  EXPECT_EQ(mixed["maxItems"], 4);
  const Json optional_integer = {{"anyOf", {{{"type", "integer"}}, {{"type", "null"}}}}};
  EXPECT_EQ(mixed["prefixItems"][0], optional_integer);
  EXPECT_EQ(mixed["prefixItems"][1], (Json{{"type", "number"}}));
  EXPECT_EQ(mixed["prefixItems"][2], Json::object()) << "anything";
}

TEST(ListedMethodsTest, AStructIsReadWithTheFieldsThatItRequires) {
  const Json place = {{"type", "object"},
                      {"properties", {{"x", {{"type", "number"}}}, {"y", {{"type", "number"}}}}}};
  const Json order = {
      {"type", "object"},
      {"properties",
       {{"from", {{"type", "string"}}},
        {"pages", {{"type", "integer"}}},
        {"at", {{"anyOf", {place, {{"type", "null"}}}}}},
        {"marks", {{"type", "array"}, {"items", {{"type", "integer"}, {"minimum", 0}}}}},
        {"more", Json::object()}}},
      {"required", {"from", "at"}}};
  EXPECT_EQ(schema(clerk("order").arguments)["prefixItems"][0], order);
}

TEST(ListedMethodsTest, AResultHasAllFieldsButThoseWithoutAValue) {
  const Json result = schema(clerk("order").result);
  ASSERT_EQ(result["anyOf"].size(), 2U);
  EXPECT_EQ(result["anyOf"][1], (Json{{"not", Json::object()}})) << "no value, not null";
  const Json& order = result["anyOf"][0];
  EXPECT_EQ(order["required"], (Json{"from", "pages", "marks", "more"}));
  EXPECT_EQ(order["properties"]["at"]["type"], "object") << "or it is not there";
  EXPECT_EQ(order["properties"]["at"]["required"], (Json{"x", "y"}));
}

TEST(ListedMethodsTest, ResultsAreOfTheTypeThatTheMethodReturns) {
  EXPECT_EQ(clerk("plain").result.len, 0U) << "there is none";
  EXPECT_EQ(schema(clerk("read").result), (Json{{"type", "boolean"}}));
  EXPECT_EQ(schema(clerk("follow").result), (Json{{"type", "integer"}}));
  EXPECT_EQ(schema(clerk("tree").result), (Json{{"type", "string"}}));
  EXPECT_EQ(schema(clerk("mixed").result), Json::object());
  EXPECT_EQ(schema(clerk("other").result), Json::object()) << "nothing is known of its type";
}

TEST(ListedMethodsTest, ATypeThatHoldsItselfEnds) {
  const Json tree = schema(clerk("tree").arguments)["prefixItems"][0];
  EXPECT_EQ(tree["properties"]["branches"]["items"], (Json{{"type", "object"}}));
}

TEST(ListedMethodsTest, ASchemaThatIsTooLongIsLeftOut) {
  EXPECT_EQ(clerk("huge").arguments.len, 0U);
  EXPECT_EQ(clerk("huge").result.len, 0U);
}

TEST(ListedMethodsTest, NoneIsLongerThanTheHostTakes) {
  EXPECT_EQ(hearth::detail::SchemaText::kMaxBytes, std::size_t{HEARTH_METHOD_SCHEMA_MAX});
}

}  // namespace
