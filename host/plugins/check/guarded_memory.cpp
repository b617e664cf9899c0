#include "plugins/check/guarded_memory.hpp"

#include "base/error.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace hearth::plugins {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

GuardedMemory::GuardedMemory() : regions_(kMaxRegions) {}

GuardedMemory::~GuardedMemory() {
  for (const auto* const list : {&regions_, &kept_}) {
    for (const Region& region : *list) {
      if (region.begin != nullptr) ::munmap(region.begin, region.size);
    }
  }
}

GuardedMemory::Region GuardedMemory::make_region(std::string_view bytes, std::string_view label) {
  const std::size_t readable = (bytes.size() + kPage - 1) / kPage * kPage;
  void* const mapped =
      ::mmap(nullptr, readable + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw StorageError("map memory to lend: " + system_text(errno));
  Region region{.begin = static_cast<std::byte*>(mapped), .size = readable + kPage};
  if (::mprotect(region.begin + readable, kPage, PROT_NONE) != 0) {
    const int error = errno;
    ::munmap(mapped, region.size);
    throw StorageError("guard memory to lend: " + system_text(error));
  }
  region.copy = region.begin + readable - bytes.size();
  std::memcpy(region.copy, bytes.data(), bytes.size());
  std::copy_n(label.begin(), std::min(label.size(), kMaxLabel - 1), region.label);
  return region;
}

void* GuardedMemory::lend(std::string_view bytes, std::string_view label) {
  if (bytes.empty()) return nullptr;
  Region& region = place(lent_);
  if (region.begin != nullptr) ::munmap(region.begin, region.size);
  region = {};
  region = make_region(bytes, label);
  ++lent_;
  return region.copy;
}

void* GuardedMemory::keep(std::string_view bytes, std::string_view label) {
  return kept_.emplace_back(make_region(bytes, label)).copy;
}

void GuardedMemory::retire(std::size_t mark) {
  const std::size_t oldest = lent_ > kMaxRegions ? lent_ - kMaxRegions : 0;
  for (std::size_t number = std::max(mark, oldest); number < lent_; ++number) {
    Region& region = place(number);
    if (region.retired) continue;
    ::mprotect(region.begin, region.size, PROT_NONE);
    region.retired = true;
  }
}

const char* GuardedMemory::label_at(const void* address) const noexcept {
  const auto* const at = static_cast<const std::byte*>(address);
  for (const auto* const list : {&regions_, &kept_}) {
    for (const Region& region : *list) {
      if (region.begin != nullptr && at >= region.begin && at < region.begin + region.size)
        return region.label;
    }
  }
  return nullptr;
}

}  // namespace hearth::plugins
