#include "plugins/generation/plugin_generation.hpp"

#include "base/sha256.hpp"
#include "diagnosis/call_records.hpp"
#include "extensions/test_agent.hpp"
#include "plugins/generation/abi_class.hpp"
#include "plugins/test_libraries.hpp"
#include "support/manual_clock.hpp"
#include "support/recording_logger.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::plugins {
namespace {

using namespace testing;
using runtime::AgentEvent;
using runtime::AgentInstance;
using runtime::EventKind;
using Calls = std::vector<std::string>;

// Whether a file of this name is mapped into the process, and how often.
int mappings_of(const std::filesystem::path& path) {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(path.native()) != std::string::npos) ++count;
  }
  return count;
}

class PluginGenerationTest : public ::testing::Test {
 protected:
  // A copy under a name that was never loaded, as the loader makes one.
  std::filesystem::path copy_of(std::string_view name) {
    const auto path =
        directory_.path() / (std::string(name) + "-g" + std::to_string(++copies_) + ".so");
    std::filesystem::copy_file(built_library(name), path);
    return path;
  }

  Checked<std::shared_ptr<PluginGeneration>> load(std::string_view name) {
    path_ = copy_of(name);
    Inspection inspection = inspect_library(read_bytes(path_));
    EXPECT_TRUE(inspection.note);
    return PluginGeneration::load(path_, std::string(name) + ".so", *inspection.note, services_,
                                  [this](std::string_view step) { steps_.emplace_back(step); });
  }

  hearth::testing::TestAgent agent_{12};
  hearth::testing::TestDirectory agents_{&agent_};
  hearth::testing::ManualClock clock_;
  hearth::testing::SeededRandom random_;
  hearth::testing::RecordingLogger logger_;
  const extensions::AbiServices services_{
      .agents = agents_, .clock = clock_, .random = random_, .logger = logger_};
  hearth::testing::TempDirectory directory_;
  int copies_ = 0;
  std::filesystem::path path_;  // of the last copy
  Calls steps_;
};

TEST_F(PluginGenerationTest, LoadsAndUnloadsALibrary) {
  auto loaded = load("plain").value();
  EXPECT_GT(mappings_of(path_), 0);
  EXPECT_EQ(loaded->origin(), "plain.so");
  ASSERT_EQ(loaded->classes().size(), 1U);
  EXPECT_EQ(loaded->classes()[0].name, "Plain");
  EXPECT_EQ(loaded->retire(), Retirement::kUnloaded);
  EXPECT_EQ(mappings_of(path_), 0);
  EXPECT_EQ(loaded->retire(), Retirement::kUnloaded);  // and a second time changes nothing
  EXPECT_EQ(steps_, (Calls{"load", "init", "classes"}));
}

TEST_F(PluginGenerationTest, ALibraryThatFailsIsUnmappedAgain) {
  for (const char* name : {"fail_in_init", "wrong_magic", "other_class", "endless_classes",
                           "undefined_symbol", "too_many_methods"}) {
    EXPECT_FALSE(load(name)) << name;
    EXPECT_EQ(mappings_of(path_), 0) << name;
  }
}

TEST_F(PluginGenerationTest, BeforeTheCodeGoesItsAddressesAreTold) {
  std::vector<std::uintptr_t> told;  // where the code began
  const auto tell = [&](const diagnosis::CodeRange& code) {
    EXPECT_GT(mappings_of(path_), 0) << path_;
    EXPECT_LT(code.from, code.until);
    told.push_back(code.from);
  };
  for (const char* name : {"plain", "busy", "fail_in_init", "other_class"}) {
    told.clear();
    path_ = copy_of(name);
    const Inspection inspection = inspect_library(read_bytes(path_));
    ASSERT_TRUE(inspection.note) << name;
    auto loaded = PluginGeneration::load(path_, name, *inspection.note, services_, {}, tell);
    EXPECT_EQ(told.size(), loaded ? 0U : 1U) << name;
    if (loaded) static_cast<void>((*loaded)->retire({}, tell));
    EXPECT_EQ(told.size(), 1U) << name;
  }
}

TEST_F(PluginGenerationTest, L2_AListOfMethodsThatBreaksALimitRefusesTheLibrary) {
  const auto loaded = load("too_many_methods");
  EXPECT_EQ(loaded.error().rule, "L2");
  EXPECT_EQ(loaded.error().reason,
            "the hearth.methods/1 of its class Plain has 1025 methods, more than 1024");
}

TEST_F(PluginGenerationTest, L1_TheReasonIsTheDynamicLoadersAndDoesNotNameTheCopy) {
  const auto loaded = load("undefined_symbol");
  EXPECT_EQ(loaded.error().rule, "L1");
  EXPECT_NE(loaded.error().reason.find("no_such_function"), std::string::npos)
      << loaded.error().reason;
  EXPECT_EQ(loaded.error().reason.find(path_.native()), std::string::npos) << loaded.error().reason;
}

