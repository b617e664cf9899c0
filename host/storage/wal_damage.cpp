#include "storage/wal_damage.hpp"

#include "base/error.hpp"
#include "base/file_descriptor.hpp"
#include "storage/wal_format.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <vector>

namespace hearth::storage {
namespace {

// Numbers are big-endian.
constexpr std::uint32_t kWalMagic = 0x377f0682;  // its last bit: checksums of big-endian words

using WalBytes = std::span<const std::uint8_t>;

std::uint32_t big_endian(WalBytes bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) number = number << 8U | bytes[at + i];
  return number;
}

struct WalChecksum {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  bool operator==(const WalChecksum&) const = default;
};

WalChecksum stored_checksum(WalBytes bytes, std::size_t at) {
  return {.first = big_endian(bytes, at), .second = big_endian(bytes, at + 4)};
}

WalChecksum add_to(WalChecksum sum, WalBytes bytes, bool is_big_endian) {
  const auto word = [&](std::size_t at) {
    const std::uint32_t number = big_endian(bytes, at);
    return is_big_endian ? number : __builtin_bswap32(number);
  };
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    sum.first += word(at) + sum.second;
    sum.second += word(at + 4) + sum.first;
  }
  return sum;
}

// Frames of an earlier round have another salt.
bool is_of_round(WalBytes header, WalBytes frame) {
  return std::ranges::equal(frame.subspan(8, 8), header.subspan(16, 8));
}

// Adds the frame to the sum of what is before it, if it follows that.
bool follows(WalChecksum& sum, WalBytes header, WalBytes frame, bool is_big_endian) {
  WalChecksum next = add_to(sum, frame.first(8), is_big_endian);
  next = add_to(next, frame.subspan(kWalFrameHeaderBytes), is_big_endian);
  if (!is_of_round(header, frame) || next != stored_checksum(frame, 16)) return false;
  sum = next;
  return true;
}

bool is_commit(WalBytes frame) {
  return big_endian(frame, 4) != 0;
}

bool read_at(int file, std::span<std::uint8_t> into, std::size_t offset) {
  std::size_t got = 0;
  while (got < into.size()) {
    const ssize_t n =
        ::pread(file, into.data() + got, into.size() - got, static_cast<off_t>(offset + got));
    if (n <= 0) return false;
    got += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

std::string damage_of_wal(const std::filesystem::path& database) {
  const FileDescriptor file(::open((database.native() + "-wal").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<std::uint8_t, kWalHeaderBytes> header{};
  if (!file.is_open() || !read_at(file.get(), header, 0)) return {};
  const bool was_written = std::ranges::any_of(header, [](std::uint8_t byte) { return byte != 0; });
  if (!was_written) return {};
  const std::uint32_t magic = big_endian(header, 0);
  const bool is_big_endian = magic == kWalMagic + 1;
  const std::uint32_t page = big_endian(header, 8);
  constexpr std::uint32_t kMaxPage = 65536;
  WalChecksum sum = add_to({}, WalBytes(header).first(kWalFrameHeaderBytes), is_big_endian);
  if ((magic != kWalMagic && !is_big_endian) || page == 0 || page > kMaxPage ||
      sum != stored_checksum(header, kWalFrameHeaderBytes))
    return "its header is damaged, so all of it is ignored";

  std::vector<std::uint8_t> frame(kWalFrameHeaderBytes + page);
  std::size_t ignored_from = 0;  // 0: nothing is ignored
  for (std::size_t at = kWalHeaderBytes; read_at(file.get(), frame, at); at += frame.size()) {
    const WalBytes bytes(frame);
    if (ignored_from == 0 && follows(sum, header, bytes, is_big_endian)) continue;
    if (ignored_from != 0 && is_of_round(header, bytes) && is_commit(bytes)) {
      return "it is damaged at byte " + std::to_string(ignored_from) +
             ", and what was written behind that is ignored";
    }
    if (ignored_from == 0) ignored_from = at;
  }
  return {};
}

int pages_with_commits(const std::filesystem::path& database) {
  const FileDescriptor file(::open((database.native() + "-wal").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open() && errno != ENOENT)
    throw StorageError("read the WAL of " + database.native() + ": " +
                       std::generic_category().message(errno));
  std::array<std::uint8_t, kWalHeaderBytes> header{};
  if (!file.is_open() || !read_at(file.get(), header, 0)) return 0;
  const bool is_big_endian = big_endian(header, 0) != kWalMagic;
  WalChecksum sum = stored_checksum(header, kWalFrameHeaderBytes);
  std::vector<std::uint8_t> frame(kWalFrameHeaderBytes + kPageBytes);
  int found = 0;
  std::size_t at = kWalHeaderBytes;
  for (int pages = 1; read_at(file.get(), frame, at); ++pages, at += frame.size()) {
    if (!follows(sum, header, frame, is_big_endian)) break;
    if (is_commit(frame)) found = pages;
  }
  return found;
}

}  // namespace hearth::storage
