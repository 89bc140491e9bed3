// The header of a safetensors file: read, checked and written.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headwise/core/safetensors.hpp"

namespace headwise {

constexpr std::size_t kHeaderPrefix = 8;  ///< bytes that give the header's length
constexpr std::size_t kMostHeader = 100'000'000, kMostTensors = std::size_t{1} << 20,
                      kMostTexts = std::size_t{1} << 16, kMostName = 4096;

/// What a header says.
struct TensorHeader {
  std::map<std::string, TensorFile::Entry> entries;
  std::map<std::string, std::string> metadata;
};

/// Bytes of one element, 0 for a type the format does not have.
std::size_t element_size(std::string_view dtype);

/// Reads the header of the file at `path`, which has `data_bytes` bytes of data, in time and memory
/// proportional to its length. Throws DataError as TensorFile does; checksums move from the
/// metadata into the entries.
TensorHeader parse_header(const std::string& path, std::string_view text, std::size_t data_bytes);

/// A tensor to be written. Its checksum is in the file if all tensors have one.
struct HeaderItem {
  std::string_view name, dtype;
  Shape shape;
  std::optional<std::uint64_t> checksum;
};

/// What a file begins with: the header's length and the header, whose tensors lie in this order.
/// Throws DataError for names and metadata that parse_header() would not take.
std::string file_beginning(const std::string& path, const std::vector<HeaderItem>& items,
                           const std::map<std::string, std::string>& metadata);

}  // namespace headwise