TEST_F(PluginGenerationTest, TwoGenerationsOfOneLibraryLiveBesideEachOther) {
  const auto first = load("plain").value();
  const auto first_path = path_;
  const auto second = load("plain").value();
  EXPECT_NE(first->classes()[0].table, second->classes()[0].table);
  EXPECT_EQ(first->retire(), Retirement::kUnloaded);
  EXPECT_EQ(mappings_of(first_path), 0);
  EXPECT_GT(mappings_of(path_), 0);
  EXPECT_EQ(second->retire(), Retirement::kUnloaded);
}

TEST_F(PluginGenerationTest, StaysWhileAClassOfItIsInUse) {
  auto loaded = load("plain").value();
  auto classes = loaded->make_classes();
  EXPECT_EQ(loaded->retire(), Retirement::kInUse);
  EXPECT_GT(mappings_of(path_), 0);
  classes.clear();
  EXPECT_EQ(loaded->retire(), Retirement::kUnloaded);
}

TEST_F(PluginGenerationTest, StaysWhenItsDeinitIsBusy) {
  auto loaded = load("busy").value();
  EXPECT_EQ(loaded->retire(), Retirement::kBusy);
  loaded.reset();
  EXPECT_GT(mappings_of(path_), 0);  // its code may be running: it is never taken away
}

TEST_F(PluginGenerationTest, SaysWhenTheDynamicLoaderKeepsALibrary) {
  auto loaded = load("no_delete").value();
  EXPECT_EQ(loaded->retire(), Retirement::kStillMapped);
  EXPECT_GT(mappings_of(path_), 0);
}

TEST_F(PluginGenerationTest, UnloadsOverAndOverWithoutGrowing) {
  const auto all = [] { return mappings_of("/"); };
  int before = 0;
  for (int round = 0; round < 50; ++round) {
    auto loaded = load("plain");
    ASSERT_TRUE(loaded);
    ASSERT_EQ((*loaded)->retire(), Retirement::kUnloaded);
    if (round == 0) before = all();
  }
  EXPECT_LE(all(), before);
}

// ---- a class of a library, as the runtime sees it ----

class AbiClassTest : public PluginGenerationTest {
 protected:
  void open(std::string_view name) {
    generation_ = load(name).value();
    class_ = generation_->make_classes().at(0);
  }
  void TearDown() override {
    instance_.reset();
    class_.reset();
    if (generation_) {
      EXPECT_EQ(generation_->retire(), Retirement::kUnloaded);
    }
  }
  void make_instance() { instance_ = class_->create(agent_, "a", "{}").value(); }
  Result<void> call(std::string_view method, std::string_view body, runtime::CallId id = 1) {
    return instance_->on_event(
        {.kind = EventKind::kCall, .call = id, .name = method, .body = body});
  }

  std::shared_ptr<PluginGeneration> generation_;
  std::shared_ptr<const runtime::AgentClass> class_;
  std::unique_ptr<AgentInstance> instance_;
};

TEST_F(AbiClassTest, SaysWhatItIs) {
  open("plain");
  EXPECT_EQ(class_->name(), "Plain");
  EXPECT_EQ(class_->version(), "1.2.3");
  EXPECT_EQ(class_->origin(), "plain.so");
  EXPECT_FALSE(class_->checks_state());
  EXPECT_TRUE(class_->watches_state());
  EXPECT_TRUE(class_->runs_jobs());
}

TEST_F(AbiClassTest, AClassOfAnotherNameRunsTheSameCode) {
  open("plain");
  const auto made = generation_->make_classes([](std::string_view library_class) {
    EXPECT_EQ(library_class, "Plain");
    return std::vector<std::string>{"first", "second"};
  });
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[0]->name(), "first");
  EXPECT_EQ(class_->code(), "Plain");
  class_ = made[1];
  EXPECT_EQ(class_->name(), "second");
  EXPECT_EQ(class_->code(), "Plain");
  EXPECT_EQ(class_->version(), "1.2.3");
  EXPECT_TRUE(class_->watches_state());
  make_instance();
  diagnosis::RunningCall seen;
  agent_.when_told = [&seen] { EXPECT_TRUE(diagnosis::find_running_call(seen)); };
  ASSERT_TRUE(call("echo", "[1]"));
  EXPECT_EQ(seen.owner->agent_class, "second") << "its crashes count for it";
}

TEST_F(AbiClassTest, EventsReachTheInstanceAndAnswersComeBack) {
  open("plain");
  make_instance();
  ASSERT_TRUE(instance_->on_event({.kind = EventKind::kStart, .call = 4, .name = {}, .body = {}}));
  ASSERT_TRUE(call("echo", "[1,2]", 5));
  ASSERT_TRUE(call("fail", "[]", 6));
  EXPECT_EQ(agent_.told, (Calls{"complete 4 ok ", "complete 5 ok [1,2]",
                                "complete 6 plugin_error as you wish"}));
}

