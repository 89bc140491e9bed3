#include "headwise/core/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "headwise/core/file.hpp"

namespace headwise {
namespace {

using nlohmann::json;

constexpr const char* kMetadata = "__metadata__";

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

template <class T>
constexpr const char* kDtype = nullptr;
template <>
constexpr const char* kDtype<float> = "F32";
template <>
constexpr const char* kDtype<double> = "F64";

/// Bytes of one element, 0 for a type the format does not have.
std::size_t element_size(const std::string& dtype) {
  static const std::map<std::string, std::size_t> sizes = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
      {"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8}};
  const auto found = sizes.find(dtype);
  return found == sizes.end() ? 0 : found->second;
}

/// The header as JSON; a name that stands twice in it is refused, where a parser would drop one.
json parse_header(const std::string& path, std::string_view text) {
  std::set<std::string> names;
  std::string twice;
  const json header = json::parse(
      text,
      [&](int depth, json::parse_event_t event, json& value) {
        if (depth == 1 && event == json::parse_event_t::key &&
            !names.insert(value.get<std::string>()).second)
          twice = value.get<std::string>();
        return true;
      },
      false);
  // (The parser takes a NUL for the end of its input.)
  require<DataError>(header.is_object() && text.find('\0') == text.npos,
                     "{}: not a safetensors file: the header is not JSON", path);
  require<DataError>(twice.empty(), "{}: tensor '{}' stands twice in the header", path, twice);
  return header;
}

/// The text of a value for a message; nested ones could be too deep to print.
std::string brief(const json& x) {
  const bool flat = !x.is_structured() || std::none_of(x.begin(), x.end(), [](const json& element) {
    return element.is_structured();
  });
  return flat ? x.dump(-1, ' ', true, json::error_handler_t::replace) : "(nested)";
}

/// Whether x is a whole number from 0 to 2^62.
bool is_count(const json& x) {
  return x.is_number_unsigned() && x.get<std::uint64_t>() <= (std::uint64_t{1} << 62);
}

TensorFile::Entry parse_entry(const std::string& path, const std::string& name, const json& x,
                              std::size_t data_bytes) {
  const auto fail = [&](const std::string& rule) {
    throw DataError(fmt::format("{}: tensor '{}': {}", path, name, rule));
  };
  if (!x.is_object() || !x.contains("dtype") || !x.contains("shape") || !x.contains("data_offsets"))
    fail("needs dtype, shape and data_offsets");
  if (!x["dtype"].is_string()) fail("dtype is not a string");
  const auto dtype = x["dtype"].get<std::string>();
  const std::size_t width = element_size(dtype);
  if (width == 0) fail(fmt::format("unknown dtype '{}'", dtype));
  const json& sizes = x["shape"];
  if (!sizes.is_array() || !std::all_of(sizes.begin(), sizes.end(), is_count))
    fail(fmt::format("shape {} is not a list of sizes", brief(sizes)));
  const json& at = x["data_offsets"];
  if (!at.is_array() || at.size() != 2 || !is_count(at[0]) || !is_count(at[1]))
    fail(fmt::format("data_offsets {} is not [begin, end]", brief(at)));
  const auto begin = at[0].get<std::size_t>(), end = at[1].get<std::size_t>();
  if (begin > end || end > data_bytes)
    fail(
        fmt::format("offsets [{}, {}] do not lie in the {} bytes of data", begin, end, data_bytes));
  const auto shape = sizes.get<std::vector<Index>>();
  Shape s;
  try {
    s = Shape(std::span<const Index>(shape));
  } catch (const ShapeError& e) {
    fail(e.what());
  }
  if ((end - begin) % width != 0 || static_cast<std::size_t>(s.size()) != (end - begin) / width)
    fail(fmt::format("shape {} of {} does not fill offsets [{}, {}]", s, dtype, begin, end));
  return {dtype, s, begin, end};
}

/// The tensors must cover the data exactly, in whatever order they are listed.
void check_tiling(const std::string& path, const std::map<std::string, TensorFile::Entry>& entries,
                  std::size_t data_bytes) {
  std::vector<std::pair<const TensorFile::Entry*, const std::string*>> order;
  for (const auto& [name, entry] : entries) order.emplace_back(&entry, &name);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first->begin, a.first->end) < std::pair(b.first->begin, b.first->end);
  });
  std::size_t covered = 0;
  for (const auto& [entry, name] : order) {
    require<DataError>(entry->begin == covered, "{}: tensor '{}': begins at byte {}, {} {}", path,
                       *name, entry->begin,
                       entry->begin < covered ? "overlapping the one before, which ends at"
                                              : "leaving a hole after byte",
                       covered);
    covered = entry->end;
  }
  require<DataError>(covered == data_bytes, "{}: {} bytes of data, but the tensors end at {}", path,
                     data_bytes, covered);
}

}  // namespace

