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

// Records which threads of a server wait for the device (tests/process/sync_recorder.c).
std::filesystem::path sync_recorder();
// Holds back a server's syncs (tests/process/held_sync.c).
std::filesystem::path held_sync();
// Makes a server's disk full (tests/process/full_disk.c).
std::filesystem::path full_disk();
// Plays a file system without RENAME_EXCHANGE (tests/process/no_exchange.c).
std::filesystem::path no_exchange();
// Records a server's use of timers, and suspends its machine (tests/process/time_recorder.c).
std::filesystem::path time_recorder();

// A library, by its name without ".so": a bundled one, ...
std::filesystem::path bundled(std::string_view name);
// ... one of tests/agents, which hearth_add_plugin() makes, ...
std::filesystem::path agent(std::string_view name);
// ... one of a document (tests/docs), one in Rust (absent without its compiler), ...
std::filesystem::path printed(std::string_view name);
std::filesystem::path rust(std::string_view name);
// ... one of tests/plugins/libraries, ...
std::filesystem::path loader_case(std::string_view name);
// ... or one of the zoo (tests/fault/plugins).
std::filesystem::path zoo(std::string_view name);

// The directory of the bundled libraries, and the root of the sources.
std::filesystem::path bundled_directory();
std::filesystem::path sources();

}  // namespace hearth::testing::built
