#include "testhost/body_upload.hpp"

#include "testhost/test_host.hpp"

#include <utility>

namespace hearth::testhost {

class BodyUpload::Read final : public extensions::RemoteOperation {
 public:
  Read(std::shared_ptr<BodyUpload> upload, std::uint64_t window)
      : left(static_cast<std::int64_t>(window)), upload_(std::move(upload)) {
    upload_->read_ = this;
  }
  ~Read() override { upload_->read_ = nullptr; }

  void start(extensions::RemoteListener& its_listener) override {
    listener = &its_listener;
    upload_->pass_on();
  }
  void credit(std::uint64_t bytes) override {
    left += static_cast<std::int64_t>(bytes);
    upload_->pass_on();
  }

  std::int64_t left;
  extensions::RemoteListener* listener = nullptr;

 private:
  const std::shared_ptr<BodyUpload> upload_;
};

extensions::BodyReader BodyUpload::reader() {
  return [self = shared_from_this()](std::uint64_t window) {
    return std::make_unique<Read>(self, window);
  };
}

void BodyUpload::send(std::string_view piece) {
  if (!piece.empty()) pieces_.emplace_back(piece);
  pass_on();
  host_.settle();
}

void BodyUpload::finish(Result<std::string> outcome) {
  end_ = std::move(outcome);
  pass_on();
  host_.settle();
}

std::size_t BodyUpload::unread() const {
  std::size_t bytes = 0;
  for (const std::string& piece : pieces_) bytes += piece.size();
  return bytes;
}

void BodyUpload::pass_on() {
  host_.loop().post([its = weak_from_this()] {
    if (const auto upload = its.lock()) upload->pass_on_now();
  });
}

void BodyUpload::pass_on_now() {
  if (read_ == nullptr || read_->listener == nullptr) return;
  while (!pieces_.empty() && read_->left > 0) {
    read_->left -= static_cast<std::int64_t>(pieces_.front().size());
    std::string piece = std::move(pieces_.front());
    pieces_.pop_front();
    read_->listener->part(std::move(piece), 0);
    if (read_ == nullptr || read_->listener == nullptr) return;  // the agent reads no further
  }
  if (!pieces_.empty()) return;
  if (const auto end = std::exchange(end_, std::nullopt))
    std::exchange(read_->listener, nullptr)->end(*end, 0);
}

}  // namespace hearth::testhost
