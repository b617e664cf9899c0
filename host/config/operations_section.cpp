#include "config/operations_section.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::config {
namespace {

using durable::OperationKindSettings;
using durable::OperationSettings;
using extensions::ClassSettings;
using std::chrono::hours;
using std::chrono::seconds;
using Kinds = decltype(OperationSettings::kinds);

constexpr std::size_t kMostKinds = 256;  // HEARTH_OPERATION_KINDS_MAX
const Bounds<std::chrono::milliseconds> kKeep{seconds(0), hours(24 * 365 * 10)};

bool is_kind_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 &&
         std::ranges::none_of(name, [](char c) { return c <= ' ' || c == '\x7f'; });
}

OperationKindSettings read_kind(const YamlNode& node, const std::string& path, Report& report) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  OperationKindSettings kind;
  MappingReader fields(node, path, report);
  fields.read_duration("keep", kind.keep, kKeep);
  std::uint32_t count = 0;
  fields.read_count("per_day", count, {0, kMost});
  kind.per_day = count;
  std::uint32_t cost = 0;
  fields.read_count("cost_per_day", cost, {0, kMost});
  kind.cost_per_day = cost;
  fields.finish();
  return kind;
}

void read_kinds(const Reading& in, Kinds& out) {
  const YamlNode* const node = in.reader.find(in.key);
  if (node == nullptr || node->kind == YamlNode::Kind::kRefused) return;
  if (node->kind != YamlNode::Kind::kMapping && node->kind != YamlNode::Kind::kNull) {
    return in.reader.complain(in.key, node->at,
                              "expected a mapping of kinds to limits, found " + describe(*node));
  }
  if (node->entries.size() > kMostKinds)
    return in.reader.complain(in.key, node->at, "there are at most 256 kinds of operations");
  Kinds kinds;
  MappingReader names(*node, "operations.kinds.", in.report);
  for (const YamlEntry& entry : node->entries) {
    if (!is_kind_name(entry.key)) {
      names.complain(entry.key, entry.at, "a kind has 1 to 64 bytes, and no spaces");
      continue;
    }
    kinds[entry.key] =
        read_kind(entry.value, "operations.kinds." + std::string(entry.key) + ".", in.report);
  }
  out = std::move(kinds);
}

}  // namespace

Settings<ClassSettings> operations_section() {
  return {
      duration("operations.keep", at(&ClassSettings::operations, &OperationSettings::keep), kKeep,
               "how long the row of a settled [operation](#operations) stays, from its end; "
               "the row of an unknown operation stays until it is resolved"),
      row(
          "operations.kinds", "mapping of kinds to limits", "",
          at(&ClassSettings::operations, &OperationSettings::kinds), read_kinds,
          [](const Kinds& kinds) {
            Json shown = Json::object();
            for (const auto& [name, kind] : kinds) {
              shown[name] = {{"keep", format_duration(kind.keep)},
                             {"per_day", kind.per_day},
                             {"cost_per_day", kind.cost_per_day}};
            }
            return shown;
          },
          "settings of single kinds, such as `charge: {keep: 9600h, per_day: 100, "
          "cost_per_day: 50000}`: `keep` (`0s`: as `operations.keep`), and what each "
          "agent may begin on a day of UTC (`0`: no limit): `per_day` operations, and "
          "`cost_per_day`, in the unit of the class's code. An operation that would "
          "exceed a limit does not begin. The counts survive a restart"),
  };
}

}  // namespace hearth::config
