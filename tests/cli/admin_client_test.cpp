#include "cli/admin_client.hpp"

#include "base/files.hpp"
#include "server/admin_token.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace hearth::cli {
namespace {

// Takes one connection, reads until the end of a request's head, answers with what it was given,
// and closes.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this, answer = std::move(answer)] {
      const int client = ::accept(listener_, nullptr, nullptr);
      char part[4096];
      while (request_.find("\r\n\r\n") == std::string::npos) {
        const ssize_t got = ::recv(client, part, sizeof part, 0);
        if (got <= 0) break;
        request_.append(part, static_cast<std::size_t>(got));
      }
      (void)::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
      ::close(client);
    });
  }
  ~OneAnswer() {
    ::shutdown(listener_, SHUT_RDWR);  // also if no client came
    thread_.join();
    ::close(listener_);
  }
  OneAnswer(const OneAnswer&) = delete;
  OneAnswer& operator=(const OneAnswer&) = delete;

  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // After the answer.
  [[nodiscard]] const std::string& request() {
    if (thread_.joinable()) thread_.join();
    thread_ = std::jthread([] {});
    return request_;
  }

 private:
  int listener_;
  int port_ = 0;
  std::string request_;
  std::jthread thread_;
};

class AdminClientTest : public ::testing::Test {
 protected:
  AdminClientTest() {
    testing::SeededRandom random(1);
    token_ = server::admin_token_or_create(file_, random).value();
  }
  Result<Json> ask(const std::string& address) {
    const auto published = server::PublishedRecord::publish(
        directory_.path(), {.address = address, .token_file = file_, .pid = 1});
    EXPECT_TRUE(published);
    const auto client = AdminClient::on(directory_.path());
    EXPECT_TRUE(client);
    return client->ask("GET", "/admin/plugins");
  }

  testing::TempDirectory directory_;
  const std::filesystem::path file_ = directory_.path() / "admin.token";
  std::string token_;
};

TEST_F(AdminClientTest, SendsTheTokenAndGivesTheAnswer) {
  for (const bool on_all : {false, true}) {
    OneAnswer server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    std::string address = server.address();
    if (on_all) address.replace(0, address.find(':'), "0.0.0.0");
    const auto answer = ask(address);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(dump_json(*answer), "{}");
    EXPECT_TRUE(server.request().starts_with("GET /admin/plugins HTTP/1.1\r\n"));
    EXPECT_NE(server.request().find("Authorization: Bearer " + token_ + "\r\n"), std::string::npos);
    EXPECT_NE(server.request().find("Host: " + server.address() + "\r\n"), std::string::npos);
  }
}

TEST_F(AdminClientTest, ARefusalIsWhatTheServerSays) {
  OneAnswer server("HTTP/1.1 404 Not Found\r\n\r\n" +
                   std::string(R"({"error":{"code":"not_found","message":"no such agent"}})"));
  const auto answer = ask(server.address());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::kNotFound);
  EXPECT_EQ(answer.error().message, "no such agent");
}

TEST_F(AdminClientTest, WhatIsNoAnswerIsAnErrorThatNamesTheServer) {
  for (const char* text :
       {"", "garbage", "HTTP/1.1 200 OK\r\n\r\n{\"cut", "HTTP/1.1 500 No\r\n\r\n"}) {
    OneAnswer server(text);
    const auto answer = ask(server.address());
    ASSERT_FALSE(answer) << text;
    EXPECT_EQ(answer.error().code, Errc::kUnavailable);
  }
}

TEST_F(AdminClientTest, NobodyAtTheAddressIsAnError) {
  std::string address;
  {
    const OneAnswer gone("");
    address = gone.address();
  }
  const auto answer = ask(address);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find(address), std::string::npos);
}

TEST_F(AdminClientTest, WithoutAServerOrATokenItSaysSo) {
  EXPECT_NE(AdminClient::on(directory_.path()).error().message.find("no server runs"),
            std::string::npos);
  std::filesystem::remove(file_);
  const auto published = server::PublishedRecord::publish(
      directory_.path(), {.address = "x", .token_file = file_, .pid = 1});
  EXPECT_NE(AdminClient::on(directory_.path()).error().message.find("admin.token"),
            std::string::npos);
}

TEST(UrlTest, NamesAreEncodedOnceHoweverTheyAreWritten) {
  EXPECT_EQ(url_encoded("a b/c%20~\xc3\xa4"), "a%20b%2Fc%2520~%C3%A4");
  EXPECT_EQ(name_in_url("Room 1"), "Room%201");
  EXPECT_EQ(name_in_url("Room%201"), "Room%201");
  EXPECT_EQ(name_in_url("a/b?c#d"), "a%2Fb%3Fc%23d");
  EXPECT_EQ(name_in_url("Inbox/u 1/a%2Fb"), "Inbox/u%201/a%2Fb") << "a sub-agent";
  EXPECT_EQ(name_in_url("me@x.org:1"), "me@x.org:1");
  EXPECT_EQ(name_in_url("auth0|1[2]"), "auth0|1[2]") << "as browsers spell it";
  EXPECT_EQ(name_in_url("\r\nX: y"), "%0D%0AX:%20y");
}

// Programs send these as they are, lists print them so, and `--after` must not sort before them.
TEST(UrlTest, ANameStaysAsAListPrintsIt) {
  const std::string name = "a{b}\"<c>^`\\|[d]%7B";
  EXPECT_EQ(name_in_url(name), name);
  EXPECT_EQ(name_in_url("Inbox/u/" + name), "Inbox/u/" + name) << "a sub-agent";
}

}  // namespace
}  // namespace hearth::cli
