#pragma once
// A runtime on one loop of its own, which a test can block, and the loader of its classes, without
// a server.

#include "base/clock.hpp"
#include "base/random.hpp"
#include "extensions/abi_host.hpp"
#include "plugins/versions/plugin_loader.hpp"
#include "plugins/versions/version_ledger.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/runtime.hpp"
#include "storage/data_directory.hpp"
#include "support/recording_logger.hpp"
#include "support/temp_directory.hpp"
#include "telemetry/metrics.hpp"

#include <unistd.h>

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <vector>

namespace hearth::server {

class OneLoopTest : public ::testing::Test {
 protected:
  // For the destructor of a test that has started the loop: call it after the test's own parts have
  // stopped, before they are destroyed.
  void stop() {
    std::promise<void> over;
    runtime_.stop(std::chrono::seconds(5), [&over] { over.set_value(); });
    over.get_future().get();
    loop_.stop();
    runtime_.classes().clear();
    loader_.unload_all();
  }

  static std::vector<runtime::ShardLoop*> only(runtime::AsioLoop& loop) { return {&loop}; }
  [[nodiscard]] plugins::LoaderOptions loader_options() {
    plugins::LoaderOptions options;
    options.staging_directory = temporary_.path() / "staged";
    options.news = runtime_.classes().news();
    options.trusted_user = ::geteuid();
    return options;
  }

  testing::TempDirectory temporary_;
  testing::RecordingLogger logger_;
  Metrics metrics_;
  SystemClock clock_;
  SystemRandom random_;
  storage::DataDirectory data_ = storage::DataDirectory::open(temporary_.path() / "data").value();
  runtime::AsioLoop loop_{clock_};
  runtime::Runtime runtime_{only(loop_), data_, logger_, metrics_, {}};
  plugins::VersionLedger ledger_{data_.path(), "1.0.0"};
  plugins::PluginLoader loader_{extensions::AbiServices{runtime_, clock_, random_, logger_},
                                ledger_, loader_options()};
};

}  // namespace hearth::server
