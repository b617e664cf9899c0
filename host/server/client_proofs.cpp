#include "server/client_proofs.hpp"

#include "api/edge_rules.hpp"
#include "base/close_codes.hpp"
#include "base/files.hpp"
#include "server/outbound_port.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <ranges>
#include <string_view>
#include <utility>

namespace hearth::server {
namespace {

// A provider that is slower than this counts as one that does not answer.
constexpr std::chrono::milliseconds kDownloadTime{10'000};

auth::ProofSources::Read file_reader(const std::filesystem::path& file, std::size_t max_bytes) {
  if (file.empty()) return {};
  return [file, max_bytes](const auth::ProofSources::Answer& answer) {
    answer(read_file(file, max_bytes));
  };
}

auth::ProofSources sources_of(const config::AuthConfig& settings) {
  auth::ProofSources sources;
  sources.tokens = file_reader(settings.token_file, auth::BearerTokens::kMaxBytes);
  sources.keys = file_reader(settings.keys_file, auth::SigningKeys::kMaxBytes);
  sources.jwt = {
      .issuer = settings.issuer,
      .audiences = settings.audiences,
      .clock_skew = std::chrono::duration_cast<std::chrono::seconds>(settings.clock_skew)};
  return sources;
}

}  // namespace

// ---- KeyDownload --------------------------------------------------------------------------------

KeyDownload::KeyDownload(runtime::AsioLoop& loop, net::OutboundHttp& http, std::string url)
    : loop_(loop), http_(http), url_(std::move(url)) {}

void KeyDownload::get(auth::ProofSources::Answer answer) {
  loop_.post([this, answer = std::move(answer)]() mutable {
    answer_ = std::move(answer);
    begin();
  });
}

void KeyDownload::begin() {
  status_ = 0;
  body_.clear();
  net::OutboundRequest request;
  request.method = "GET";
  request.url = url_;
  request.headers = {{"Accept", "application/json"}};
  request.total_timeout = kDownloadTime;
  request.max_body = auth::SigningKeys::kMaxBytes;
  request.credit = auth::SigningKeys::kMaxBytes;
  request.rules = everywhere();
  auto started = http_.start(std::move(request), *this);
  if (!started) return end(started.error());
  exchange_ = *std::move(started);
}

void KeyDownload::on_head(net::OutboundHead head) {
  status_ = head.status;
}

void KeyDownload::on_body(std::string_view piece) {
  body_ += piece;
}

void KeyDownload::on_end(std::optional<net::OutboundFailure> failure) {
  exchange_.reset();
  if (failure) return end(Error{failure->code, failure->message});
  if (status_ != 200)
    return end(Error{Errc::kUnavailable, "the answer has the status " + std::to_string(status_)});
  end(std::move(body_));
}

void KeyDownload::end(Result<std::string> text) {
  const auth::ProofSources::Answer answer = std::exchange(answer_, {});
  if (answer) answer(std::move(text));
}

// ---- ClientProofs -------------------------------------------------------------------------------

Result<std::unique_ptr<ClientProofs>> ClientProofs::open(const config::AuthConfig& settings,
                                                         runtime::AsioLoop& loop,
                                                         net::OutboundHttp& http,
                                                         const Clock& clock, Logger& logger) {
  std::unique_ptr<ClientProofs> proofs(new ClientProofs(settings.token_file));
  auth::ProofSources sources = sources_of(settings);
  if (!settings.keys_url.empty()) {
    proofs->download_ = std::make_unique<KeyDownload>(loop, http, settings.keys_url);
    sources.key_origin = auth::KeyOrigin::kUrl;
    sources.keys = [&download = *proofs->download_](auth::ProofSources::Answer answer) {
      download.get(std::move(answer));
    };
  }
  proofs->authenticator_ = std::make_unique<auth::Authenticator>(std::move(sources), clock, logger);
  if (auto failure = proofs->authenticator_->refresh()) return *std::move(failure);
  (void)proofs->take_tokens();
  return proofs;
}

bool ClientProofs::refresh() {
  authenticator_->refresh();
  return take_tokens();
}

bool ClientProofs::take_tokens() {
  if (token_file_.empty()) return false;
  auto text = read_file(token_file_, auth::BearerTokens::kMaxBytes);
  const auto now = text ? auth::BearerTokens::parse(*text) : text.error();
  if (!now) return false;
  const std::string before = std::exchange(tokens_, *std::move(text));
  return std::ranges::any_of(std::views::split(before, '\n'), [&now](const auto& line) {
    std::string_view token(line.begin(), line.end());
    if (token.ends_with('\r')) token.remove_suffix(1);
    return !token.empty() && !token.starts_with('#') && !now->has(token);
  });
}

void refresh_proofs(ClientProofs& proofs, const config::AuthConfig& settings,
                    runtime::Runtime& runtime, Logger& logger) {
  if (!proofs.refresh()) return;
  runtime.classes().access_changed();
  api::EdgeRules edge;
  edge.auth = settings.rules;
  for (const auto& served : runtime.classes().all()) {
    const auto rules = runtime.classes().entry_rules(served->segment);
    if (api::auth_of(edge, rules.get()).type != ProofKind::kToken) continue;
    const std::string agent_class(served->agent_class->name());
    runtime.tell([agent_class](runtime::ShardVersions& versions) {
      versions.end_clients(agent_class, kCloseServiceRestart, kAccessChanged);
    });
    logger.write(LogLevel::kInfo, "auth.clients_asked_anew",
                 {{"class", agent_class}, {"reason", "auth.token_file has lost a token"}});
  }
}

std::vector<std::string> mistakes_in_proof_files(const config::AuthConfig& settings) {
  std::vector<std::string> wrong;
  const auth::ProofSources sources = sources_of(settings);
  const auto look = [&wrong](const auth::ProofSources::Read& read, std::string_view key,
                             const auto& parse) {
    if (!read) return;
    read([&](const Result<std::string>& text) {
      std::string reason;
      if (!text) {
        reason = text.error().message;
      } else if (const auto parsed = parse(*text); !parsed) {
        reason = parsed.error().message;
      }
      if (!reason.empty()) wrong.push_back(std::string(key) + ": " + reason);
    });
  };
  look(sources.tokens, "auth.token_file", auth::BearerTokens::parse);
  look(sources.keys, "auth.keys_file", [](std::string_view text) {
    return auth::SigningKeys::parse(text, auth::KeyOrigin::kFile);
  });
  return wrong;
}

}  // namespace hearth::server
