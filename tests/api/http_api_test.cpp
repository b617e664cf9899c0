#include "api/http_api.hpp"

#include "api/api_fixture.hpp"

namespace hearth::api::testing {
namespace {

class HttpApiTest : public ApiFixture {};

TEST_F(HttpApiTest, IsHealthyInEveryPhase) {
  start();
  for (const auto phase :
       {Readiness::Phase::kStarting, Readiness::Phase::kReady, Readiness::Phase::kStopping}) {
    readiness_.set(phase);
    const Reply reply = get("/healthz");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, R"({"status":"ok"})");
  }
}

TEST_F(HttpApiTest, IsReadyWhenItIs) {
  start();
  const Reply ready = get("/readyz?verbose");
  EXPECT_EQ(ready.status, 200);
  EXPECT_EQ(ready.body, R"({"classes":["broken","counter","room","sampler"],"status":"ready"})");
  EXPECT_NE(ready.head.find("Cache-Control: no-store\r\n"), std::string::npos);

  readiness_.set(Readiness::Phase::kStarting);
  EXPECT_EQ(get("/readyz").status, 503);
  EXPECT_EQ(get("/readyz").body, R"({"status":"starting"})");
  readiness_.set(Readiness::Phase::kStopping);
  EXPECT_EQ(get("/readyz").status, 503);
  EXPECT_EQ(get("/readyz").body, R"({"status":"stopping"})");
}

TEST_F(HttpApiTest, SaysAtItsRootWhatItIs) {
  start();
  const Reply reply = get("/");
  EXPECT_EQ(reply.status, 200);
  EXPECT_NE(reply.head.find("Content-Type: text/plain"), std::string::npos);
  EXPECT_NE(reply.body.find("/agents/{class}/{name}"), std::string::npos);
}

TEST_F(HttpApiTest, AnswersHeadLikeGetAndOtherMethodsWith405) {
  start();
  for (const std::string_view path : {"/", "/healthz", "/readyz"}) {
    EXPECT_EQ(ask(http("HEAD", path), false).status, 200) << path;
    for (const std::string_view method : {"POST", "DELETE", "OPTIONS"}) {
      const Reply reply = ask(http(method, path));
      EXPECT_EQ(reply.status, 405) << method << path;
      EXPECT_NE(reply.head.find("Allow: GET, HEAD\r\n"), std::string::npos);
    }
  }
}

TEST_F(HttpApiTest, AnswersEverythingElseWith404) {
  start();
  for (const std::string_view path :
       {"/nothing", "/healthz/x", "//healthz", "/AGENTS/sampler/a", "*"}) {
    const Reply reply = get(path);
    EXPECT_EQ(reply.status, 404) << path;
    EXPECT_EQ(reply.body,
              R"({"error":{"code":"not_found","message":"there is nothing at this path"}})");
  }
}

}  // namespace
}  // namespace hearth::api::testing
