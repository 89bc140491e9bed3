#include "headwise/core/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include "core/safetensors_header.hpp"
#include "headwise/core/hash.hpp"
#include "headwise/core/printable.hpp"

namespace headwise {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

template <class T>
constexpr const char* kDtype = nullptr;
template <>
constexpr const char* kDtype<float> = "F32";
template <>
constexpr const char* kDtype<double> = "F64";

/// Numbers of 16 bits as the format stores them. Each is a float exactly.
struct Half {  // IEEE 754 binary16: a sign, 5 bits of exponent, 10 of fraction
  std::uint16_t bits;
  explicit operator float() const {
    const std::uint32_t sign = (bits & 0x8000U) << 16, exponent = bits >> 10 & 31U,
                        fraction = bits & 1023U;
    if (exponent == 0)  // times 2^-24
      return std::copysign(static_cast<float>(fraction) * 0x1p-24F, sign != 0 ? -1.0F : 1.0F);
    const std::uint32_t wide = exponent == 31 ? 255 : exponent + 127 - 15;
    return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
  }
};
struct Brain {  // the upper half of a float
  std::uint16_t bits;
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

}  // namespace

TensorFile::TensorFile(InputFile file) : file_(std::move(file)) {
  const std::string shown = printable_path(path());
  require<DataError>(file_.size() >= kHeaderPrefix, "{}: not a safetensors file: only {} bytes",
                     shown, file_.size());
  std::uint64_t length = 0;
  file_.read_at(0, &length, kHeaderPrefix);
  require<DataError>(length >= 2 && length <= file_.size() - kHeaderPrefix,
                     "{}: not a safetensors file: its first 8 bytes give a header of {} bytes, the "
                     "file has {}",
                     shown, length, file_.size());
  require<DataError>(length <= kMostHeader,
                     "{}: its first 8 bytes give a header of {} bytes, at most {} are read", shown,
                     length, kMostHeader);
  char first = 0;
  file_.read_at(kHeaderPrefix, &first, 1);
  require<DataError>(first == '{',
                     "{}: not a safetensors file: the header does not start with '{{'", shown);
  std::string text(static_cast<std::size_t>(length), '\0');
  file_.read_at(kHeaderPrefix, text.data(), text.size());
  data_ = kHeaderPrefix + length;
  TensorHeader header = parse_header(path(), text, static_cast<std::size_t>(file_.size() - data_));
  entries_ = std::move(header.entries);
  metadata_ = std::move(header.metadata);
}

const TensorFile::Entry& TensorFile::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  require<DataError>(found != entries_.end(), "{}: has no tensor '{}'", printable_path(path()),
                     printable(name));
  return found->second;
}

void TensorFile::for_each_block(const std::string& name, const Entry& entry,
                                FunctionRef<void(std::string_view)> use) const {
  constexpr std::size_t kBlock = std::size_t{1} << 18;  // stays in the cache
  std::string block(std::min(kBlock, entry.end - entry.begin), '\0');
  Xxh64 hash;
  for (std::size_t at = entry.begin; at < entry.end; at += block.size()) {
    block.resize(std::min(block.size(), entry.end - at));
    file_.read_at(data_ + at, block.data(), block.size());
    if (entry.checksum) hash.add(block);
    use(block);
  }
  require<DataError>(!entry.checksum || *entry.checksum == hash.value(),
                     "{}: damaged: tensor '{}' has not the bytes that were saved (checksum "
                     "{:016x}, saved {:016x})",
                     printable_path(path()), printable(name), hash.value(),
                     entry.checksum.value_or(0));
}

void TensorFile::verify() const {
  for (const auto& [name, entry] : entries_)
    if (entry.checksum) for_each_block(name, entry, [](std::string_view) {});
}

template <Real T>
Tensor<T> TensorFile::tensor(const std::string& name) const {
  const Entry& e = entry(name);
  require<DataError>(e.dtype == kDtype<T>, "{}: tensor '{}' is {}, not {}", printable_path(path()),
                     printable(name), e.dtype, kDtype<T>);
  Tensor<T> x = Tensor<T>::uninitialized(e.shape);
  char* to = reinterpret_cast<char*>(x.data());
  for_each_block(name, e, [&](std::string_view bytes) {
    std::memcpy(to, bytes.data(), bytes.size());
    to += bytes.size();
  });
  return x;
}

