#include "runtime/event.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth::runtime {
namespace {

TEST(EventTest, AValidTraceparentIsTheOriginsTrace) {
  const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
  const auto origin = traced_origin({{"Accept", "x"}, {"TraceParent", trace}});
  ASSERT_NE(origin, nullptr);
  EXPECT_EQ(origin->trace, trace);
  EXPECT_FALSE(origin->is_agent());
  EXPECT_EQ(traced_origin({{"traceparent", "00-x"}}), nullptr);
  EXPECT_EQ(traced_origin({}), nullptr);
  EXPECT_EQ(traced_origin({}, "{}")->claims, "{}");
}

TEST(EventTest, AnEventThatIsOwnedOrLentKeepsItsOriginAndItsTime) {
  Event event;
  event.origin = std::make_shared<extensions::Origin>();
  event.interruptions.due = SteadyTime(std::chrono::seconds(3));
  const extensions::OriginPtr origin = event.origin;
  OwnedEvent owned = own(std::move(event));
  EXPECT_EQ(owned.origin, origin);
  const Event lent = lend(owned);
  EXPECT_EQ(lent.origin, origin);
  EXPECT_TRUE(lent.interruptions.has_due());
}

}  // namespace
}  // namespace hearth::runtime
