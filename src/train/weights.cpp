#include "headwise/train/weights.hpp"

#include <cmath>
#include <set>

#include "headwise/train/adamw.hpp"

namespace headwise {

template <Real T>
void save_weights(Decoder<T>& model, const std::string& path) {
  TensorFileWriter file;
  for_each_param(model,
                 [&](const std::string& name, const Param<T>& p) { file.add(name, p.value); });
  if (model.config.tie) file.metadata("tied", "head.weight = tok.weight");
  file.save(path);
}

template <Real T>
std::vector<std::string> load_weights(Decoder<T>& model, const std::string& path) {
  const TensorFile file(path);
  std::set<std::string> unknown;
  for (const auto& [name, entry] : file.entries()) unknown.insert(name);
  std::vector<std::string> not_finite;
  for_each_param(model, [&](const std::string& name, Param<T>& p) {
    unknown.erase(name);
    Tensor<T> x = tensor_of<T>(file, name, p.value.shape());
    if (!std::isfinite(squared_norm(x))) not_finite.push_back(name);
    p.value = std::move(x);
  });
  require<DataError>(unknown.empty(), "{}: has tensors that the model does not: {}", path,
                     fmt::join(unknown, ", "));
  return not_finite;
}

template void save_weights(Decoder<float>&, const std::string&);
template void save_weights(Decoder<double>&, const std::string&);
template std::vector<std::string> load_weights(Decoder<float>&, const std::string&);
template std::vector<std::string> load_weights(Decoder<double>&, const std::string&);

}  // namespace headwise
