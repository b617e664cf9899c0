#include <hearth/kv.hpp>

namespace hearth {

void Kv::put(std::string_view key, const Json& value) {
  const std::string text = to_text(value);
  activation_.check(table().put(activation_.host(), activation_.id(), detail::slice(key),
                                detail::slice(std::string_view(text))),
                    "put a value");
}

bool Kv::remove(std::string_view key) {
  const hearth_status status =
      table().remove(activation_.host(), activation_.id(), detail::slice(key));
  return detail::found(activation_, status, "remove a value");
}

std::vector<KvEntry> Kv::list(const KvFilter& filter) const {
  hearth_kv_filter wanted = {};
  wanted.struct_size = sizeof wanted;
  wanted.limit = filter.limit;
  wanted.prefix = detail::slice(std::string_view(filter.prefix));
  wanted.after = detail::slice(std::string_view(filter.after));
  hearth_bytes entries = {nullptr, 0};
  activation_.check(table().list(activation_.host(), activation_.id(), &wanted, &entries),
                    "list values");
  std::vector<KvEntry> all;
  for (Json& each : detail::parse_record(detail::view(entries)))
    all.push_back({each.at("key").get<std::string>(), std::move(each.at("value"))});
  return all;
}

KvUsage Kv::usage() const {
  KvUsage used;
  activation_.check(table().usage(activation_.host(), activation_.id(), &used.keys, &used.bytes),
                    "usage");
  return used;
}

}  // namespace hearth
