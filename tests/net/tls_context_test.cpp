#include "net/tls_context.hpp"

#include "net/test_certificate.hpp"
#include "support/temp_directory.hpp"
#include "support/unprivileged.hpp"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

namespace hearth::net {
namespace {

using testing::CertificateFiles;
using testing::KeyKind;
using testing::make_certificate;

class TlsContextTest : public ::testing::Test {
 protected:
  static Result<std::shared_ptr<const TlsContext>> load(const CertificateFiles& files) {
    return TlsContext::load({.certificate = files.certificate, .key = files.key});
  }
  [[nodiscard]] CertificateFiles files(const std::string& name = "a.test",
                                       KeyKind kind = KeyKind::kEc) const {
    return make_certificate(directory_.path(), name, kind);
  }
  void write(const std::filesystem::path& file, const std::string& text) {
    std::ofstream(file) << text;
  }

  testing::TempDirectory directory_;
};

TEST_F(TlsContextTest, APairIsUsedAndSaysWhoseAndUntilWhen) {
  for (const KeyKind kind : {KeyKind::kEc, KeyKind::kRsa2048}) {
    const auto loaded = load(files("a.test", kind));
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ((*loaded)->fingerprint().size(), 64U);
    const auto left = (*loaded)->not_after() - std::chrono::system_clock::now();
    EXPECT_GT(left, std::chrono::days(29));
    EXPECT_LE(left, std::chrono::days(30));
  }
}

TEST_F(TlsContextTest, CertificatesBehindTheFirstAreSentWithIt) {
  const CertificateFiles own = files();
  std::ifstream more(files("authority.test").certificate);
  std::ofstream(own.certificate, std::ios::app) << more.rdbuf();
  EXPECT_TRUE(load(own));
  std::ofstream(own.certificate, std::ios::app)
      << "-----BEGIN CERTIFICATE-----\nnot base64!\n-----END CERTIFICATE-----\n";
  EXPECT_FALSE(load(own)) << "half a chain would be served";
}

TEST_F(TlsContextTest, WhatCannotBeUsedIsSaidWithTheFileAndWithoutItsContents) {
  struct Case {
    const char* name;
    std::function<CertificateFiles()> make;
    std::string said;
  };
  const std::string secret =
      "-----BEGIN PRIVATE KEY-----\nMHcCAQEEIKx\n-----END PRIVATE KEY-----\n";
  const auto changed = [this](const std::function<void(const CertificateFiles&)>& change) {
    const CertificateFiles made = files();
    change(made);
    return made;
  };
  const Case cases[] = {
      {"no certificate",
       [this] { return CertificateFiles{directory_.path() / "no.pem", "no.key"}; }, "no.pem"},
      {"no key",
       [this] { return CertificateFiles{files().certificate, directory_.path() / "no.key"}; },
       "no.key"},
      {"another certificate's key",
       [this] { return CertificateFiles{files("a.test").certificate, files("b.test").key}; },
       "b.test.key cannot be used: it does not belong to the certificate"},
      {"an encrypted key",
       [this] { return make_certificate(directory_.path(), "c.test", KeyKind::kEc, "secret"); },
       "it is encrypted"},
      {"a weak key", [this] { return files("weak.test", KeyKind::kRsa1024); }, "too small"},
      {"no PEM", [&] { return changed([&](const auto& it) { write(it.certificate, "hello"); }); },
       "it is no certificate in PEM"},
      {"a broken key", [&] { return changed([&](const auto& it) { write(it.key, secret); }); },
       "it is no private key in PEM"},
      {"a key that all may read",
       [&] { return changed([](const auto& it) { ::chmod(it.key.c_str(), 0644); }); },
       "others have access to it: chmod 600"},
      {"a key that a group may write",
       [&] { return changed([](const auto& it) { ::chmod(it.key.c_str(), 0660); }); },
       "others have access to it: chmod 600"},
  };
  for (const Case& each : cases) {
    const auto loaded = load(each.make());
    ASSERT_FALSE(loaded) << each.name;
    const std::string& said = loaded.error().message;
    EXPECT_NE(said.find(each.said), std::string::npos) << each.name << ": " << said;
    EXPECT_EQ(said.find("MHcCAQ"), std::string::npos) << said;
  }
}

TEST_F(TlsContextTest, AGroupMayReadTheKey) {
  const CertificateFiles made = files();
  ::chmod(made.key.c_str(), 0640);
  EXPECT_TRUE(load(made));
}

TEST_F(TlsContextTest, LinksLeadToTheFiles) {
  const CertificateFiles made = files();
  const CertificateFiles links{directory_.path() / "live.pem", directory_.path() / "live.key"};
  std::filesystem::create_symlink(made.certificate, links.certificate);
  std::filesystem::create_symlink(made.key, links.key);
  EXPECT_TRUE(load(links));
}

}  // namespace
}  // namespace hearth::net
