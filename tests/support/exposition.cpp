#include "support/exposition.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <utility>

namespace hearth::testing {
namespace {

bool is_name(std::string_view text, bool colon_allowed) {
  const auto good = [&](char c, bool first) {
    const bool letter =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c == ':' && colon_allowed);
    return letter || (!first && c >= '0' && c <= '9');
  };
  if (text.empty() || !good(text.front(), true)) return false;
  return std::ranges::all_of(text, [&](char c) { return good(c, false); });
}

std::optional<double> read_number(std::string_view text) {
  if (text == "+Inf") return HUGE_VAL;
  const std::string copy(text);
  if (copy.empty() || copy.find_first_not_of("0123456789+-.e") != std::string::npos)
    return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (end != copy.c_str() + copy.size()) return std::nullopt;
  return value;
}

// `{a="x",b="y"}`, cut off the front of `text`.
bool read_labels(std::string_view& text, std::map<std::string, std::string>& labels) {
  text.remove_prefix(1);
  while (true) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string name(text.substr(0, equals));
    text.remove_prefix(equals + 1);
    if (!is_name(name, false) || !text.starts_with('"')) return false;
    text.remove_prefix(1);
    std::string value;
    while (!text.empty() && text.front() != '"') {
      if (text.front() == '\\') {
        if (text.size() < 2) return false;
        const char c = text[1];
        if (c != '\\' && c != '"' && c != 'n') return false;
        value += c == 'n' ? '\n' : c;
        text.remove_prefix(2);
      } else {
        value += text.front();
        text.remove_prefix(1);
      }
    }
    if (text.empty() || !labels.emplace(name, value).second) return false;
    text.remove_prefix(1);
    if (text.starts_with('}')) {
      text.remove_prefix(1);
      return true;
    }
    if (!text.starts_with(',')) return false;
    text.remove_prefix(1);
  }
}

bool holds(const std::map<std::string, std::string>& all,
           const std::map<std::string, std::string>& some) {
  return std::ranges::all_of(some, [&](const auto& each) {
    const auto found = all.find(each.first);
    return found != all.end() && found->second == each.second;
  });
}

}  // namespace

Exposition::Exposition(std::string_view text) {
  if (!read(text)) families_.clear();
}

bool Exposition::read(std::string_view text) {
  if (!is_valid_utf8(text)) return fail("not UTF-8");
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return fail("the last line has no end");
    const std::string_view line = text.substr(0, end);
    if (!read_line(line)) return fail(mistake_ + ": " + std::string(line));
    text.remove_prefix(end + 1);
  }
  for (const auto& [name, family] : families_) {
    current_ = name;
    if (!check_family(family)) return fail(mistake_ + ": " + name);
  }
  return true;
}

bool Exposition::fail(std::string why) {
  mistake_ = std::move(why);
  return false;
}

bool Exposition::read_line(std::string_view line) {
  if (line.starts_with("# ")) return read_description(line.substr(2));
  return read_sample(line);
}

bool Exposition::read_description(std::string_view line) {
  const bool is_help = line.starts_with("HELP ");
  if (!is_help && !line.starts_with("TYPE ")) return fail("neither HELP nor TYPE");
  line.remove_prefix(5);
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return fail("a description without a text");
  const std::string name(line.substr(0, space));
  const std::string text(line.substr(space + 1));
  if (!is_name(name, true) || text.empty()) return fail("a bad description");
  if (is_help) {
    if (!families_.try_emplace(name).second) return fail("a family that comes twice");
    families_[name].help = text;
    current_ = name;
    return true;
  }
  if (name != current_ || !families_[name].type.empty() || !families_[name].samples.empty())
    return fail("TYPE must follow HELP");
  if (text != "counter" && text != "gauge" && text != "histogram") return fail("a strange type");
  families_[name].type = text;
  return true;
}

bool Exposition::read_sample(std::string_view line) {
  Sample sample;
  const std::size_t end = line.find_first_of("{ ");
  if (end == std::string_view::npos) return fail("no sample");
  sample.name = line.substr(0, end);
  std::string_view rest = line.substr(end);
  if (rest.starts_with('{') && !read_labels(rest, sample.labels)) return fail("bad labels");
  if (!rest.starts_with(' ')) return fail("no value");
  const auto value = read_number(rest.substr(1));
  if (!value) return fail("a bad value, or something after it");
  sample.value = *value;
  MetricFamily& family = families_[current_];
  if (family.type.empty()) return fail("a sample before its TYPE");
  const bool is_part = family.type == "histogram" &&
                       (sample.name == current_ + "_bucket" || sample.name == current_ + "_sum" ||
                        sample.name == current_ + "_count");
  if (sample.name != current_ && !is_part) return fail("a sample of another family");
  if (family.type == "histogram" && !is_part) return fail("a bare sample of a histogram");
  for (const Sample& other : family.samples) {
    if (other.name == sample.name && other.labels == sample.labels)
      return fail("a series that comes twice");
  }
  family.samples.push_back(std::move(sample));
  return true;
}

bool Exposition::check_family(const MetricFamily& family) {
  if (family.type.empty() || family.samples.empty()) return fail("a family without samples");
  if (family.type == "counter") {
    if (!current_.ends_with("_total")) return fail("a counter whose name does not end in _total");
    for (const Sample& sample : family.samples) {
      if (sample.value < 0) return fail("a counter below zero");
    }
  }
  if (family.type != "histogram") return true;
  // Buckets of one series come in order, grow, and end with +Inf, which is the count.
  std::map<std::map<std::string, std::string>, std::vector<std::pair<double, double>>> buckets;
  for (const Sample& sample : family.samples) {
    if (!sample.name.ends_with("_bucket")) continue;
    auto labels = sample.labels;
    const auto bound = read_number(labels["le"]);
    if (!bound) return fail("a bucket without a bound");
    labels.erase("le");
    buckets[labels].emplace_back(*bound, sample.value);
  }
  for (const auto& [labels, series] : buckets) {
    if (!std::ranges::is_sorted(series) ||
        !std::ranges::is_sorted(series, {}, [](const auto& each) { return each.second; }))
      return fail("buckets that do not grow");
    if (!std::isinf(series.back().first)) return fail("no +Inf bucket");
    if (value(current_ + "_count", labels) != series.back().second) return fail("a wrong count");
    if (!value(current_ + "_sum", labels)) return fail("no sum");
  }
  return !buckets.empty() || fail("a histogram without buckets");
}

std::optional<double> Exposition::value(std::string_view name,
                                        const std::map<std::string, std::string>& labels) const {
  for (const auto& [key, family] : families_) {
    for (const Sample& sample : family.samples) {
      if (sample.name == name && sample.labels == labels) return sample.value;
    }
  }
  return std::nullopt;
}

double Exposition::sum(std::string_view name,
                       const std::map<std::string, std::string>& labels) const {
  double total = 0;
  for (const auto& [key, family] : families_) {
    for (const Sample& sample : family.samples) {
      if (sample.name == name && holds(sample.labels, labels)) total += sample.value;
    }
  }
  return total;
}

}  // namespace hearth::testing
