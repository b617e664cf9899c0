#pragma once
// A whole server in this process, on a port of the system's choice.

#include "net/raw_client.hpp"
#include "server/server.hpp"
#include "support/recording_logger.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace hearth::server {

class WholeServerTest : public ::testing::Test {
 protected:
  WholeServerTest() {
    config_.server.net.port = 0;
    config_.server.data = temporary_.path() / "data";
    config_.server.plugins = {plugins_};
    config_.server.shards = 2;
    std::filesystem::create_directory(plugins_);
    std::filesystem::permissions(plugins_, std::filesystem::perms{0755});
  }
  ~WholeServerTest() override { stop(); }

  // Puts a library where the server looks for libraries.
  void install(const std::filesystem::path& library) const {
    std::filesystem::copy_file(library, plugins_ / library.filename());
  }
  void start() {
    auto started = Server::start(config_, logger_);
    ASSERT_TRUE(started) << started.error().message;
    server_ = *std::move(started);
  }
  void stop() {
    if (server_) server_->stop();
    server_.reset();
  }
  [[nodiscard]] std::uint16_t port() const {
    const std::string address = server_->address();
    return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  }
  [[nodiscard]] testing::Reply request(const std::string& method, const std::string& path) const {
    return testing::RawClient(port()).request(
        method + " " + path +
        " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  }

  testing::TempDirectory temporary_;
  const std::filesystem::path plugins_ = temporary_.path() / "plugins";
  testing::RecordingLogger logger_;
  config::Config config_;
  std::unique_ptr<Server> server_;
};

}  // namespace hearth::server
