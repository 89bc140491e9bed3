// A model's weights as a file.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "headwise/core/safetensors.hpp"
#include "headwise/models/decoder.hpp"

namespace headwise {

/// Throws DataError, naming both shapes, unless the file has a tensor of that name and shape. Reads
/// no data.
void require_tensor(const TensorFile& file, const std::string& name, const Shape& shape);
/// Throws DataError unless these are all tensors of the file, naming some of the others.
void require_only(const TensorFile& file, const std::set<std::string>& names);

/// Whether no element is NaN or infinite.
template <Real T>
bool all_finite(const Tensor<T>& x);

/// Adds the model's weights to a file, by parameter name.
template <Real T>
void add_weights(Decoder<T>& model, TensorFileWriter& file);
/// The model's weights alone, by parameter name, for any reader of safetensors.
template <Real T>
void save_weights(Decoder<T>& model, const std::string& path);

/// Takes a file's weights, which may be F16, BF16, F32 or F64 (see TensorFile::converted). Throws
/// DataError for a missing or additional name and for a shape that is not the model's, naming
/// tensor and both shapes, before any data are read, and for damage, before anything is replaced.
/// When reading fails later, the model is not whole. Returns names of tensors with a value that is
/// not finite.
template <Real T>
std::vector<std::string> load_weights(Decoder<T>& model, const TensorFile& file);
template <Real T>
std::vector<std::string> load_weights(Decoder<T>& model, const std::string& path) {
  return load_weights(model, TensorFile(path));
}

}  // namespace headwise
