#pragma once
// Paths of the programs and libraries of this build for tests, and of its sources.
//
// Only built.cpp knows these paths. So every other source compiles to the same object in each
// checkout, and ccache finds it again.

#include <filesystem>
#include <string>
#include <string_view>

namespace hearth::testing::built {

// The programs `hearth` and `test_probe`.
std::filesystem::path server();
std::filesystem::path probe();

// What shows which threads of a server wait for the device (tests/process/sync_recorder.c).
std::filesystem::path sync_recorder();
// What holds back a server's syncs (tests/process/held_sync.c).
std::filesystem::path held_sync();
// What makes a server's disk full (tests/process/full_disk.c).
std::filesystem::path full_disk();
// What records a server's use of timers, and suspends its machine (tests/process/time_recorder.c).
std::filesystem::path time_recorder();

// A library, by its name without ".so": one that ships, ...
std::filesystem::path bundled(std::string_view name);
// ... one that hearth_add_plugin() made for tests (tests/agents), ...
std::filesystem::path agent(std::string_view name);
// ... one that was made by hand for the tests of host/plugins (tests/plugins/libraries), ...
std::filesystem::path loader_case(std::string_view name);
// ... or one of the zoo (tests/fault/plugins).
std::filesystem::path zoo(std::string_view name);

// The directory of the libraries that ship, and the root of the sources.
std::filesystem::path bundled_directory();
std::filesystem::path sources();

}  // namespace hearth::testing::built
