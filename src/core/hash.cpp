#include "headwise/core/hash.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace headwise {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87, kPrime2 = 0xC2B2AE3D27D4EB4F,
                        kPrime3 = 0x165667B19E3779F9, kPrime4 = 0x85EBCA77C2B2AE63,
                        kPrime5 = 0x27D4EB2F165667C5;

template <class Word>
std::uint64_t word_at(const char* bytes) {
  Word x = 0;
  std::memcpy(&x, bytes, sizeof x);
  return x;
}

std::uint64_t mixed(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

}  // namespace

void Xxh64::stripe(const char* bytes) {
  for (std::size_t i = 0; i < lanes_.size(); ++i)
    lanes_[i] = mixed(lanes_[i], word_at<std::uint64_t>(bytes + 8 * i));
}

void Xxh64::add(std::string_view bytes) {
  const std::size_t have = total_ % kStripe;
  total_ += bytes.size();
  if (have > 0) {
    const std::size_t n = std::min(kStripe - have, bytes.size());
    std::copy_n(bytes.data(), n, waiting_.data() + have);
    bytes.remove_prefix(n);
    if (have + n < kStripe) return;
    stripe(waiting_.data());
  }
  for (; bytes.size() >= kStripe; bytes.remove_prefix(kStripe)) stripe(bytes.data());
  std::copy_n(bytes.data(), bytes.size(), waiting_.data());
}

std::uint64_t Xxh64::value() const {
  std::uint64_t h = kPrime5;
  if (total_ >= kStripe) {
    h = 0;
    for (std::size_t i = 0; i < lanes_.size(); ++i)
      h += std::rotl(lanes_[i], std::array{1, 7, 12, 18}[i]);
    for (const std::uint64_t lane : lanes_) h = (h ^ mixed(0, lane)) * kPrime1 + kPrime4;
  }
  h += total_;
  const char* at = waiting_.data();
  std::size_t left = total_ % kStripe;
  for (; left >= 8; at += 8, left -= 8)
    h = std::rotl(h ^ mixed(0, word_at<std::uint64_t>(at)), 27) * kPrime1 + kPrime4;
  for (; left >= 4; at += 4, left -= 4)
    h = std::rotl(h ^ word_at<std::uint32_t>(at) * kPrime1, 23) * kPrime2 + kPrime3;
  for (; left > 0; ++at, --left)
    h = std::rotl(h ^ word_at<std::uint8_t>(at) * kPrime5, 11) * kPrime1;
  h = (h ^ h >> 33) * kPrime2;
  h = (h ^ h >> 29) * kPrime3;
  return h ^ h >> 32;
}

}  // namespace headwise
