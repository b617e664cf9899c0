#pragma once
// What a process of ours tells the one that started it. Scripts depend on these: they do not
// change.

namespace hearth {

inline constexpr int kExitClean = 0;       // did what was asked
inline constexpr int kExitFailed = 1;      // could not: a port in use, no right to write
inline constexpr int kExitBadUsage = 2;    // was asked wrongly: a flag or a configuration file
inline constexpr int kExitHung = 3;        // a server: a library's code did not return
inline constexpr int kExitPluginLeft = 4;  // a server: a library's code called exit()

}  // namespace hearth
