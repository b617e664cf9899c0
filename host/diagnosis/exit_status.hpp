#pragma once
// The exit statuses of hearth. Scripts depend on them: they do not change.

namespace hearth {

inline constexpr int kExitClean = 0;       // did what was asked
inline constexpr int kExitFailed = 1;      // could not do it: a port in use, no right to write
inline constexpr int kExitBadUsage = 2;    // a mistake in a flag or a configuration file
inline constexpr int kExitHung = 3;        // a server: a library's code did not return
inline constexpr int kExitPluginLeft = 4;  // a server: a library's code called exit()

}  // namespace hearth
