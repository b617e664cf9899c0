#include <hearth/fiber.hpp>

namespace hearth {

void FiberContext::stash(const Json& checkpoint) {
  std::string& text = activation_.answer_buffer();
  append_json(text, checkpoint);
  const std::uint64_t hash = stable_hash(text);
  activation_.check(detail::fiber_table(activation_)
                        .stash(activation_.host(), activation_.id(), row_.handle,
                               detail::slice(std::string_view(text))),
                    "stash");
  children_.clear();
  checkpoint_ = hash;
}

bool FiberContext::once(std::string_view mark) {
  std::uint32_t is_first = 0;
  activation_.check(
      detail::fiber_table(activation_)
          .once(activation_.host(), activation_.id(), row_.handle, detail::slice(mark), &is_first),
      "do once");
  return is_first != 0;
}

}  // namespace hearth
