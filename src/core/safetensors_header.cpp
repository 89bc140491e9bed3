#include "core/safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/json.hpp"
#include "headwise/core/hash.hpp"
#include "headwise/core/printable.hpp"

namespace headwise {
namespace {

using nlohmann::json;

constexpr std::string_view kMetadata = "__metadata__";

// kKind, the digest of the header with zeros in its own place, and one of each tensor.
constexpr std::string_view kChecksum = "headwise_checksum", kKind = "headwise xxh64:";
constexpr std::size_t kDigestDigits = 16;

std::string digits(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

std::optional<std::uint64_t> parse_digits(std::string_view text) {
  std::uint64_t x = 0;
  for (const char c : text) {
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return std::nullopt;
    x = x << 4 | static_cast<std::uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  return x;
}

/// The digest of a header whose checksums are at `at`, with zeros for the digest itself.
std::string header_digest(std::string_view text, std::size_t at) {
  Xxh64 hash;
  hash.add(text.substr(0, at + kKind.size()));
  hash.add(std::string(kDigestDigits, '0'));
  hash.add(text.substr(at + kKind.size() + kDigestDigits));
  return digits(hash.value());
}

/// Makes entries and metadata of a header's JSON as it comes.
class HeaderEvents : public JsonEvents {
 public:
  HeaderEvents(const std::string& path, std::size_t data_bytes)
      : path_(path), data_bytes_(data_bytes) {}
  TensorHeader take() { return std::move(header_); }

  bool null() override { return other("null"); }
  bool boolean(bool x) override { return other(x ? "true" : "false"); }
  bool number_integer(json::number_integer_t x) override { return other(fmt::to_string(x)); }
  bool number_float(json::number_float_t, const std::string& s) override { return other(s); }
  bool binary(json::binary_t&) override { return false; }  // no text has it
  bool parse_error(std::size_t, const std::string&, const json::exception&) override {
    return false;  // read_json()'s
  }

  bool number_unsigned(json::number_unsigned_t x) override {
    if (at_ != At::list || x > (std::uint64_t{1} << 62)) return other(fmt::to_string(x));
    // One more than is allowed is enough to know.
    if (std::ssize(numbers_) <= Shape::kMaxRank) numbers_.push_back(static_cast<Index>(x));
    ++count_;
    return true;
  }

  bool string(std::string& x) override {
    if (at_ == At::metadata) {
      header_.metadata.emplace_hint(header_.metadata.end(), name_, std::move(x));
      return true;
    }
    if (at_ != At::entry || field_ != "dtype") return other("a text");
    entry_.dtype = x;
    if (element_size(x) == 0) fail(fmt::format("unknown dtype '{}'", printable(x)));
    return true;
  }

  bool key(std::string& x) override {
    if (at_ == At::entry) {
      field_ = x;
      bool* const seen = x == "dtype"          ? &has_.dtype
                         : x == "shape"        ? &has_.shape
                         : x == "data_offsets" ? &has_.offsets
                                               : nullptr;
      if (seen == nullptr) fail(fmt::format("unknown key '{}'", printable(x)));
      if (*seen) fail(fmt::format("'{}' stands twice", x));
      *seen = true;
      return true;
    }
    name_ = x;
    require<DataError>(x.size() <= kMostName,
                       "{}: a name of {} bytes in the header, at most {}: {}",
                       printable_path(path_), x.size(), kMostName, printable(x));
    if (at_ == At::metadata) {
      require<DataError>(!header_.metadata.contains(x), "{}: metadata '{}' stands twice",
                         printable_path(path_), printable(x));
      require<DataError>(header_.metadata.size() < kMostTexts, "{}: more than {} texts of metadata",
                         printable_path(path_), kMostTexts);
      return true;
    }
    const bool twice =
        x == kMetadata ? std::exchange(has_metadata_, true) : header_.entries.contains(x);
    require<DataError>(!twice, "{}: tensor '{}' stands twice in the header", printable_path(path_),
                       printable(x));
    require<DataError>(header_.entries.size() < kMostTensors, "{}: more than {} tensors",
                       printable_path(path_), kMostTensors);
    return true;
  }

  bool start_object(std::size_t) override {
    if (at_ == At::start) {
      at_ = At::top;
    } else if (at_ == At::top) {
      at_ = name_ == kMetadata ? At::metadata : At::entry;
      entry_ = {};
      has_ = {};
    } else {
      return other("an object");
    }
    return true;
  }

  bool end_object() override {
    if (at_ == At::entry) add_entry();
    at_ = At::top;  // or the end, after which nothing comes
    return true;
  }

  bool start_array(std::size_t) override {
    if (at_ != At::entry || field_ == "dtype") return other("a list");
    at_ = At::list;
    numbers_.clear();
    count_ = 0;
    return true;
  }

  bool end_array() override {
    at_ = At::entry;
    if (field_ == "shape") {
      try {
        entry_.shape = Shape(std::span<const Index>(numbers_));
      } catch (const ShapeError& e) {
        fail(e.what());
      }
      return true;
    }
    if (count_ != 2) fail(fmt::format("data_offsets of {} numbers is not [begin, end]", count_));
    entry_.begin = static_cast<std::size_t>(numbers_[0]);
    entry_.end = static_cast<std::size_t>(numbers_[1]);
    return true;
  }

 private:
  enum class At { start, top, metadata, entry, list };

  /// A value that may not stand where it does.
  bool other(const std::string& x) {
    if (at_ == At::metadata)
      throw DataError(fmt::format("{}: metadata '{}' is not a string", printable_path(path_),
                                  printable(name_)));
    if (at_ == At::top && name_ == kMetadata)
      throw DataError(fmt::format("{}: __metadata__ is not an object", printable_path(path_)));
    if (at_ == At::top) fail("needs dtype, shape and data_offsets");
    if (field_ == "dtype") fail("dtype is not a string");
    fail(fmt::format("{} with {} is not {}", field_, printable(x),
                     field_ == "shape" ? "a list of sizes" : "[begin, end]"));
  }

  [[noreturn]] void fail(const std::string& rule) const {
    throw DataError(
        fmt::format("{}: tensor '{}': {}", printable_path(path_), printable(name_), rule));
  }

  void add_entry() {
    if (!has_.dtype || !has_.shape || !has_.offsets) fail("needs dtype, shape and data_offsets");
    const std::size_t begin = entry_.begin, end = entry_.end, width = element_size(entry_.dtype);
    if (begin > end || end > data_bytes_)
      fail(fmt::format("offsets [{}, {}] do not lie in the {} bytes of data", begin, end,
                       data_bytes_));
    if ((end - begin) % width != 0 ||
        static_cast<std::size_t>(entry_.shape.size()) != (end - begin) / width)
      fail(fmt::format("shape {} of {} does not fill offsets [{}, {}]", entry_.shape, entry_.dtype,
                       begin, end));
    header_.entries.emplace_hint(header_.entries.end(), name_, std::move(entry_));
  }

  const std::string& path_;
  std::size_t data_bytes_;
  TensorHeader header_;
  At at_ = At::start;
  bool has_metadata_ = false;
  std::string name_, field_;
  TensorFile::Entry entry_;
  struct {
    bool dtype = false, shape = false, offsets = false;
  } has_;
  std::vector<Index> numbers_;
  std::size_t count_ = 0;  // of the list's numbers, also those that are not kept
};

/// The tensors in the order of their data, which they must cover exactly, in whatever order the
/// header lists them.
std::vector<TensorFile::Entry*> tiling(const std::string& path, TensorHeader& header,
                                       std::size_t data_bytes) {
  std::vector<std::pair<const std::string*, TensorFile::Entry*>> order;
  order.reserve(header.entries.size());
  for (auto& [name, entry] : header.entries) order.emplace_back(&name, &entry);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second->begin, a.second->end) < std::pair(b.second->begin, b.second->end);
  });
  std::size_t covered = 0;
  std::vector<TensorFile::Entry*> entries;
  entries.reserve(order.size());
  for (const auto& [name, entry] : order) {
    require<DataError>(entry->begin == covered, "{}: tensor '{}': begins at byte {}, {} {}",
                       printable_path(path), printable(*name), entry->begin,
                       entry->begin < covered ? "overlapping the one before, which ends at"
                                              : "leaving a hole after byte",
                       covered);
    covered = entry->end;
    entries.push_back(entry);
  }
  require<DataError>(covered == data_bytes, "{}: {} bytes of data, but the tensors end at {}",
                     printable_path(path), data_bytes, covered);
  return entries;
}

/// Compares the header's checksum and gives the entries theirs.
void take_checksums(const std::string& path, std::string_view text, TensorHeader& header,
                    const std::vector<TensorFile::Entry*>& order) {
  const auto check = [&](bool ok) {
    require<DataError>(ok, "{}: damaged: its header is not the one that was saved (checksum)",
                       printable_path(path));
  };
  const auto found = header.metadata.find(std::string(kChecksum));
  if (found == header.metadata.end()) {  // and none whose key is damaged
    for (const auto& [key, value] : header.metadata) check(!value.starts_with(kKind));
    return;
  }
  const std::string value = std::move(found->second);
  header.metadata.erase(found);
  check(value.starts_with(kKind) &&
        value.size() == kKind.size() + kDigestDigits * (1 + order.size()));
  const std::size_t at = text.find(value);
  check(at != text.npos && header_digest(text, at) == value.substr(kKind.size(), kDigestDigits));
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i]->checksum = parse_digits(
        std::string_view(value).substr(kKind.size() + kDigestDigits * (1 + i), kDigestDigits));
    check(order[i]->checksum.has_value());
  }
}

