#include "plugins/versions/served_libraries.hpp"

#include "runtime/fakes.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

namespace hearth::plugins {
namespace {

using runtime::testing::Script;
using runtime::testing::ScriptedClass;
using Verdict = Probation::Verdict;

ClassVersion version_of(const std::string& segment, Script& script) {
  return {.served = std::make_shared<const runtime::ServedClass>(
              runtime::ServedClass{segment, std::make_shared<ScriptedClass>(script), {}}),
          .settings = nullptr};
}

TEST(ServedLibraryTest, OfAVersionOnTrialTheClassesThatItHasReplacedJudge) {
  Script script;
  const ClassVersions before{{"counter", version_of("counter", script)}};
  struct Row {
    const char* failing;
    ClassVersions before;
    Verdict verdict;
  };
  for (const Row& row : {Row{"counter", before, Verdict::kFailed},
                         Row{"fresh", before, Verdict::kOpen},   // only this version has it
                         Row{"fresh", {}, Verdict::kFailed}}) {  // it is unknown what was before
    ServedLibrary library;
    library.on_trial = true;
    for (const char* segment : {"counter", "fresh"})
      library.classes[segment] = version_of(segment, script);
    library.classes[row.failing].served->starts->failed = 5;
    library.begin_probation(SteadyTime() + std::chrono::minutes(1), row.before);
    const auto judgement = library.code.probation.judge(
        [&](const std::string& segment) { return library.classes[segment].served->starts; },
        {.trial_agents = 5, .max_failed_percent = 20, .patience = {}}, SteadyTime());
    EXPECT_EQ(judgement.verdict, row.verdict) << row.failing << row.before.size();
  }
}

}  // namespace
}  // namespace hearth::plugins
