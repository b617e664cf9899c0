#include "extensions/kv_storage.hpp"

#include "extensions/kv.hpp"
#include "extensions/test_agent.hpp"

#include <gtest/gtest.h>

#include <string>

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
