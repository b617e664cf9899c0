// hearth::kIdempotent, as the host sees it.

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using hearth::Json;
using hearth::Stream;
using hearth::Task;
using hearth::testing::Host;

class Mixed : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Mixed>& m) {
    m.add("put", &Mixed::put);
    m.add("get", &Mixed::get, hearth::kIdempotent);
    m.add("read", &Mixed::read, hearth::kIdempotent);
    m.stream("once", &Mixed::follow);
    m.stream("follow", &Mixed::follow, hearth::kIdempotent);
    m.callback("tick", &Mixed::put);
  }
  void put() {}
  Task<int> get(int value) {
    co_await sleep(std::chrono::seconds(1));
    co_return value;
  }
  int read() const { return 2; }
  int follow(Stream& out) {
    out.send("part");
    return 3;
  }
};

class Inheriting : public Mixed {};

class Plain : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Plain>& m) { m.add("put", &Plain::put); }
  void put() {}
};

class Silent : public hearth::Agent {};

class Unlisted : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Unlisted>&) { throw std::runtime_error("no list today"); }
};

template <class T>
const hearth_methods_v1* table_of() {
  const hearth_class& definition = hearth::testing::detail::kClassUnderTest<T>;
  return static_cast<const hearth_methods_v1*>(
      definition.get_extension(&definition, HEARTH_EXT_METHODS));
}

// The methods that the class calls idempotent.
template <class T>
std::vector<std::string> names_of() {
  const hearth_methods_v1* const table = table_of<T>();
  std::vector<std::string> names;
  for (std::uint32_t i = 0; table != nullptr && i < table->count; ++i) {
    if ((table->methods[i].flags & HEARTH_METHOD_IDEMPOTENT) != 0)
      names.emplace_back(hearth::detail::view(table->methods[i].name));
  }
  return names;
}

TEST(IdempotentMethodTest, TheHostReadsWhichMethodsAre) {
  ASSERT_NE(table_of<Mixed>(), nullptr);
  EXPECT_EQ(table_of<Mixed>()->struct_size, sizeof(hearth_methods_v1));
  EXPECT_EQ(names_of<Mixed>(), (std::vector<std::string>{"get", "read", "follow"}));
}

TEST(IdempotentMethodTest, TheTableIsAlwaysTheSame) {
  EXPECT_EQ(table_of<Mixed>(), table_of<Mixed>());
}

TEST(IdempotentMethodTest, AListThatIsInheritedCounts) {
  EXPECT_EQ(names_of<Inheriting>(), names_of<Mixed>());
}

TEST(IdempotentMethodTest, AClassWithoutMethodsHasNoTable) {
  ASSERT_NE(table_of<Plain>(), nullptr);
  EXPECT_EQ(table_of<Plain>()->count, 1U);
  EXPECT_TRUE(names_of<Plain>().empty());
  EXPECT_EQ(table_of<Silent>(), nullptr);
}

TEST(IdempotentMethodTest, AListThatThrowsIsNoTableAndAnErrorOfEachCall) {
  EXPECT_EQ(table_of<Unlisted>(), nullptr);
  Host host;
  auto agent = host.create<Unlisted>("a");
  const auto call = agent.start("put");
  EXPECT_TRUE(call.failed());
  EXPECT_EQ(call.error(), "no list today");
}

TEST(IdempotentMethodTest, TheyAreCalledAsAllOthers) {
  Host host;
  auto agent = host.create<Mixed>("a");
  auto get = agent.start("get", 7);
  host.advance(std::chrono::seconds(1));
  EXPECT_EQ(get.value(), 7);
  EXPECT_EQ(agent.call("read"), 2);
  auto follow = agent.start("follow");
  EXPECT_EQ(follow.parts(), std::vector<Json>{"part"});
  EXPECT_EQ(follow.value(), 3);
}

TEST(IdempotentMethodTest, TheyAreRepeatedAfterAnEviction) {
  Host host;
  auto agent = host.create<Mixed>("a");
  auto get = agent.start("get", 7);
  agent.evict();
  host.advance(std::chrono::seconds(5));
  EXPECT_EQ(get.value(), 7);
  EXPECT_EQ(agent.activations(), 2);
}

}  // namespace