/// A text as JSON has it.
std::string quoted(const std::string& path, std::string_view text) {
  try {
    return json(text).dump();
  } catch (const json::exception&) {
    throw DataError(fmt::format("{}: a name or metadata is not UTF-8: {}", printable_path(path),
                                printable(text)));
  }
}

}  // namespace

std::size_t element_size(std::string_view dtype) {
  static constexpr std::array<std::pair<std::string_view, std::size_t>, 15> kSizes = {
      {{"F32", 4},
       {"F64", 8},
       {"F16", 2},
       {"BF16", 2},
       {"I64", 8},
       {"I32", 4},
       {"I16", 2},
       {"I8", 1},
       {"U8", 1},
       {"BOOL", 1},
       {"U16", 2},
       {"U32", 4},
       {"U64", 8},
       {"F8_E4M3", 1},
       {"F8_E5M2", 1}}};
  for (const auto& [name, bytes] : kSizes)
    if (name == dtype) return bytes;
  return 0;
}

TensorHeader parse_header(const std::string& path, std::string_view text, std::size_t data_bytes) {
  HeaderEvents events(path, data_bytes);
  read_json(text, path + ": header", events);
  TensorHeader header = events.take();
  take_checksums(path, text, header, tiling(path, header, data_bytes));
  return header;
}

