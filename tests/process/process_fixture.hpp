#pragma once
// A data directory, a directory of libraries, and servers on them.

#include "base/files.hpp"
#include "json/json.hpp"
#include "net/raw_client.hpp"
#include "process/contains.hpp"
#include "support/built.hpp"
#include "support/server_process.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace hearth::testing {

inline constexpr Ending kClean{.status = 0, .signal = 0};
inline constexpr Ending kFailed{.status = 1, .signal = 0};
inline constexpr Ending kBadUsage{.status = 2, .signal = 0};
inline constexpr Ending kKilled{.status = -1, .signal = SIGKILL};
inline constexpr Ending kCrashed{.status = -1, .signal = SIGSEGV};

class ProcessTest : public ::testing::Test {
 protected:
  ProcessTest() {
    std::filesystem::create_directory(root_ / "plugins");
    std::filesystem::permissions(root_ / "plugins", std::filesystem::perms{0755});
  }

  // The file of a bundled library.
  static std::filesystem::path bundled(const std::string& name) { return built::bundled(name); }
  // The file of a library of the loader's tests.
  static std::filesystem::path made_for_tests(const std::string& name) {
    return built::loader_case(name);
  }

  // Puts a copy of a library where the servers of this test look for them.
  void install(const std::filesystem::path& library, const std::string& as) const {
    std::filesystem::copy_file(library, root_ / "plugins" / as);
  }
  // As `mv` does: a new file under the old name.
  void replace(const std::filesystem::path& library, const std::string& as) const {
    const std::filesystem::path temporary = root_ / "plugins/.new";
    std::filesystem::copy_file(library, temporary,
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(temporary, root_ / "plugins" / as);
  }
  void put(const std::filesystem::path& path, std::string_view text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    const auto written = write_file_atomically(root_ / path, text);
    if (!written) throw std::runtime_error(written.error().message);
  }

  // Runs `hearth` with these arguments, in the directory of this test.
  [[nodiscard]] std::unique_ptr<ServerProcess> run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), built::server().string());
    return std::make_unique<ServerProcess>(arguments, root_);
  }

  // How a command has ended, and what it has printed.
  struct Said {
    Ending ending;
    std::string out, err;

    [[nodiscard]] std::string all() const { return out + err; }
  };
  [[nodiscard]] Said say(const std::vector<std::string>& arguments) const {
    const auto command = run(arguments);
    const Ending ending = command->wait();
    return {.ending = ending, .out = command->out(), .err = command->log()};
  }
  // What a command prints that succeeds.
  [[nodiscard]] std::string ask(const std::vector<std::string>& arguments) const {
    const Said said = say(arguments);
    EXPECT_EQ(said.ending, kClean) << said.err;
    return said.out;
  }
  // What a command says that fails.
  [[nodiscard]] std::string refused(const std::vector<std::string>& arguments,
                                    const Ending& ending = kFailed) const {
    const Said said = say(arguments);
    EXPECT_EQ(said.ending, ending) << said.out;
    return said.err;
  }
  // All that a command prints, however it ends.
  std::string hearth(const std::vector<std::string>& arguments) const {
    return say(arguments).all();
  }
  // Whether a command ends so, and prints all of these parts, no matter where.
  template <class... Parts>
  [[nodiscard]] ::testing::AssertionResult says(const std::vector<std::string>& arguments,
                                                const Ending& ending, const Parts&... parts) const {
    const Said said = say(arguments);
    if (said.ending == ending) return contains(said.all(), parts...);
    return ::testing::AssertionFailure() << "status " << said.ending.status << ", signal "
                                         << said.ending.signal << ": " << said.all();
  }

  // A server on a free port, with this test's data and libraries (./data and ./plugins).
  [[nodiscard]] std::unique_ptr<ServerProcess> serve(
      const std::vector<std::string>& more = {}) const {
    return serve_under({}, more);
  }
  // The same, run by another command, as `env NAME=value`.
  [[nodiscard]] std::unique_ptr<ServerProcess> serve_under(
      std::vector<std::string> command, const std::vector<std::string>& more = {}) const {
    command.push_back(built::server().string());
    command.insert(command.end(), {"serve", "--listen", "127.0.0.1:0", "--log-format", "human"});
    command.insert(command.end(), more.begin(), more.end());
    return std::make_unique<ServerProcess>(command, root_);
  }
  [[nodiscard]] std::unique_ptr<ServerProcess> serve_ready(
      const std::vector<std::string>& more = {}) const {
    auto server = serve(more);
    server->wait_until_ready();
    return server;
  }

  // `headers`: each with its end of line.
  static Reply request(std::uint16_t port, const std::string& method, const std::string& path,
                       const std::string& headers = "", const std::string& body = "") {
    return RawClient(port).request(
        method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers +
        "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  static Reply request(const ServerProcess& server, const std::string& method,
                       const std::string& path, const std::string& headers = "",
                       const std::string& body = "") {
    return request(server.port(), method, path, headers, body);
  }
  static std::string increment(const ServerProcess& server, const std::string& name) {
    return request(server, "POST", "/agents/counter/" + name).body;
  }
  static std::string count(const ServerProcess& server, const std::string& name) {
    return request(server, "GET", "/agents/counter/" + name).body;
  }

  // What `look` has seen once it holds.
  template <class Look, class Holds>
  static Json soon(const Look& look, const Holds& holds) {
    const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
    for (;;) {
      Json seen = look();
      if (holds(seen)) return seen;
      if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error(dump_json(seen));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the server has the processor
    }
  }
  // That of the administrators.
  [[nodiscard]] std::string read_token() const {
    std::string token = read_file(root_ / "data/admin.token", 4096).value();
    token.erase(token.find_last_not_of(" \n") + 1);
    return token;
  }
  [[nodiscard]] std::string bearer() const {
    return "Authorization: Bearer " + read_token() + "\r\n";
  }

  TempDirectory temporary_;
  const std::filesystem::path root_ = temporary_.path();
};

}  // namespace hearth::testing
