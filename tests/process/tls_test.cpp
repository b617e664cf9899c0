// TLS of the real server: its start, its certificate while it runs, and its own commands.

#include "net/test_certificate.hpp"
#include "net/tls_client.hpp"
#include "process/process_fixture.hpp"

#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

namespace hearth::testing {
namespace {

class TlsTest : public ProcessTest {
 protected:
  TlsTest() {
    install(bundled("counter"), "counter.so");
    std::filesystem::create_directory(root_ / "tls");
    replace_certificate("first.test");
    put("hearth.yaml",
        "tls: {certificate: tls/live.pem, key: tls/live.key}\nreload: {quiet_time: 50ms}\n");
  }

  // One file after the other, as tools do.
  void replace_certificate(const std::string& name, long days = 30) const {
    const CertificateFiles made = make_certificate(root_, name, KeyKind::kEc, "", days);
    std::filesystem::rename(made.certificate, root_ / "tls/live.pem");
    std::filesystem::rename(made.key, root_ / "tls/live.key");
  }
  [[nodiscard]] auto serve_tls() const { return serve_ready({"--config", "hearth.yaml"}); }
  static std::string certificate_of(const ServerProcess& server) {
    TlsClient client(server.port());
    const std::string fault = client.handshake();
    return fault.empty() ? client.peer_name() : fault;
  }
  static Reply get(TlsClient& client, const std::string& path) {
    return client.request("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
};

TEST_F(TlsTest, TheServerSaysThatItSpeaksTlsAndDoes) {
  const auto server = serve_tls();
  EXPECT_TRUE(contains(server->out(), "hearth ready: listening on https://127.0.0.1:"));
  TlsClient client(server->port(), {.protocol = "http/1.1"});
  ASSERT_EQ(client.handshake(), "");
  EXPECT_EQ(get(client, "/readyz").status, 200);
  const Reply metrics = get(client, "/metrics");
  EXPECT_TRUE(contains(metrics.body, "hearth_tls_certificate_expires_seconds 1"));
  EXPECT_EQ(client.upgrade("/agents/counter/a").status, 101);
  client.send(RawClient::text_frame(R"({"type":"rpc","id":"1","method":"increment","args":[]})"));
  std::string answer;
  while (answer.find("\"rpc\"") == std::string::npos) answer = client.read_text();
  EXPECT_TRUE(contains(answer, "\"success\":true"));
  client.close();
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_TRUE(contains(server->log(), "tls.certificate"));
  EXPECT_TRUE(lacks(server->log(), "PRIVATE"));
}

TEST_F(TlsTest, ANewCertificateIsTakenFromItsFilesWhileConnectionsStay) {
  const auto server = serve_tls();
  TlsClient old(server->port());
  ASSERT_EQ(old.handshake(), "");
  replace_certificate("second.test");
  server->wait_for_log("tls.certificate", 2);
  EXPECT_EQ(certificate_of(*server), "second.test");
  EXPECT_EQ(get(old, "/healthz").status, 200);
  EXPECT_EQ(old.peer_name(), "first.test");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(TlsTest, APairThatDoesNotFitChangesNothingAndIsToldOf) {
  put("hearth.yaml",
      "tls: {certificate: tls/live.pem, key: tls/live.key}\nreload: {watch: false}\n");
  const auto server = serve_tls();
  const CertificateFiles next = make_certificate(root_, "second.test");
  std::filesystem::rename(next.certificate, root_ / "tls/live.pem");
  server->signal(SIGHUP);
  server->wait_for_log("tls.certificate_refused");
  EXPECT_EQ(certificate_of(*server), "first.test");
  TlsClient client(server->port());
  ASSERT_EQ(client.handshake(), "");
  EXPECT_TRUE(
      contains(get(client, "/metrics").body, "hearth_tls_reloads_total{result=\"refused\"} 1"));
  std::filesystem::rename(next.key, root_ / "tls/live.key");
  server->signal(SIGHUP);
  server->wait_for_log("days_left", 2);
  EXPECT_EQ(certificate_of(*server), "second.test");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(TlsTest, CommandsFindTheServerThroughTls) {
  const auto server = serve_tls();
  (void)ask({"plugins", "--data", "data"});
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(TlsTest, MistakesAreToldBeforeTheStartAndAtIt) {
  const std::vector<std::string> start{"serve", "--config", "hearth.yaml", "--listen",
                                       "127.0.0.1:0"};
  const std::vector<std::string> check{"serve", "--config", "hearth.yaml", "--check-config"};
  ::chmod((root_ / "tls/live.key").c_str(), 0644);
  EXPECT_TRUE(contains(refused(check, kBadUsage), "hearth: tls: the key",
                       "others have access to it: chmod 600"));
  const std::string why_not = refused(start, kBadUsage);
  EXPECT_TRUE(contains(why_not, "tls: the key"));
  EXPECT_TRUE(lacks(why_not, "Give HOST:PORT"));

  put("hearth.yaml", "tls: {certificate: tls/live.pem}\n");
  EXPECT_TRUE(contains(refused(check, kBadUsage),
                       "hearth.yaml:1:20: tls.certificate: it needs tls.key beside it"));
}

TEST_F(TlsTest, TheCheckOfTheConfigurationWarnsOfACertificateThatHasExpired) {
  for (const long days : {-1L, 1L}) {
    replace_certificate("first.test", days);
    const Said checked = say({"serve", "--config", "hearth.yaml", "--check-config"});
    EXPECT_EQ(checked.ending, kClean);
    EXPECT_EQ(bool(contains(checked.err, "hearth: warning: tls: the certificate has expired")),
              days < 0)
        << checked.err;
  }
}

TEST_F(TlsTest, TheLogIsFollowedThroughTls) {
  const auto server = serve_tls();
  const auto tail = run({"tail", "--since", "10m", "--data", "data"});
  while (tail->wait_for_line().find("server.ready") == std::string::npos) {
  }
  tail->signal(SIGTERM);
  (void)tail->wait();
  EXPECT_EQ(server->stop(), kClean);
}

}  // namespace
}  // namespace hearth::testing
