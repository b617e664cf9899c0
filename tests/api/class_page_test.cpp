// The list of a class's methods at /agents/{class}.
#include "api/api_fixture.hpp"
#include "api/http_errors.hpp"

namespace hearth::api::testing {
namespace {

class ClassPageTest : public ApiFixture {
 protected:
  ClassPageTest() {
    start();
    runtime::ClassSettings settings;
    settings.list_methods = true;
    serve("Listed", sampler, settings);
  }
};

constexpr std::string_view kListed = R"({"class":"listed","methods":[{"name":"set"}]})";

TEST_F(ClassPageTest, AClassThatSaysSoListsItsMethods) {
  const Reply reply = get("/agents/listed");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, kListed);
  EXPECT_TRUE(
      contains(reply.head, "Content-Type: application/json\r\n", "Cache-Control: no-store\r\n"));
  EXPECT_EQ(get("/agents/listed/?x=1").body, kListed);
  EXPECT_EQ(ask(http("HEAD", "/agents/listed"), false).status, 200);
  runtime_->classes().set_aliases({{"shown", "listed"}});
  EXPECT_EQ(get("/agents/shown").body, kListed);
}

TEST_F(ClassPageTest, AnyOtherClassAndMethodIsRefusedAsAPathTooShort) {
  const Reply unknown = get("/agents/nobody");
  EXPECT_EQ(unknown.status, 404);
  for (const Reply& reply : {get("/agents/sampler"), ask(http("POST", "/agents/listed"))}) {
    EXPECT_EQ(reply.status, 404);
    EXPECT_EQ(reply.body, unknown.body) << "a class that is not listed looks like none";
  }
}

TEST_F(ClassPageTest, NoAgentIsHidden) {
  EXPECT_EQ(get("/agents/listed/methods/teapot").status, 418);
  EXPECT_EQ(close_code("/agents/listed"), 4400) << "no class is an agent";
}

TEST_F(ClassPageTest, WhileTheServerIsNotReadyNothingIsListed) {
  readiness_.set(Readiness::Phase::kStopping);
  EXPECT_EQ(get("/agents/listed").status, 404);
  readiness_.set(Readiness::Phase::kReady);
}

TEST(MethodsAnswerTest, ASegmentIsWrittenAsJson) {
  EXPECT_EQ(methods_answer("a\"b", "[]").body, R"({"class":"a\"b","methods":[]})");
}

}  // namespace
}  // namespace hearth::api::testing
