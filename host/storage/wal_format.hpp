#pragma once
// Sizes in the files of a database: sqlite.org/fileformat2.html, "The Write-Ahead Log".

namespace hearth::storage {

inline constexpr int kPageBytes = 4096;  // of the databases that Hearth makes
inline constexpr int kWalHeaderBytes = 32;
inline constexpr int kWalFrameHeaderBytes = 24;

}  // namespace hearth::storage
