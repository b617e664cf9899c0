#include "extensions/kv_storage.hpp"

#include "extensions/kv.hpp"
#include "extensions/test_agent.hpp"
#include "json/json.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

namespace hearth::extensions {
namespace {

class KvStorageTest : public ::testing::Test {
 protected:
  static ClassSettings settings() {
    ClassSettings settings;
    settings.kv.max_keys = 4;
    return settings;
  }
  std::string page(std::string_view after = "", std::size_t limit = 100) {
    return storage_page(agent_, after, limit).value();
  }
  void patch(std::string_view json) { ASSERT_TRUE(patch_storage(agent_, json)) << json; }

  hearth::testing::TestAgent agent_{1, settings()};
};

TEST_F(KvStorageTest, APatchSetsMergesAndRemoves) {
  EXPECT_EQ(page(), R"({"next":null,"storage":{}})");
  EXPECT_FALSE(agent_.has_stored());
  patch(R"({"a":1,"b":{"x":1,"y":2},"c":[1]})");
  EXPECT_EQ(page(), R"({"next":null,"storage":{"a":1,"b":{"x":1,"y":2},"c":[1]}})");
  patch(R"({"a":null,"b":{"x":null,"z":3},"c":"text","gone":null})");
  EXPECT_EQ(page(), R"({"next":null,"storage":{"b":{"y":2,"z":3},"c":"text"}})");
}

TEST_F(KvStorageTest, APageHasSoManyKeysAndSaysWhereTheNextBegins) {
  patch(R"({"a":1,"b":2,"c":3})");
  EXPECT_EQ(page("", 2), R"({"next":"b","storage":{"a":1,"b":2}})");
  EXPECT_EQ(page("b", 2), R"({"next":null,"storage":{"c":3}})");
  EXPECT_EQ(page("", 3), R"({"next":null,"storage":{"a":1,"b":2,"c":3}})");
}

TEST_F(KvStorageTest, O13_APatchThatRemovesAKeyMaySetAnotherAtTheLimit) {
  patch(R"({"1":1,"2":2,"3":3,"4":4})");
  patch(R"({"0":0,"4":null})");
  EXPECT_EQ(page(), R"({"next":null,"storage":{"0":0,"1":1,"2":2,"3":3}})");
}

TEST_F(KvStorageTest, AValueAsDeepAsAnyIsShownAndMerged) {
  const auto nested = [](int levels) {
    return std::string(static_cast<std::size_t>(levels), '[') +
           std::string(static_cast<std::size_t>(levels), ']');
  };
  const std::string deepest = R"({"k":)" + nested(kMaxJsonDepth - 1) + "}";
  ASSERT_TRUE(agent_.of<KvExtension>().put("deep", deepest));
  EXPECT_EQ(page(), R"({"next":null,"storage":{"deep":)" + deepest + "}}");
  patch(R"({"deep":{"more":1}})");
  EXPECT_EQ(agent_.of<KvExtension>().get("deep").value(),
            R"({"k":)" + nested(kMaxJsonDepth - 1) + R"(,"more":1})");
}

// So that an object is not made for a patch that it cannot keep.
TEST_F(KvStorageTest, AFirstPatchIsLookedAtAsItWouldBeKept) {
  ClassSettings limits = settings();
  limits.kv.max_value_bytes = 8;
  limits.kv.max_total_bytes = 20;
  struct Case {
    std::string_view patch;
    std::optional<Errc> refusal;
  };
  const Case cases[] = {
      {R"({"a":1,"b":{"x":null,"y":1},"c":null})", std::nullopt},
      {R"({"a":"1234567"})", Errc::kTooLarge},
      {R"({"1":1,"2":2,"3":3,"4":4})", std::nullopt},
      {R"({"1":1,"2":2,"3":3,"4":4,"5":5})", Errc::kLimitExceeded},
      {R"({"1":1,"2":2,"3":3,"4":4,"5":null})", std::nullopt},
      {R"({"a":"123456","b":"123456","c":1})", std::nullopt},
      {R"({"a":"123456","b":"123456","c":123})", Errc::kLimitExceeded},
      {R"({"":1})", Errc::kInvalidArgument},
      {"[]", Errc::kInvalidArgument},
      {"{", Errc::kInvalidArgument},
  };
  for (const Case& each : cases) {
    hearth::testing::TestAgent fresh(1, limits);
    const auto looked = check_first_patch(limits.kv, each.patch);
    const auto done = patch_storage(fresh, each.patch);
    EXPECT_EQ(looked.has_error(), each.refusal.has_value()) << each.patch;
    EXPECT_EQ(done.has_error(), each.refusal.has_value()) << each.patch;
    if (!each.refusal || !looked.has_error() || !done.has_error()) continue;
    EXPECT_EQ(looked.error().code, *each.refusal) << each.patch;
    EXPECT_EQ(done.error().code, *each.refusal) << each.patch;
  }
}

TEST_F(KvStorageTest, O13_APatchBeyondALimitChangesNothing) {
  EXPECT_EQ(patch_storage(agent_, R"({"1":1,"2":2,"3":3,"4":4,"5":5})").error().code,
            Errc::kLimitExceeded);
  EXPECT_EQ(page(), R"({"next":null,"storage":{}})");
  patch(R"({"a":1})");
  EXPECT_EQ(patch_storage(agent_, R"({"a":2,"":3})").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(page(), R"({"next":null,"storage":{"a":1}})");
  EXPECT_EQ(agent_.of<KvExtension>().usage().keys, 1U);
  for (const std::string_view wrong : {"", "[]", "5", "{"})
    EXPECT_EQ(patch_storage(agent_, wrong).error().code, Errc::kInvalidArgument) << wrong;
}

}  // namespace
}  // namespace hearth::extensions
