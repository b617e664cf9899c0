#include "plugins/admission/plugin_note.hpp"

#include "plugins/test_libraries.hpp"

#include <hearth/abi.h>

#include <gtest/gtest.h>

#include <string>

namespace hearth::plugins {
namespace {

using namespace testing;

constexpr std::size_t kFixedBytes = 24;

// The description of a note with this manifest, as a compiler would lay it out.
Bytes description(std::string_view manifest) {
  hearth_note note{};
  note.magic[0] = static_cast<std::uint32_t>(HEARTH_MAGIC);
  note.magic[1] = static_cast<std::uint32_t>(HEARTH_MAGIC >> 32);
  note.abi_major = 1;
  note.abi_minor = 4;
  note.min_host_minor = 3;
  note.plugin_struct_size = 56;
  note.manifest_size = static_cast<std::uint32_t>(manifest.size());
  Bytes bytes(sizeof(note) + manifest.size());
  std::memcpy(bytes.data(), &note, sizeof(note));
  std::memcpy(bytes.data() + sizeof(note), manifest.data(), manifest.size());
  bytes.erase(bytes.begin(), bytes.begin() + (sizeof(note) - kFixedBytes));
  return bytes;
}

Result<PluginManifest> manifest(std::string_view text) {
  return decode_manifest(description(text));
}

constexpr std::string_view kGood =
    R"({"plugin":"chat","version":"1.0.0","classes":["ChatRoom","Lobby"],"extensions":["hearth.sql/1"],"later":{"x":[1]}})";

TEST(PluginNoteTest, IsFoundInALibrary) {
  const Bytes bytes = library_bytes("plain");
  const auto image = parse_elf_image(bytes).value();
  const auto notes = find_plugin_notes(image);
  ASSERT_EQ(notes.size(), 1U);
  const auto header = decode_note_header(notes[0]).value();
  EXPECT_EQ(header.abi_major, HEARTH_ABI_MAJOR);
  EXPECT_EQ(header.plugin_struct_size, sizeof(hearth_plugin));
  const auto decoded = decode_manifest(notes[0]).value();
  EXPECT_EQ(decoded.plugin, "plain");
  EXPECT_EQ(decoded.classes, std::vector<std::string>{"Plain"});
}

TEST(PluginNoteTest, ReadsAllFieldsAndLeavesUnknownKeysAlone) {
  const auto header = decode_note_header(description(kGood)).value();
  EXPECT_EQ(header.abi_minor, 4);
  EXPECT_EQ(header.min_host_minor, 3);
  EXPECT_EQ(header.plugin_struct_size, 56U);
  const auto decoded = manifest(kGood).value();
  EXPECT_EQ(decoded.plugin, "chat");
  EXPECT_EQ(decoded.version, "1.0.0");
  EXPECT_EQ(decoded.classes, (std::vector<std::string>{"ChatRoom", "Lobby"}));
  EXPECT_EQ(decoded.extensions, std::vector<std::string>{"hearth.sql/1"});
}

TEST(PluginNoteTest, ExtensionsMayBeLeftOut) {
  const auto decoded = manifest(R"({"plugin":"a","version":"1","classes":["A"]})").value();
  EXPECT_TRUE(decoded.extensions.empty());
}

TEST(PluginNoteTest, EveryShorterNoteIsRefused) {
  const Bytes whole = description(kGood);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::span<const std::byte> part(whole.data(), size);
    EXPECT_EQ(static_cast<bool>(decode_note_header(part)), size >= kFixedBytes);
    EXPECT_FALSE(decode_manifest(part)) << size;
  }
}

TEST(PluginNoteTest, RefusesAWrongMagicNumber) {
  Bytes bytes = description(kGood);
  bytes[0] ^= std::byte{1};
  EXPECT_FALSE(decode_note_header(bytes));
}

TEST(PluginNoteTest, ReadsTheHeaderOfAnotherMajorVersionSoThatItCanBeNamed) {
  Bytes bytes = description(kGood);
  bytes[7] = std::byte{2};  // the last byte of the magic number is the major version
  bytes[8] = std::byte{2};
  const auto header = decode_note_header(bytes).value();
  EXPECT_EQ(header.abi_major, 2);
}

TEST(PluginNoteTest, ASizeBeyondTheBoundIsRefusedBeforeItIsRead) {
  Bytes bytes = description(kGood);
  put(bytes, 20, std::uint32_t{0xffffffff});
  EXPECT_EQ(decode_manifest(bytes).error().code, Errc::kLimitExceeded);
}

TEST(PluginNoteTest, RefusesManifestsThatBreakTheirForm) {
  for (const char* text : {
           "",
           "{",
           "[]",
           "null",
           "\"text\"",
           "{}",
           R"({"plugin":"a","version":"1"})",
           R"({"plugin":"a","classes":["A"]})",
           R"({"version":"1","classes":["A"]})",
           R"({"plugin":1,"version":"1","classes":["A"]})",
           R"({"plugin":"a","version":1,"classes":["A"]})",
           R"({"plugin":"a","version":"1","classes":"A"})",
           R"({"plugin":"a","version":"1","classes":[]})",
           R"({"plugin":"a","version":"1","classes":[7]})",
           R"({"plugin":"a","version":"1","classes":["A"],"extensions":{}})",
           R"({"plugin":"a","version":"1","classes":["A"],"extensions":[""]})",
           R"({"plugin":"","version":"1","classes":["A"]})",
           R"({"plugin":"../a","version":"1","classes":["A"]})",
           R"({"plugin":"a/b","version":"1","classes":["A"]})",
           R"({"plugin":"a.b","version":"1","classes":["A"]})",
           R"({"plugin":"-a","version":"1","classes":["A"]})",
           R"({"plugin":"a","version":"","classes":["A"]})",
           R"({"plugin":"a","version":"1\n2","classes":["A"]})",
           "{\"plugin\":\"a\xff\",\"version\":\"1\",\"classes\":[\"A\"]}",
       }) {
    EXPECT_EQ(manifest(text).error().code, Errc::kInvalidArgument) << text;
  }
}

TEST(PluginNoteTest, RefusesMoreThanItsBounds) {
  std::string classes;
  for (std::size_t n = 0; n <= kMaxClassesOfPlugin; ++n)
    classes += "\"C" + std::to_string(n) + "\",";
  classes.pop_back();
  auto decoded = manifest(R"({"plugin":"a","version":"1","classes":[)" + classes + "]}");
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, Errc::kLimitExceeded);

  decoded = manifest(R"({"plugin":"a","version":"1","classes":["A"],"x":")" +
                     std::string(kMaxManifestBytes, 'x') + "\"}");
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, Errc::kLimitExceeded);

  EXPECT_FALSE(
      manifest(R"({"plugin":")" + std::string(65, 'a') + R"(","version":"1","classes":["A"]})"));
  EXPECT_TRUE(
      manifest(R"({"plugin":")" + std::string(64, 'a') + R"(","version":"1","classes":["A"]})"));
}

TEST(PluginNoteTest, ClassNamesFollowTheContract) {
  for (const char* name : {"A", "_", "ChatRoom", "my-agent", "A_1-b"})
    EXPECT_TRUE(is_valid_class_name(name)) << name;
  EXPECT_TRUE(is_valid_class_name(std::string(64, 'a')));
  for (const char* name : {"", "1a", "-a", "a b", "a.b", "../a", "a/b", "\xc3\xa4", "a\n"}) {
    EXPECT_FALSE(is_valid_class_name(name)) << name;
  }
  EXPECT_FALSE(is_valid_class_name(std::string(65, 'a')));
  EXPECT_FALSE(is_valid_class_name(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace hearth::plugins
