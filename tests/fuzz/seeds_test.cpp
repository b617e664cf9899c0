// Each target of the fuzzer gets its seeds, and each prefix of each seed.
#include "fuzz/targets.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace hearth::fuzz {
namespace {

std::filesystem::path seeds_of(std::string_view target) {
  return std::filesystem::path(FUZZ_SEEDS) / target;
}

class FuzzSeedsTest : public ::testing::TestWithParam<Target> {};

TEST_P(FuzzSeedsTest, BreakNoPromise) {
  std::size_t seeds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(seeds_of(GetParam().name))) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string seed{std::istreambuf_iterator<char>(file), {}};
    ++seeds;
    // Of a long one a hundred beginnings.
    const std::size_t step = seed.size() / 100 + 1;
    for (std::size_t size = seed.size();; size -= std::min(size, step)) {
      EXPECT_NO_THROW(GetParam().run(std::string_view(seed).substr(0, size)))
          << entry.path() << ", the first " << size << " bytes";
      if (size == 0) break;
    }
  }
  EXPECT_GE(seeds, 3U) << "a fuzzer needs something to begin with";
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzSeedsTest, ::testing::ValuesIn(targets()),
                         [](const auto& target) { return std::string(target.param.name); });

TEST(FuzzTargetsTest, HaveAFolderOfSeedsEach) {
  std::set<std::string> named;
  for (const Target& target : targets()) named.emplace(target.name);
  std::set<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(FUZZ_SEEDS))
    folders.insert(entry.path().filename());
  EXPECT_EQ(folders, named);
}

}  // namespace
}  // namespace hearth::fuzz
