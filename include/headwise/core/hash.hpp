// Hashes of bytes, the same on every platform and for ever.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headwise {

/// FNV-1a of 64 bits (Fowler, Noll and Vo; draft-eastlake-fnv). For telling texts apart, not for
/// secrets.
constexpr std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

/// It as hexadecimal digits.
inline std::string text_hash(std::string_view text) { return fmt::format("{:016x}", fnv1a(text)); }

/// XXH64 with seed 0 (Collet, "xxHash fast digest algorithm", version 0.1.1), for bytes that come
/// in pieces: several GB a second. Finds damage, not forgery.
class Xxh64 {
 public:
  void add(std::string_view bytes);
  /// Of all bytes so far.
  [[nodiscard]] std::uint64_t value() const;

 private:
  static constexpr std::size_t kStripe = 32;

  void stripe(const char* bytes);

  // As the algorithm begins: sums and differences of its primes 1 and 2.
  std::array<std::uint64_t, 4> lanes_{0x60EA27EEADC0B5D6, 0xC2B2AE3D27D4EB4F, 0,
                                      0x61C8864E7A143579};
  std::array<char, kStripe> waiting_{};
  std::uint64_t total_ = 0;
};

}  // namespace headwise
