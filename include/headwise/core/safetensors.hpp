// Tensors in a file: the safetensors format (https://github.com/huggingface/safetensors, "Format").
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "headwise/core/file.hpp"
#include "headwise/core/ids.hpp"
#include "headwise/core/tensor.hpp"

namespace headwise {

/// A safetensors file in memory, checked when it is opened: header length, types, and that the
/// tensors tile the data without a gap or an overlap.
class TensorFile {
 public:
  struct Entry {
    std::string dtype;  ///< as the format names it: "F32", "F64", "I64", ...
    Shape shape;
    std::size_t begin = 0, end = 0;  ///< bytes within the data
  };

  /// Throws DataError naming the file, the tensor and the rule when it is not what it says.
  explicit TensorFile(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::map<std::string, Entry>& entries() const { return entries_; }
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const { return metadata_; }
  [[nodiscard]] bool has(const std::string& name) const { return entries_.contains(name); }

  /// The tensor of that name, which must be stored in precision T. Throws DataError otherwise.
  template <Real T>
  [[nodiscard]] Tensor<T> tensor(const std::string& name) const;
  /// The same for I64 numbers.
  [[nodiscard]] Ids ids(const std::string& name) const;

 private:
  [[nodiscard]] const Entry& entry(const std::string& name, const std::string& dtype) const;

  std::string path_, bytes_;
  std::size_t data_ = 0;  ///< where the data starts in bytes_
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

/// Collects tensors and writes them as one file, replaced in one step (see AtomicFile).
/// The same tensors and metadata give the same bytes.
class TensorFileWriter {
 public:
  /// Keeps a reference to the tensor's storage until save(). Throws DataError for a name twice.
  template <Real T>
  void add(const std::string& name, const Tensor<T>& x);
  void metadata(const std::string& key, const std::string& value) { metadata_[key] = value; }
  void save(const std::string& path) const { save(AtomicFile(path)); }
  void save(AtomicFile file) const;

 private:
  struct Item {
    std::string dtype;
    Shape shape;
    std::shared_ptr<const void> owner;
    std::string_view bytes;
  };
  std::map<std::string, Item> items_;
  std::map<std::string, std::string> metadata_;
};

/// Writes a file of tensors too large to be held: what it will have is said first, and then comes
/// tensor by tensor, each in as many pieces as is convenient. The file is replaced in one step.
class TensorFileStream {
 public:
  struct Item {
    std::string name, dtype;  ///< "F32", "F64" or "I64"
    Shape shape;
  };

  /// Throws DataError for a name twice, and as AtomicFile does.
  TensorFileStream(const std::string& path, const std::vector<Item>& items);

  /// The next numbers of the tensor at hand. Throws DataError when they are of another precision
  /// than it, or more than it lacks.
  void write(std::span<const float> x) { write(x, "F32"); }
  void write(std::span<const double> x) { write(x, "F64"); }
  void write(std::span<const std::int64_t> x) { write(x, "I64"); }
  /// Throws DataError when numbers are missing.
  void finish();

 private:
  template <class Number>
  void write(std::span<const Number> x, std::string_view dtype);
  void pass_full();

  AtomicFile file_;
  std::vector<Item> items_;
  std::size_t at_ = 0;  // the tensor at hand
  Index written_ = 0;   // of its numbers
};

}  // namespace headwise
