#pragma once
// An agent that asks for requests through the ABI, and a port that writes them down.

#include "extensions/abi_fixture.hpp"
#include "extensions/fetch.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::extensions::testing {

// Writes down what is asked of it.
class RecordingHttpPort final : public HttpPort {
 public:
  std::vector<FetchRequest> made;
  std::optional<Error> refusal;
  bool wants = true;

  [[nodiscard]] bool wants_credentials() const override { return wants; }
  Result<std::unique_ptr<RemoteOperation>> make(FetchRequest request) override {
    if (refusal) return *refusal;
    made.push_back(std::move(request));
    return std::make_unique<NoRemote>();
  }
};

class AbiFetchTest : public ::testing::Test {
 protected:
  // Before the first request.
  void use(ClassSettings settings, bool has_port = true) {
    directory_.emplace(nullptr);
    agent_.emplace(kAgent, std::move(settings), OutwardPorts{.http = has_port ? &port_ : nullptr});
    directory_.emplace(&*agent_);
    abi_.emplace(
        AbiServices{
            .agents = *directory_, .clock = agent_->clock, .random = random_, .logger = logger_},
        "plain.so");
  }
  static hearth_fetch_request request(std::string_view url) {
    hearth_fetch_request request{};
    request.struct_size = sizeof request;
    request.url = slice(url);
    return request;
  }
  hearth_status start(const hearth_fetch_request& request) {
    if (!agent_) use({});
    const hearth_host* const host = abi_->table();
    const auto* const table =
        static_cast<const hearth_fetch_v1*>(host->get_extension(host, HEARTH_EXT_FETCH));
    id_ = 0;
    return table->start(host, kAgent, &request, 7, &id_);
  }
  hearth_status start(std::string_view url) { return start(request(url)); }
  hearth_status start_with_credential(std::string_view name) {
    return start(
        with(request("https://a.example/"), &hearth_fetch_request::credential, slice(name)));
  }
  std::string last_error() {
    hearth_bytes text{};
    EXPECT_EQ(abi_->table()->last_error(abi_->table(), kAgent, &text), HEARTH_OK);
    return std::string(view(text));
  }
  // A class with the credential "key", whose file has this text.
  ClassSettings with_key(const std::string& text) {
    const auto file = files_.path() / "key";
    std::ofstream(file) << text;
    ClassSettings settings;
    settings.egress.secrets["key"] = file;
    return settings;
  }

  hearth::testing::TempDirectory files_;
  RecordingHttpPort port_;
  hearth::testing::SeededRandom random_{7};
  hearth::testing::RecordingLogger logger_;
  std::optional<hearth::testing::TestAgent> agent_;
  std::optional<TestDirectory> directory_;
  std::optional<AbiHost> abi_;
  std::uint64_t id_ = 0;
};

}  // namespace hearth::extensions::testing
