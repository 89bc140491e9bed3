#include "headwise/core/safetensors.hpp"

#include <cstring>

#include "fuzz/target.hpp"

namespace headwise::fuzz {
namespace {

template <Real T>
bool same_bits(const Tensor<T>& a, const Tensor<T>& b) {
  return a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(T)) == 0;
}

/// What is read and written again is the same.
template <Real T>
void written_again(const TensorFile& read, const std::string& dtype) {
  TensorFileWriter writer;
  std::size_t count = 0;
  for (const auto& [name, entry] : read.entries()) {
    if (entry.dtype != dtype || entry.shape.size() == 0) continue;
    writer.add(name, read.tensor<T>(name));
    ++count;
  }
  for (const auto& [key, value] : read.metadata()) writer.metadata(key, value);
  const std::string path = folder() + "/again.safetensors";
  writer.save(path);
  const TensorFile again(path);
  must(again.metadata() == read.metadata(), "metadata is kept");
  must(again.entries().size() == count, "every tensor is kept");
  for (const auto& [name, entry] : again.entries())
    must(same_bits(again.tensor<T>(name), read.tensor<T>(name)), "a tensor is kept");
}

}  // namespace

FUZZ_TARGET(safetensors) {
  const std::string path = file("input.safetensors", input);
  accepted([&] {
    const TensorFile read(path);
    for (const auto& [name, entry] : read.entries()) {
      accepted([&, n = &name] { static_cast<void>(read.converted<float>(*n)); });
      accepted([&, n = &name] { static_cast<void>(read.converted<double>(*n)); });
      accepted([&, n = &name] { static_cast<void>(read.ids(*n)); });
    }
    accepted([&] { read.verify(); });
    written_again<float>(read, "F32");
    written_again<double>(read, "F64");
  });
}

}  // namespace headwise::fuzz
