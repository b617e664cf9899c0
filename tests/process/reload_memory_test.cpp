// Many versions of a library come and go, and the process keeps no memory of them.

#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"
#include "support/built.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace hearth::testing {
namespace {

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
// What is freed stays in memory for a while, on purpose.
constexpr bool kInstrumented = true;
#else
constexpr bool kInstrumented = false;
#endif

// Until then pools, arenas and caches grow to the size that they keep.
constexpr int kWarmUp = 20;
// The memory is measured after this many reloads.
constexpr int kStretch = 20;
constexpr int kReloadedClients = 8;

// A version that stayed mapped would add at least four mappings, and more than half a MiB of
// resident memory.
constexpr std::size_t kMoreMappings = 8;
constexpr std::size_t kMoreDescriptors = 4;
// Every stretch shows a loss of each reload. The server reads a library's file whole. The allocator
// keeps room for the most files that were in memory at once: two, a version and the earlier one.
// The moment of the second file is chance, so one stretch may grow by a file.
constexpr std::int64_t kMoreInAStretch = std::int64_t{256} << 10;
constexpr std::int64_t kMoreInAll = std::int64_t{2} << 20;

// HEARTH_RELOADS=1000 for more by hand.
int reloads() {
  constexpr int kUsual = kInstrumented ? 50 : 200;
  const char* wanted = std::getenv("HEARTH_RELOADS");  // NOLINT(concurrency-mt-unsafe): one thread
  return wanted != nullptr ? std::max(kWarmUp + kStretch, std::stoi(wanted)) : kUsual;
}

// Of an even number of stretches the larger one in the middle.
std::int64_t usual_growth(const std::vector<std::int64_t>& resident) {
  std::vector<std::int64_t> growth;
  for (std::size_t at = 1; at < resident.size(); ++at)
    growth.push_back(resident[at] - resident[at - 1]);
  std::ranges::sort(growth);
  return growth[growth.size() / 2];
}

// What a process holds, as the system counts it.
struct Footprint {
  std::size_t mappings = 0;
  std::size_t libraries = 0;  // mapped from the directory of staged copies
  std::size_t resident_bytes = 0;
  std::size_t descriptors = 0;
  std::size_t threads = 0;
};

Footprint footprint_of(const ServerProcess& server) {
  const std::filesystem::path process = "/proc/" + std::to_string(server.pid());
  Footprint result;
  std::ifstream maps(process / "maps");
  for (std::string line; std::getline(maps, line);) {
    ++result.mappings;
    if (line.find("/staged/") != std::string::npos && line.find("r-xp") != std::string::npos)
      ++result.libraries;
  }
  std::ifstream status(process / "status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) result.resident_bytes = std::stoul(line.substr(6)) * 1024;
  }
  const auto entries = [&process](const char* name) {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(process / name), {}));
  };
  result.descriptors = entries("fd");
  result.threads = entries("task");
  return result;
}

std::ostream& operator<<(std::ostream& out, const Footprint& footprint) {
  return out << footprint.mappings << " mappings, " << footprint.resident_bytes / 1024
             << " KiB resident, " << footprint.descriptors << " descriptors, " << footprint.threads
             << " threads";
}

class ReloadMemoryTest : public ProcessTest {
 protected:
  ReloadMemoryTest() {
    put("hearth.yaml", "reload: {quiet_time: 20ms}\n");
    install(version_file("1"), "versioned.so");
    server_ = serve_ready({"--config", "hearth.yaml"});
    for (int i = 0; i < kReloadedClients; ++i) {
      clients_.push_back(
          std::make_unique<AgentClient>(*server_, "/agents/versioned/" + std::to_string(i)));
    }
  }

  static std::filesystem::path version_file(const std::string& version) {
    return built::agent("versioned-" + version);
  }

  // Replaces the library, and lets every agent answer on the new one.
  void reload(int round) {
    const std::string version = round % 2 == 0 ? "1" : "2";
    const std::filesystem::path temporary = root_ / "plugins" / ".versioned.new";
    std::filesystem::copy_file(version_file(version), temporary,
                               std::filesystem::copy_options::overwrite_existing);
    // The server does not wait for the age of a file from the future. That wait would be most of a
    // reload's time.
    std::filesystem::last_write_time(
        temporary, std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
    std::filesystem::rename(temporary, root_ / "plugins" / "versioned.so");
    server_->wait_for_log("reload.done", static_cast<std::size_t>(round));
    for (const auto& client : clients_) ASSERT_EQ(client->call("version"), version + ".0.0");
  }

  // Waits until only the served version is loaded.
  [[nodiscard]] Footprint settled() const {
    const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
    Footprint footprint = footprint_of(*server_);
    while (footprint.libraries > 1 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // only spares the processor
      footprint = footprint_of(*server_);
    }
    return footprint;
  }

  // The server keeps its last events, up to some MiB (server/event_ring.hpp): as many bytes at
  // least as the log has of them.
  [[nodiscard]] std::int64_t events() const {
    return static_cast<std::int64_t>(server_->log().size());
  }

  std::unique_ptr<ServerProcess> server_;
  std::vector<std::unique_ptr<AgentClient>> clients_;
};

TEST_F(ReloadMemoryTest, ManyVersionsLeaveMemoryMappingsDescriptorsAndThreadsAsTheyWere) {
  for (const auto& client : clients_) client->call("work", "[1000000,20]");
  Footprint warm;
  std::vector<std::int64_t> resident;
  for (int round = 1; round <= reloads(); ++round) {
    ASSERT_NO_FATAL_FAILURE(reload(round)) << "round " << round;
    if (round == kWarmUp) warm = settled();
    if (round >= kWarmUp && (round - kWarmUp) % kStretch == 0)
      resident.push_back(static_cast<std::int64_t>(settled().resident_bytes) - events());
  }
  const Footprint end = settled();
  std::cout << "after " << kWarmUp << " reloads: " << warm << "\nafter " << reloads() << ": " << end
            << "\nusual growth in " << kStretch << " reloads: " << usual_growth(resident) / 1024
            << " KiB, without " << events() / 1024 << " KiB of events\n";
  EXPECT_EQ(warm.libraries, 1U);
  EXPECT_EQ(end.libraries, 1U);
  EXPECT_LE(end.mappings, warm.mappings + kMoreMappings);
  EXPECT_LE(end.descriptors, warm.descriptors + kMoreDescriptors);
  EXPECT_LE(end.threads, warm.threads);
  if (!kInstrumented) {
    const auto file = static_cast<std::int64_t>(std::filesystem::file_size(version_file("1")));
    const auto grown = static_cast<std::int64_t>(end.resident_bytes) -
                       static_cast<std::int64_t>(warm.resident_bytes);
    EXPECT_LE(usual_growth(resident), kMoreInAStretch);
    EXPECT_LE(grown, kMoreInAll + 2 * file);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root_ / "data" / "staged"), {}), 1);
  EXPECT_EQ(server_->stop(), kClean);
}

}  // namespace
}  // namespace hearth::testing
