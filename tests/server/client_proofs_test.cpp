#include "server/client_proofs.hpp"

#include "base/client_memory.hpp"
#include "net/http_server.hpp"
#include "runtime/runtime.hpp"
#include "storage/data_directory.hpp"
#include "support/recording_logger.hpp"
#include "support/temp_directory.hpp"
#include "telemetry/metrics.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <string>
#include <utility>
#include <vector>

namespace hearth::server {
namespace {

const std::string kOldToken = "0123456789abcdef-old";
const std::string kNewToken = "0123456789abcdef-new";

// Answers each path with its own text.
class KeyHost final : public net::HttpHandler {
 public:
  void on_request(std::shared_ptr<net::HttpExchange> exchange) override {
    const std::string target = exchange->request().target;
    net::HttpResponse response;
    if (target == "/keys") response.body = "the keys";
    if (target == "/long") response.body = std::string(auth::SigningKeys::kMaxBytes + 1, ' ');
    if (target == "/moved") {
      response.status = 302;
      response.headers.push_back({"Location", "/keys"});
    }
    if (response.body.empty() && response.status == 200) response.status = 404;
    exchange->respond(std::move(response));
  }
  net::UpgradePlan on_upgrade(const net::HttpRequest& /*request*/) override { return {}; }
};

class ClientProofsTest : public ::testing::Test {
 protected:
  ClientProofsTest() {
    auto made = net::OutboundHttp::make(loop_.context(), {});
    http_ = *std::move(made);
  }

  [[nodiscard]] std::filesystem::path put(const std::string& name, const std::string& text) const {
    std::ofstream(directory_.path() / name) << text;
    return directory_.path() / name;
  }
  [[nodiscard]] Result<std::unique_ptr<ClientProofs>> open(const config::AuthConfig& settings) {
    return ClientProofs::open(settings, loop_, *http_, clock_, logger_);
  }

  SystemClock clock_;
  hearth::testing::RecordingLogger logger_;
  hearth::testing::TempDirectory directory_;
  runtime::AsioLoop loop_{clock_};
  std::unique_ptr<net::OutboundHttp> http_;
};

TEST_F(ClientProofsTest, FilesAreReadAtTheStartAndWhenTheOperatorSaysSo) {
  config::AuthConfig settings;
  settings.token_file = put("tokens", kOldToken + "\n");
  auto proofs = open(settings);
  ASSERT_TRUE(proofs) << proofs.error().message;
  auth::Authenticator& authenticator = (*proofs)->authenticator();
  const auto is_good = [&authenticator](const std::string& token) {
    return std::holds_alternative<auth::Visitor>(authenticator.check(ProofKind::kToken, token));
  };
  EXPECT_TRUE(is_good(kOldToken));
  (void)put("tokens", kOldToken + "\n" + kNewToken + "\n");
  EXPECT_FALSE(is_good(kNewToken));
  EXPECT_FALSE((*proofs)->refresh()) << "none has gone";
  EXPECT_TRUE(is_good(kOldToken));
  EXPECT_TRUE(is_good(kNewToken));
  (void)put("tokens", "");
  EXPECT_FALSE((*proofs)->refresh());
  EXPECT_TRUE(is_good(kNewToken)) << "what cannot be read takes nothing away";
  EXPECT_TRUE(logger_.contains("auth.source_failed"));
  (void)put("tokens", "# the old one\r\n" + kNewToken + "\r\n");
  EXPECT_TRUE((*proofs)->refresh()) << "its holders are to be asked anew";
  EXPECT_FALSE(is_good(kOldToken));
  EXPECT_FALSE((*proofs)->refresh());
}

// So that clients which are connecting, and cannot be found to be closed, are checked again, too.
TEST_F(ClientProofsTest, ATokenThatIsGoneChangesWhoMayConnect) {
  auto data = storage::DataDirectory::open(directory_.path() / "data");
  ASSERT_TRUE(data) << data.error().message;
  Metrics metrics;
  const std::vector<runtime::ShardLoop*> loops{&loop_};
  runtime::Runtime runtime(loops, *data, logger_, metrics, {});
  config::AuthConfig settings;
  settings.token_file = put("tokens", kOldToken + "\n");
  auto proofs = open(settings);
  ASSERT_TRUE(proofs) << proofs.error().message;
  struct Step {
    std::string tokens;
    bool changes;
  };
  for (const Step& step : std::vector<Step>{{kOldToken, false},
                                            {kOldToken + "\n" + kNewToken + "\n", false},
                                            {"", false},
                                            {kNewToken, true}}) {
    (void)put("tokens", step.tokens);
    const std::uint64_t before = runtime.classes().access_generation();
    refresh_proofs(**proofs, settings, runtime, logger_);
    EXPECT_EQ(runtime.classes().access_generation() != before, step.changes) << step.tokens;
  }
}

TEST_F(ClientProofsTest, AFileOfNoUseStopsTheStartAndSaysWhich) {
  for (const std::string text : {"", "too-short", "secret-text that is no key"}) {
    config::AuthConfig tokens;
    tokens.token_file = put("tokens", text);
    config::AuthConfig keys;
    keys.keys_file = put("keys", text);
    for (const auto& [settings, name] :
         {std::pair(tokens, "auth.token_file"), {keys, "auth.keys"}}) {
      const auto proofs = open(settings);
      ASSERT_FALSE(proofs);
      EXPECT_EQ(proofs.error().message.find(name), 0U) << proofs.error().message;
      const auto wrong = mistakes_in_proof_files(settings);
      ASSERT_EQ(wrong.size(), 1U);
      EXPECT_EQ(wrong[0].find(name), 0U) << wrong[0];
      EXPECT_EQ(wrong[0].find("secret-text"), std::string::npos);
    }
  }
  config::AuthConfig missing;
  missing.keys_file = directory_.path() / "nothing";
  EXPECT_FALSE(open(missing));
  missing.token_file = missing.keys_file;
  EXPECT_EQ(mistakes_in_proof_files(missing).size(), 2U);
  EXPECT_TRUE(mistakes_in_proof_files({}).empty());
}

TEST_F(ClientProofsTest, KeysOfAUrlAreDownloaded) {
  KeyHost keys;
  Metrics metrics;
  ClientMemory memory{std::size_t{1} << 20};
  const std::vector<net::NetLoop> loops{{loop_.context(), loop_.turn_end()}};
  auto listening = net::HttpServer::listen({.port = 0}, loops, keys, {logger_, metrics, memory});
  ASSERT_TRUE(listening) << listening.error().message;
  loop_.start();
  (*listening)->start();
  const std::string host = "http://127.0.0.1:" + std::to_string((*listening)->port());
  std::vector<std::unique_ptr<KeyDownload>> downloads;  // gone once the loop has stopped
  const auto get = [&](const std::string& url) {
    downloads.push_back(std::make_unique<KeyDownload>(loop_, *http_, url));
    std::promise<Result<std::string>> done;
    downloads.back()->get([&done](Result<std::string> text) { done.set_value(std::move(text)); });
    return done.get_future().get();
  };
  const auto text = get(host + "/keys");
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, "the keys");
  for (const char* path : {"/long", "/moved", "/nothing"}) EXPECT_FALSE(get(host + path)) << path;
  EXPECT_FALSE(get("http://127.0.0.1:1/keys"));
  std::promise<void> over;
  (*listening)->stop(std::chrono::seconds(5), [&over] { over.set_value(); });
  over.get_future().get();
  listening->reset();
  loop_.stop();
}

}  // namespace
}  // namespace hearth::server