TensorFile::TensorFile(const std::string& path) : path_(path), bytes_(read_file(path)) {
  constexpr std::size_t kPrefix = 8;
  require<DataError>(bytes_.size() >= kPrefix, "{}: not a safetensors file: only {} bytes", path,
                     bytes_.size());
  std::uint64_t length = 0;
  std::memcpy(&length, bytes_.data(), kPrefix);
  require<DataError>(length >= 2 && length <= bytes_.size() - kPrefix,
                     "{}: not a safetensors file: its first 8 bytes give a header of {} bytes, the "
                     "file has {}",
                     path, length, bytes_.size());
  require<DataError>(bytes_[kPrefix] == '{',
                     "{}: not a safetensors file: the header does not start with '{{'", path);
  data_ = kPrefix + length;
  const std::size_t data_bytes = bytes_.size() - data_;
  const json header = parse_header(path, std::string_view(bytes_).substr(kPrefix, length));
  for (const auto& [name, x] : header.items()) {
    if (name != kMetadata) {
      entries_.emplace(name, parse_entry(path, name, x, data_bytes));
      continue;
    }
    require<DataError>(x.is_object(), "{}: __metadata__ is not an object", path);
    for (const auto& [key, value] : x.items()) {
      require<DataError>(value.is_string(), "{}: metadata '{}' is not a string", path, key);
      metadata_.emplace(key, value.get<std::string>());
    }
  }
  check_tiling(path, entries_, data_bytes);
}

const TensorFile::Entry& TensorFile::entry(const std::string& name,
                                           const std::string& dtype) const {
  const auto found = entries_.find(name);
  require<DataError>(found != entries_.end(), "{}: has no tensor '{}'", path_, name);
  require<DataError>(found->second.dtype == dtype, "{}: tensor '{}' is {}, not {}", path_, name,
                     found->second.dtype, dtype);
  return found->second;
}

template <Real T>
Tensor<T> TensorFile::tensor(const std::string& name) const {
  const Entry& e = entry(name, kDtype<T>);
  Tensor<T> x = Tensor<T>::uninitialized(e.shape);
  std::memcpy(x.data(), bytes_.data() + data_ + e.begin, e.end - e.begin);
  return x;
}

Ids TensorFile::ids(const std::string& name) const {
  const Entry& e = entry(name, "I64");
  std::vector<Id> values;
  for (std::size_t at = e.begin; at < e.end; at += sizeof(std::int64_t)) {
    std::int64_t v = 0;
    std::memcpy(&v, bytes_.data() + data_ + at, sizeof v);
    require<DataError>(std::in_range<Id>(v), "{}: tensor '{}': {} is no id", path_, name, v);
    values.push_back(static_cast<Id>(v));
  }
  return {e.shape, std::move(values)};
}

