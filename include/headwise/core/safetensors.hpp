// Tensors in a file: the safetensors format (https://github.com/huggingface/safetensors, "Format").
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headwise/core/file.hpp"
#include "headwise/core/function_ref.hpp"
#include "headwise/core/ids.hpp"
#include "headwise/core/tensor.hpp"

namespace headwise {

/// A safetensors file, open. Its header is read and checked when it is opened: types, shapes, that
/// no name stands twice, and that the tensors tile the data without a gap or an overlap. A tensor's
/// data are read when they are asked for.
///
/// Limits: a header of 100 000 000 bytes, as the format's own reader (safetensors/src/tensor.rs,
/// MAX_HEADER_SIZE); and of our own, 2^20 tensors, 2^16 texts of metadata of up to 2^24 bytes,
/// names of 4096 bytes and 6 dimensions.
///
/// A file by TensorFileWriter has checksums, of its header and of each tensor. They are compared
/// when the header and when a tensor is read, so that damage is found and named.
class TensorFile {
 public:
  struct Entry {
    std::string dtype;  ///< as the format names it: "F32", "F64", "I64", ...
    Shape shape;
    std::size_t begin = 0, end = 0;           ///< bytes within the data
    std::optional<std::uint64_t> checksum{};  ///< XXH64 of these bytes
  };

  /// Throws DataError naming the file, the tensor and the rule when it is not what it says.
  explicit TensorFile(const std::string& path) : TensorFile(InputFile(path, Accept::regular)) {}
  explicit TensorFile(InputFile file);

  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] const std::map<std::string, Entry>& entries() const { return entries_; }
  /// Without the checksums.
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const { return metadata_; }
  [[nodiscard]] bool has(const std::string& name) const { return entries_.contains(name); }
  /// Throws DataError when there is no tensor of that name.
  [[nodiscard]] const Entry& entry(const std::string& name) const;

  /// The tensor of that name, which must be stored in precision T. Throws DataError otherwise, and
  /// when its data are damaged or cannot be read.
  template <Real T>
  [[nodiscard]] Tensor<T> tensor(const std::string& name) const;
  /// The same from F16, BF16, F32 or F64: exact where T is wider, else rounded to nearest, ties to
  /// even. Throws DataError for another type, and for a number that is finite but too large for T.
  template <Real T>
  [[nodiscard]] Tensor<T> converted(const std::string& name) const;
  /// The same for I64 numbers.
  [[nodiscard]] Ids ids(const std::string& name) const;

  /// Reads all tensors that have a checksum, a block at a time. Throws DataError for damage.
  void verify() const;

 private:
  /// The tensor's bytes in order, in blocks of whole numbers, then its checksum.
  void for_each_block(const std::string& name, const Entry& entry,
                      FunctionRef<void(std::string_view)> use) const;

  InputFile file_;
  std::uint64_t data_ = 0;  ///< where the data start in the file
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

/// Collects tensors and writes them as one file with checksums, replaced in one step (see
/// AtomicFile). The same tensors and metadata give the same bytes.
class TensorFileWriter {
 public:
  /// Keeps a reference to the tensor's storage until save(). Throws DataError for a name twice.
  template <Real T>
  void add(const std::string& name, const Tensor<T>& x);
  void metadata(const std::string& key, const std::string& value) { metadata_[key] = value; }
  /// Throws DataError for names and metadata that no reader would take, and as AtomicFile does.
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
/// tensor by tensor, each in as many pieces as is convenient. The file is replaced in one step. It
/// has no checksums: they would have to be known before the data.
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
