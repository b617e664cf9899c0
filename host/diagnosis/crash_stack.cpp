#include "diagnosis/crash_stack.hpp"

#include "diagnosis/code_ranges.hpp"

#include <dlfcn.h>

#include <link.h>
#include <unwind.h>

namespace hearth::diagnosis {
namespace {

struct OwnWalk {
  std::uintptr_t from = 0;  // frames above it are the handler's; 0: there are none
  std::span<std::uintptr_t> into;
  std::size_t count = 0;
};

_Unwind_Reason_Code keep_frame(_Unwind_Context* context, void* given) {
  OwnWalk& walk = *static_cast<OwnWalk*>(given);
  int is_exact = 0;
  const std::uintptr_t address = _Unwind_GetIPInfo(context, &is_exact);
  if (address == 0) return _URC_END_OF_STACK;
  if (walk.from != 0 && walk.count == 0 && address != walk.from) return _URC_NO_REASON;
  // A return address lies after the call instruction, so it may belong to the next function.
  walk.into[walk.count++] = is_exact != 0 ? address : address - 1;
  return walk.count == walk.into.size() ? _URC_END_OF_STACK : _URC_NO_REASON;
}

_Unwind_Reason_Code end_at_once(_Unwind_Context* /*context*/, void* /*unused*/) {
  return _URC_END_OF_STACK;
}

std::uintptr_t code_address(const ucontext_t& context) {
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return context.uc_mcontext.pc;
#endif
}

}  // namespace

void prepare_stack_walk() {
  _Unwind_Backtrace(end_at_once, nullptr);
}

std::span<const std::uintptr_t> walk_crashed_stack(
    const ucontext_t* context, std::span<std::uintptr_t, kMaxCrashFrames> into) noexcept {
  OwnWalk walk{.from = context == nullptr ? 0 : code_address(*context), .into = into};
  _Unwind_Backtrace(keep_frame, &walk);
  if (walk.count == 0 && walk.from != 0) into[walk.count++] = walk.from;  // a jump to nowhere
  return into.first(walk.count);
}

CodePlaceView find_place(std::uintptr_t address) noexcept {
  dl_find_object object{};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): that is what an address is
  if (::_dl_find_object(reinterpret_cast<void*>(address), &object) != 0)
    return {.file = {}, .offset = address};
  const link_map& map = *object.dlfo_link_map;
  std::string_view file = map.l_name;
  // A private copy in memory (staging.hpp): the name is valid in this process only, and the next
  // process must not look for functions there.
  if (file.starts_with("/proc/self/")) {
    const CallOwner* const owner = find_code_owner(address);
    file = owner == nullptr ? std::string_view("memory") : std::string_view(owner->library);
    file.remove_prefix(file.rfind('/') + 1);
  }
  return {.file = file.empty() ? kProgramFile : file, .offset = address - map.l_addr};
}

}  // namespace hearth::diagnosis
