#pragma once
// A data directory, a directory of libraries, and servers on them.

#include "base/files.hpp"
#include "net/raw_client.hpp"
#include "support/built.hpp"
#include "support/server_process.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::testing {

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

  // A server on a free port, with this test's data and libraries (./data and ./plugins).
  [[nodiscard]] std::unique_ptr<ServerProcess> serve(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"serve", "--listen", "127.0.0.1:0", "--log-format", "human"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  [[nodiscard]] std::unique_ptr<ServerProcess> serve_ready(
      std::vector<std::string> more = {}) const {
    auto server = serve(std::move(more));
    server->wait_until_ready();
    return server;
  }

  static Reply request(const ServerProcess& server, const std::string& method,
                       const std::string& path) {
    RawClient client(server.port());
    return client.request(
        method + " " + path +
        " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  }
  static std::string increment(const ServerProcess& server, const std::string& name) {
    return request(server, "POST", "/agents/counter/" + name).body;
  }
  static std::string count(const ServerProcess& server, const std::string& name) {
    return request(server, "GET", "/agents/counter/" + name).body;
  }

  TempDirectory temporary_;
  const std::filesystem::path root_ = temporary_.path();
};

inline constexpr Ending kClean{.status = 0, .signal = 0};
inline constexpr Ending kFailed{.status = 1, .signal = 0};
inline constexpr Ending kBadUsage{.status = 2, .signal = 0};
inline constexpr Ending kKilled{.status = -1, .signal = SIGKILL};

}  // namespace hearth::testing
