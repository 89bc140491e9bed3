// A fingerprint of bytes, the same on every platform and for ever.
#pragma once

#include <cstdint>
#include <string_view>

namespace headwise {

/// FNV-1a of 64 bits (Fowler, Noll and Vo; draft-eastlake-fnv). For telling texts apart, not for
/// secrets.
constexpr std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

}  // namespace headwise