TEST_F(AbiClassTest, WhoseWorkACallDoesIsRecorded) {
  open("plain");
  instance_ = class_->create(agent_, "what a parent calls it", "{}").value();
  diagnosis::RunningCall seen;
  agent_.when_told = [&seen] { EXPECT_TRUE(diagnosis::find_running_call(seen)); };
  using Work = std::optional<WorkMark>;
  for (const Work& work : {Work(), Work(WorkMark()), Work({7, 8})}) {
    instance_->works_for(work);
    ASSERT_TRUE(call("echo", "[]"));
    EXPECT_EQ(seen.work, work);
    EXPECT_EQ(seen.agent(), agent_.key().name);
    EXPECT_EQ(seen.agent_digest, sha256_prefix(agent_.key().name));
  }
  agent_.when_told = [&] {
    instance_->works_for(WorkMark{9});
    EXPECT_TRUE(diagnosis::find_running_call(seen));
  };
  ASSERT_TRUE(call("echo", "[]"));
  EXPECT_EQ(seen.work, WorkMark{9}) << "told in the middle of the call";
}

TEST_F(AbiClassTest, RefusalsKeepTheirCode) {
  open("plain");
  make_instance();
  EXPECT_EQ(call("unknown", "[]").error().code, Errc::kNotFound);
  EXPECT_EQ(instance_->on_event({.kind = EventKind::kMessage, .call = 1, .name = {}, .body = {}})
                .error()
                .code,
            Errc::kUnsupported);
  EXPECT_EQ(call("odd", "[]").error().code, Errc::kPlugin);  // 12345 is no status of the contract
}

TEST_F(AbiClassTest, OperationsEndInTheInstance) {
  open("plain");
  make_instance();
  ASSERT_TRUE(call("wait", "[]", 8));
  instance_->on_result({.outcome = std::string_view(), .operation = 1, .token = 77});
  ASSERT_TRUE(call("wait", "[]", 9));
  // Long enough to live on the heap: a view of a copy that is gone would show.
  const std::string why(200, 'x');
  instance_->on_result({.outcome = Error{Errc::kCancelled, why}, .operation = 1, .token = 77});
  EXPECT_EQ(agent_.told, (Calls{"submit 1 8 bytes 77", "complete 8 ok 77", "submit 1 8 bytes 77",
                                "complete 9 cancelled " + why}));
}

TEST_F(AbiClassTest, ACancelledCallIsNotCompleted) {
  open("plain");
  make_instance();
  ASSERT_TRUE(call("wait", "[]", 8));
  instance_->on_cancel(8);
  instance_->on_result({.outcome = std::string_view(), .operation = 1, .token = 77});
  EXPECT_EQ(agent_.told, Calls{"submit 1 8 bytes 77"});
}

TEST_F(AbiClassTest, AnInstanceThatCannotBeMadeIsAnError) {
  open("plain");
  EXPECT_EQ(class_->create(agent_, "refused", "{}").error().code, Errc::kForbidden);
}

TEST_F(AbiClassTest, KnowsTheSchemaVersionOfTheClass) {
  open("plain");
  EXPECT_EQ(class_->schema_version(), 0U);
  open("with_schema");
  EXPECT_EQ(class_->schema_version(), 3U);
}

TEST_F(AbiClassTest, KnowsWhichMethodsAreIdempotent) {
  open("plain");
  EXPECT_FALSE(class_->is_idempotent("get"));
  open("with_methods");
  EXPECT_TRUE(class_->is_idempotent("get"));
  EXPECT_FALSE(class_->is_idempotent("add"));
  EXPECT_FALSE(class_->is_idempotent("ge"));
  EXPECT_FALSE(class_->is_idempotent(""));
}

TEST_F(AbiClassTest, JobsRunAndFail) {
  open("plain");
  EXPECT_TRUE(class_->run_offloaded(7, false, {}));
  EXPECT_TRUE(class_->run_offloaded(8, true, {}));
  EXPECT_EQ(class_->run_offloaded(8, false, {}).error().code, Errc::kPlugin);
}

TEST_F(AbiClassTest, NothingThatALibraryThrowsComesThrough) {
  open("throwing");
  EXPECT_FALSE(class_->runs_jobs());
  EXPECT_FALSE(class_->run_offloaded(1, false, {}));
  EXPECT_EQ(class_->create(agent_, "", "{}").error().code, Errc::kPlugin);
  make_instance();
  EXPECT_EQ(call("any", "[]").error().code, Errc::kPlugin);
  instance_->on_cancel(1);
  instance_->on_result({.outcome = std::string_view(), .operation = 0, .token = 1});
  instance_.reset();
  for (const char* function :
       {"get_extension", "create", "on_event", "on_cancel", "on_result", "destroy"}) {
    EXPECT_TRUE(logger_.contains("function=" + std::string(function))) << function;
  }
}

}  // namespace
}  // namespace hearth::plugins
