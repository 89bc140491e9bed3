// A fingerprint of bytes, the same on every platform and for ever.
#pragma once

#include <fmt/format.h>

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

}  // namespace headwise