namespace {

/// What a file begins with: the header's length and the header.
std::string beginning(const std::string& path, const json& header) {
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception& e) {
    throw DataError(fmt::format("{}: a name or metadata is not UTF-8: {}", path, e.what()));
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data is aligned
  const std::uint64_t length = text.size();
  std::string prefix(sizeof length, '\0');
  std::memcpy(prefix.data(), &length, sizeof length);
  return prefix + text;
}

json header_entry(const std::string& dtype, const Shape& shape, std::size_t begin,
                  std::size_t bytes) {
  return {{"dtype", dtype}, {"shape", shape.sizes()}, {"data_offsets", {begin, begin + bytes}}};
}

}  // namespace

template <Real T>
void TensorFileWriter::add(const std::string& name, const Tensor<T>& x) {
  require<DataError>(!x.empty(), "tensor file: '{}' is no tensor", name);
  require<DataError>(name != kMetadata, "tensor file: '{}' cannot be a tensor's name", name);
  require<DataError>(!items_.contains(name), "tensor file: '{}' is added twice", name);
  const auto kept = std::make_shared<const Tensor<T>>(x);
  items_[name] = {kDtype<T>,
                  x.shape(),
                  kept,
                  {reinterpret_cast<const char*>(kept->data()),
                   static_cast<std::size_t>(x.size()) * sizeof(T)}};
}

void TensorFileWriter::save(AtomicFile file) const {
  json header = json::object();
  if (!metadata_.empty()) header[kMetadata] = metadata_;
  std::size_t at = 0;
  for (const auto& [name, item] : items_) {
    header[name] = header_entry(item.dtype, item.shape, at, item.bytes.size());
    at += item.bytes.size();
  }
  file.write(beginning(file.path(), header));
  for (const auto& [name, item] : items_) file.write(item.bytes);
  file.finish();
}

TensorFileStream::TensorFileStream(const std::string& path, const std::vector<Item>& items)
    : file_(path), items_(items) {
  json header = json::object();
  std::size_t at = 0;
  for (const Item& item : items) {
    require<DataError>(!header.contains(item.name), "{}: '{}' is announced twice", path, item.name);
    const std::size_t bytes =
        static_cast<std::size_t>(item.shape.size()) * element_size(item.dtype);
    header[item.name] = header_entry(item.dtype, item.shape, at, bytes);
    at += bytes;
  }
  file_.write(beginning(path, header));
}

template <class Number>
void TensorFileStream::write(std::span<const Number> x, std::string_view dtype) {
  if (x.empty()) return;
  pass_full();
  require<DataError>(at_ < items_.size(), "tensor file: {} numbers more than were announced",
                     x.size());
  const Item& item = items_[at_];
  require<DataError>(item.dtype == dtype, "tensor file: '{}' is {}, not {}", item.name, item.dtype,
                     dtype);
  written_ += std::ssize(x);
  require<DataError>(written_ <= item.shape.size(), "tensor file: {} numbers do not fit '{}' {}",
                     written_, item.name, item.shape);
  file_.write({reinterpret_cast<const char*>(x.data()), x.size_bytes()});
}

void TensorFileStream::pass_full() {
  while (at_ < items_.size() && written_ == items_[at_].shape.size()) ++at_, written_ = 0;
}

void TensorFileStream::finish() {
  pass_full();
  require<DataError>(at_ == items_.size(), "tensor file: '{}' has {} numbers, not {}",
                     at_ < items_.size() ? items_[at_].name : "", written_,
                     at_ < items_.size() ? items_[at_].shape.size() : 0);
  file_.finish();
}

template void TensorFileStream::write(std::span<const float>, std::string_view);
template void TensorFileStream::write(std::span<const double>, std::string_view);
template void TensorFileStream::write(std::span<const std::int64_t>, std::string_view);
template Tensor<float> TensorFile::tensor(const std::string&) const;
template Tensor<double> TensorFile::tensor(const std::string&) const;
template void TensorFileWriter::add(const std::string&, const Tensor<float>&);
template void TensorFileWriter::add(const std::string&, const Tensor<double>&);

}  // namespace headwise
