#include "api/admin_requests.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hearth::api {
namespace {

// A number, or "-".
std::string shown(const std::optional<std::int64_t>& number) {
  return number ? std::to_string(*number) : "-";
}

TEST(AdminRequestsTest, AQueryOfAgentsNamesAClassAndHasAtMostAThousandItems) {
  const auto read = [](std::string_view query) -> std::string {
    const auto page = read_agent_page(query);
    if (!page) return std::string(to_string(page.error().code));
    return page->agent_class + " after=" + page->after + " limit=" + std::to_string(page->limit);
  };
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"class=counter", "counter after= limit=100"},
      {"class=counter&after=Room%25201&limit=1000", "counter after=Room%201 limit=1000"},
      {"", "invalid_argument"},
      {"class=", "invalid_argument"},
      {"class=a&limit=0", "invalid_argument"},
      {"class=a&limit=1001", "invalid_argument"},
      {"class=a&limit=-1", "invalid_argument"},
      {"class=a&limit=x", "invalid_argument"},
      {"class=a&limit=1x", "invalid_argument"},
  };
  for (const auto& [query, expected] : cases) EXPECT_EQ(read(query), expected) << query;
}

TEST(AdminRequestsTest, AQueryOfOperationsIsReadInFull) {
  const auto read = [](std::string_view text) -> std::string {
    const auto query = read_operation_query(text);
    if (!query) return std::string(to_string(query.error().code));
    std::string states;
    for (const std::string& each : query->states) states += each + ";";
    return query->agent_class + "/" + query->agent + " kind=" + query->kind + " " + states +
           " before=" + shown(query->begun_before_ms) + " after=" + query->after +
           " limit=" + std::to_string(query->limit);
  };
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "/ kind=  before=- after= limit=100"},
      {"class=shop&agent=a%2Fb&kind=charge&limit=5&state=unknown,running&begun_before_ms=7&"
       "after=Shop%2Fx%2Fa",
       "shop/a/b kind=charge unknown;running; before=7 after=Shop/x/a limit=5"},
      {"agent=a", "invalid_argument"},
      {"limit=0", "invalid_argument"},
      {"limit=1001", "invalid_argument"},
      {"begun_before_ms=x", "invalid_argument"},
  };
  for (const auto& [query, expected] : cases) EXPECT_EQ(read(query), expected) << query;
}

TEST(AdminRequestsTest, AQueryOfTheAuditLogIsReadInFull) {
  const auto read = [](std::string_view text) -> std::string {
    const auto query = read_audit_query(text);
    if (!query) return std::string(to_string(query.error().code));
    return "after=" + std::to_string(query->after) + " limit=" + std::to_string(query->limit) +
           (query->newest ? " newest " : " ") + query->event + " " + query->actor + " " +
           query->agent_class + " " + query->agent + " " + shown(query->since_ms) + " " +
           shown(query->until_ms);
  };
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "after=0 limit=100     - -"},
      {"after=7", "after=7 limit=100     - -"},
      {"limit=5", "after=0 limit=5     - -"},
      {"last=3&event=E&actor=A&class=C&agent=a%2Fb&since_ms=1&until_ms=2",
       "after=0 limit=3 newest E A C a/b 1 2"},
      {"after=-1", "invalid_argument"},
      {"limit=0", "invalid_argument"},
      {"limit=1001", "invalid_argument"},
      {"last=x", "invalid_argument"},
      {"last=1001", "invalid_argument"},
      {"since_ms=1.5", "invalid_argument"},
  };
  for (const auto& [query, expected] : cases) EXPECT_EQ(read(query), expected) << query;
}

TEST(AdminRequestsTest, AValueThatIsTooLongIsNotTakenForAnAbsentOne) {
  const std::string long_value(4097, 'x');
  for (const char* const key : {"class", "kind", "state", "after", "begun_before_ms", "limit"})
    EXPECT_FALSE(read_operation_query(std::string(key) + '=' + long_value)) << key;
  EXPECT_FALSE(read_audit_query("class=" + long_value));
  EXPECT_FALSE(read_agent_page("class=shop&after=" + long_value));
}

TEST(AdminRequestsTest, APageOfStuckAgentsNeedsNoClassAndGoesOnWhereTheLastOneEnded) {
  EXPECT_EQ(read_stuck_page("").value().limit, 100U);
  const auto page = read_stuck_page("class=shop&after=Shop%2FRoom%25201&limit=2").value();
  EXPECT_EQ(page.agent_class + " " + page.after, "shop Shop/Room%201");
  EXPECT_FALSE(read_stuck_page("limit=0"));
}

TEST(AdminRequestsTest, ABodyNamesOneClassOrNone) {
  for (const char* const none : {"", "{}"}) EXPECT_EQ(read_named_class(none).value(), "") << none;
  EXPECT_EQ(read_named_class(R"({"class":"counter"})").value(), "counter");
  for (const std::string body : {"[]", "x", R"({"class":1})", R"({"class":""})", R"({"klass":"a"})",
                                 R"({"class":"a","more":1})"})
    EXPECT_EQ(read_named_class(body).error().code, Errc::kInvalidArgument) << body;
  EXPECT_FALSE(read_named_class(R"({"class":")" + std::string(kMaxAdminBody, 'a') + R"("})"));
}

TEST(AdminRequestsTest, AResolutionSaysWhatHasHappened) {
  const auto read = [](const std::string& body) -> std::string {
    const auto how = read_resolution(body);
    if (!how) return std::string(to_string(how.error().code));
    return (how->was_executed ? "executed " : "not executed ") + how->result + ' ' + how->note;
  };
  const std::pair<const char*, const char*> cases[] = {
      {R"({"outcome":"completed","result":[1],"note":"seen"})", "executed [1] seen"},
      {R"({"outcome":"completed"})", "executed  "},
      {R"({"outcome":"not_executed"})", "not executed  "},
      {"", "invalid_argument"},
      {"[]", "invalid_argument"},
      {"{}", "invalid_argument"},
      {R"({"outcome":"unknown"})", "invalid_argument"},
      {R"({"outcome":"completed","note":1})", "invalid_argument"},
      {R"({"outcome":"completed","extra":1})", "invalid_argument"},
      {R"({"outcome":"not_executed","result":1})", "invalid_argument"},
  };
  for (const auto& [body, expected] : cases) EXPECT_EQ(read(body), expected) << body;
  EXPECT_FALSE(read_resolution(R"({"outcome":"completed","note":")" +
                               std::string(kMaxResolution, 'x') + R"("})"));
}

TEST(AdminRequestsTest, TheNameOfASubAgentMayBeEncodedInAnyWay) {
  EXPECT_EQ(name_of_key("Room%201"), "Room%201");
  EXPECT_EQ(name_of_key("a/Note/b%20c"), name_of_key("a/Note/b%20%63"));
}

}  // namespace
}  // namespace hearth::api
