#pragma once
// A server that plays a model provider (provider.mjs says what its paths do), as a child process.

#include "support/server_process.hpp"
#include "support/temp_directory.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace hearth::testing {

// The `openssl` command makes its certificate. It signs itself, and is for `provider.test`,
// `other.test`, `localhost` and 127.0.0.1.
//
// Promises  The process is ready after the constructor, and gone after the destructor.
class Provider {
 public:
  Provider();

  [[nodiscard]] std::uint16_t http() const { return http_; }
  [[nodiscard]] std::uint16_t https() const { return https_; }
  // Takes connections, and never reads from them.
  [[nodiscard]] std::uint16_t silent() const { return silent_; }
  // An HTTP proxy that forwards all requests to the ports above. It refuses `refused.test`.
  [[nodiscard]] std::uint16_t proxy() const { return proxy_; }

  // Waits for its next line, which reports a request, and returns it.
  std::string wait_for_request() { return process_->wait_for_line(); }

  // "http://provider.test:PORT" and a path.
  [[nodiscard]] std::string http_url(std::string_view path) const;
  [[nodiscard]] std::string https_url(std::string_view path) const;

  // The authority, as a PEM file.
  [[nodiscard]] std::filesystem::path certificate() const;

 private:
  TempDirectory directory_;
  std::unique_ptr<ServerProcess> process_;
  std::uint16_t http_ = 0;
  std::uint16_t https_ = 0;
  std::uint16_t silent_ = 0;
  std::uint16_t proxy_ = 0;
};

}  // namespace hearth::testing
