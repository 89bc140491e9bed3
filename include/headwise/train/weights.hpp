// A model's weights as a file.
#pragma once

#include <string>
#include <vector>

#include "headwise/core/safetensors.hpp"
#include "headwise/models/decoder.hpp"

namespace headwise {

/// The tensor of that name in precision T. Throws DataError naming both shapes when it has another.
template <Real T>
Tensor<T> tensor_of(const TensorFile& file, const std::string& name, const Shape& shape) {
  Tensor<T> x = file.tensor<T>(name);
  require<DataError>(x.shape() == shape, "{}: tensor '{}' has shape {}, the model needs {}",
                     file.path(), name, x.shape(), shape);
  return x;
}

/// Whether no element is NaN or infinite.
template <Real T>
bool all_finite(const Tensor<T>& x);

/// Adds the model's weights to a file, by parameter name.
template <Real T>
void add_weights(Decoder<T>& model, TensorFileWriter& file);
/// The model's weights alone, by parameter name, for any reader of safetensors.
template <Real T>
void save_weights(Decoder<T>& model, const std::string& path);
/// Throws DataError for a missing or additional name and for a shape that is not the model's,
/// naming tensor and both shapes. Returns names of tensors with a value that is not finite.
template <Real T>
std::vector<std::string> load_weights(Decoder<T>& model, const TensorFile& file);
template <Real T>
std::vector<std::string> load_weights(Decoder<T>& model, const std::string& path) {
  return load_weights(model, TensorFile(path));
}

}  // namespace headwise
