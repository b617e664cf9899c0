#pragma once
// The tokens and keys against which proofs of clients are checked. The configuration names them.

#include "auth/authenticator.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/logger.hpp"
#include "config/config.hpp"
#include "net/outbound_http.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/runtime.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::server {

// Downloads one small document, each time that get() is called.
//
// Promises   Each answer is called once, unless the server stops. Redirects are not followed.
// Threads    get() from any thread, one after the other; answers come on the loop.
// Lifetime   The loop and the client outlive it. Destroyed while the loop does not run.
class KeyDownload final : private net::OutboundListener {
 public:
  KeyDownload(runtime::AsioLoop& loop, net::OutboundHttp& http, std::string url);

  void get(auth::ProofSources::Answer answer);

 private:
  void begin();
  void end(Result<std::string> text);
  void on_head(net::OutboundHead head) override;
  void on_body(std::string_view piece) override;
  void on_end(std::optional<net::OutboundFailure> failure) override;

  runtime::AsioLoop& loop_;
  net::OutboundHttp& http_;
  const std::string url_;
  // Only on the loop.
  auth::ProofSources::Answer answer_;
  std::unique_ptr<net::OutboundExchange> exchange_;
  int status_ = 0;
  std::string body_;
};

// Threads    refresh() from one thread at a time, as WatchedFiles does; the authenticator as it
//            says.
// Lifetime   As KeyDownload.
class ClientProofs {
 public:
  // Reads the files, and begins to download the keys from a URL.
  //   Failure   A sentence for the operator: a file cannot be read, or holds no valid content.
  static Result<std::unique_ptr<ClientProofs>> open(const config::AuthConfig& settings,
                                                    runtime::AsioLoop& loop,
                                                    net::OutboundHttp& http, const Clock& clock,
                                                    Logger& logger);

  // Reads the files again. If a file cannot be read, logs that and keeps the content from before.
  // True: a token is not valid any more.
  bool refresh();

  [[nodiscard]] auth::Authenticator& authenticator() { return *authenticator_; }

 private:
  explicit ClientProofs(std::filesystem::path token_file) : token_file_(std::move(token_file)) {}

  // Reads the tokens again. Returns the result of refresh().
  bool take_tokens();

  const std::filesystem::path token_file_;  // empty: none
  std::string tokens_;                      // its last valid text
  std::unique_ptr<auth::Authenticator> authenticator_;
  std::unique_ptr<KeyDownload> download_;  // answers the authenticator: destroyed before it
};

// ClientProofs::refresh(). If a token is not valid any more, closes the clients of all classes that
// require a token, with 1012, so that they connect again: the server does not know which of them
// used that token.
void refresh_proofs(ClientProofs& proofs, const config::AuthConfig& settings,
                    runtime::Runtime& runtime, Logger& logger);

// What is wrong with the files that `settings` names, with the name of the setting.
[[nodiscard]] std::vector<std::string> mistakes_in_proof_files(const config::AuthConfig& settings);

}  // namespace hearth::server
