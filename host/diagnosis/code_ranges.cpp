#include "diagnosis/code_ranges.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include <link.h>

namespace hearth::diagnosis {
namespace {

constexpr std::size_t kMaxLibraries = 2048;

struct Search {
  std::uintptr_t inside = 0;
  CodeRange found;
};

int search_object(dl_phdr_info* object, std::size_t /*size*/, void* given) {
  Search& search = *static_cast<Search*>(given);
  std::uintptr_t from = UINTPTR_MAX;
  std::uintptr_t until = 0;
  bool is_it = false;
  for (std::size_t i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    const std::uintptr_t end = begin + segment.p_memsz;
    is_it = is_it || (search.inside >= begin && search.inside < end);
    if ((segment.p_flags & PF_X) == 0) continue;
    from = std::min(from, begin);
    until = std::max(until, end);
  }
  if (!is_it) return 0;
  if (until != 0) search.found = {.from = from, .until = until};
  return 1;
}

}  // namespace

// Never changes once it is published: its owner and its range always belong together.
struct LibraryCode {
  CallOwner owner;
  CodeRange range;
};

namespace {

constinit std::array<std::atomic<const LibraryCode*>, kMaxLibraries> published_code{};

// A ring that owns the libraries that were unpublished last; `unpublished` counts on.
constinit std::array<std::atomic<const LibraryCode*>, kRememberedOwners> remembered{};
constinit std::atomic<std::size_t> unpublished{0};

void remember(std::unique_ptr<const LibraryCode> code) {
  const std::size_t place = unpublished.fetch_add(1, std::memory_order_relaxed);
  const std::unique_ptr<const LibraryCode> forgotten(
      remembered[place % remembered.size()].exchange(code.release(), std::memory_order_acq_rel));
}

}  // namespace

CodeRange find_code_range(const void* inside) {
  Search search{.inside = reinterpret_cast<std::uintptr_t>(inside), .found = {}};
  ::dl_iterate_phdr(search_object, &search);
  return search.found;
}

PublishedCode::PublishedCode(std::string library_file, std::string hash, std::uint64_t version,
                             std::string classes, const void* inside)
    : code_(new LibraryCode{
          .owner = {std::move(library_file), std::move(hash), version, std::move(classes)},
          .range = find_code_range(inside)}),
      place_(published_code.size()) {
  if (code_->range.until == 0) return;
  for (std::size_t place = 0; place < published_code.size(); ++place) {
    const LibraryCode* nobody = nullptr;
    if (!published_code[place].compare_exchange_strong(
            nobody, code_.get(), std::memory_order_release, std::memory_order_relaxed))
      continue;
    place_ = place;
    return;
  }
}

PublishedCode::~PublishedCode() {
  if (place_ == published_code.size()) return;
  published_code[place_].store(nullptr, std::memory_order_release);
  remember(std::move(code_));
}

const CallOwner* find_code_owner(std::uintptr_t address) noexcept {
  for (const auto& place : published_code) {
    const LibraryCode* const code = place.load(std::memory_order_acquire);
    if (code != nullptr && code->range.contains(address)) return &code->owner;
  }
  return nullptr;
}

}  // namespace hearth::diagnosis
