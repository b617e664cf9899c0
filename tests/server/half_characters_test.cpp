// The rows of half_characters.txt, sent to a whole server.
#include "base/files.hpp"
#include "base/utf8.hpp"
#include "json/json_scanner.hpp"
#include "net/raw_client.hpp"
#include "server/whole_server_fixture.hpp"
#include "support/built.hpp"
#include "support/edge_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

namespace hearth::server {
namespace {

namespace fs = std::filesystem;
using testing::Frame;
using testing::RawClient;
using testing::Reply;

class HalfCharactersTest : public WholeServerTest {
 protected:
  void start_with_objects() {
    config_.server.shards = 1;
    config_.server.classes = temporary_.path() / "classes";
    config_.server.objects.all_classes = true;
    install(testing::built::bundled("counter"));
    install(testing::built::agent("probe-agent"));
    start();
    token_ = read_file(config_.server.data / "admin.token", 4096).value();
    token_.pop_back();
  }

  // "POST /path <Name: value>body": the answer in the words of the table, as far as `wanted` has
  // them.
  std::string heard(const std::string& request, const std::string& wanted) {
    const std::size_t path = request.find(' ') + 1;
    const std::size_t end = std::min(request.find(' ', path), request.size());
    const std::string method = request.substr(0, path - 1);
    const std::string target = request.substr(path, end - path);
    std::string rest = request.substr(std::min(end + 1, request.size()));
    if (method == "WS") return heard_of_web_socket(target, rest, wanted);
    std::string headers = "Host: localhost\r\nAuthorization: Bearer " + token_ + "\r\n";
    if (rest.starts_with('<')) {
      headers += rest.substr(1, rest.find('>') - 1) + "\r\n";
      rest.erase(0, rest.find('>') + 1);
    }
    const Reply reply = RawClient(port()).request(
        method + ' ' + target + " HTTP/1.1\r\n" + headers +
        "Content-Length: " + std::to_string(rest.size()) + "\r\n\r\n" + rest);
    const std::string text = wanted.substr(std::min<std::size_t>(4, wanted.size()));
    const bool is_clean = is_json(reply.body) && is_valid_utf8(reply.body);
    const bool has_text = is_clean && reply.body.find(text) != std::string::npos;
    return std::to_string(reply.status) + (has_text ? wanted.substr(3) : ' ' + reply.body);
  }
  std::string heard_of_web_socket(const std::string& target, const std::string& frame,
                                  const std::string& wanted) {
    RawClient client(port());
    client.upgrade(target);
    client.send(RawClient::text_frame(frame));
    client.send(RawClient::close_frame(1000));
    for (;;) {
      const Frame answer = client.read_frame();
      if (answer.opcode == 8)
        return answer.close_code() == 1000 ? "0" : std::to_string(answer.close_code());
      if (answer.payload.find(wanted) != std::string::npos && wanted.size() > 1) return wanted;
    }
  }

  std::string token_;
};

TEST_F(HalfCharactersTest, EachDoorAnswersAsItsRowSays) {
  start_with_objects();
  const fs::path file = testing::built::sources() / "tests/server/half_characters.txt";
  for (const std::vector<std::string>& row : testing::read_edge_table(file, 3)) {
    const std::string wanted = testing::unescaped(row[2]);
    std::string answer;
    try {
      answer = heard(testing::unescaped(row[1]), wanted);
    } catch (const std::exception& failure) {
      answer = failure.what();
    }
    EXPECT_EQ(answer, wanted) << row[0] << "\n" << row[1];
  }
}

}  // namespace
}  // namespace hearth::server
