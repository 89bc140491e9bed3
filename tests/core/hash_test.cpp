#include "headwise/core/hash.hpp"

#include <string>

#include "support/catch.hpp"

using namespace headwise;

namespace {

std::uint64_t hash_of(std::string_view bytes) {
  Xxh64 hash;
  hash.add(bytes);
  return hash.value();
}

}  // namespace

TEST_CASE("XXH64 gives its published values", "[core][hash]") {
  CHECK(hash_of("") == 0xEF46DB3751D8E999);
  CHECK(hash_of("a") == 0xD24EC4F1A98C6E5B);
  CHECK(hash_of("abc") == 0x44BC2CF5AD770999);
  CHECK(hash_of("Nobody inspects the spammish repetition") == 0xFBCEA83C8A378BF1);
}

TEST_CASE("a hash does not depend on the pieces", "[core][hash]") {
  std::string bytes(1000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31 + i / 7);
  for (const std::size_t n : {0U, 1U, 31U, 32U, 33U, 63U, 64U, 65U, 100U, 1000U}) {
    const std::string_view text = std::string_view(bytes).substr(0, n);
    for (const std::size_t step : {1U, 3U, 31U, 32U, 33U, 500U}) {
      Xxh64 hash;
      for (std::size_t at = 0; at < n; at += step) hash.add(text.substr(at, step));
      CHECK(hash.value() == hash_of(text));
    }
  }
}

TEST_CASE("every flipped bit changes the hash", "[core][hash]") {
  std::string bytes(200, 'x');
  const std::uint64_t before = hash_of(bytes);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    CHECK(hash_of(bytes) != before);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  }
}
