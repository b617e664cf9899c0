#pragma once
// A row of a table of chunks: what one chunk does to the parts of a message.

#include "rows.hpp"

#include <hearth/chat/chunk.hpp>

#include <gtest/gtest.h>

#include <string_view>

namespace hearth::chat {

struct ChunkRow {
  const char* before;  // the parts
  const char* chunk;
  Use use;
  const char* after = nullptr;      // none: as before
  const char* follow_up = nullptr;  // none: no further chunk
};

// NOLINTNEXTLINE(readability-identifier-naming): gtest's own hook
inline void PrintTo(Use use, std::ostream* out) {
  static constexpr std::string_view kNames[] = {"stored", "passed", "replayed", "elsewhere", "bad"};
  *out << kNames[static_cast<std::size_t>(use)];
}

inline void check_row(const ChunkRow& row) {
  SCOPED_TRACE(row.chunk);
  Json message = assistant(row.before);
  ASSERT_EQ(message_fault(message), "");
  const Applied applied = apply_chunk(message, json(row.chunk));
  EXPECT_EQ(applied.use, row.use);
  EXPECT_EQ(message, assistant(row.after == nullptr ? row.before : row.after));
  EXPECT_EQ(applied.follow_up, row.follow_up == nullptr ? Json() : json(row.follow_up));
  EXPECT_EQ(message_fault(message), "");
}

}  // namespace hearth::chat
