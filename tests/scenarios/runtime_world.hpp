#pragma once
// An agent of class Diary in the real runtime, whose library came in through the real ABI. The test
// moves time, and the files are real.

#include "plugins/generation/plugin_generation.hpp"
#include "runtime/fakes.hpp"
#include "runtime/runtime.hpp"
#include "scenarios/scenario.hpp"
#include "storage/data_directory.hpp"
#include "support/recording_logger.hpp"
#include "support/seeded_random.hpp"
#include "telemetry/metrics.hpp"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hearth::scenarios {

// Where a world begins.
struct Beginning {
  std::filesystem::path directory;  // its files; they are not removed at the end
  int life = 0;                     // how often its process was killed
  std::chrono::milliseconds passed{0};
  bool is_upgraded = false;      // the class has its next version
  bool keeps_directory = false;  // a life goes on with the files of the one before, not with a copy
};

class RuntimeWorld final : public World {
 public:
  explicit RuntimeWorld(Beginning beginning);
  ~RuntimeWorld() override;

  std::size_t start(const std::string& method, const Value& args) override;
  Value answer(std::size_t call) override;
  Value shown() override;
  void advance(int ms) override;
  // The next process goes on with a copy of the files as they are at this moment.
  void kill() override;
  void evict() override;
  void upgrade() override;

 private:
  // Finds agents in the process of the moment: a library outlives the process that is "killed".
  class PresentProcess final : public extensions::AgentDirectory {
   public:
    Found find(runtime::AgentHandle handle) override;
    bool post(runtime::AgentHandle handle, std::uint64_t token) override;
    runtime::Runtime* runtime = nullptr;
  };

  void start_process();
  void stop_process();
  void serve();
  [[nodiscard]] std::filesystem::path data() const;
  [[nodiscard]] runtime::Shard& shard() { return runtime_->shard(0); }
  runtime::ConnectionId connect(const std::shared_ptr<runtime::testing::Sight>& sight);
  void load_class();

  Beginning at_;
  testing::RecordingLogger logger_;
  SystemClock clock_;  // of the library
  PresentProcess present_;
  std::unique_ptr<testing::SeededRandom> random_;
  std::vector<std::shared_ptr<plugins::PluginGeneration>> generations_;
  std::shared_ptr<const runtime::AgentClass> class_;
  runtime::testing::ManualLoop loop_;
  std::unique_ptr<Metrics> metrics_;
  std::optional<storage::DataDirectory> data_;
  std::unique_ptr<runtime::Runtime> runtime_;
  std::vector<std::shared_ptr<runtime::testing::Answer>> answers_;
  const std::shared_ptr<runtime::testing::Sight> watched_ =
      std::make_shared<runtime::testing::Sight>();
};

}  // namespace hearth::scenarios
