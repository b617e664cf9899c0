#include <hearth/detail/closure_check.hpp>

#include <cstdlib>
#include <memory>
#include <string>

#include <cxxabi.h>

namespace hearth::detail {
namespace {

// The type as an author would write it. (The linker's name has numbers for repeated parts.)
std::string written_name(const std::type_info& type) {
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr), &std::free);
  return name ? std::string(name.get()) : std::string();
}

}  // namespace

bool is_binding_of(const std::type_info& whole, const std::type_info& function) {
  const std::string name = written_name(function);
  if (name.empty()) return false;
  const std::string text = written_name(whole);
  if (text.starts_with("std::_Bind_result<"))  // its first part is the type of the result
    return text.find(", " + name + " (") != std::string::npos;
  return text.starts_with("std::_Bind<" + name + " (") ||
         text.starts_with("std::_Bind_front<" + name + ",") ||
         text.starts_with("std::_Bind_front<" + name + ">");
}

}  // namespace hearth::detail
