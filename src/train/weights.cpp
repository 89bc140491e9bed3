#include "headwise/train/weights.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <set>

#include "headwise/nn/visit.hpp"

namespace headwise {

template <Real T>
bool all_finite(const Tensor<T>& x) {
  // An element is not finite when all bits of its exponent are set: whole numbers, which the
  // compiler compares several at a time.
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr auto kExponent = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  Bits most = 0;
  for (const T value : x.values()) most = std::max(most, std::bit_cast<Bits>(value) & kExponent);
  return most < kExponent;
}

template <Real T>
void add_weights(Decoder<T>& model, TensorFileWriter& file) {
  for_each_param(model,
                 [&](const std::string& name, const Param<T>& p) { file.add(name, p.value); });
  if (model.config.tie) file.metadata("tied", "head.weight = tok.weight");
}

template <Real T>
void save_weights(Decoder<T>& model, const std::string& path) {
  TensorFileWriter file;
  add_weights(model, file);
  file.save(path);
}

template <Real T>
std::vector<std::string> load_weights(Decoder<T>& model, const TensorFile& file) {
  std::set<std::string> unknown;
  for (const auto& [name, entry] : file.entries()) unknown.insert(name);
  std::vector<std::string> not_finite;
  for_each_param(model, [&](const std::string& name, Param<T>& p) {
    unknown.erase(name);
    Tensor<T> x = tensor_of<T>(file, name, p.value.shape());
    if (!all_finite(x)) not_finite.push_back(name);
    p.value = std::move(x);
  });
  require<DataError>(unknown.empty(), "{}: has tensors that the model does not: {}", file.path(),
                     fmt::join(unknown, ", "));
  return not_finite;
}

#define HEADWISE_INSTANTIATE(T)                                \
  template bool all_finite(const Tensor<T>&);                  \
  template void add_weights(Decoder<T>&, TensorFileWriter&);   \
  template void save_weights(Decoder<T>&, const std::string&); \
  template std::vector<std::string> load_weights(Decoder<T>&, const TensorFile&);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise
