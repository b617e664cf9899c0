#pragma once
// A loader with a directory of libraries, and the parts of a server that it needs.

#include "extensions/test_agent.hpp"
#include "plugins/test_libraries.hpp"
#include "plugins/versions/plugin_loader.hpp"
#include "support/built.hpp"
#include "support/recording_logger.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hearth::plugins::testing {

class PluginLoaderTest : public ::testing::Test {
 protected:
  PluginLoaderTest() {
    options_.staging_directory = directory_.path() / "staged";
    options_.trusted_user = ::geteuid();
    options_.settle_time = std::chrono::milliseconds(0);
    options_.probe = {.program = hearth::testing::built::probe(),
                      .time_limit = std::chrono::seconds(30)};
    std::filesystem::create_directory(plugins());
  }

  [[nodiscard]] std::filesystem::path plugins() const { return directory_.path() / "plugins"; }
  void install(std::string_view library, std::string_view as) {
    write_bytes(plugins() / as, library_bytes(library));
  }
  PluginLoader& loader() {
    if (!loader_) loader_ = std::make_unique<PluginLoader>(services_, ledger_, options_);
    return *loader_;
  }
  LoadReport load() {
    auto report = loader().load_directories({plugins()});
    EXPECT_TRUE(report) << report.error().message;
    return *std::move(report);
  }
  // A directory with one library, which is served.
  LoadReport load_plain() {
    install("plain", "plain.so");
    LoadReport report = load();
    if (report.plugins.size() != 1) throw std::runtime_error("plain.so is not served");
    return report;
  }
  static const Refusal* refusal_of(const LoadReport& report, std::string_view file) {
    const auto found = std::ranges::find_if(
        report.refusals, [file](const Refusal& each) { return each.file.filename() == file; });
    return found == report.refusals.end() ? nullptr : &*found;
  }
  [[nodiscard]] std::size_t staged_files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(options_.staging_directory), {}));
  }

  hearth::testing::TempDirectory directory_;
  hearth::testing::TestDirectory agents_;
  SystemClock clock_;
  hearth::testing::SeededRandom random_;
  hearth::testing::RecordingLogger logger_;
  extensions::AbiServices services_{
      .agents = agents_, .clock = clock_, .random = random_, .logger = logger_};
  VersionLedger ledger_{directory_.path(), "1.0.0"};
  LoaderOptions options_{};
  std::unique_ptr<PluginLoader> loader_;
};

}  // namespace hearth::plugins::testing
