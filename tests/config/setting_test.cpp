#include "config/setting.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hearth::config {
namespace {

enum class Colour { kRed, kBlue };

struct House {
  struct Room {
    int doors = 2;
    Colour colour = Colour::kRed;
  };
  Room room;
  std::size_t weight = 4096;
  std::size_t weight_of_all = 4096;
  std::string options = R"({"a":1})";
};

Settings<House> settings_of_house() {
  Settings<House> table{
      size("weight", all(at(&House::weight), at(&House::weight_of_all)), {1024, 8192}, "its mass"),
      count("room.doors", at(&House::room, &House::Room::doors), {1, 9}, "ways out"),
      word("room.colour", at(&House::room, &House::Room::colour),
           {{"red", Colour::kRed}, {"blue", Colour::kBlue}}, "of its walls"),
      row(
          "options", "mapping", "", at(&House::options), [](const Reading&, std::string&) {},
          [](const std::string& value) { return parse_json(value).value(); }, "for its people"),
  };
  table.back().is_secret = true;
  return table;
}

class SettingTest : public ::testing::Test {
 protected:
  House read(std::string_view text) {
    const YamlNode root = parse_yaml(text, report_).value();
    MappingReader reader(root, "", report_);
    House house;
    read_settings(table_, reader, {}, report_, house, sources_);
    reader.finish();
    return house;
  }

  const Settings<House> table_ = settings_of_house();
  Report report_{"h.yaml"};
  Sources sources_;
};

TEST_F(SettingTest, AValueReachesAllItsPlaces) {
  const House house = read("weight: 2KiB\nroom: {doors: 3, colour: blue}\n");
  EXPECT_EQ(house.weight, 2048U);
  EXPECT_EQ(house.weight_of_all, 2048U);
  EXPECT_EQ(house.room.doors, 3);
  EXPECT_EQ(house.room.colour, Colour::kBlue);
  EXPECT_TRUE(report_.empty());
}

TEST_F(SettingTest, WhatIsWrongIsReportedAndKeepsItsDefault) {
  const House house = read("weight: 1\nroom: {doors: 10, color: blue}\nroof: red\n");
  EXPECT_EQ(house.weight, 4096U);
  EXPECT_EQ(house.room.doors, 2);
  std::vector<std::string> lines;
  for (const Diagnostic& mistake : report_.take()) lines.push_back(to_string(mistake));
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "h.yaml:1:9: weight: must be from 1KiB to 8KiB, found \"1\"",
                       "h.yaml:2:15: room.doors: must be from 1 to 9, found \"10\"",
                       "h.yaml:2:19: unknown key \"room.color\"; did you mean \"colour\"?",
                       "h.yaml:3:1: unknown key \"roof\"; did you mean \"room\"?"}));
}

TEST_F(SettingTest, TheEffectiveSettingsSayWhereEachIsFrom) {
  House house = read("room:\n  doors: 3\noptions: {a: hunter2}\n");
  sources_["weight"] = {.flag = "--weight", .file = {}, .at = {}};
  std::vector<std::string> lines;
  for (const EffectiveSetting& each : effective_settings(table_, house, sources_)) {
    lines.push_back(each.path + ' ' + shown_value(each.value) + ' ' + to_string(each.source));
  }
  EXPECT_EQ(lines,
            (std::vector<std::string>{"weight 4KiB --weight", "room.doors 3 h.yaml:2",
                                      "room.colour red default", "options.a null h.yaml:3"}));
}

TEST_F(SettingTest, ChangesAreToldByPathAndThoseOfAMappingByItsEntries) {
  House other;
  EXPECT_TRUE(changed_settings(table_, House{}, other).empty());
  other.room.colour = Colour::kBlue;
  other.weight = 5000;
  other.options = R"({"a":1.0,"b":2})";
  EXPECT_EQ(changed_settings(table_, House{}, other),
            (std::vector<std::string>{"weight", "room.colour", "options.a", "options.b"}));
}

TEST_F(SettingTest, TheReferenceHasALineForEachRow) {
  EXPECT_EQ(reference(table_),
            "| `weight` | size | `4KiB` | 1KiB, 8KiB | its mass |\n"
            "| `room.doors` | count | `2` | 1, 9 | ways out |\n"
            "| `room.colour` | `red`, `blue` | `red` | | of its walls |\n"
            "| `options` | mapping | `{\"a\":1}` | | for its people |\n");
}

}  // namespace
}  // namespace hearth::config