template <Real T>
Tensor<T> TensorFile::converted(const std::string& name) const {
  const Entry& e = entry(name);
  Tensor<T> x = Tensor<T>::uninitialized(e.shape);
  T* to = x.data();
  const auto read = [&]<class From>(From) {
    for_each_block(name, e, [&](std::string_view bytes) {
      for (; !bytes.empty(); bytes.remove_prefix(sizeof(From))) {
        From from;
        std::memcpy(&from, bytes.data(), sizeof from);
        if constexpr (std::is_same_v<From, double> && std::is_same_v<T, float>)
          require<DataError>(!std::isfinite(from) || std::isfinite(static_cast<float>(from)),
                             "{}: tensor '{}': {} is too large for F32", printable_path(path()),
                             printable(name), from);
        if constexpr (Real<From>)
          *to++ = static_cast<T>(from);
        else
          *to++ = static_cast<T>(static_cast<float>(from));
      }
    });
  };
  if (e.dtype == "F32")
    read(float{});
  else if (e.dtype == "F64")
    read(double{});
  else if (e.dtype == "F16")
    read(Half{});
  else if (e.dtype == "BF16")
    read(Brain{});
  else
    throw DataError(fmt::format("{}: tensor '{}' is {}, not F16, BF16, F32 or F64",
                                printable_path(path()), printable(name), e.dtype));
  return x;
}

Ids TensorFile::ids(const std::string& name) const {
  const Entry& e = entry(name);
  require<DataError>(e.dtype == "I64", "{}: tensor '{}' is {}, not I64", printable_path(path()),
                     printable(name), e.dtype);
  std::vector<Id> values;
  for_each_block(name, e, [&](std::string_view bytes) {
    for (; !bytes.empty(); bytes.remove_prefix(sizeof(std::int64_t))) {
      std::int64_t v = 0;
      std::memcpy(&v, bytes.data(), sizeof v);
      require<DataError>(std::in_range<Id>(v), "{}: tensor '{}': {} is no id",
                         printable_path(path()), printable(name), v);
      values.push_back(static_cast<Id>(v));
    }
  });
  return {e.shape, std::move(values)};
}

template <Real T>
void TensorFileWriter::add(const std::string& name, const Tensor<T>& x) {
  require<DataError>(!x.empty(), "tensor file: '{}' is no tensor", printable(name));
  require<DataError>(name != "__metadata__" && name.size() <= kMostName,
                     "tensor file: '{}' cannot be a tensor's name", printable(name));
  require<DataError>(!items_.contains(name), "tensor file: '{}' is added twice", printable(name));
  const auto kept = std::make_shared<const Tensor<T>>(x);
  items_[name] = {kDtype<T>,
                  x.shape(),
                  kept,
                  {reinterpret_cast<const char*>(kept->data()),
                   static_cast<std::size_t>(x.size()) * sizeof(T)}};
}

void TensorFileWriter::save(AtomicFile file) const {
  std::vector<HeaderItem> header;
  for (const auto& [name, item] : items_) {
    Xxh64 hash;
    hash.add(item.bytes);
    header.push_back({name, item.dtype, item.shape, hash.value()});
  }
  file.write(file_beginning(file.path(), header, metadata_));
  for (const auto& [name, item] : items_) file.write(item.bytes);
  file.finish();
}

TensorFileStream::TensorFileStream(const std::string& path, const std::vector<Item>& items)
    : file_(path), items_(items) {
  std::set<std::string_view> names;
  std::vector<HeaderItem> header;
  for (const Item& item : items) {
    require<DataError>(names.insert(item.name).second, "{}: '{}' is announced twice",
                       printable_path(path), printable(item.name));
    header.push_back({item.name, item.dtype, item.shape, std::nullopt});
  }
  file_.write(file_beginning(path, header, {}));
}

template <class Number>
void TensorFileStream::write(std::span<const Number> x, std::string_view dtype) {
  if (x.empty()) return;
  pass_full();
  require<DataError>(at_ < items_.size(), "tensor file: {} numbers more than were announced",
                     x.size());
  const Item& item = items_[at_];
  require<DataError>(item.dtype == dtype, "tensor file: '{}' is {}, not {}", printable(item.name),
                     item.dtype, dtype);
  written_ += std::ssize(x);
  require<DataError>(written_ <= item.shape.size(), "tensor file: {} numbers do not fit '{}' {}",
                     written_, printable(item.name), item.shape);
  file_.write({reinterpret_cast<const char*>(x.data()), x.size_bytes()});
}

void TensorFileStream::pass_full() {
  while (at_ < items_.size() && written_ == items_[at_].shape.size()) ++at_, written_ = 0;
}

void TensorFileStream::finish() {
  pass_full();
  require<DataError>(at_ == items_.size(), "tensor file: '{}' has {} numbers, not {}",
                     at_ < items_.size() ? printable(items_[at_].name) : "", written_,
                     at_ < items_.size() ? items_[at_].shape.size() : 0);
  file_.finish();
}

template void TensorFileStream::write(std::span<const float>, std::string_view);
template void TensorFileStream::write(std::span<const double>, std::string_view);
template void TensorFileStream::write(std::span<const std::int64_t>, std::string_view);
template Tensor<float> TensorFile::tensor(const std::string&) const;
template Tensor<double> TensorFile::tensor(const std::string&) const;
template Tensor<float> TensorFile::converted(const std::string&) const;
template Tensor<double> TensorFile::converted(const std::string&) const;
template void TensorFileWriter::add(const std::string&, const Tensor<float>&);
template void TensorFileWriter::add(const std::string&, const Tensor<double>&);

}  // namespace headwise
