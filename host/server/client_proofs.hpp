#pragma once
// What the proofs of clients are checked with: tokens and keys that the configuration names.

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

namespace hearth::server {

// Gets one small document, over and over.
//
// Promises   Each answer is called once, unless the server stops. No redirect is followed.
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
  // The loop's.
  auth::ProofSources::Answer answer_;
  std::unique_ptr<net::OutboundExchange> exchange_;
  int status_ = 0;
  std::string body_;
};

// Threads    refresh() from one thread at a time, as WatchedFiles does it; the authenticator as it
//            says.
// Lifetime   As KeyDownload.
class ClientProofs {
 public:
  // Reads the files, and begins to get the keys of a URL.
  //   Failure   For the operator: a file cannot be read, or holds nothing of use.
  static Result<std::unique_ptr<ClientProofs>> open(const config::AuthConfig& settings,
                                                    runtime::AsioLoop& loop,
                                                    net::OutboundHttp& http, const Clock& clock,
                                                    Logger& logger);

  // Once more, for an operator who has changed them. What cannot be read is logged, and what was
  // read before goes on. True: a token that was good is no more.
  bool refresh();

  [[nodiscard]] auth::Authenticator& authenticator() { return *authenticator_; }

 private:
  explicit ClientProofs(std::filesystem::path token_file) : token_file_(std::move(token_file)) {}

  // Reads the tokens once more for what refresh() tells.
  bool take_tokens();

  const std::filesystem::path token_file_;  // empty: none
  std::string tokens_;                      // its text, when it could be used last
  std::unique_ptr<auth::Authenticator> authenticator_;
  std::unique_ptr<KeyDownload> download_;  // answers to the authenticator: goes before it
};

// Tells the log of what an operator would not want: a file of tokens, or of keys that sign, that
// others on this machine can read; and classes whose clients must prove something that nothing is
// there to check with, or must have claims and have none.
void warn_of_proofs(const config::Config& config, Logger& logger);

// ClientProofs::refresh(). If a token is good no more, the clients of all classes that ask for one
// are closed with 1012 and connect again: those that came with that token cannot be told apart.
void refresh_proofs(ClientProofs& proofs, const config::AuthConfig& settings,
                    runtime::Runtime& runtime, Logger& logger);

// What is wrong with the files that `settings` names; nothing if they can be used.
[[nodiscard]] std::optional<Error> check_proof_files(const config::AuthConfig& settings);

}  // namespace hearth::server