std::string file_beginning(const std::string& path, const std::vector<HeaderItem>& items,
                           const std::map<std::string, std::string>& metadata) {
  const bool with_checksums =
      std::all_of(items.begin(), items.end(), [](const auto& i) { return i.checksum.has_value(); });
  std::map<std::string, std::string> texts = metadata;
  std::string checksums(kKind);
  if (with_checksums) {
    checksums += std::string(kDigestDigits, '0');
    for (const HeaderItem& item : items) checksums += digits(*item.checksum);
    texts[std::string(kChecksum)] = checksums;
  }
  std::string text(kHeaderPrefix, '\0');
  text += '{';
  const auto comma = [&] { text += text.back() == '{' ? "" : ","; };
  if (!texts.empty()) {
    text += fmt::format("\"{}\":{{", kMetadata);
    for (const auto& [key, value] : texts) {
      comma();
      text += quoted(path, key) + ":" + quoted(path, value);
    }
    text += '}';
  }
  std::size_t at = 0;
  for (const HeaderItem& item : items) {
    const std::size_t end =
        at + static_cast<std::size_t>(item.shape.size()) * element_size(item.dtype);
    comma();
    text += fmt::format(R"({}:{{"data_offsets":[{},{}],"dtype":"{}","shape":[{}]}})",
                        quoted(path, item.name), at, end, item.dtype,
                        fmt::join(item.shape.sizes(), ","));
    at = end;
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data are aligned
  const std::uint64_t length = text.size() - kHeaderPrefix;
  require<DataError>(length <= kMostHeader && items.size() <= kMostTensors,
                     "{}: {} tensors with a header of {} bytes, at most {} and {}",
                     printable_path(path), items.size(), length, kMostTensors, kMostHeader);
  std::memcpy(text.data(), &length, kHeaderPrefix);
  if (with_checksums) {
    const std::string_view header = std::string_view(text).substr(kHeaderPrefix);
    const std::size_t place = header.find(checksums);
    text.replace(kHeaderPrefix + place + kKind.size(), kDigestDigits, header_digest(header, place));
  }
  return text;
}

}  // namespace headwise
