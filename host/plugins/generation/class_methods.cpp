#include "plugins/generation/class_methods.hpp"

#include "base/escape.hpp"
#include "base/utf8.hpp"
#include "extensions/abi_call.hpp"
#include "json/json.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace hearth::plugins {
namespace {

// UTF-8 of at most `max_bytes`.
std::optional<std::string_view> read_text(hearth_bytes bytes, std::size_t max_bytes) {
  if (bytes.len > max_bytes || (bytes.ptr == nullptr && bytes.len > 0)) return std::nullopt;
  const std::string_view text(static_cast<const char*>(bytes.ptr), bytes.len);
  return is_valid_utf8(text) ? std::optional(text) : std::nullopt;
}

// What is wrong with a table as a whole, as the end of a sentence; empty: it is right.
std::string problem_with(const hearth_methods_v1& table) {
  if (table.struct_size < extensions::kMethodsSize10) {
    return " has a struct_size of " + std::to_string(table.struct_size) +
           ": set it to sizeof(hearth_methods_v1)";
  }
  if (table.count > HEARTH_METHODS_MAX) {
    return " has " + std::to_string(table.count) + " methods, more than " +
           std::to_string(HEARTH_METHODS_MAX);
  }
  if (table.count > 0 && table.methods == nullptr) return " has no methods";
  return {};
}

// Adds the methods of a table, one after the other.
class MethodReader {
 public:
  // Returns what is wrong, or an empty text.
  std::string add(const hearth_method& method) {
    if (std::string why = add_named(method.name, method.flags); !why.empty()) return why;
    const auto description = read_text(method.description, HEARTH_METHOD_DESCRIPTION_MAX);
    if (!description) {
      return described() + "description is not UTF-8 of at most " +
             std::to_string(HEARTH_METHOD_DESCRIPTION_MAX) + " bytes";
    }
    if (!description->empty()) entry_["description"] = std::string(*description);
    for (const auto& [key, bytes] :
         {std::pair("arguments", method.arguments), std::pair("result", method.result)}) {
      if (bytes.len == 0) continue;
      const auto text = read_text(bytes, HEARTH_METHOD_SCHEMA_MAX);
      auto schema = parse_json(text.value_or(""));
      if (!schema || !schema->is_object()) {
        return described() + "schema of the " + key + " is not a JSON object of at most " +
               std::to_string(HEARTH_METHOD_SCHEMA_MAX) + " bytes";
      }
      entry_[key] = *std::move(schema);
    }
    return {};
  }

  // The method that was added last is complete.
  void keep() {
    if (!names_.insert(name_).second) return;
    if (entry_["idempotent"].get<bool>()) methods_.idempotent.push_back(name_);
    if (entry_["read_only"].get<bool>()) methods_.read_only.push_back(name_);
    if (entry_["exclusive"].get<bool>()) methods_.exclusive.push_back(name_);
    list_.push_back(std::move(entry_));
  }

  ClassMethods take() {
    std::ranges::sort(methods_.idempotent);
    std::ranges::sort(methods_.read_only);
    std::ranges::sort(methods_.exclusive);
    methods_.listed = dump_json(list_);
    return std::move(methods_);
  }

 private:
  std::string add_named(hearth_bytes name, std::uint32_t flags) {
    const auto text = read_text(name, HEARTH_METHOD_NAME_MAX);
    if (!text || text->empty()) {
      return " has a method whose name is not 1 to " + std::to_string(HEARTH_METHOD_NAME_MAX) +
             " bytes of UTF-8";
    }
    name_ = *text;
    const bool is_read_only = (flags & HEARTH_METHOD_READ_ONLY) != 0;
    entry_ = {{"name", name_},
              {"idempotent", is_read_only || (flags & HEARTH_METHOD_IDEMPOTENT) != 0},
              {"read_only", is_read_only},
              {"streaming", (flags & HEARTH_METHOD_STREAMING) != 0},
              {"exclusive", (flags & HEARTH_METHOD_EXCLUSIVE) != 0}};
    return {};
  }
  [[nodiscard]] std::string described() const {
    return " has a method " + quote_text(name_) + " whose ";
  }

  std::string name_;
  Json entry_;
  std::set<std::string> names_;
  Json list_ = Json::array();
  ClassMethods methods_;
};

}  // namespace

Checked<ClassMethods> read_class_methods(const hearth_methods_v1* table,
                                         std::string_view class_name) {
  if (table == nullptr) return ClassMethods();
  const auto broken = [&](const std::string& how) {
    return finding("L2", "the " HEARTH_EXT_METHODS " of its class " + show_name(class_name) + how);
  };
  if (const std::string why = problem_with(*table); !why.empty()) return broken(why);
  MethodReader reader;
  for (const auto& method : std::span(table->methods, table->count)) {
    if (const std::string why = reader.add(method); !why.empty()) return broken(why);
    reader.keep();
  }
  return reader.take();
}

}  // namespace hearth::plugins
