#include "headwise/train/weights.hpp"

#include "headwise/core/printable.hpp"
#include "headwise/nn/visit.hpp"
#include "kernels/kernels.hpp"

namespace headwise {

void require_tensor(const TensorFile& file, const std::string& name, const Shape& shape) {
  const Shape& has = file.entry(name).shape;
  require<DataError>(has == shape, "{}: tensor '{}' has shape {}, the model needs {}",
                     printable_path(file.path()), printable(name), has, shape);
}

void require_only(const TensorFile& file, const std::set<std::string>& names) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> others;
  std::size_t more = 0;
  for (const auto& [name, entry] : file.entries()) {
    if (names.contains(name)) continue;
    if (others.size() < kShown)
      others.push_back(printable(name));
    else
      ++more;
  }
  require<DataError>(others.empty(), "{}: has tensors that the model does not: {}{}",
                     printable_path(file.path()), fmt::join(others, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

template <Real T>
bool all_finite(const Tensor<T>& x) {
  return x.empty() || kernels::all_finite(as_rows(x));
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
  std::set<std::string> names;
  for_each_param(model, [&](const std::string& name, const Param<T>& p) {
    names.insert(name);
    require_tensor(file, name, p.value.shape());
  });
  require_only(file, names);
  file.verify();
  std::vector<std::string> not_finite;
  // One after the other, so that never more than one tensor is there twice.
  for_each_param(model, [&](const std::string& name, Param<T>& p) {
    p.value = file.converted<T>(name);
    if (!all_finite(p.value)) not_finite.push_back(name);
  });
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
